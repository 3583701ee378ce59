package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/canonjson"
	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
)

// Registry holds the tools of one server. It reads each tool's Spec once,
// refuses a tool that leaves anything unset, and never hands a tool out. It is
// immutable after [NewRegistry] and safe for concurrent use.
type Registry struct {
	entries []entry
	byName  map[string]int
}

type entry struct {
	tool   Tool
	spec   call.Spec
	schema *schema
}

// Accepted is a call whose tool is known and whose arguments are canonical,
// valid for the tool's closed schema, and understood.
type Accepted struct {
	Spec  call.Spec
	Args  json.RawMessage
	Facts call.Facts
}

// NewRegistry returns a registry of the given tools, in the order they are
// listed to clients. It refuses an empty list, a nil tool, a doubled name and
// any Spec with an unset or ill-formed field.
func NewRegistry(ts ...Tool) (*Registry, error) {
	if len(ts) == 0 {
		return nil, errors.New("tool registry is empty")
	}
	r := &Registry{byName: make(map[string]int, len(ts))}
	for i, t := range ts {
		if t == nil {
			return nil, fmt.Errorf("tool %d is nil", i)
		}
		spec := t.Spec()
		spec.Input, spec.Output = slices.Clone(spec.Input), slices.Clone(spec.Output)
		if err := checkSpec(spec); err != nil {
			return nil, fmt.Errorf("tool %q: %w", spec.Name, err)
		}
		if _, ok := r.byName[spec.Name]; ok {
			return nil, fmt.Errorf("tool %q is registered twice", spec.Name)
		}
		in, err := newInputSchema(spec.Name, spec.Input)
		if err != nil {
			return nil, fmt.Errorf("tool %q: input schema: %w", spec.Name, err)
		}
		if err := checkOutputSchema(spec.Output); err != nil {
			return nil, fmt.Errorf("tool %q: output schema: %w", spec.Name, err)
		}
		r.byName[spec.Name] = len(r.entries)
		r.entries = append(r.entries, entry{tool: t, spec: spec, schema: in})
	}
	return r, nil
}

func checkSpec(s call.Spec) error {
	unset := func(field string, bad bool) error {
		if bad {
			return fmt.Errorf("%s is not set", field)
		}
		return nil
	}
	var nameErr error
	if !named(s.Name) {
		nameErr = errors.New("name must match ^[a-z][a-z0-9_]{0,63}$")
	}
	return errors.Join(
		nameErr,
		unset("title", s.Title == ""),
		unset("description", s.Description == ""),
		unset("input schema", len(s.Input) == 0),
		unset("output schema", len(s.Output) == 0),
		unset("effect", s.Effect == call.EffectUnset || s.Effect > call.RunsCommands),
		unset("confirm", s.Confirm == call.ConfirmUnset || s.Confirm > call.ConfirmNever),
		unset("destructive", !set(s.Destructive)),
		unset("idempotent", !set(s.Idempotent)),
		unset("open_world", !set(s.OpenWorld)),
		unset("cacheable", !set(s.Cacheable)),
		unset("speculatable", !set(s.Speculatable)),
		unset("retryable", !set(s.Retryable)),
	)
}

// named reports whether s matches ^[a-z][a-z0-9_]{0,63}$; compiling that
// pattern would be a third of building the registry.
func named(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func set(t call.Toggle) bool { return t == call.Yes || t == call.No }

// List returns the specs in registration order. The caller owns the slice but
// must not change the schemas.
func (r *Registry) List() []call.Spec {
	out := make([]call.Spec, len(r.entries))
	for i, e := range r.entries {
		out[i] = e.spec
	}
	return out
}

// Accept checks one call: the tool exists, the arguments reduce to canonical
// JSON and fit the closed schema, and the tool understands them. Every error
// is a [*call.Error] the model can act on.
func (r *Registry) Accept(name string, raw json.RawMessage) (Accepted, error) {
	return r.AcceptFor(name, raw, nil)
}

// AcceptFor is [Registry.Accept] for a caller who may give programs the
// variables of a skill. They become part of the canonical arguments, after the
// schema has had its say, so that facts, questions, records and the run are
// about the same bytes.
func (r *Registry) AcceptFor(name string, raw json.RawMessage, skillEnv map[string]string) (Accepted, error) {
	i, ok := r.byName[name]
	if !ok {
		return Accepted{}, r.notFound(name)
	}
	e := &r.entries[i]
	acc := Accepted{Spec: e.spec}
	args, err := canonjson.Canon(raw)
	if err != nil {
		return acc, err
	}
	acc.Args = args
	if err := e.schema.validate(args); err != nil {
		return acc, err
	}
	if e.spec.SkillEnv && len(skillEnv) > 0 {
		if args, err = withSkillEnv(args, skillEnv); err != nil {
			return acc, err
		}
		acc.Args = args
	}
	facts, err := e.facts(args)
	if err != nil {
		return acc, err
	}
	acc.Facts = facts
	return acc, nil
}

// withSkillEnv adds variables to canonical arguments.
func withSkillEnv(args json.RawMessage, env map[string]string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(args, &members); err != nil {
		return nil, err
	}
	var err error
	if members[call.SkillEnvKey], err = json.Marshal(env); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	return canonjson.Canon(raw)
}

// facts calls the tool's Facts and keeps a panic there from ending the server.
// The tool gets its own copy of the arguments, so it cannot change what is
// judged.
func (e *entry) facts(args json.RawMessage) (f call.Facts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("facts of %s panicked: %v", e.spec.Name, p)
		}
	}()
	return e.tool.Facts(slices.Clone(args))
}

// Run runs the tool the sealed call names. It refuses a value no chain has
// sealed, and turns a panic into an error.
func (r *Registry) Run(ctx context.Context, a gates.Authorized) (res call.Result, err error) {
	if !a.Sealed() {
		return call.Result{}, gates.ErrNotAuthorized
	}
	i, ok := r.byName[a.Tool()]
	if !ok {
		return call.Result{}, r.notFound(a.Tool())
	}
	defer func() {
		if p := recover(); p != nil {
			res, err = call.Result{}, fmt.Errorf("tool %s panicked: %v", a.Tool(), p)
		}
	}()
	return r.entries[i].tool.Run(ctx, a)
}

func (r *Registry) notFound(name string) error {
	names := make([]string, len(r.entries))
	for i, e := range r.entries {
		names[i] = e.spec.Name
	}
	hint := "call tools/list for the names"
	if near, ok := suggest.Nearest(name, names); ok {
		hint = "did you mean " + near + "?"
	}
	return &call.Error{
		Category: call.CategoryToolNotFound, Code: "tool_not_found", Phase: call.PhaseSetup,
		Message: fmt.Sprintf("there is no tool %q", clip(name, 64)), Suggestion: hint,
	}
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
