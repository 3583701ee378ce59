package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
)

// schema is one tool's closed input schema. It is checked for shape at
// registration and compiled at first use, because compiling fourteen schemas
// costs more than the rest of start-up.
type schema struct {
	compiled func() (*jsonschema.Schema, error)
	root     node
}

// node is the part of a JSON Schema that shape checks and hints read.
type node struct {
	Type       any             `json:"type"`
	Properties map[string]node `json:"properties"`
	Additional json.RawMessage `json:"additionalProperties"`
	Required   []string        `json:"required"`
	Items      *node           `json:"items"`
	Enum       []any           `json:"enum"`
	Min        *float64        `json:"minimum"`
	Max        *float64        `json:"maximum"`
	MinLength  *int            `json:"minLength"`
	MaxLength  *int            `json:"maxLength"`
	MaxItems   *int            `json:"maxItems"`
	AnyOf      []node          `json:"anyOf"`
}

func newInputSchema(name string, raw json.RawMessage) (*schema, error) {
	s := &schema{}
	if err := json.Unmarshal(raw, &s.root); err != nil {
		return nil, err
	}
	if s.root.Type != "object" {
		return nil, errors.New("root must have type object")
	}
	if err := s.root.checkClosed("$"); err != nil {
		return nil, err
	}
	s.compiled = sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSchema(name, raw) })
	return s, nil
}

// compileSchema compiles raw against JSON Schema 2020-12.
func compileSchema(name string, raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	url := "mem:" + name
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// checkClosed refuses an object that accepts members it does not describe.
func (n node) checkClosed(at string) error {
	if n.Type == "object" {
		switch string(bytes.TrimSpace(n.Additional)) {
		case "", "true", "null", "{}":
			return fmt.Errorf("%s is an open object: set additionalProperties", at)
		}
	}
	for name, p := range n.Properties {
		if err := p.checkClosed(at + "." + name); err != nil {
			return err
		}
	}
	if n.Items != nil {
		return n.Items.checkClosed(at + "[]")
	}
	return nil
}

// checkOutputSchema makes sure that an error result fits too: two of the big
// clients validate structured content of errors against the same schema.
func checkOutputSchema(raw json.RawMessage) error {
	var n node
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	if n.Type != "object" {
		return errors.New("root must have type object")
	}
	if len(n.Required) > 0 {
		return errors.New("nothing may be required: error results must fit too")
	}
	if string(bytes.TrimSpace(n.Additional)) == "false" {
		return errors.New("the root must stay open: error results must fit too")
	}
	return nil
}

// validate checks canonical arguments. The first fault in document order is
// reported as a [*call.Error] that names the field and what would be right.
func (s *schema) validate(args json.RawMessage) error {
	sch, err := s.compiled()
	if err != nil {
		return fmt.Errorf("compile schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return fmt.Errorf("read canonical arguments: %w", err)
	}
	err = sch.Validate(doc)
	if err == nil {
		return s.root.checkRange(doc, "")
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return fmt.Errorf("validate arguments: %w", err)
	}
	return s.explain(firstLeaf(ve))
}

// firstLeaf finds the leaf error to report: unknown members first, since a
// misspelt required field shows up as both, then by place in the document.
func firstLeaf(ve *jsonschema.ValidationError) *jsonschema.ValidationError {
	var leaves []*jsonschema.ValidationError
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			leaves = append(leaves, e)
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(ve)
	rank := func(e *jsonschema.ValidationError) int {
		switch e.ErrorKind.(type) {
		case *kind.AdditionalProperties:
			return 0
		case *kind.Required:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	return leaves[0]
}

func (s *schema) explain(e *jsonschema.ValidationError) error {
	field, at := fieldName(e.InstanceLocation), s.root.at(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		return unknownField(e.InstanceLocation, k.Properties[0], at)
	case *kind.Required:
		name := join(field, k.Missing[0])
		return call.ArgError(name, "this argument is required and missing", "add "+name+at.Properties[k.Missing[0]].hint())
	case *kind.Type:
		return call.TypeError(field, fmt.Sprintf("is %s, not %s", article(k.Got), article(strings.Join(k.Want, " or "))), "give "+field+at.hint())
	case *kind.Enum:
		return call.ArgError(field, fmt.Sprintf("%s is not one of the values it can have", show(k.Got)), "use one of "+list(k.Want))
	}
	p := message.NewPrinter(language.English)
	if got, ok := at.outside(e.ErrorKind); ok {
		return call.ArgError(field, got, "give "+field+at.hint())
	}
	return call.ArgError(field, e.ErrorKind.LocalizedString(p), "give "+field+at.hint())
}

// outside says in what way a value does not fit its bounds.
func (n node) outside(k jsonschema.ErrorKind) (string, bool) {
	switch k.(type) {
	case *kind.Minimum:
		return "is too small", true
	case *kind.Maximum:
		return "is too large", true
	case *kind.MinLength:
		if n.MinLength != nil && *n.MinLength == 1 {
			return "is empty", true
		}
		return "is too short", true
	case *kind.MaxLength:
		return "is too long", true
	case *kind.MaxItems:
		return "has too many entries", true
	}
	return "", false
}

// checkRange refuses integers that no tool could hold: a schema without a
// maximum permits them, and reading them would fail later with less to say.
func (n node) checkRange(v any, at string) error {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := n.at([]string{name}).checkRange(v[name], join(at, name)); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			if err := n.at([]string{strconv.Itoa(i)}).checkRange(e, join(at, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case json.Number:
		const most = 1<<53 - 1
		if f, err := v.Float64(); n.Type == "integer" && (err != nil || f > most || f < -most) {
			return call.ArgError(at, "is too large", "give "+at+n.hint())
		}
	}
	return nil
}

func unknownField(at []string, name string, parent node) error {
	names := make([]string, 0, len(parent.Properties))
	for n := range parent.Properties {
		names = append(names, n)
	}
	slices.Sort(names)
	hint := "it takes " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "it takes no arguments: send {}"
	}
	for _, n := range names {
		if strings.EqualFold(n, name) {
			hint = "names are case-sensitive: write " + n
			return call.ArgError(join(fieldName(at), name), "there is no such argument", hint)
		}
	}
	if near, ok := suggest.Nearest(name, names); ok {
		hint = "did you mean " + near + "? " + hint
	}
	return call.ArgError(join(fieldName(at), clip(name, 64)), "there is no such argument", hint)
}

// at finds the schema of an instance location, the zero node when there is
// none.
func (n node) at(loc []string) node {
	for _, step := range loc {
		switch {
		case n.Items != nil:
			n = *n.Items
		default:
			p, ok := n.Properties[step]
			if !ok {
				_ = json.Unmarshal(n.Additional, &p) // false and true describe nothing
			}
			n = p
		}
	}
	return n
}

// hint says what a value should look like.
func (n node) hint() string {
	switch {
	case len(n.Enum) > 0:
		return " as one of " + list(n.Enum)
	case n.Type != nil:
		return " as " + article(fmt.Sprint(n.Type)) + n.bounds()
	}
	return ""
}

// bounds says what a value may be at least and at most.
func (n node) bounds() string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case n.Min != nil && n.Max != nil:
		return " from " + number(*n.Min) + " to " + number(*n.Max)
	case n.Min != nil:
		return " of at least " + number(*n.Min)
	case n.Max != nil:
		return " of at most " + number(*n.Max)
	case n.MaxLength != nil:
		return fmt.Sprintf(" of at most %d characters", *n.MaxLength)
	case n.MaxItems != nil:
		return fmt.Sprintf(" of at most %d entries", *n.MaxItems)
	case n.MinLength != nil && *n.MinLength == 1:
		return " that is not empty"
	case n.MinLength != nil:
		return fmt.Sprintf(" of at least %d characters", *n.MinLength)
	}
	return ""
}

func article(t string) string {
	switch t {
	case "null":
		return "null"
	case "array", "object", "integer":
		return "an " + t
	}
	return "a " + t
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v", v)
	}
	return clip(string(b), 64)
}

func list(vs []any) string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = show(v)
	}
	return strings.Join(out, ", ")
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// fieldName writes an instance location as the dotted path users write.
func fieldName(loc []string) string {
	steps := make([]string, len(loc))
	for i, step := range loc {
		steps[i] = clip(step, 64)
	}
	return strings.Join(steps, ".")
}
