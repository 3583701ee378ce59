package tools

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// DecodeArgs reads canonical arguments, which the registry has checked against
// the schema, into v. It is for [Tool.Facts]; a Run reads them with
// [gates.Authorized.Decode].
func DecodeArgs(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return call.ArgError("", "the arguments do not fit the tool: "+err.Error(), "see the tool's input schema")
	}
	return nil
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
