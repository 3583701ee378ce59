package gates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Approver resolves a [Confirm]. It returns nil only when a person, or a grant
// a person gave, permits exactly this call; any error means not approved. It
// is asked once per pass, with every finding that wanted a person.
type Approver interface {
	Approve(ctx context.Context, c call.Call, why []Finding) error
}

// Chain is a fixed list of gates. It is safe for concurrent use.
type Chain struct {
	gates []Gate
	names []string
}

// NewChain returns a chain of the given gates in order. It refuses an empty
// list, a nil gate, and an empty or doubled name.
func NewChain(gs ...Gate) (*Chain, error) {
	if len(gs) == 0 {
		return nil, errors.New("gate chain is empty")
	}
	ch := &Chain{}
	for i, g := range gs {
		if g == nil || reflect.ValueOf(g).Kind() == reflect.Pointer && reflect.ValueOf(g).IsNil() {
			return nil, fmt.Errorf("gate %d is nil", i)
		}
		name := g.Name()
		if name == "" {
			return nil, fmt.Errorf("gate %d has no name", i)
		}
		if slices.Contains(ch.names, name) {
			return nil, fmt.Errorf("gate %q is in the chain twice", name)
		}
		ch.gates = append(ch.gates, g)
		ch.names = append(ch.names, name)
	}
	return ch, nil
}

// Names returns the gates' names in order.
func (ch *Chain) Names() []string { return slices.Clone(ch.names) }

// Judgement is what the chain makes of a call before anybody is asked.
type Judgement struct {
	Verdict Verdict // zero denies
	Trail   Trail
	Limits  call.Limits
	// Decisive is the finding that explains the verdict: the first gate in
	// order among the strictest. On a plain allow it is the zero Finding.
	Decisive Finding
}

// Denied returns the error for a judgement that denies, nil otherwise.
func (j Judgement) Denied() error {
	if j.Verdict != Deny {
		return nil
	}
	d := j.Decisive
	if d.Gate == "" {
		d.Gate, d.Code, d.Reason = "chain", "internal", "the call was not judged"
	}
	return &DeniedError{Gate: d.Gate, Code: d.Code, Reason: d.Reason, Suggestion: d.Suggestion}
}

// Judge asks every gate and runs nothing. The first deny ends the run; a
// confirm does not, because a later gate may still deny.
func (ch *Chain) Judge(ctx context.Context, c call.Call) Judgement {
	j := Judgement{Verdict: Allow}
	if ch == nil || len(ch.gates) == 0 {
		return Judgement{}
	}
	if d := refuseUnset(c.Spec); d != nil {
		return Judgement{Trail: Trail{*d}, Decisive: *d}
	}
	was := snapshot(c)
	j.Trail = make(Trail, 0, len(ch.gates)+1)
	for i, g := range ch.gates {
		f := Finding{Gate: ch.names[i], Decision: ask(ctx, g, c, &was)}
		j.Trail = append(j.Trail, f)
		j.Limits = j.Limits.Tighten(f.Limits)
		if f.Verdict < j.Verdict || (j.Decisive.Gate == "" && f.Code != "" && f.Verdict == j.Verdict) {
			j.Decisive = f
		}
		j.Verdict = j.Verdict.Min(f.Verdict)
		if j.Verdict == Deny {
			return j
		}
	}
	if c.Spec.Confirm == call.ConfirmAlways && j.Verdict == Allow {
		f := Finding{Gate: "spec", Decision: Decision{
			Verdict: Confirm, Code: "approval_always", Reason: "this tool asks before every call",
		}}
		j.Trail = append(j.Trail, f)
		j.Verdict, j.Decisive = Confirm, f
	}
	return j
}

// Authorize judges c and, when a gate wants a person asked, asks. It returns a
// sealed value only when every gate allowed, or the strictest said confirm and
// the approver said yes. A nil approver approves nothing.
func (ch *Chain) Authorize(ctx context.Context, c call.Call, who Approver) (Authorized, Judgement, error) {
	j := ch.Judge(ctx, c)
	switch j.Verdict {
	case Allow:
	case Confirm:
		if err := approve(ctx, c, who, j.Trail.Confirms()); err != nil {
			return Authorized{}, j, err
		}
	case Deny:
		return Authorized{}, j, j.Denied()
	default:
		return Authorized{}, j, j.Denied()
	}
	if err := ctx.Err(); err != nil {
		return Authorized{}, j, err
	}
	return Authorized{seal: &seal{}, call: c, limits: j.Limits}, j, nil
}

// ErrNoApprover is returned when a person must be asked and nobody can be.
var ErrNoApprover = errors.New("a person must approve this call and none can be asked")

func approve(ctx context.Context, c call.Call, who Approver, why []Finding) (err error) {
	if who == nil {
		return ErrNoApprover
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("approver panicked: %v", p)
		}
	}()
	return who.Approve(ctx, c, why)
}

// original is what a call pointed to before the first gate saw it. One copy
// serves all gates: what any of them alters is still there after it, and the
// next one is not asked.
type original struct {
	args     []byte
	facts    call.Facts
	skills   map[string]string
	skillEnv map[string]string
}

func snapshot(c call.Call) original {
	return original{
		args: bytes.Clone(c.Args), facts: c.Facts.Clone(),
		skills: maps.Clone(c.Meta.Skills), skillEnv: maps.Clone(c.Meta.SkillEnv),
	}
}

func (o *original) same(c call.Call) bool {
	return bytes.Equal(o.args, c.Args) && o.facts.Equal(c.Facts) &&
		maps.Equal(o.skills, c.Meta.Skills) && maps.Equal(o.skillEnv, c.Meta.SkillEnv)
}

// ask runs one gate and turns everything that is not a clean answer into a
// deny.
func ask(ctx context.Context, g Gate, c call.Call, was *original) (d Decision) {
	defer func() {
		if p := recover(); p != nil {
			d = Decision{Code: "internal", Reason: "the gate failed", Limits: d.Limits}
		}
	}()
	d, err := g.Check(ctx, c)
	switch {
	case err != nil:
		return Decision{Code: "gate_error", Reason: "the gate could not decide: " + err.Error()}
	case ctx.Err() != nil:
		return Decision{Code: "cancelled", Reason: "the call was cancelled while it was judged"}
	case !was.same(c):
		return Decision{Code: "internal", Reason: "the gate altered the call"}
	case d.Verdict > Allow:
		return Decision{Code: "internal", Reason: "the gate gave no known verdict"}
	case d.Verdict == Deny && d.Code == "":
		d.Code, d.Reason = "denied", "the gate gave no reason"
	}
	return d
}

func refuseUnset(s call.Spec) *Finding {
	if s.Name == "" || s.Effect == call.EffectUnset || s.Confirm == call.ConfirmUnset {
		return &Finding{Gate: "chain", Decision: Decision{Code: "internal", Reason: "the tool's nature is not declared"}}
	}
	return nil
}
