// Package call holds the values that travel with one tool call: what a tool is
// ([Spec]), what was asked ([Call]), what the call means ([Facts]), how far it
// may go ([Limits]) and what came of it ([Result], [Error]).
//
// The package imports only the standard library and has no behaviour beyond
// the algebra of its own values, so every other package may depend on it.
package call

import (
	"encoding/json"
	"time"
)

// Trust says how far the originator of a call is believed. The zero value is
// [TrustUnset] and is treated as [TrustBlocked] everywhere.
type Trust uint8

// The trust levels, weakest first.
const (
	TrustUnset Trust = iota
	TrustBlocked
	TrustQuarantined
	TrustVerified
	TrustTrusted
)

// String returns the lower-case name used in config, tokens and audit records.
func (t Trust) String() string {
	switch t {
	case TrustTrusted:
		return "trusted"
	case TrustVerified:
		return "verified"
	case TrustQuarantined:
		return "quarantined"
	case TrustBlocked, TrustUnset:
		return "blocked"
	}
	return "blocked"
}

// ParseTrust reads a trust level. An unknown word is [TrustBlocked] and false.
func ParseTrust(s string) (Trust, bool) {
	for _, t := range []Trust{TrustTrusted, TrustVerified, TrustQuarantined, TrustBlocked} {
		if t.String() == s {
			return t, true
		}
	}
	return TrustBlocked, false
}

// Caller is who made a call, as the transport established it. Nothing in a
// call's own arguments can set it.
type Caller struct {
	ID        string // stable name: "local", or the authenticated principal
	Transport string // "stdio", "http", "cli"
	Trust     Trust  // zero is blocked
}

// Meta carries the `_meta` keys of a request that gates may use. All of it is
// chosen by the client and therefore only ever narrows what a call may do;
// SkillEnv, which does not, is heard from trusted callers only.
type Meta struct {
	Session string            // zeph/session
	Turn    string            // zeph/turn
	Task    string            // zeph/task
	Skills  map[string]string // zeph/skills: active skill name to trust level
	// SkillEnv are the variables of the active skill, from [SkillEnvKey].
	SkillEnv map[string]string
}

// Progress is one progress report of a running call. Reports may be dropped;
// nothing may depend on the last one arriving.
type Progress struct {
	Message string  // last line of output, or what is being done
	Done    float64 // monotonically increasing; bytes for commands
	Total   float64 // 0 = unknown
}

// Call is one call after acceptance: the tool is known, the arguments are
// canonical JSON valid for the tool's closed schema, and the facts were
// computed once from exactly those bytes. Gates receive it by value and must
// not alter what its slices point to; the engine denies a call when they do.
type Call struct {
	ID       string // correlation id, unique per call
	Session  string // what quotas, grants and risk chains are counted by
	Caller   Caller
	Meta     Meta
	Spec     Spec
	Args     json.RawMessage // canonical, see internal/canonjson
	Facts    Facts
	Progress func(Progress) // nil = nobody listens
}

// Limits is how far a permitted call may go. A zero field states nothing and
// leaves the other side's value in force; see [Limits.Tighten].
type Limits struct {
	Timeout   time.Duration `json:"timeout_ns,omitempty"` // wall clock
	MaxOutput int64         `json:"max_output,omitempty"` // bytes kept per stream
}

// Tighten returns the stricter of both limits, field by field. It is
// commutative, associative and idempotent, and the zero Limits is its identity,
// so the order in which gates speak cannot matter.
func (l Limits) Tighten(o Limits) Limits {
	return Limits{
		Timeout:   tighter(l.Timeout, o.Timeout),
		MaxOutput: tighter(l.MaxOutput, o.MaxOutput),
	}
}

func tighter[T ~int64](a, b T) T {
	switch {
	case a <= 0:
		return max(b, 0)
	case b <= 0:
		return a
	default:
		return min(a, b)
	}
}
