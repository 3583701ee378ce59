package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// DecodeArgs reads canonical arguments, which the registry has checked against
// the schema, into v. It is for [Tool.Facts]; a Run reads them with
// [gates.Authorized.Decode]. Every error names the argument at fault.
func DecodeArgs(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return nil
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(t.Value, " ")
		return call.TypeError(t.Field, fmt.Sprintf("is %s, not %s", article(kind), article(jsonType(t.Type))),
			"give "+t.Field+" as "+article(jsonType(t.Type)))
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, err := strconv.Unquote(quoted); err == nil {
			return call.ArgError(clip(name, 64), "there is no such argument", "see the tool's input schema")
		}
	}
	return call.ArgError("", "the arguments do not fit the tool: "+err.Error(), "see the tool's input schema")
}

// jsonType is how JSON Schema calls what a Go type is read from.
func jsonType(t reflect.Type) string {
	for _, k := range []struct {
		name  string
		kinds []reflect.Kind
	}{
		{"string", []reflect.Kind{reflect.String}},
		{"boolean", []reflect.Kind{reflect.Bool}},
		{"array", []reflect.Kind{reflect.Slice, reflect.Array}},
		{"object", []reflect.Kind{reflect.Struct, reflect.Map}},
		{"number", []reflect.Kind{reflect.Float32, reflect.Float64}},
	} {
		if slices.Contains(k.kinds, t.Kind()) {
			return k.name
		}
	}
	if t.Kind() == reflect.Pointer {
		return jsonType(t.Elem())
	}
	return "integer"
}

// EncodeResult makes the structured result of v; text stays readable in it.
func EncodeResult(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
