package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/redact"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

// echo is a tool that says what it was given, and counts.
type echo struct{ ran *atomic.Int64 }

func (echo) Spec() call.Spec {
	return call.Spec{
		Name: "echo", Title: "Echo", Description: "Says it again.",
		Input:  json.RawMessage(`{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"}}}`),
		Output: json.RawMessage(`{"type":"object"}`),
		Effect: call.ReadsState, Confirm: call.ConfirmByPolicy, Destructive: call.No, Idempotent: call.Yes,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
	}
}

type args struct {
	Text string `json:"text"`
}

func (echo) Facts(raw json.RawMessage) (call.Facts, error) {
	var a args
	if err := json.Unmarshal(raw, &a); err != nil {
		return call.Facts{}, err
	}
	return call.Facts{Summary: "echo " + a.Text, Text: a.Text}, nil
}

func (e echo) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a args
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	e.ran.Add(1)
	switch a.Text {
	case "panic":
		panic("the tool's secret")
	case "fail":
		return call.Result{}, errors.New("an unclassified fault")
	case "wait":
		<-ctx.Done()
		return call.Result{}, ctx.Err()
	case "long":
		a.Text = strings.Repeat("line of text\n", 10_000)
	}
	out, err := json.Marshal(map[string]string{"text": a.Text})
	return call.Result{Text: a.Text, Structured: out}, err
}

// gate denies "deny…", asks for "ask…", and allows the rest.
type gate struct{}

func (gate) Name() string { return "test" }
func (gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	switch {
	case strings.HasPrefix(c.Facts.Text, "deny"):
		return gates.Decision{Verdict: gates.Deny, Code: "no", Reason: "not that", Suggestion: "say something else"}, nil
	case strings.HasPrefix(c.Facts.Text, "ask"):
		return gates.Decision{Verdict: gates.Confirm, Code: "ask", Reason: "it asks", Kind: "ask"}, nil
	}
	return gates.Permit(), nil
}

type rig struct {
	*pipeline.Pipeline
	ran   *atomic.Int64
	path  string
	ready *atomic.Pointer[error]
}

func newRig(t *testing.T) rig {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	ran := &atomic.Int64{}
	ready := &atomic.Pointer[error]{}
	ready.Store(new(error))
	reg, err := tools.NewRegistry(echo{ran})
	if err != nil {
		t.Fatal(err)
	}
	ch, err := gates.NewChain(gate{})
	if err != nil {
		t.Fatal(err)
	}
	app, err := approval.New(approval.Default(), approval.NewMemory(), log)
	if err != nil {
		t.Fatal(err)
	}
	aud, err := audit.Open(audit.Default(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = aud.Close() })
	p, err := pipeline.New(pipeline.Options{
		Tools: reg, Chain: ch, Approvals: app, Audit: aud, Redact: redact.New(), Log: log, Fingerprint: "fp", MaxText: 2000,
		Ready: func(context.Context) error { return *ready.Load() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return rig{p, ran, filepath.Join(dir, "audit.jsonl"), ready}
}

func request(text string) pipeline.Request {
	raw, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err)
	}
	return pipeline.Request{
		Tool: "echo", Args: raw, Session: "s",
		Caller: call.Caller{ID: "local", Transport: "stdio", Trust: call.TrustTrusted}, CanAsk: true,
	}
}

// records reads the calls in the audit log, and checks its chain.
func (r rig) records(t *testing.T) []map[string]any {
	t.Helper()
	f, err := os.Open(r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rep, err := audit.Verify(f)
	if err != nil || rep.Broken != 0 {
		t.Fatalf("audit log: %v %v", rep, err)
	}
	lines, err := audit.Tail(r.path, 100)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, l := range lines {
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatal(err)
		}
		if m["tool"] != nil {
			out = append(out, m)
		}
	}
	return out
}

func TestEveryEndLeavesOneRecord(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name          string
		r             pipeline.Request
		ctx           context.Context //nolint:containedctx // a table of contexts
		outcome, code string
		ran           int64
	}{
		{name: "ok", r: request("hello"), outcome: "ok", ran: 1},
		{name: "denied", r: request("deny it"), outcome: "denied", code: "no"},
		{name: "unknown tool", r: pipeline.Request{Tool: "nope"}, outcome: "rejected", code: "tool_not_found"},
		{name: "bad arguments", r: pipeline.Request{Tool: "echo", Args: json.RawMessage(`{}`)}, outcome: "invalid", code: "invalid_parameters"},
		{name: "wrong type", r: pipeline.Request{Tool: "echo", Args: json.RawMessage(`{"text":1}`)}, outcome: "invalid", code: "type_mismatch"},
		{name: "not json", r: pipeline.Request{Tool: "echo", Args: json.RawMessage(`{`)}, outcome: "invalid", code: "invalid_parameters"},
		{name: "panic", r: request("panic"), outcome: "internal", code: "internal", ran: 1},
		{name: "unclassified", r: request("fail"), outcome: "internal", code: "internal", ran: 1},
		{name: "cancelled before", r: request("wait"), ctx: cancelled, outcome: "denied", code: "cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rig := newRig(t)
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			resp := rig.Call(ctx, tt.r)
			if (resp.Err == nil) != (tt.outcome == "ok") {
				t.Errorf("error %v", resp.Err)
			}
			recs := rig.records(t)
			if len(recs) != 1 {
				t.Fatalf("%d records: %v", len(recs), recs)
			}
			code, _ := recs[0]["code"].(string)
			if recs[0]["outcome"] != tt.outcome || code != tt.code || rig.ran.Load() != tt.ran || recs[0]["call_id"] != resp.CallID {
				t.Errorf("outcome %v code %v ran %d record %v", recs[0]["outcome"], code, rig.ran.Load(), recs[0])
			}
		})
	}
}

func TestCancelWhileRunning(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan pipeline.Response)
	go func() { done <- rig.Call(ctx, request("wait")) }()
	for rig.ran.Load() == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("never ran")
		default:
		}
	}
	cancel()
	resp := <-done
	var e *call.Error
	if !errors.As(resp.Err, &e) || e.Category != call.CategoryCancelled {
		t.Errorf("error %v", resp.Err)
	}
	if recs := rig.records(t); len(recs) != 1 || recs[0]["outcome"] != "cancelled" {
		t.Errorf("records %v", recs)
	}
}

// ask makes the first pass of a call that asks.
func (r rig) ask(t *testing.T, req pipeline.Request) (pipeline.Response, *approval.Record) {
	t.Helper()
	resp := r.Call(t.Context(), req)
	if resp.Pending == nil || resp.Err != nil {
		t.Fatalf("pending %v, error %v", resp.Pending, resp.Err)
	}
	if r.ran.Load() != 0 {
		t.Fatal("it ran before anybody answered")
	}
	if recs := r.records(t); len(recs) != 0 {
		t.Fatalf("recorded before it ended: %v", recs)
	}
	return resp, resp.Pending
}

func TestAnswerRunsOnceAndLeavesOneRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		decision approval.Decision
		how      string
		edit     func(*pipeline.Request)
		ran      int64
		outcome  string
		code     string
	}{
		{name: "allowed", decision: approval.AllowOnce, ran: 1, outcome: "ok"},
		{name: "allowed for the session", decision: approval.AllowSession, ran: 1, outcome: "ok"},
		{name: "denied", decision: approval.DecisionDeny, outcome: "not_approved", code: "declined"},
		{name: "declined", how: approval.HowDeclined, outcome: "not_approved", code: "declined"},
		{name: "cancelled", how: approval.HowCancelled, outcome: "not_approved", code: "cancelled"},
		{name: "no decision", outcome: "not_approved"},
		{name: "other arguments", decision: approval.AllowOnce, edit: func(r *pipeline.Request) { r.Args = json.RawMessage(`{"text":"ask for more"}`) }, outcome: "not_approved"},
		{name: "other session", decision: approval.AllowOnce, edit: func(r *pipeline.Request) { r.Session = "t" }, outcome: "not_approved"},
		{name: "other caller", decision: approval.AllowOnce, edit: func(r *pipeline.Request) { r.Caller.ID = "mallory" }, outcome: "not_approved"},
		{name: "forged digest", decision: approval.AllowOnce, edit: func(r *pipeline.Request) { r.Answer.Digest = strings.Repeat("0", 64) }, outcome: "not_approved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rig := newRig(t)
			req := request("ask me")
			first, rec := rig.ask(t, req)
			req.Answer = &approval.Answer{ID: rec.ID, Digest: rec.Digest, Decision: tt.decision, How: tt.how}
			req.Resume = first.CallID
			if tt.edit != nil {
				tt.edit(&req)
			}
			resp := rig.Call(t.Context(), req)
			if rig.ran.Load() != tt.ran || (resp.Err == nil) != (tt.ran == 1) || resp.CallID != first.CallID {
				t.Errorf("ran %d, error %v, ids %s %s", rig.ran.Load(), resp.Err, first.CallID, resp.CallID)
			}
			recs := rig.records(t)
			if len(recs) != 1 || recs[0]["outcome"] != tt.outcome || (tt.code != "" && recs[0]["code"] != tt.code) {
				t.Errorf("records %v", recs)
			}
			again := rig.Call(t.Context(), req)
			if again.Err == nil && again.Pending == nil || rig.ran.Load() != tt.ran {
				t.Errorf("the same answer counted twice: ran %d, %+v", rig.ran.Load(), again)
			}
		})
	}
}

func TestSessionGrantCoversTheKindOnly(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	req := request("ask me")
	first, rec := rig.ask(t, req)
	req.Answer, req.Resume = &approval.Answer{ID: rec.ID, Digest: rec.Digest, Decision: approval.AllowSession}, first.CallID
	if resp := rig.Call(t.Context(), req); resp.Err != nil {
		t.Fatal(resp.Err)
	}
	if resp := rig.Call(t.Context(), request("ask again")); resp.Err != nil || resp.Pending != nil {
		t.Errorf("the grant does not cover its kind: %v %v", resp.Err, resp.Pending)
	}
	other := request("ask again")
	other.Session = "another"
	if resp := rig.Call(t.Context(), other); resp.Pending == nil {
		t.Errorf("the grant reaches another session: %+v", resp)
	}
	if resp := rig.Call(t.Context(), request("deny this")); resp.Err == nil {
		t.Error("a grant lifted a refusal")
	}
}

func TestClientThatCannotAsk(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	req := request("ask me")
	req.CanAsk = false
	resp := rig.Call(t.Context(), req)
	var e *call.Error
	if !errors.As(resp.Err, &e) || e.Code != "approval_required" || e.Details["approval_id"] == "" || resp.Pending != nil || rig.ran.Load() != 0 {
		t.Fatalf("%v %v", resp.Err, resp.Pending)
	}
	if recs := rig.records(t); len(recs) != 1 || recs[0]["outcome"] != "not_approved" {
		t.Errorf("records %v", recs)
	}
}

func TestOneAnswerManyRetries(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	req := request("ask me")
	first, rec := rig.ask(t, req)
	req.Answer, req.Resume = &approval.Answer{ID: rec.ID, Digest: rec.Digest, Decision: approval.AllowOnce}, first.CallID
	var wg sync.WaitGroup
	var ok atomic.Int64
	for range 100 {
		wg.Go(func() {
			if resp := rig.Call(t.Context(), req); resp.Err == nil && resp.Pending == nil {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	if ok.Load() != 1 || rig.ran.Load() != 1 {
		t.Errorf("%d results, ran %d times", ok.Load(), rig.ran.Load())
	}
}

func TestUnansweredCallsAreRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		rig.ask(t, request("ask me"))
		time.Sleep(15 * time.Minute)
		if resp := rig.Call(t.Context(), request("hello")); resp.Err != nil {
			t.Fatal(resp.Err)
		}
		resp := rig.Call(t.Context(), request("ask me too"))
		if resp.Pending == nil {
			t.Fatal(resp.Err)
		}
		rig.Close()
		var codes []any
		for _, r := range rig.records(t) {
			codes = append(codes, r["code"])
		}
		if len(codes) != 3 || codes[0] != "expired" || codes[1] != nil || codes[2] != "abandoned" {
			t.Errorf("codes %v", codes)
		}
	})
}

func TestWhatCannotBeRecordedDoesNotRun(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	// The log's file is exchanged for a folder: nothing can be appended.
	if err := os.Remove(rig.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Mkdir(rig.path, 0o700); err != nil {
		t.Fatal(err)
	}
	resp := rig.Call(t.Context(), request("hello"))
	var e *call.Error
	if !errors.As(resp.Err, &e) || e.Code != "audit_unavailable" || rig.ran.Load() != 0 {
		t.Errorf("error %v, ran %d", resp.Err, rig.ran.Load())
	}
	if err := os.Remove(rig.path); err != nil {
		t.Fatal(err)
	}
	if resp := rig.Call(t.Context(), request("hello")); resp.Err != nil {
		t.Errorf("it does not recover: %v", resp.Err)
	}
}

// A call that is cancelled while it is found out whether commands can be
// confined was cancelled, and nothing else.
func TestCancelWhileProbing(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	why := errors.New("signal: killed")
	rig.ready.Store(&why)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	resp := rig.Call(ctx, request("hello"))
	var e *call.Error
	if !errors.As(resp.Err, &e) || e.Category != call.CategoryCancelled || rig.ran.Load() != 0 {
		t.Errorf("error %v", resp.Err)
	}
	if recs := rig.records(t); len(recs) != 1 || recs[0]["outcome"] != "cancelled" {
		t.Errorf("records %v", recs)
	}
}

// What the transport refuses, such as a forged answer, is recorded like every
// other call.
func TestRefusedByTheTransport(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	req := request("hello")
	req.Refused = &call.Error{Category: call.CategoryConfirmationRequired, Code: "invalid_state", Message: "forged"}
	resp := rig.Call(t.Context(), req)
	if !errors.Is(resp.Err, req.Refused) || rig.ran.Load() != 0 || resp.CallID == "" {
		t.Errorf("error %v, ran %d, id %q", resp.Err, rig.ran.Load(), resp.CallID)
	}
	if recs := rig.records(t); len(recs) != 1 || recs[0]["code"] != "invalid_state" || recs[0]["outcome"] != "not_approved" {
		t.Errorf("records %v", recs)
	}
}

func TestNothingRunsWhereNothingIsConfined(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	why := errors.New("no user namespaces")
	rig.ready.Store(&why)
	resp := rig.Call(t.Context(), request("hello"))
	var e *call.Error
	if !errors.As(resp.Err, &e) || e.Code != "sandbox_unavailable" || !errors.Is(resp.Err, why) || rig.ran.Load() != 0 {
		t.Errorf("error %v, ran %d", resp.Err, rig.ran.Load())
	}
	if recs := rig.records(t); len(recs) != 1 || recs[0]["code"] != "sandbox_unavailable" {
		t.Errorf("records %v", recs)
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	resp := rig.Call(t.Context(), request("long"))
	if resp.Err != nil || len([]rune(resp.Result.Text)) > 2000 || !resp.Result.Outcome.Truncated {
		t.Errorf("%d characters, truncated %v, error %v", len(resp.Result.Text), resp.Result.Outcome.Truncated, resp.Err)
	}
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	resp = rig.Call(t.Context(), request("token "+secret))
	if strings.Contains(resp.Result.Text, secret) || strings.Contains(string(resp.Result.Structured), secret) {
		t.Errorf("a secret left: %s %s", resp.Result.Text, resp.Result.Structured)
	}
	b, err := os.ReadFile(rig.path)
	if err != nil || strings.Contains(string(b), secret) {
		t.Errorf("a secret was recorded: %v", err)
	}
}

func TestNewRefusesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := pipeline.New(pipeline.Options{}); err == nil {
		t.Error("an empty pipeline was built")
	}
}
