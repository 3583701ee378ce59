package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

type tool struct {
	spec  call.Spec
	facts func(json.RawMessage) (call.Facts, error)
	run   func(context.Context, gates.Authorized) (call.Result, error)
}

func (t tool) Spec() call.Spec { return t.spec }
func (t tool) Facts(a json.RawMessage) (call.Facts, error) {
	if t.facts == nil {
		return call.Facts{}, nil
	}
	return t.facts(a)
}

func (t tool) Run(ctx context.Context, a gates.Authorized) (call.Result, error) { return t.run(ctx, a) }

func spec() call.Spec {
	return call.Spec{
		Name: "demo", Title: "Demo", Description: "A demo.",
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{
			"path":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1},
			"mode":{"type":"string","enum":["fast","slow"]},"env":{"type":"object","additionalProperties":{"type":"string"}},
			"list":{"type":"array","items":{"type":"string"}}}}`),
		Output: json.RawMessage(`{"type":"object"}`),
		Effect: call.ReadsState, Confirm: call.ConfirmByPolicy, Destructive: call.No, Idempotent: call.Yes,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.Yes, Retryable: call.No,
	}
}

func TestRegistryRefusesUnset(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*call.Spec){
		"name":           func(s *call.Spec) { s.Name = "" },
		"bad name":       func(s *call.Spec) { s.Name = "Bad-Name" },
		"title":          func(s *call.Spec) { s.Title = "" },
		"description":    func(s *call.Spec) { s.Description = "" },
		"input":          func(s *call.Spec) { s.Input = nil },
		"input not json": func(s *call.Spec) { s.Input = json.RawMessage(`{`) },
		"input no object": func(s *call.Spec) {
			s.Input = json.RawMessage(`{"type":"string"}`)
		},
		"input open": func(s *call.Spec) { s.Input = json.RawMessage(`{"type":"object"}`) },
		"input open nested": func(s *call.Spec) {
			s.Input = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"object"}}}`)
		},
		"input open items": func(s *call.Spec) {
			s.Input = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array","items":{"type":"object"}}}}`)
		},
		"output":           func(s *call.Spec) { s.Output = nil },
		"output required":  func(s *call.Spec) { s.Output = json.RawMessage(`{"type":"object","required":["a"]}`) },
		"output closed":    func(s *call.Spec) { s.Output = json.RawMessage(`{"type":"object","additionalProperties":false}`) },
		"output no object": func(s *call.Spec) { s.Output = json.RawMessage(`{"type":"array"}`) },
		"effect":           func(s *call.Spec) { s.Effect = call.EffectUnset },
		"effect unknown":   func(s *call.Spec) { s.Effect = 99 },
		"confirm":          func(s *call.Spec) { s.Confirm = call.ConfirmUnset },
		"confirm unknown":  func(s *call.Spec) { s.Confirm = 99 },
		"destructive":      func(s *call.Spec) { s.Destructive = call.ToggleUnset },
		"idempotent":       func(s *call.Spec) { s.Idempotent = call.ToggleUnset },
		"open world":       func(s *call.Spec) { s.OpenWorld = 7 },
		"cacheable":        func(s *call.Spec) { s.Cacheable = call.ToggleUnset },
		"speculatable":     func(s *call.Spec) { s.Speculatable = call.ToggleUnset },
		"retryable":        func(s *call.Spec) { s.Retryable = call.ToggleUnset },
	} {
		s := spec()
		edit(&s)
		if _, err := tools.NewRegistry(tool{spec: s}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, ts := range map[string][]tools.Tool{
		"empty": nil, "nil": {nil}, "doubled": {tool{spec: spec()}, tool{spec: spec()}},
	} {
		if _, err := tools.NewRegistry(ts...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAcceptNamesTheFault(t *testing.T) {
	t.Parallel()
	reg, err := tools.NewRegistry(tool{spec: spec()})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, tool, args   string
		category           call.Category
		field, has, advice string
	}{
		{"unknown tool", "dmeo", `{}`, call.CategoryToolNotFound, "", "dmeo", "did you mean demo?"},
		{"missing", "demo", `{}`, call.CategoryInvalidParameters, "path", "required", "add path as a string"},
		{"no arguments at all", "demo", ``, call.CategoryInvalidParameters, "path", "required", "add path as a string"},
		{"wrong type", "demo", `{"path":7}`, call.CategoryTypeMismatch, "path", "is a number, not a string", "give path as a string"},
		{"null", "demo", `{"path":null}`, call.CategoryTypeMismatch, "path", "null", "string"},
		{"fraction", "demo", `{"path":"a","limit":1.5}`, call.CategoryTypeMismatch, "limit", "integer", "an integer"},
		{"too small", "demo", `{"path":"a","limit":0}`, call.CategoryInvalidParameters, "limit", "is too small", "give limit as an integer of at least 1"},
		{"beyond every integer", "demo", `{"path":"a","limit":1e300}`, call.CategoryInvalidParameters, "limit", "is too large", "give limit as an integer"},
		{"empty", "demo", `{"path":""}`, call.CategoryInvalidParameters, "path", "is empty", "give path as a string that is not empty"},
		{"not in enum", "demo", `{"path":"a","mode":"quick"}`, call.CategoryInvalidParameters, "mode", `"quick"`, `"fast", "slow"`},
		{"unknown field", "demo", `{"path":"a","limt":1}`, call.CategoryInvalidParameters, "limt", "no such argument", "did you mean limit?"},
		{"wrong case", "demo", `{"Path":"a"}`, call.CategoryInvalidParameters, "Path", "no such argument", "case-sensitive: write path"},
		{"in map", "demo", `{"path":"a","env":{"A":1}}`, call.CategoryTypeMismatch, "env.A", "number", "give env.A as a string"},
		{"long name", "demo", `{"path":"a","env":{"` + strings.Repeat("k", 4000) + `":1}}`, call.CategoryTypeMismatch, "env." + strings.Repeat("k", 64) + "…", "number", "…"},
		{"in array", "demo", `{"path":"a","list":["x",2]}`, call.CategoryTypeMismatch, "list.1", "number", "string"},
		{"not an object", "demo", `[1]`, call.CategoryTypeMismatch, "", "", ""},
		{"doubled key", "demo", `{"path":"a","path":"b"}`, call.CategoryInvalidParameters, "path", "", ""},
		{"trailing data", "demo", `{"path":"a"} {}`, call.CategoryInvalidParameters, "", "", ""},
	} {
		_, err := reg.Accept(tt.tool, json.RawMessage(tt.args))
		var e *call.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v is not one the model can act on", tt.name, err)
			continue
		}
		if e.Category != tt.category || (tt.field != "" && e.Field != tt.field) ||
			!strings.Contains(e.Message, tt.has) || !strings.Contains(e.Suggestion, tt.advice) {
			t.Errorf("%s: %s %q %q — %q", tt.name, e.Category, e.Field, e.Message, e.Suggestion)
		}
	}
}

func TestFactsSeeCanonicalArgumentsAndCannotChangeThem(t *testing.T) {
	t.Parallel()
	reg, err := tools.NewRegistry(tool{spec: spec(), facts: func(a json.RawMessage) (call.Facts, error) {
		f := call.Facts{Text: string(a)}
		a[2] = 'X'
		return f, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	acc, err := reg.Accept("demo", json.RawMessage(` { "path" : "é" , "limit" : 3 } `))
	if want := `{"limit":3,"path":"é"}`; err != nil || acc.Facts.Text != want || string(acc.Args) != want {
		t.Errorf("facts saw %s, arguments %s, error %v", acc.Facts.Text, acc.Args, err)
	}
}

func TestPanicsAreErrors(t *testing.T) {
	t.Parallel()
	reg, err := tools.NewRegistry(tool{
		spec: spec(),
		facts: func(a json.RawMessage) (call.Facts, error) {
			if strings.Contains(string(a), "boom") {
				panic("facts")
			}
			return call.Facts{}, nil
		},
		run: func(context.Context, gates.Authorized) (call.Result, error) { panic("run") },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Accept("demo", json.RawMessage(`{"path":"boom"}`)); err == nil {
		t.Error("a panic in Facts was swallowed")
	}
	if _, err := reg.Run(t.Context(), seal(t, reg)); err == nil {
		t.Error("a panic in Run was swallowed")
	}
}

func TestRunRefusesUnsealed(t *testing.T) {
	t.Parallel()
	ran := false
	reg, err := tools.NewRegistry(tool{spec: spec(), run: func(context.Context, gates.Authorized) (call.Result, error) {
		ran = true
		return call.Result{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Run(t.Context(), gates.Authorized{}); !errors.Is(err, gates.ErrNotAuthorized) || ran {
		t.Errorf("error %v, ran %v", err, ran)
	}
	if _, err := reg.Run(t.Context(), seal(t, reg)); err != nil || !ran {
		t.Errorf("error %v, ran %v", err, ran)
	}
}

type allow struct{}

func (allow) Name() string { return "allow" }
func (allow) Check(context.Context, call.Call) (gates.Decision, error) {
	return gates.Permit(), nil
}

func seal(t *testing.T, reg *tools.Registry) gates.Authorized {
	t.Helper()
	ch, err := gates.NewChain(allow{})
	if err != nil {
		t.Fatal(err)
	}
	acc, err := reg.Accept("demo", json.RawMessage(`{"path":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := ch.Authorize(t.Context(), call.Call{ID: "c", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestListIsTheRegistrationOrderAndFrozen(t *testing.T) {
	t.Parallel()
	s := spec()
	b := spec()
	b.Name = "another"
	reg, err := tools.NewRegistry(tool{spec: s}, tool{spec: b})
	if err != nil {
		t.Fatal(err)
	}
	s.Input[0] = 'X'
	got := reg.List()
	if got[0].Name != "demo" || got[1].Name != "another" || got[0].Input[0] != '{' {
		t.Errorf("%s %s %c", got[0].Name, got[1].Name, got[0].Input[0])
	}
}
