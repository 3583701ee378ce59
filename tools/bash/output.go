package bash

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/filter"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

//go:embed bash_output.md
var outputDescription string

// lookEvery is how often a waiting bash_output looks whether there is a page of
// output already.
const lookEvery = 100 * time.Millisecond

// OutputTool reads what a run prints. It is safe for concurrent use.
type OutputTool struct{ t *Tool }

// NewOutput returns the tool that reads the runs of t.
func NewOutput(t *Tool) (*OutputTool, error) {
	if t == nil {
		return nil, errors.New("bash_output: the bash tool is required")
	}
	return &OutputTool{t}, nil
}

// Spec implements tools.Tool.
func (*OutputTool) Spec() call.Spec {
	return call.Spec{
		Name: "bash_output", Title: "Output of a run", Description: strings.TrimSpace(outputDescription),
		Input: json.RawMessage(outputInput), Output: json.RawMessage(outputOutput),
		Effect: call.ReadsState, Confirm: call.ConfirmByPolicy, Destructive: call.No, Idempotent: call.No,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
	}
}

// Facts implements tools.Tool.
func (*OutputTool) Facts(raw json.RawMessage) (call.Facts, error) {
	return runFacts(raw, &outputArgs{}, "read the output of")
}

// Run implements tools.Tool.
func (o *OutputTool) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a outputArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	r, err := o.t.runs.find(auth.Session(), a.RunID)
	if err != nil {
		return call.Result{}, err
	}
	since := int64(-1)
	if a.Since != nil {
		since = *a.Since
	}
	from := r.cursor(since)
	most := o.t.page(auth.Limits())
	if err := r.await(ctx, auth, from+most, a.wait(auth.Limits())); err != nil {
		return call.Result{}, err
	}
	return r.read(ctx, from, most)
}

// cursor is where reading begins: where the call says, else where it ended.
func (r *run) cursor(since int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since < 0 {
		return r.next
	}
	return since
}

// await waits until the run has ended, has printed so much, or the time is up.
func (r *run) await(ctx context.Context, auth gates.Authorized, enough int64, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	limit, look := time.NewTimer(wait), time.NewTicker(lookEvery)
	defer limit.Stop()
	defer look.Stop()
	tell, told := progress(auth), time.Now()
	for {
		line, total := r.box.Last()
		if total >= enough {
			return nil
		}
		if auth.WantsProgress() && time.Since(told) >= time.Second {
			told = time.Now()
			tell(line, total)
		}
		select {
		case <-r.box.Done():
			return nil
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return &call.Error{
				Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution,
				Message: "the call was cancelled; the run goes on", Cause: ctx.Err(),
			}
		case <-look.C:
		}
	}
}

// outputResult is the structured result of both tools.
type outputResult struct {
	RunID    string `json:"run_id"`
	Output   string `json:"output"`
	Next     int64  `json:"next"`
	Total    int64  `json:"total"`
	Skipped  int64  `json:"skipped,omitempty"`
	Invalid  int    `json:"invalid_utf8,omitempty"`
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Stages   []int  `json:"stages,omitempty"`
	Signal   string `json:"signal,omitempty"`
	TimedOut bool   `json:"timed_out,omitempty"`
	OOM      bool   `json:"out_of_memory,omitempty"`
	Stopped  bool   `json:"stopped,omitempty"`
	Duration int64  `json:"duration_ms"`

	Sandbox *confine `json:"sandbox,omitempty"` // once it has ended
}

// read returns a page of output, and how the run ended when it has.
func (r *run) read(ctx context.Context, from, most int64) (call.Result, error) {
	running := true
	select {
	case <-r.box.Done():
		running = false
		if r.recorded != nil {
			<-r.recorded // an end is not told before it is written down
		}
	default: // whatever it prints from now on is for the next page
	}
	p, err := r.box.Output(from, most)
	if err != nil {
		return call.Result{}, err
	}
	r.mu.Lock()
	r.next, r.seen = p.Next, r.seen || !running && p.Next >= p.Total
	r.mu.Unlock()
	res := outputResult{
		RunID: r.id, Output: filter.Clean(p.Text), Next: p.Next, Total: p.Total, Skipped: p.Skipped, Invalid: p.Invalid, Running: running,
		Duration: time.Since(r.began).Milliseconds(),
	}
	var b bytes.Buffer
	b.WriteString(strings.TrimRight(res.Output, "\n"))
	if p.Text == "" {
		b.WriteString("(no more output)")
	}
	if p.Skipped > 0 {
		fmt.Fprintf(&b, "\n[%d bytes before this were not kept]", p.Skipped)
	}
	if p.Invalid > 0 {
		fmt.Fprintf(&b, "\n[%d bytes that are no UTF-8 were replaced by �]", p.Invalid)
	}
	if p.Next < p.Total {
		fmt.Fprintf(&b, "\n[%d of %d bytes; since %d reads on]", p.Next, p.Total, p.Next)
	}
	if running {
		fmt.Fprintf(&b, "\n[running for %v]", time.Since(r.began).Round(time.Second))
	} else if err := r.tell(ctx, &b, &res); err != nil {
		return call.Result{}, err
	}
	raw, err := tools.EncodeResult(res)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{
		Text: strings.TrimPrefix(b.String(), "\n"), Structured: raw,
		Outcome: call.Outcome{ExitCode: res.ExitCode, TimedOut: res.TimedOut, Truncated: p.Next < p.Total || p.Skipped > 0, RawBytes: p.Next - from},
	}, nil
}

// tell adds how the run ended. An end that is not known is an error of its own.
func (r *run) tell(ctx context.Context, b *bytes.Buffer, res *outputResult) error {
	out, err := r.box.Wait()
	if err != nil {
		return explain(ctx, err)
	}
	code := out.ExitCode
	res.ExitCode, res.Signal, res.TimedOut, res.Stopped = &code, out.Signal, out.TimedOut, out.Cancelled
	box := confinement(out, r.cmd)
	res.OOM, res.Sandbox = out.OutOfMemory, &box
	res.Stages, res.Duration = differing(r.stages()), out.Duration.Milliseconds()
	switch {
	case out.TimedOut:
		fmt.Fprintf(b, "\n[ended after %v: its time was up]", r.cmd.Timeout)
	case out.Cancelled:
		b.WriteString("\n[stopped]")
	case code == 0:
		b.WriteString("\n[ended, exit code 0]")
	}
	b.WriteString(status(out))
	if missed(out, code == 0 && telling(res.Stages) != "") {
		b.WriteString("\n" + noNetwork)
	}
	if s := telling(res.Stages); s != "" {
		fmt.Fprintf(b, "\n[stages of the pipeline: %s]", s)
	}
	if out.Survivors > 0 {
		fmt.Fprintf(b, "\n[%d processes could not be ended]", out.Survivors)
	}
	for _, line := range out.Restored {
		fmt.Fprintf(b, "\n[%.300s]", line)
	}
	if s := denials(out.Violations); s != "" {
		fmt.Fprintf(b, "\n[%s]", s)
	}
	return nil
}
