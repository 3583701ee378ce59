package pipeline

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// waiting holds the records of calls that wait for a person, by approval id.
type waiting struct {
	mu    sync.Mutex
	calls map[string]audit.Record
	until []deadline // in order of expiry, since all approvals live equally long or shorter
}

type deadline struct {
	id string
	at time.Time
}

func (w *waiting) put(id string, rec audit.Record, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[id] = rec
	w.until = append(w.until, deadline{id, until})
}

func (w *waiting) take(id string) (audit.Record, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec, ok := w.calls[id]
	delete(w.calls, id)
	return rec, ok
}

// due takes every call whose time is up; with a zero now, every call.
func (w *waiting) due(now time.Time) []audit.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []audit.Record
	kept := w.until[:0]
	for _, d := range w.until {
		rec, ok := w.calls[d.id]
		switch {
		case !ok:
		case now.IsZero() || !now.Before(d.at):
			out = append(out, rec)
			delete(w.calls, d.id)
		default:
			kept = append(kept, d)
		}
	}
	w.until = kept
	return out
}

// sweep records the calls nobody answered in time.
func (p *Pipeline) sweep(now time.Time) { p.end(p.waiting.due(now), "expired") }

// Close records the calls that still wait for a person. The pipeline must not
// be used afterwards.
func (p *Pipeline) Close() { p.end(p.waiting.due(time.Time{}), "abandoned") }

func (p *Pipeline) end(recs []audit.Record, how string) {
	for _, rec := range recs {
		rec.Outcome, rec.Category, rec.Code = "not_approved", string(call.CategoryConfirmationRequired), how
		rec.Approval, rec.Ended = how, time.Now()
		entry, err := p.o.Audit.Begin(rec.CallID)
		if err == nil {
			err = entry.Finish(rec)
		}
		if err != nil {
			p.o.Log.Error("audit log lost a record", "call_id", rec.CallID, "error", err, "cause", errors.Unwrap(err))
		}
	}
}

func trail(t gates.Trail) []audit.TrailEntry {
	out := make([]audit.TrailEntry, len(t))
	for i, f := range t {
		out[i] = audit.TrailEntry{
			Gate: f.Gate, Verdict: f.Verdict.String(), Code: f.Code, Reason: f.Reason, Suggestion: f.Suggestion,
		}
	}
	return out
}

// describe fills in how a call ended.
func (p *Pipeline) describe(rec *audit.Record, resp *Response) {
	rec.Ended = time.Now()
	rec.Args, _ = p.o.Redact.JSON(rec.Args)
	if resp.Err == nil {
		out := resp.Result.Outcome
		rec.Outcome, rec.ExitCode, rec.TimedOut, rec.Truncated = "ok", out.ExitCode, out.TimedOut, out.Truncated
		rec.RawBytes, rec.ShownBytes, rec.SandboxLevel = out.RawBytes, int64(len(resp.Result.Text)), out.Sandbox
		rec.Violations = out.Violations
		return
	}
	var (
		denied *gates.DeniedError
		known  *call.Error
	)
	switch {
	case errors.As(resp.Err, &denied):
		rec.Outcome, rec.Category, rec.Code, rec.Error = "denied", string(call.CategoryPolicyBlocked), denied.Code, denied.Reason
	case errors.As(resp.Err, &known):
		rec.Outcome, rec.Category, rec.Code, rec.Error = outcome(known), string(known.Category), known.Code, known.Error()
		if known.Cause != nil {
			rec.Error += ": " + known.Cause.Error()
		}
	default:
		rec.Outcome, rec.Category, rec.Code, rec.Error = "internal", string(call.CategoryServerError), "internal", resp.Err.Error()
	}
	rec.Error, _ = p.o.Redact.Text(rec.Error)
}

func outcome(e *call.Error) string {
	switch e.Category {
	case call.CategoryToolNotFound:
		return "rejected"
	case call.CategoryInvalidParameters, call.CategoryTypeMismatch:
		return "invalid"
	case call.CategoryPolicyBlocked, call.CategoryQuotaBlocked:
		return "blocked"
	case call.CategoryConfirmationRequired:
		return "not_approved"
	case call.CategoryTimeout:
		return "timeout"
	case call.CategoryCancelled:
		return "cancelled"
	case call.CategoryPermanentFailure, call.CategoryRateLimited, call.CategoryServerError, call.CategoryNetworkError:
		return "error"
	}
	return "error"
}

// stats counts calls since start, for status and metrics.
type stats struct {
	mu       sync.Mutex
	outcomes map[string]map[string]int
}

func (s *stats) count(tool, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outcomes == nil {
		s.outcomes = map[string]map[string]int{}
	}
	if s.outcomes[outcome] == nil {
		s.outcomes[outcome] = map[string]int{}
	}
	if len(s.outcomes[outcome]) < 256 { // a client may invent tool names
		s.outcomes[outcome][tool]++
	}
}

// Stats returns the number of calls since start, by outcome and tool.
func (p *Pipeline) Stats() map[string]map[string]int {
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	out := make(map[string]map[string]int, len(p.stats.outcomes))
	for o, m := range p.stats.outcomes {
		out[o] = maps.Clone(m)
	}
	return out
}
