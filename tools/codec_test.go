package tools_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

func TestDecodeArgsNamesTheFault(t *testing.T) {
	t.Parallel()
	type args struct {
		Name string            `json:"name"`
		N    *int64            `json:"n"`
		On   bool              `json:"on"`
		List []string          `json:"list"`
		Env  map[string]string `json:"env"`
	}
	for _, tt := range []struct {
		raw, code, field, message, suggestion string
	}{
		{`{"name":"x","n":3,"on":true,"list":["a"],"env":{"A":"b"}}`, "", "", "", ""},
		{`{"name":1}`, "type_mismatch", "name", "is a number, not a string", "give name as a string"},
		{`{"n":"3"}`, "type_mismatch", "n", "is a string, not an integer", "give n as an integer"},
		{`{"n":1.5}`, "type_mismatch", "n", "is a number, not an integer", "give n as an integer"},
		{`{"on":"yes"}`, "type_mismatch", "on", "is a string, not a boolean", "give on as a boolean"},
		{`{"list":"a"}`, "type_mismatch", "list", "is a string, not an array", "give list as an array"},
		{`{"env":[]}`, "type_mismatch", "env", "is an array, not an object", "give env as an object"},
		{`{"nam":"x"}`, "invalid_parameters", "nam", "there is no such argument", "see the tool's input schema"},
	} {
		var a args
		err := tools.DecodeArgs(json.RawMessage(tt.raw), &a)
		if tt.code == "" {
			if err != nil || a.Name != "x" || *a.N != 3 {
				t.Errorf("%s: %v %+v", tt.raw, err, a)
			}
			continue
		}
		var e *call.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", tt.raw, err)
			continue
		}
		got := []string{e.Code, e.Field, e.Message, e.Suggestion}
		if d := cmp.Diff([]string{tt.code, tt.field, tt.message, tt.suggestion}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.raw, d)
		}
	}
}

func TestEncodeResultKeepsText(t *testing.T) {
	t.Parallel()
	raw, err := tools.EncodeResult(map[string]string{"output": "a < b && c > d"})
	if err != nil || string(raw) != `{"output":"a < b && c > d"}` {
		t.Errorf("%s %v", raw, err)
	}
	if _, err := tools.EncodeResult(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}
