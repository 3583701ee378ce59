package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/redact"
)

// Record is what is kept of one call. A zero field is left out of the line
// unless its zero says something. [Entry.Finish] redacts all of it.
type Record struct {
	CallID    string    `json:"call_id"` // correlation id, shared with egress events and the log
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended"`
	Session   string    `json:"session,omitempty"`
	Turn      string    `json:"turn,omitempty"`
	Task      string    `json:"task,omitempty"`
	Caller    string    `json:"caller"`
	Transport string    `json:"transport"`
	Trust     string    `json:"trust"`

	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args,omitempty"`
	Facts call.Facts      `json:"facts"`

	ExecEnv string `json:"execution_env,omitempty"` // prepared environment that was in force
	Cwd     string `json:"resolved_cwd,omitempty"`  // real folder a command was to run in

	Verdict           string       `json:"verdict,omitempty"` // of the whole chain; empty when no gate was asked
	Trail             []TrailEntry `json:"trail,omitempty"`
	Approval          string       `json:"approval,omitempty"` // how a confirm was answered, with the id of the approval
	ApprovedBy        string       `json:"approved_by,omitempty"`
	PolicyFingerprint string       `json:"policy,omitempty"`

	Outcome  string `json:"outcome"` // ok, denied, not_approved, invalid, error, timeout, …
	Category string `json:"category,omitempty"`
	Code     string `json:"code,omitempty"`
	Error    string `json:"error,omitempty"`

	ExitCode     *int  `json:"exit_code,omitempty"` // present only when a command ran to its end
	TimedOut     bool  `json:"timed_out"`
	Cancelled    bool  `json:"cancelled,omitempty"`
	Truncated    bool  `json:"truncated"`
	Cached       bool  `json:"cached,omitempty"`
	RawBytes     int64 `json:"raw_bytes"`
	ShownBytes   int64 `json:"shown_bytes"`
	SandboxLevel int   `json:"sandbox_level"` // 0 = no command ran

	Violations []call.Violation `json:"violations,omitempty"` // what the sandbox denied a command

	RunTime time.Duration `json:"-"` // written as run_ms
}

// TrailEntry is one gate's answer.
type TrailEntry struct {
	Gate       string `json:"gate"`
	Verdict    string `json:"verdict"`
	Code       string `json:"code,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// Sizes of what is kept.
const (
	// MaxLine bounds one line of the log, so that the space for it can be
	// proven before the call runs.
	MaxLine = 64 << 10

	maxArgs   = 16 << 10
	maxFacts  = 24 << 10
	maxReason = 1 << 10
	maxError  = 4 << 10
	maxTrail  = 32 // and as many violations
)

// encoded is the record as written: durations in milliseconds, facts as bytes
// so that they can be cut.
type encoded struct {
	record
	Facts   json.RawMessage `json:"facts,omitempty"`
	TotalMS float64         `json:"total_ms"`
	RunMS   float64         `json:"run_ms,omitempty"`
}

type record Record

// encode returns the record as a JSON object, redacted and cut to fit a line.
func (r Record) encode(red *redact.Redactor) ([]byte, error) {
	facts, err := marshal(r.Facts)
	if err != nil {
		return nil, err
	}
	e := encoded{record: record(r), TotalMS: millis(r.Ended.Sub(r.Started)), RunMS: millis(r.RunTime)}
	e.Started, e.Ended = r.Started.UTC(), r.Ended.UTC()
	// Secrets go before anything is cut: half a secret is not recognised.
	e.Args, _ = red.Kept(r.Args)
	e.Args, e.Facts = cutJSON(e.Args, maxArgs), facts
	if len(facts) > maxFacts {
		facts, _ = red.KeptValues(facts)
		e.Facts = cutJSON(facts, maxFacts)
	}
	e.cutTexts(red)
	body, err := finish(e, red)
	if err != nil || len(body) <= MaxLine-headRoom {
		return body, err
	}
	// Texts full of escapes can still be too long; what was decided and how it
	// ended always fits.
	e.Args, e.Facts, e.Violations = cutJSON(e.Args, 0), cutJSON(e.Facts, 0), nil
	for i := range e.Trail {
		e.Trail[i].Reason, e.Trail[i].Suggestion = cut(e.Trail[i].Reason, 100), ""
	}
	e.Error = cut(e.Error, 200)
	return finish(e, red)
}

func finish(e encoded, red *redact.Redactor) ([]byte, error) {
	body, err := marshal(e)
	if err != nil {
		return nil, err
	}
	body, _ = red.KeptValues(body)
	return body, nil
}

// cutTexts bounds every text a caller can choose the length of.
func (e *encoded) cutTexts(red *redact.Redactor) {
	long := func(s string, limit int) string {
		if len(s) > limit {
			s, _ = red.Command(s)
		}
		return cut(s, limit)
	}
	for _, s := range []*string{
		&e.CallID, &e.Session, &e.Turn, &e.Task, &e.Caller, &e.Transport, &e.Trust, &e.Tool,
		&e.ExecEnv, &e.Verdict, &e.Approval, &e.ApprovedBy, &e.PolicyFingerprint, &e.Outcome, &e.Category, &e.Code,
	} {
		*s = long(*s, 256)
	}
	e.Cwd = long(e.Cwd, maxReason)
	e.Error = long(e.Error, maxError)
	violations := e.Violations[:min(len(e.Violations), maxTrail)]
	e.Violations = make([]call.Violation, len(violations))
	for i, v := range violations {
		v.Target, v.By, v.Hint = long(v.Target, maxReason/4), long(v.By, 64), "" // the hint is for the model
		e.Violations[i] = v
	}
	trail := e.Trail[:min(len(e.Trail), maxTrail)]
	e.Trail = make([]TrailEntry, len(trail))
	for i, t := range trail {
		e.Trail[i] = TrailEntry{
			Gate: cut(t.Gate, 64), Verdict: cut(t.Verdict, 64), Code: cut(t.Code, 64),
			Reason: long(t.Reason, maxReason), Suggestion: long(t.Suggestion, maxReason/4),
		}
	}
}

func millis(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }

// cut shortens s to about limit bytes at a character border.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:limit]), nil)) + "…"
}

// cutJSON replaces a JSON text over the limit by its size and digest, with the
// start of it as text.
func cutJSON(raw json.RawMessage, limit int) json.RawMessage {
	if len(raw) <= limit {
		return raw
	}
	sum := sha256.Sum256(raw)
	out, err := marshal(map[string]any{
		"truncated": true, "bytes": len(raw), "sha256": hex.EncodeToString(sum[:]), "start": cut(string(raw), limit/8),
	})
	if err != nil {
		return nil
	}
	return out
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
