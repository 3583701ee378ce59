// Package pipeline is the life of one call, as one straight-line function.
//
// Read [Pipeline.Call] from top to bottom: record, accept, authorize (which
// asks a person when a gate says so), run, shape, record. There are no
// decorators, and nothing else in the program leads to a tool.
package pipeline

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/redact"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

// Request is one call as a transport hands it over. Nothing in it is trusted
// but Caller and Session, which the transport established.
type Request struct {
	Tool     string
	Args     json.RawMessage
	Session  string
	Caller   call.Caller
	Meta     call.Meta
	Progress func(call.Progress) // nil = the client asked for none

	// CanAsk says that the transport can put a question to a person and will
	// come back with an Answer. When false, a call that needs a person ends at
	// once with approval_required.
	CanAsk bool
	// Answer is the person's answer, on the second pass of a call that was
	// Pending.
	Answer *approval.Answer
	// Resume is the id of the first pass, so that one call leaves one record.
	Resume string
	// Refused says why the transport cannot let the call through, such as a
	// forged answer. It is recorded and told, and nothing runs.
	Refused error
}

// skillEnv are the variables of the active skill. Somebody who is not trusted
// cannot choose what programs find in their environment beside a call's own
// arguments, which everybody sees.
func (r Request) skillEnv() map[string]string {
	if r.Caller.Trust != call.TrustTrusted {
		return nil
	}
	return r.Meta.SkillEnv
}

// Response is the end of one pass. Pending is set when a person must answer
// first; otherwise Err says why the call gave no result; otherwise Result
// holds it.
type Response struct {
	CallID  string
	Result  call.Result
	Pending *approval.Record
	Err     error
}

// Options is what a pipeline is made of. Every field is required.
type Options struct {
	Tools       *tools.Registry
	Chain       *gates.Chain
	Approvals   *approval.Service
	Audit       *audit.Log
	Redact      *redact.Redactor
	Log         *slog.Logger
	Fingerprint string // of the policy in force; approvals are bound to it
	MaxText     int    // characters of text a result may have; at least 1 000

	// Ready waits until it is known whether commands can be confined, and says
	// why no call may run when they cannot. It is asked before every call.
	Ready func(context.Context) error
}

// Pipeline runs calls. It is safe for concurrent use.
type Pipeline struct {
	o       Options
	waiting waiting
	stats   stats
}

// New returns a pipeline. A missing option is an error.
func New(o Options) (*Pipeline, error) {
	switch {
	case o.Tools == nil, o.Chain == nil, o.Approvals == nil, o.Audit == nil, o.Redact == nil, o.Log == nil, o.Ready == nil:
		return nil, errors.New("pipeline: every option must be given")
	case o.Fingerprint == "":
		return nil, errors.New("pipeline: the policy has no fingerprint")
	case o.MaxText < 1000:
		return nil, errors.New("pipeline: max text must be at least 1000 characters")
	}
	return &Pipeline{o: o, waiting: waiting{calls: map[string]audit.Record{}}}, nil
}

// Tools lists the tools in the order clients see them.
func (p *Pipeline) Tools() []call.Spec { return p.o.Tools.List() }

// Call is the life of one call.
func (p *Pipeline) Call(ctx context.Context, r Request) (resp Response) {
	p.sweep(time.Now())
	resp.CallID = r.Resume
	if resp.CallID == "" {
		resp.CallID = newID()
	}
	rec := p.begin(resp.CallID, r)

	// 1. A call that cannot be recorded does not run.
	entry, err := p.o.Audit.Begin(resp.CallID)
	if err != nil {
		p.o.Log.ErrorContext(ctx, "audit log refused a call", "call_id", resp.CallID, "error", err, "cause", errors.Unwrap(err))
		resp.Err = notRecorded(err)
		return resp
	}
	defer func() { p.finish(ctx, entry, rec, &resp) }()

	// Nothing runs, not even a read, on a machine that cannot confine what the
	// operator wants confined.
	if err := p.o.Ready(ctx); err != nil {
		resp.Err = notReady(ctx, err)
		return resp
	}

	// 2. Known tool, canonical arguments, closed schema, facts.
	acc, err := p.o.Tools.AcceptFor(r.Tool, r.Args, r.skillEnv())
	rec.Args, rec.Facts = acc.Args, acc.Facts
	rec.ExecEnv, rec.Cwd = acc.Facts.ExecEnv, acc.Facts.Cwd.Path
	if err = cmp.Or(r.Refused, err); err != nil {
		resp.Err = err
		return resp
	}
	c := call.Call{
		ID: resp.CallID, Session: r.Session, Caller: r.Caller, Meta: r.Meta,
		Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts, Progress: r.Progress,
	}

	// 3 and 4. Every gate, then a person if any gate wants one.
	who := &approver{p: p, r: r}
	auth, judged, err := p.o.Chain.Authorize(ctx, c, who)
	rec.Trail, rec.Verdict, rec.Approval = trail(judged.Trail), judged.Verdict.String(), who.how
	if err != nil {
		resp.Err, resp.Pending = err, who.pending
		return resp
	}

	// 6. The tool, with sealed arguments, under the limits the gates left.
	started := time.Now()
	res, err := p.o.Tools.Run(ctx, auth)
	rec.RunTime = time.Since(started)
	if err != nil {
		resp.Err = classify(ctx, err)
		return resp
	}

	// 7. What the model reads: redacted and capped, text and structure alike.
	resp.Result = p.shape(res)
	return resp
}

// begin starts the audit record of a call. On the second pass of a call that
// waited for a person it goes on with the first pass's record.
func (p *Pipeline) begin(id string, r Request) *audit.Record {
	if r.Answer != nil {
		if rec, ok := p.waiting.take(r.Answer.ID); ok && rec.CallID == id {
			return &rec
		}
	}
	return &audit.Record{
		CallID: id, Started: time.Now(), Session: r.Session, Tool: r.Tool, Task: r.Meta.Task, Turn: r.Meta.Turn,
		Caller: r.Caller.ID, Transport: r.Caller.Transport, Trust: r.Caller.Trust.String(), PolicyFingerprint: p.o.Fingerprint,
	}
}

// finish writes the one record of a call. A result that cannot be recorded is
// not returned. A call that waits for a person is recorded when it ends: with
// the answer, or when its time is up.
func (p *Pipeline) finish(ctx context.Context, entry *audit.Entry, rec *audit.Record, resp *Response) {
	if resp.Pending != nil {
		resp.Err = nil
		p.waiting.put(resp.Pending.ID, *rec, resp.Pending.Expires)
		return
	}
	p.describe(rec, resp)
	p.stats.count(rec.Tool, rec.Outcome)
	if err := entry.Finish(*rec); err != nil {
		p.o.Log.ErrorContext(ctx, "audit log lost a record", "call_id", rec.CallID, "error", err, "cause", errors.Unwrap(err))
		*resp = Response{CallID: resp.CallID, Err: notRecorded(err)}
	}
}

func notReady(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return classify(ctx, errors.Join(ctx.Err(), err))
	}
	return &call.Error{
		Category: call.CategoryServerError, Code: "sandbox_unavailable", Phase: call.PhaseSetup,
		Message:    "commands cannot be confined on this machine, so nothing runs: " + err.Error(),
		Suggestion: "tell the operator to run `zeph-mcp-tools doctor`, which names the fix",
		Cause:      err,
	}
}

func notRecorded(err error) error {
	return &call.Error{
		Category: call.CategoryServerError, Code: "audit_unavailable", Phase: call.PhaseSetup, Retryable: true,
		Message:    "the audit log cannot be written, so nothing runs",
		Suggestion: "tell the operator: free disk space or repair the audit log's folder",
		Cause:      err,
	}
}

// classify gives context errors their category; everything else keeps its own.
func classify(ctx context.Context, err error) error {
	var known *call.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &call.Error{
			Category: call.CategoryTimeout, Code: "timeout", Phase: call.PhaseExecution, Retryable: true,
			Message: "the call took longer than it may", Suggestion: "ask for less at once", Cause: err,
		}
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return &call.Error{
			Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution,
			Message: "the call was cancelled", Cause: err,
		}
	}
	return err
}

// newID returns a fresh correlation id.
func newID() string { return "c-" + rand.Text() }
