package canonjson_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/canonjson"
)

type accepted struct{ name, in, want string }

func acceptedTable() []accepted {
	return []accepted{
		{"nothing", "", `{}`},
		{"only space", " \n\t", `{}`},
		{"empty", `{}`, `{}`},
		{"space", " { \"a\" : [ 1 , 2 ] } \n", `{"a":[1,2]}`},
		{"sorted at every level", `{"b":{"z":1,"y":2},"a":[{"d":1,"c":2}]}`, `{"a":[{"c":2,"d":1}],"b":{"y":2,"z":1}}`},
		{"words", `{"a":true,"b":false,"c":null}`, `{"a":true,"b":false,"c":null}`},
		{"number forms", `{"a":1.0,"b":10e-1,"c":1E0,"d":1}`, `{"a":1,"b":1,"c":1,"d":1}`},
		{"zero forms", `{"a":-0,"b":0.000,"c":0e99999999999999999999,"d":-0.0e-3}`, `{"a":0,"b":0,"c":0,"d":0}`},
		{"big integer", `{"a":12345678901234567890123}`, `{"a":1.2345678901234567890123e22}`},
		{"int64", `{"a":9223372036854775807,"b":-9007199254740993}`, `{"a":9223372036854775807,"b":-9007199254740993}`},
		{"fractions", `{"a":0.10,"b":123.4500,"c":0.000001,"d":0.0000001,"e":-5E-7}`, `{"a":0.1,"b":123.45,"c":0.000001,"d":1e-7,"e":-5e-7}`},
		{"large", `{"a":1e20,"b":1e21,"c":1.5e300}`, `{"a":100000000000000000000,"b":1e21,"c":1.5e300}`},
		{"escapes", `{"a":"\u0041\/\u003c\ud83d\ude00\u000a\u0001\u007f\u2028"}`, `{"a":"A/<😀\n\u0001` + "\x7f\u2028" + `"}`},
		{"escaped key", `{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		{"keys by case are different", `{"a":1,"A":2}`, `{"A":2,"a":1}`},
	}
}

func TestCanon(t *testing.T) {
	t.Parallel()
	for _, tt := range acceptedTable() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := canonjson.Canon([]byte(tt.in))
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, %v, want %s", got, err, tt.want)
			}
			again, err := canonjson.Canon(got)
			if err != nil || string(again) != tt.want {
				t.Fatalf("not idempotent: %s, %v", again, err)
			}
		})
	}
}

type refused struct {
	name, in string
	category call.Category
	field    string
	message  string
}

func refusedTable() []refused {
	bad, wrong := call.CategoryInvalidParameters, call.CategoryTypeMismatch
	return []refused{
		{"array root", `[1]`, wrong, "", "one JSON object"},
		{"string root", `"x"`, wrong, "", "one JSON object"},
		{"null root", `null`, wrong, "", "one JSON object"},
		{"byte order mark", "\xef\xbb\xbf{}", wrong, "", "one JSON object"},
		{"doubled key", `{"command":"ls","command":"rm -rf /"}`, bad, "command", "given twice"},
		{"doubled by escape", `{"command":"ls","comm\u0061nd":"rm"}`, bad, "command", "given twice"},
		{"doubled deeper", `{"a":[{},{"b":{"c":1,"d":2,"c":3}}]}`, bad, "a[1].b.c", "given twice"},
		{"trailing object", `{"a":1}{"a":2}`, bad, "", "after the end"},
		{"trailing nul", "{\"a\":1}\x00", bad, "", "after the end"},
		{"trailing comma", `{"a":1,}`, bad, "", "expected a key"},
		{"comma in array", `{"a":[1,]}`, bad, "a[1]", "not valid JSON"},
		{"single quotes", `{'a':1}`, bad, "", "expected a key"},
		{"comment", `{"a":1/*x*/}`, bad, "", "expected , or }"},
		{"NaN", `{"a":NaN}`, bad, "a", "not valid JSON"},
		{"unclosed", `{"a":"x`, bad, "a", "does not end"},
		{"unclosed escape", `{"a":"x\`, bad, "a", "unknown escape"},
		{"unclosed object", `{"a":{`, bad, "a", "expected a key"},
		{"no colon", `{"a"}`, bad, "a", "expected :"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", bad, "a", "not valid UTF-8"},
		{"overlong", "{\"a\":\"\xc0\xaf\"}", bad, "a", "not valid UTF-8"},
		{"surrogate as bytes", "{\"a\":\"\xed\xa0\x80\"}", bad, "a", "not valid UTF-8"},
		{"lone high", `{"a":"\ud800"}`, bad, "a", "does not name a character"},
		{"lone low", `{"a":"\udc00x"}`, bad, "a", "does not name a character"},
		{"high and letter", `{"a":"\ud800\u0041"}`, bad, "a", "does not name a character"},
		{"short escape", `{"a":"\u12"}`, bad, "a", "does not name a character"},
		{"raw newline", "{\"a\":\"x\ny\"}", bad, "a", "raw control character"},
		{"leading zero", `{"a":01}`, bad, "a", "number"},
		{"plus", `{"a":+1}`, bad, "a", "not valid JSON"},
		{"dot alone", `{"a":1.}`, bad, "a", "number"},
		{"no whole part", `{"a":.5}`, bad, "a", "not valid JSON"},
		{"no exponent", `{"a":1e}`, bad, "a", "number"},
		{"absurd exponent", `{"a":1e99999999999999999999}`, bad, "a", "exponent"},
		{"too deep", `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, bad, "a" + strings.Repeat("[0]", 63), "nested deeper"},
		{"too large", `{"a":"` + strings.Repeat("x", canonjson.MaxBytes) + `"}`, bad, "", "larger than"},
	}
}

func TestCanonRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range refusedTable() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := canonjson.Canon([]byte(tt.in))
			e, ok := errors.AsType[*call.Error](err)
			if !ok {
				t.Fatalf("got %.80s, %v, want a call error", got, err)
			}
			if e.Category != tt.category || e.Field != tt.field || !strings.Contains(e.Message, tt.message) || e.Suggestion == "" {
				t.Errorf("got %s %q %q %q", e.Category, e.Field, e.Message, e.Suggestion)
			}
		})
	}
}

func TestCanonDepthIsInclusive(t *testing.T) {
	t.Parallel()
	in := `{"a":` + strings.Repeat("[", canonjson.MaxDepth-1) + strings.Repeat("]", canonjson.MaxDepth-1) + `}`
	if _, err := canonjson.Canon([]byte(in)); err != nil {
		t.Fatal(err)
	}
}

// FuzzCanonJSON checks that the canonical form is a fixed point, that it means
// what the input means, and that an independent reader agrees.
func FuzzCanonJSON(f *testing.F) {
	for _, tt := range acceptedTable() {
		f.Add([]byte(tt.in))
	}
	for _, tt := range refusedTable() {
		if len(tt.in) < 1000 {
			f.Add([]byte(tt.in))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := canonjson.Canon(in)
		if err != nil {
			if _, ok := errors.AsType[*call.Error](err); !ok {
				t.Fatalf("not a call error: %v", err)
			}
			return
		}
		again, err := canonjson.Canon(out)
		if err != nil || string(again) != string(out) {
			t.Fatalf("not idempotent: %q then %q, %v", out, again, err)
		}
		if !utf8.Valid(out) {
			t.Fatalf("invalid UTF-8: %q", out)
		}
		if len(strings.Trim(string(in), " \t\r\n")) == 0 {
			return
		}
		a, b := decode(t, in), decode(t, out)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("meaning changed: %q to %q", in, out)
		}
	})
}

// decode reads JSON with the standard library and replaces every number by its
// exact value where that is affordable.
func decode(t *testing.T, in []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(in)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("the standard library refuses %q: %v", in, err)
	}
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err != nil || f > 1e60 || f < -1e60 || (f > -1e-60 && f < 1e-60) {
			return "extreme"
		}
		r, _ := new(big.Rat).SetString(v.String())
		return r.String()
	}
	return v
}

func BenchmarkCanon(b *testing.B) {
	in := []byte(`{"command":"go test ./... 2>&1 | tail -20","timeout_ms":120000,"env":{"CI":"1"},"description":"run the tests"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonjson.Canon(in); err != nil {
			b.Fatal(err)
		}
	}
}
