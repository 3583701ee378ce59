package bash

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

//go:embed bash_stop.md
var stopDescription string

// StopTool ends a run. It is safe for concurrent use.
type StopTool struct{ t *Tool }

// NewStop returns the tool that ends the runs of t.
func NewStop(t *Tool) (*StopTool, error) {
	if t == nil {
		return nil, errors.New("bash_stop: the bash tool is required")
	}
	return &StopTool{t}, nil
}

// Spec implements tools.Tool. It can end only what its own session started.
func (*StopTool) Spec() call.Spec {
	return call.Spec{
		Name: "bash_stop", Title: "Stop a run", Description: strings.TrimSpace(stopDescription),
		Input: json.RawMessage(stopInput), Output: json.RawMessage(outputOutput),
		Effect: call.RunsCommands, Confirm: call.ConfirmByPolicy, Destructive: call.No, Idempotent: call.Yes,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
	}
}

// Facts implements tools.Tool.
func (*StopTool) Facts(raw json.RawMessage) (call.Facts, error) {
	return runFacts(raw, &stopArgs{}, "stop")
}

// Run implements tools.Tool.
func (s *StopTool) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a stopArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	r, err := s.t.runs.find(auth.Session(), a.RunID)
	if err != nil {
		return call.Result{}, err
	}
	r.box.Stop()
	select {
	case <-r.box.Done():
	case <-ctx.Done():
		return call.Result{}, &call.Error{
			Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution,
			Message: "the call was cancelled; the run is being ended", Cause: ctx.Err(),
		}
	}
	return r.read(ctx, r.cursor(-1), s.t.page(auth.Limits()))
}
