// Package gates is the contract of a gate and the engine that runs them.
//
// A [Gate] judges a call; it does not wrap a tool and has no way to go on. The
// [Chain] asks every gate in order, takes the strictest verdict and, when a
// person has to be asked, asks once with all reasons. Only a chain can make an
// [Authorized], and only an [Authorized] yields arguments, so a second path to
// a tool is inert rather than insecure.
package gates

import (
	"context"
	"fmt"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Verdict is a gate's answer. The zero value is [Deny]; the smallest of
// several verdicts wins.
type Verdict uint8

// The verdicts.
const (
	Deny Verdict = iota
	Confirm
	Allow
)

// String returns the name used by explain and in audit records. A value that
// is none of the three reads as deny.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Confirm:
		return "confirm"
	case Deny:
		return "deny"
	}
	return "deny"
}

// Min returns the stricter of two verdicts. A value outside the three counts
// as [Deny].
func (v Verdict) Min(o Verdict) Verdict {
	if v > Allow || o > Allow {
		return Deny
	}
	return min(v, o)
}

// Decision is one gate's judgement of one call. The zero Decision denies.
type Decision struct {
	Verdict    Verdict
	Code       string // stable snake_case; empty on a plain allow
	Reason     string // what the model and the person read; names the construct, its text and place
	Suggestion string // the safer alternative, if there is one
	Kind       string // on Confirm: what "allow this kind for the session" would cover; "" = cannot be granted for a session
	Limits     call.Limits
}

// Permit returns the plain allow.
func Permit() Decision { return Decision{Verdict: Allow} }

// Gate judges calls. Check must not change anything the call points to, must
// not block on anything but ctx, and must be safe for concurrent use. An
// error, a panic or a cancelled context is a deny, whatever Decision came with
// it.
type Gate interface {
	Name() string
	Check(ctx context.Context, c call.Call) (Decision, error)
}

// Finding is one gate's answer in the trail of a call.
type Finding struct {
	Gate string
	Decision
}

// Trail is every answer given to one call, in gate order. A denied call's
// trail ends with the gate that denied.
type Trail []Finding

// Confirms returns the findings that want a person asked.
func (t Trail) Confirms() []Finding {
	var out []Finding
	for _, f := range t {
		if f.Verdict == Confirm {
			out = append(out, f)
		}
	}
	return out
}

// DeniedError says which gate refused a call and why.
type DeniedError struct {
	Gate       string
	Code       string
	Reason     string
	Suggestion string
}

// Error returns the reason as the model may read it.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("refused by %s: %s (%s)", e.Gate, e.Reason, e.Code)
}
