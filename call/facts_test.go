package call_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// filled is a Facts in which every field, and every field of what it holds, is
// set.
func filled() call.Facts {
	var f call.Facts
	fill(reflect.ValueOf(&f).Elem())
	return f
}

func fill(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // facts hold no other kinds
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8:
		v.SetUint(1)
	default:
		panic("no value for " + v.Type().String())
	}
}

// spoil calls try once for every value that v holds or points to, with that one
// value changed, and puts it back.
func spoil(v reflect.Value, path string, try func(path string)) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	zero := func() {
		v.SetZero()
		try(path)
		v.Set(old)
	}
	switch v.Kind() { //nolint:exhaustive // the others hold one value
	case reflect.Struct:
		for i := range v.NumField() {
			spoil(v.Field(i), path+"."+v.Type().Field(i).Name, try)
		}
	case reflect.Slice:
		zero()
		v.SetLen(1)
		try(path + "[:1]")
		v.Set(old)
		spoil(v.Index(v.Len()-1), path+"[1]", try)
	case reflect.Pointer:
		zero()
		spoil(v.Elem(), path, try)
	default:
		zero()
	}
}

// TestEqualSeesEveryField changes one value after the other, so that a field
// somebody adds is not forgotten.
func TestEqualSeesEveryField(t *testing.T) {
	t.Parallel()
	a, b := filled(), filled()
	if !a.Equal(b) || !(call.Facts{}).Equal(call.Facts{}) {
		t.Fatal("what is the same is not equal")
	}
	n := 0
	spoil(reflect.ValueOf(&a).Elem(), "Facts", func(path string) {
		n++
		if a.Equal(b) || b.Equal(a) {
			t.Errorf("%s is not compared", path)
		}
	})
	if n < 60 || !a.Equal(b) {
		t.Errorf("%d values changed, and put back: %v", n, a.Equal(b))
	}
}

// TestCloneSharesNothing changes one value of the original after the other and
// wants the copy to stay what it was.
func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	a := filled()
	b := a.Clone()
	if diff := cmp.Diff(a, b); diff != "" {
		t.Fatalf("the copy differs (-want +got):\n%s", diff)
	}
	spoil(reflect.ValueOf(&a).Elem(), "Facts", func(path string) {
		if diff := cmp.Diff(filled(), b); diff != "" {
			t.Fatalf("%s is shared (-want +got):\n%s", path, diff)
		}
	})
	b.Commands[0].Argv = append(b.Commands[0].Argv, "more")
	if diff := cmp.Diff(filled().Commands[1], b.Commands[1]); diff != "" {
		t.Errorf("an appended word reaches the next command (-want +got):\n%s", diff)
	}
	if (call.Facts{Commands: []call.Command{{}}}).Clone().Commands[0].Argv != nil {
		t.Error("no words became an empty list")
	}
}
