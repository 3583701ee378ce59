package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
)

// Error is one mistake in a config file.
type Error struct {
	File   string
	Line   int // counts from 1; 0 = not known
	Column int // 0 = not known
	Key    string
	Text   string
}

// Error returns file:line: key: what is wrong.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Column > 0 {
		fmt.Fprintf(&b, ":%d", e.Column)
	}
	if e.Key != "" {
		fmt.Fprintf(&b, ": %s", e.Key)
	}
	return b.String() + ": " + e.Text
}

// decoder fills a config from a parsed file and collects every mistake.
type decoder struct {
	file    string
	lines   positions
	origins Origins
	errs    []*Error
	known   []string // every key of the whole config, for "it belongs there"
}

// decode reads src over the values in into, which must be a pointer to a
// struct. Keys must be written exactly as the tags say. The error joins every
// mistake as an [*Error], in the order of the file.
func decode(src, file string, into any) (Origins, error) {
	d := &decoder{file: file, origins: Origins{}}
	var tree map[string]any
	if _, err := toml.Decode(src, &tree); err != nil {
		return nil, d.syntax(err)
	}
	d.lines = scan(src)
	root := reflect.ValueOf(into).Elem()
	d.known = keysOf(root.Type(), "")
	d.table(tree, root, "")
	slices.SortStableFunc(d.errs, func(a, b *Error) int { return a.Line - b.Line })
	errs := make([]error, len(d.errs))
	for i, e := range d.errs {
		errs[i] = e
	}
	return d.origins, errors.Join(errs...)
}

func (d *decoder) syntax(err error) error {
	if p, ok := errors.AsType[toml.ParseError](err); ok {
		return &Error{File: d.file, Line: p.Position.Line, Column: p.Position.Col, Text: "not valid TOML: " + p.Message}
	}
	return &Error{File: d.file, Text: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
}

func (d *decoder) fault(key, format string, args ...any) {
	d.errs = append(d.errs, &Error{File: d.file, Line: d.lines.line(key), Key: key, Text: fmt.Sprintf(format, args...)})
}

func join(key, name string) string {
	if key == "" {
		return quoteKey(name)
	}
	return key + "." + quoteKey(name)
}

func (d *decoder) table(tree map[string]any, v reflect.Value, key string) {
	tab := tableOf(v.Type())
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		at := join(key, name)
		if f, ok := tab.find(name); ok {
			d.value(tree[name], v.FieldByIndex(f.index), at, name)
			continue
		}
		if tab.rest != nil && !d.meant(name, tab.names(), at, tree[name]) {
			d.entry(tree[name], v.FieldByIndex(tab.rest.index), at, name)
			continue
		}
		if tab.rest == nil {
			d.unknown(name, tab.names(), at)
		}
	}
}

// meant reports a key that can only be one of the named ones in other letters,
// in a table where other keys are free.
func (d *decoder) meant(name string, names []string, at string, value any) bool {
	near, ok := suggest.Nearest(name, names)
	_, isTable := value.(map[string]any)
	_, isTables := value.([]map[string]any)
	if !ok || isTable || isTables {
		return false
	}
	d.fault(at, "unknown key; did you mean %q?", near)
	return true
}

func (d *decoder) unknown(name string, siblings []string, at string) {
	near, ok := suggest.Nearest(name, siblings)
	switch {
	case ok && strings.EqualFold(near, name):
		d.fault(at, "unknown key; keys are lower case: write %q", near)
	case ok:
		d.fault(at, "unknown key; did you mean %q?", near)
	default:
		if place := d.elsewhere(name); place != "" {
			d.fault(at, "unknown key here; it belongs at %s", place)
			return
		}
		d.fault(at, "unknown key; known here: %s", strings.Join(siblings, ", "))
	}
}

// elsewhere finds the one place where a key of that name is known.
func (d *decoder) elsewhere(name string) string {
	found := ""
	for _, k := range d.known {
		if k != name && !strings.HasSuffix(k, "."+name) {
			continue
		}
		if found != "" {
			return ""
		}
		found = k
	}
	return found
}

// keysOf lists every key and table below a struct type, with its full path.
func keysOf(t reflect.Type, key string) []string {
	var out []string
	tab := tableOf(t)
	for _, f := range tab.fields {
		at := join(key, f.name)
		out = append(out, at)
		if isTable(f.typ) {
			out = append(out, keysOf(f.typ, at)...)
		}
	}
	return out
}

// entry decodes one entry of a map.
func (d *decoder) entry(raw any, m reflect.Value, key, name string) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	v := reflect.New(m.Type().Elem()).Elem()
	d.value(raw, v, key, name)
	m.SetMapIndex(reflect.ValueOf(name), v)
}

func (d *decoder) value(raw any, v reflect.Value, key, name string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d.duration(raw, v, key, name)
	case isText(v.Type()):
		d.text(raw, v, key)
	default:
		d.kind(raw, v, key, name)
	}
	if !isTable(v.Type()) {
		d.origins[key] = Origin{Source: d.file, Line: d.lines.line(key)}
	}
}

func (d *decoder) kind(raw any, v reflect.Value, key, name string) {
	switch v.Kind() { //nolint:exhaustive // a config holds only these kinds
	case reflect.Struct:
		if tree, ok := raw.(map[string]any); ok {
			d.table(tree, v, key)
			return
		}
		d.fault(key, "expected a table, got %s", describe(raw))
	case reflect.Map:
		tree, ok := raw.(map[string]any)
		if !ok {
			d.fault(key, "expected a table, got %s", describe(raw))
			return
		}
		for _, k := range slices.Sorted(maps.Keys(tree)) {
			d.entry(tree[k], v, join(key, k), k)
		}
	case reflect.Slice:
		d.list(raw, v, key, name)
	case reflect.String:
		if s, ok := raw.(string); ok {
			v.SetString(s)
			return
		}
		d.fault(key, "expected a text in quotes, got %s", describe(raw))
	case reflect.Bool:
		if b, ok := raw.(bool); ok {
			v.SetBool(b)
			return
		}
		d.fault(key, "expected true or false, got %s", describe(raw))
	default:
		d.number(raw, v, key)
	}
}

func (d *decoder) number(raw any, v reflect.Value, key string) {
	n, whole := raw.(int64)
	switch {
	case v.CanInt():
		if whole && !v.OverflowInt(n) {
			v.SetInt(n)
			return
		}
	case v.CanUint():
		if whole && n >= 0 && !v.OverflowUint(uint64(n)) {
			v.SetUint(uint64(n))
			return
		}
	case v.CanFloat():
		if f, ok := raw.(float64); ok {
			v.SetFloat(f)
			return
		}
		if whole {
			v.SetFloat(float64(n))
			return
		}
		d.fault(key, "expected a number, got %s", describe(raw))
		return
	default:
		panic(fmt.Sprintf("config: %s has a type no file can hold: %s", key, v.Type()))
	}
	if whole {
		d.fault(key, "%d is out of range", n)
		return
	}
	d.fault(key, "expected a whole number, got %s", describe(raw))
}

func (d *decoder) list(raw any, v reflect.Value, key, name string) {
	var items []any
	switch raw := raw.(type) {
	case []any:
		items = raw
	case []map[string]any:
		for _, m := range raw {
			items = append(items, m)
		}
	default:
		d.fault(key, "expected a list in [ ], got %s", describe(raw))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		d.value(item, out.Index(i), fmt.Sprintf("%s[%d]", key, i), name)
	}
	v.Set(out)
}

func (d *decoder) text(raw any, v reflect.Value, key string) {
	s, ok := raw.(string)
	if !ok {
		d.fault(key, "expected a text in quotes, got %s", describe(raw))
		return
	}
	u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	if !ok {
		panic(fmt.Sprintf("config: %s cannot be read from text", v.Type()))
	}
	if err := u.UnmarshalText([]byte(s)); err != nil {
		d.fault(key, "%v", err)
	}
}

func (d *decoder) duration(raw any, v reflect.Value, key, name string) {
	each, unitName := unit(name)
	n, whole := raw.(int64)
	s, isText := raw.(string)
	switch {
	case each > 0 && whole && n <= int64(1<<62)/int64(each) && n >= 0:
		v.SetInt(n * int64(each))
	case each > 0:
		d.fault(key, "expected a whole number of %s, got %s", unitName, describe(raw))
	case isText:
		parsed, err := time.ParseDuration(s)
		if err != nil {
			d.fault(key, `%q is not a duration; write it as "30s", "5m" or "1h30m"`, s)
			return
		}
		v.SetInt(int64(parsed))
	case whole:
		d.fault(key, `a duration needs a unit; write it in quotes, such as "%ds"`, n)
	default:
		d.fault(key, `expected a duration in quotes, such as "30s", got %s`, describe(raw))
	}
}

// describe names a value of the file for a message.
func describe(raw any) string {
	switch raw := raw.(type) {
	case string:
		return fmt.Sprintf("the text %.40q", raw)
	case int64:
		return fmt.Sprintf("the number %d", raw)
	case float64:
		return fmt.Sprintf("the number %v", raw)
	case bool:
		return fmt.Sprintf("%v", raw)
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "a list"
	}
	return "a date or time"
}
