package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
)

// The tags of a config struct:
//
//	toml:"name"     a key, or a table when the field is a struct
//	toml:",inline"  the keys of this struct stand in the table around it; so do
//	                those of an embedded struct without a tag
//	toml:"*"        a map that takes every key no other field names
//	toml:"-"        not part of the file

// field is one key of a table.
type field struct {
	name  string
	index []int // for reflect.Value.FieldByIndex
	typ   reflect.Type
}

// table is what a struct type says about the table it stands for.
type table struct {
	fields []field
	rest   *field // the map that takes the other keys
}

// tableOf reads the tags of a struct type. It panics on a type that cannot be
// a table: that is a fault of ours which every test finds.
func tableOf(t reflect.Type) table {
	var tab table
	if err := tab.collect(t, nil); err != nil {
		panic(fmt.Sprintf("config: %s: %v", t, err))
	}
	return tab
}

func (tab *table) collect(t reflect.Type, index []int) error {
	for f := range t.Fields() {
		tag, tagged := f.Tag.Lookup("toml")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		at := append(append([]int{}, index...), f.Index...)
		var err error
		switch {
		case tag == ",inline" || f.Anonymous && !tagged:
			err = tab.inline(f.Type, at)
		case tag == "*":
			err = tab.others(field{name: "*", index: at, typ: f.Type})
		default:
			err = tab.add(field{name: tag, index: at, typ: f.Type})
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

func (tab *table) inline(t reflect.Type, index []int) error {
	if t.Kind() != reflect.Struct {
		return errors.New("is not a struct")
	}
	return tab.collect(t, index)
}

func (tab *table) others(f field) error {
	if f.typ.Kind() != reflect.Map || tab.rest != nil {
		return errors.New("is not the one map of the table")
	}
	tab.rest = &f
	return nil
}

func (tab *table) add(f field) error {
	if f.name == "" || strings.ToLower(f.name) != f.name || strings.ContainsAny(f.name, ",. ") {
		return fmt.Errorf("has the tag %q", f.name)
	}
	if _, ok := tab.find(f.name); ok {
		return fmt.Errorf("the key %s is there twice", f.name)
	}
	tab.fields = append(tab.fields, f)
	return nil
}

func (tab *table) find(name string) (field, bool) {
	for _, f := range tab.fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

func (tab *table) names() []string {
	out := make([]string, len(tab.fields))
	for i, f := range tab.fields {
		out[i] = f.name
	}
	return out
}

// isText reports whether values of the type are written as one string.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// isTable reports whether the type stands for a table with known keys.
func isTable(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isText(t) }

// isSecret reports whether the value of a key must not be shown.
func isSecret(name string, t reflect.Type) bool {
	if t == reflect.TypeFor[secret.Secret]() {
		return true
	}
	if t.Kind() != reflect.String {
		return false
	}
	for _, word := range []string{"key", "token", "secret", "password"} {
		if name == word || strings.HasSuffix(name, "_"+word) {
			return true
		}
	}
	return false
}

// unit is what an integer of a duration key counts: keys that end in _ms or
// _secs are integers, all others are texts such as "30s".
func unit(name string) (time.Duration, string) {
	switch {
	case strings.HasSuffix(name, "_ms"):
		return time.Millisecond, "milliseconds"
	case strings.HasSuffix(name, "_secs"):
		return time.Second, "seconds"
	}
	return 0, ""
}

// fill replaces every missing list by an empty one, so that a config says the
// same whether a list was left out or written as [].
func fill(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // a config holds only these kinds
	case reflect.Struct:
		for f, fv := range v.Fields() {
			if f.IsExported() || f.Anonymous {
				fill(fv)
			}
		}
	case reflect.Slice:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		for _, name := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(name))
			fill(e)
			v.SetMapIndex(name, e)
		}
	}
}

// parts calls visit with every part of a config that judges itself: structs
// that have their own Validate or Warnings, and are not inside one that has.
func parts(v reflect.Value, visit func(any)) {
	for f, fv := range v.Fields() {
		if f.Tag.Get("toml") == "-" || fv.Kind() != reflect.Struct || !fv.CanInterface() {
			continue
		}
		part := fv.Interface()
		_, validates := part.(interface{ Validate() error })
		_, warns := part.(interface{ Warnings() []string })
		if validates || warns {
			visit(part)
			continue
		}
		parts(fv, visit)
	}
}

// validate asks every part of a config to judge itself.
func validate(cfg any) error {
	var errs []error
	parts(reflect.ValueOf(cfg), func(part any) {
		if p, ok := part.(interface{ Validate() error }); ok {
			errs = append(errs, p.Validate())
		}
	})
	return errors.Join(errs...)
}

// warnings asks every part of a config what it loosens.
func warnings(cfg any) []string {
	var out []string
	parts(reflect.ValueOf(cfg), func(part any) {
		if p, ok := part.(interface{ Warnings() []string }); ok {
			out = append(out, p.Warnings()...)
		}
	})
	return out
}
