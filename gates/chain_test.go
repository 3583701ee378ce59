package gates_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/quick"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

type gate struct {
	name  string
	check func(context.Context, call.Call) (gates.Decision, error)
}

func (g gate) Name() string { return g.name }
func (g gate) Check(ctx context.Context, c call.Call) (gates.Decision, error) {
	return g.check(ctx, c)
}

func says(name string, v gates.Verdict) gate {
	return gate{name, func(context.Context, call.Call) (gates.Decision, error) {
		return gates.Decision{Verdict: v, Code: name + "_code", Reason: name + " said so"}, nil
	}}
}

// alters allows every call and changes what it points to.
func alters(change func(call.Call)) gate {
	return gate{"alters", func(_ context.Context, c call.Call) (gates.Decision, error) {
		change(c)
		return gates.Permit(), nil
	}}
}

type approver func(context.Context, call.Call, []gates.Finding) error

func (a approver) Approve(ctx context.Context, c call.Call, why []gates.Finding) error {
	return a(ctx, c, why)
}

func yes(context.Context, call.Call, []gates.Finding) error { return nil }

func theCall() call.Call {
	return call.Call{
		ID: "c-1", Session: "s", Args: json.RawMessage(`{"a":1}`),
		Spec: call.Spec{Name: "t", Effect: call.ReadsState, Confirm: call.ConfirmByPolicy},
		Facts: call.Facts{
			Summary: "x", Commands: []call.Command{{Name: "a", Argv: []string{"a", "b"}}}, Reads: []call.Path{{Path: "/p"}},
			Parse: &call.ParseError{Message: "m"},
		},
		Meta: call.Meta{Skills: map[string]string{"s": "blocked"}, SkillEnv: map[string]string{"K": "v"}},
	}
}

func chain(t *testing.T, gs ...gates.Gate) *gates.Chain {
	t.Helper()
	ch, err := gates.NewChain(gs...)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// TestNothingUnsetIsAllowed shows every way of forgetting or failing, and that
// each of them denies.
func TestNothingUnsetIsAllowed(t *testing.T) {
	t.Parallel()
	ok := says("ok", gates.Allow)
	allow := gates.Decision{Verdict: gates.Allow}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name string
		ctx  context.Context //nolint:containedctx // a table of contexts
		gs   []gates.Gate
		edit func(*call.Call)
		who  gates.Approver
		code string
	}{
		{name: "zero decision", gs: []gates.Gate{gate{"g", func(context.Context, call.Call) (gates.Decision, error) { return gates.Decision{}, nil }}}, code: "denied"},
		{name: "unknown verdict", gs: []gates.Gate{says("g", 9)}, code: "internal"},
		{name: "error beside allow", gs: []gates.Gate{gate{"g", func(context.Context, call.Call) (gates.Decision, error) { return allow, errors.New("x") }}}, code: "gate_error"},
		{name: "panic", gs: []gates.Gate{gate{"g", func(context.Context, call.Call) (gates.Decision, error) { panic("x") }}}, code: "internal"},
		{name: "cancelled", ctx: cancelled, gs: []gates.Gate{ok}, code: "cancelled"},
		{name: "alters arguments", gs: []gates.Gate{gate{"g", func(_ context.Context, c call.Call) (gates.Decision, error) { c.Args[2] = 'b'; return allow, nil }}}, code: "internal"},
		{name: "alters the words of a command", gs: []gates.Gate{alters(func(c call.Call) { c.Facts.Commands[0].Argv[1] = "x" })}, code: "internal"},
		{name: "alters facts", gs: []gates.Gate{alters(func(c call.Call) { c.Facts.Reads[0].Path = "/q" })}, code: "internal"},
		{name: "alters why it could not be read", gs: []gates.Gate{alters(func(c call.Call) { c.Facts.Parse.Message = "" })}, code: "internal"},
		{name: "alters the active skills", gs: []gates.Gate{alters(func(c call.Call) { c.Meta.Skills["s"] = "trusted" })}, code: "internal"},
		{name: "alters the environment of a skill", gs: []gates.Gate{alters(func(c call.Call) { delete(c.Meta.SkillEnv, "K") })}, code: "internal"},
		{name: "alters facts after others looked", gs: []gates.Gate{ok, says("c", gates.Confirm), alters(func(c call.Call) { c.Facts.Reads[0].Inside = true })}, who: approver(yes), code: "internal"},
		{name: "deny after allow", gs: []gates.Gate{ok, says("g", gates.Deny)}, code: "g_code"},
		{name: "deny after confirm", gs: []gates.Gate{says("c", gates.Confirm), says("g", gates.Deny)}, who: approver(yes), code: "g_code"},
		{name: "tool without a name", gs: []gates.Gate{ok}, edit: func(c *call.Call) { c.Spec.Name = "" }, code: "internal"},
		{name: "tool without an effect", gs: []gates.Gate{ok}, edit: func(c *call.Call) { c.Spec.Effect = call.EffectUnset }, code: "internal"},
		{name: "tool without a confirm mode", gs: []gates.Gate{ok}, edit: func(c *call.Call) { c.Spec.Confirm = call.ConfirmUnset }, code: "internal"},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, ctx := theCall(), tt.ctx
			if tt.edit != nil {
				tt.edit(&c)
			}
			if ctx == nil {
				ctx = t.Context()
			}
			a, j, err := chain(t, tt.gs...).Authorize(ctx, c, tt.who)
			if a.Sealed() || err == nil || j.Verdict != gates.Deny {
				t.Fatalf("permitted: %v %v", j.Verdict, err)
			}
			var d *gates.DeniedError
			if !errors.As(err, &d) || d.Code != tt.code {
				t.Errorf("error %v, want code %s", err, tt.code)
			}
			if len(j.Trail) == 0 || j.Trail[len(j.Trail)-1].Verdict != gates.Deny {
				t.Errorf("the refusal left no trail: %+v", j.Trail)
			}
		})
	}
}

func TestConfirmNeedsAYes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		who  gates.Approver
		want bool
	}{
		{"nobody", nil, false},
		{"no", approver(func(context.Context, call.Call, []gates.Finding) error { return errors.New("no") }), false},
		{"panics", approver(func(context.Context, call.Call, []gates.Finding) error { panic("x") }), false},
		{"yes", approver(yes), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, j, err := chain(t, says("ok", gates.Allow), says("c", gates.Confirm)).Authorize(t.Context(), theCall(), tt.who)
			if a.Sealed() != tt.want || (err == nil) != tt.want || j.Verdict != gates.Confirm {
				t.Errorf("sealed %v, error %v, verdict %v", a.Sealed(), err, j.Verdict)
			}
		})
	}
}

func TestConfirmCollectsEveryReasonOnce(t *testing.T) {
	t.Parallel()
	var asked int
	var why []gates.Finding
	who := approver(func(_ context.Context, _ call.Call, w []gates.Finding) error { asked++; why = w; return nil })
	_, j, err := chain(t, says("a", gates.Confirm), says("b", gates.Allow), says("c", gates.Confirm)).Authorize(t.Context(), theCall(), who)
	if err != nil || asked != 1 || len(why) != 2 || why[0].Gate != "a" || why[1].Gate != "c" || j.Decisive.Gate != "a" {
		t.Errorf("asked %d times with %+v, decisive %+v, error %v", asked, why, j.Decisive, err)
	}
}

func TestAlwaysConfirmToolAsks(t *testing.T) {
	t.Parallel()
	c := theCall()
	c.Spec.Confirm = call.ConfirmAlways
	_, j, err := chain(t, says("ok", gates.Allow)).Authorize(t.Context(), c, nil)
	if !errors.Is(err, gates.ErrNoApprover) || j.Verdict != gates.Confirm {
		t.Errorf("verdict %v, error %v", j.Verdict, err)
	}
}

func TestCancelWhileAskingDoesNotSeal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	who := approver(func(context.Context, call.Call, []gates.Finding) error { cancel(); return nil })
	a, _, err := chain(t, says("c", gates.Confirm)).Authorize(ctx, theCall(), who)
	if a.Sealed() || !errors.Is(err, context.Canceled) {
		t.Errorf("sealed %v, error %v", a.Sealed(), err)
	}
}

func TestNewChainRefuses(t *testing.T) {
	t.Parallel()
	for name, gs := range map[string][]gates.Gate{
		"empty": nil, "nil": {nil}, "typed nil": {(*ptrGate)(nil)}, "no name": {says("", gates.Allow)},
		"doubled": {says("a", gates.Allow), says("a", gates.Deny)},
	} {
		if _, err := gates.NewChain(gs...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	var ch *gates.Chain
	if j := ch.Judge(t.Context(), theCall()); j.Verdict != gates.Deny || j.Denied() == nil {
		t.Errorf("nil chain: %+v", j)
	}
}

type ptrGate struct{}

func (*ptrGate) Name() string { return "p" }
func (*ptrGate) Check(context.Context, call.Call) (gates.Decision, error) {
	return gates.Permit(), nil
}

func TestZeroAuthorizedIsInert(t *testing.T) {
	t.Parallel()
	var a gates.Authorized
	var v struct{}
	if err := a.Decode(&v); !errors.Is(err, gates.ErrNotAuthorized) {
		t.Errorf("Decode: %v", err)
	}
	if a.Sealed() || a.Tool() != "" || a.Session() != "" || a.CallID() != "" {
		t.Error("the zero value carries something")
	}
}

func TestVerdictAlgebra(t *testing.T) {
	t.Parallel()
	v := func(b uint8) gates.Verdict { return gates.Verdict(b % 5) } // 3 and 4 are no verdicts
	for name, law := range map[string]any{
		"commutative":        func(a, b uint8) bool { return v(a).Min(v(b)) == v(b).Min(v(a)) },
		"associative":        func(a, b, c uint8) bool { return v(a).Min(v(b)).Min(v(c)) == v(a).Min(v(b).Min(v(c))) },
		"idempotent":         func(a uint8) bool { return v(a) > gates.Allow || v(a).Min(v(a)) == v(a) },
		"deny wins":          func(a uint8) bool { return v(a).Min(gates.Deny) == gates.Deny },
		"no verdict is deny": func(a uint8) bool { return gates.Verdict(a%100+3).Min(gates.Allow) == gates.Deny },
		"never looser":       func(a, b uint8) bool { return v(a).Min(v(b)) <= v(b) || v(b) > gates.Allow },
	} {
		if err := quick.Check(law, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAddingAGateNeverLoosens runs random chains: the verdict of a longer
// chain is never above that of a shorter one, in any order.
func TestAddingAGateNeverLoosens(t *testing.T) {
	t.Parallel()
	law := func(vs []uint8, extra uint8) bool {
		gs := []gates.Gate{says("first", gates.Allow)}
		for i, b := range vs {
			gs = append(gs, says("g"+string(rune('a'+i%26))+string(rune('a'+i/26%26)), gates.Verdict(b%3)))
		}
		before := chain(t, gs...).Judge(context.Background(), theCall()).Verdict
		front := chain(t, append([]gates.Gate{says("extra", gates.Verdict(extra%3))}, gs...)...).Judge(context.Background(), theCall()).Verdict
		back := chain(t, append(gs, says("extra", gates.Verdict(extra%3)))...).Judge(context.Background(), theCall()).Verdict
		return front <= before && back <= before && front == back
	}
	if err := quick.Check(law, &quick.Config{MaxCount: 300}); err != nil {
		t.Error(err)
	}
}

func TestLimitsOnlyNarrow(t *testing.T) {
	t.Parallel()
	lim := func(name string, n int64) gate {
		return gate{name, func(context.Context, call.Call) (gates.Decision, error) {
			return gates.Decision{Verdict: gates.Allow, Limits: call.Limits{MaxOutput: n}}, nil
		}}
	}
	a, _, err := chain(t, lim("a", 500), lim("b", 100), lim("c", 0)).Authorize(t.Context(), theCall(), nil)
	if err != nil || a.Limits().MaxOutput != 100 {
		t.Errorf("limits %+v, error %v", a.Limits(), err)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	a, _, err := chain(t, says("ok", gates.Allow)).Authorize(t.Context(), theCall(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var known struct {
		A int `json:"a"`
	}
	if err := a.Decode(&known); err != nil || known.A != 1 {
		t.Errorf("decoded %+v, error %v", known, err)
	}
	var other struct {
		B int `json:"b"`
	}
	if err := a.Decode(&other); err == nil {
		t.Error("an unknown member was ignored")
	}
}

func TestConcurrentJudging(t *testing.T) {
	t.Parallel()
	ch := chain(t, says("a", gates.Allow), says("b", gates.Confirm))
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if v := ch.Judge(t.Context(), theCall()).Verdict; v != gates.Confirm {
				t.Errorf("verdict %v", v)
			}
		})
	}
	wg.Wait()
}

// TestAnAlteredCallGoesNoFurther shows that the first gate that alters a call
// is the last one asked, whatever it said itself.
func TestAnAlteredCallGoesNoFurther(t *testing.T) {
	t.Parallel()
	asked := false
	last := gate{"last", func(context.Context, call.Call) (gates.Decision, error) {
		asked = true
		return gates.Permit(), nil
	}}
	first := alters(func(c call.Call) { c.Facts.Commands[0].Argv[0] = "curl" })
	a, j, err := chain(t, first, last).Authorize(t.Context(), theCall(), approver(yes))
	if asked || a.Sealed() || err == nil || j.Decisive.Reason != "the gate altered the call" {
		t.Errorf("asked %v, sealed %v, %v, %+v", asked, a.Sealed(), err, j.Decisive)
	}
}

// TestJudgingCopiesACallOnce bounds what the chain itself costs: a copy for
// every gate would show.
func TestJudgingCopiesACallOnce(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	c := theCall()
	for range 50 {
		c.Facts.Commands = append(c.Facts.Commands, call.Command{Name: "a", Argv: []string{"a", "b", "c"}})
	}
	allow := func(name string) gate {
		return gate{name, func(context.Context, call.Call) (gates.Decision, error) { return gates.Permit(), nil }}
	}
	ch := chain(t, allow("a"), allow("b"), allow("c"), allow("d"), allow("e"), allow("f"), allow("g"))
	if n := testing.AllocsPerRun(100, func() { ch.Judge(context.Background(), c) }); n > 24 {
		t.Errorf("%v allocations for one call and seven gates", n)
	}
}
