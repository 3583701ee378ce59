package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Origin says where a value came from.
type Origin struct {
	Source string // a file, a flag, a variable
	Line   int    // in a file; 0 = not a file
}

// String returns file:line, or the source.
func (o Origin) String() string {
	if o.Line > 0 {
		return fmt.Sprintf("%s:%d", o.Source, o.Line)
	}
	return o.Source
}

// Origins says of every key that is not at its default where its value came
// from. Keys are full paths such as tools.shell.timeout.
type Origins map[string]Origin

// Locate adds to a mistake that was found while starting the place where the
// key it names was set: a line of the file, a flag. Like the checks here, such
// a mistake names its key first. The error of a key that is at its default, or
// that names no key, is returned as it is.
func (o Origins) Locate(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, o.Locate(e))
		}
		return errors.Join(errs...)
	}
	key, text, ok := strings.Cut(err.Error(), ": ")
	if !ok || strings.ContainsAny(key, " \t") {
		return err
	}
	for k := key; k != ""; k = k[:max(strings.LastIndexAny(k, ".["), 0)] {
		switch at, ok := o[k]; {
		case ok && at.Line > 0:
			return &Error{File: at.Source, Line: at.Line, Key: key, Text: text}
		case ok:
			return &Error{File: at.Source, Text: text}
		}
	}
	return err
}

// writer writes a config as TOML.
type writer struct {
	b       strings.Builder
	origins Origins
	show    bool // with origins, without secrets
}

// render returns a struct as a TOML document, secrets included.
func render(cfg any) string {
	w := &writer{}
	w.table(reflect.ValueOf(cfg), "")
	return strings.TrimLeft(w.b.String(), "\n")
}

// show returns a struct as a TOML document for people: the origin after each
// value, and [redacted] in place of secrets.
func show(cfg any, o Origins) string {
	w := &writer{origins: o, show: true}
	w.table(reflect.ValueOf(cfg), "")
	return strings.TrimLeft(w.b.String(), "\n")
}

// table writes the plain keys of a table first, then the tables in it.
func (w *writer) table(v reflect.Value, key string) {
	tab := tableOf(v.Type())
	var later []field
	for _, f := range tab.fields {
		if fv := v.FieldByIndex(f.index); !nested(fv) {
			w.line(f.name, fv, join(key, f.name))
		} else {
			later = append(later, f)
		}
	}
	for _, f := range later {
		w.nested(v.FieldByIndex(f.index), join(key, f.name))
	}
	if tab.rest != nil {
		w.entries(v.FieldByIndex(tab.rest.index), key)
	}
}

// nested reports whether a value is written under headers of its own.
func nested(v reflect.Value) bool {
	t := v.Type()
	return isTable(t) || t.Kind() == reflect.Map || t.Kind() == reflect.Slice && isTable(t.Elem()) && v.Len() > 0
}

func (w *writer) nested(v reflect.Value, key string) {
	switch v.Kind() { //nolint:exhaustive // a config holds only these kinds
	case reflect.Map:
		if v.Len() > 0 {
			w.header(key)
		}
		w.entries(v, key)
	case reflect.Slice:
		for i := range v.Len() {
			fmt.Fprintf(&w.b, "\n[[%s]]\n", path(key))
			w.table(v.Index(i), fmt.Sprintf("%s[%d]", key, i))
		}
	default:
		w.header(key)
		w.table(v, key)
	}
}

func (w *writer) header(key string) { fmt.Fprintf(&w.b, "\n[%s]\n", path(key)) }

// path is a key as a header names it: the last element of a list is meant
// there without its number.
func path(key string) string {
	var b strings.Builder
	quoted, number := false, false
	for i := range len(key) {
		switch c := key[i]; {
		case c == '"' && (i == 0 || key[i-1] != '\\'):
			quoted = !quoted
		case !quoted && (c == '[' || c == ']'):
			number = c == '['
			continue
		}
		if !number {
			b.WriteByte(key[i])
		}
	}
	return b.String()
}

func (w *writer) entries(m reflect.Value, key string) {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, plain := range []bool{true, false} {
		for _, k := range keys {
			v := m.MapIndex(k)
			if nested(v) == plain {
				continue
			}
			if plain {
				w.line(k.String(), v, join(key, k.String()))
			} else {
				w.nested(v, join(key, k.String()))
			}
		}
	}
}

func (w *writer) line(name string, v reflect.Value, key string) {
	text := literal(name, v)
	if w.show && isSecret(name, v.Type()) && v.Len() > 0 {
		text = `"[redacted]"`
	}
	fmt.Fprintf(&w.b, "%s = %s", quoteKey(name), text)
	if w.show {
		origin := "default"
		if o, ok := w.origins[key]; ok {
			origin = o.String()
		}
		fmt.Fprintf(&w.b, "  # %s", strings.Join(strings.Fields(origin), " "))
	}
	w.b.WriteByte('\n')
}

// literal returns a value as TOML writes it.
func literal(name string, v reflect.Value) string {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return durationLiteral(name, time.Duration(v.Int()))
	}
	if m, ok := reflect.TypeAssert[interface{ Reveal() string }](v); ok {
		return quote(m.Reveal())
	}
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
		text, err := m.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("config: %s cannot be written: %v", v.Type(), err))
		}
		return quote(string(text))
	}
	switch v.Kind() { //nolint:exhaustive // a config holds only these kinds
	case reflect.String:
		return quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = literal(name, v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Float32, reflect.Float64:
		s := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".ein") {
			s += ".0"
		}
		return strings.ToLower(strings.TrimPrefix(s, "+"))
	}
	if v.CanInt() {
		return strconv.FormatInt(v.Int(), 10)
	}
	return strconv.FormatUint(v.Uint(), 10)
}

func durationLiteral(name string, d time.Duration) string {
	if each, _ := unit(name); each > 0 {
		return strconv.FormatInt(int64(d/each), 10)
	}
	s := d.String()
	if d != 0 && strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if d != 0 && strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return quote(s)
}

// quote returns a text as a basic TOML string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // an invalid byte becomes U+FFFD
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoteKey returns a key as it stands in a dotted path.
func quoteKey(name string) string {
	for i := range len(name) {
		if !isBare(name[i]) {
			return quote(name)
		}
	}
	if name == "" || !utf8.ValidString(name) {
		return quote(name)
	}
	return name
}
