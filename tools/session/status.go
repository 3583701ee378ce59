// Package session holds the tools that tell a client about its own session and
// the server it speaks to.
package session

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

//go:embed status.md
var statusDescription string

// Status is what the status tool and the zeph://status resource tell. It holds
// nothing secret: paths are the workspace's own.
type Status struct {
	Version   string                    `json:"version"`
	Uptime    string                    `json:"uptime"`
	Workspace []string                  `json:"workspace"`
	Sandbox   Sandbox                   `json:"sandbox"`
	Gates     []string                  `json:"gates"`
	Tools     []string                  `json:"tools"`
	Calls     map[string]map[string]int `json:"calls"` // by outcome and tool, since start
	Warnings  []string                  `json:"warnings"`
}

// Sandbox is the confinement commands run under.
type Sandbox struct {
	Mode    string   `json:"mode"`
	Level   int      `json:"level"` // 0 until the first probe has ended, or when off
	Profile string   `json:"profile"`
	Network string   `json:"network"`
	Missing []string `json:"missing,omitempty"`
}

// StatusTool tells a client what is in force. It is safe for concurrent use.
type StatusTool struct {
	source func(context.Context) Status
}

// NewStatus returns the status tool. source is called once a call and must not
// be nil.
func NewStatus(source func(context.Context) Status) (*StatusTool, error) {
	if source == nil {
		return nil, errors.New("status: no source")
	}
	return &StatusTool{source: source}, nil
}

// Spec implements tools.Tool.
func (*StatusTool) Spec() call.Spec {
	return call.Spec{
		Name: "status", Title: "Server status", Description: strings.TrimSpace(statusDescription),
		Input: json.RawMessage(inputSchema), Output: json.RawMessage(outputSchema),
		Effect: call.ReadsState, Confirm: call.ConfirmNever, Destructive: call.No, Idempotent: call.Yes,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.Yes, Retryable: call.Yes,
	}
}

// Facts implements tools.Tool.
func (*StatusTool) Facts(json.RawMessage) (call.Facts, error) {
	return call.Facts{Summary: "show the server's status", Text: "status"}, nil
}

// Run implements tools.Tool.
func (t *StatusTool) Run(ctx context.Context, a gates.Authorized) (call.Result, error) {
	var none args
	if err := a.Decode(&none); err != nil {
		return call.Result{}, err
	}
	s := t.source(ctx)
	structured, err := tools.EncodeResult(s)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Text: s.text(), Structured: structured}, nil
}

func (s Status) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zeph-mcp-tools %s, up %s\n", s.Version, s.Uptime)
	fmt.Fprintf(&b, "workspace: %s\n", strings.Join(s.Workspace, ", "))
	fmt.Fprintf(&b, "sandbox: %s, level %d, profile %s, network %s\n", s.Sandbox.Mode, s.Sandbox.Level, s.Sandbox.Profile, s.Sandbox.Network)
	fmt.Fprintf(&b, "gates: %s\n", strings.Join(s.Gates, ", "))
	total := 0
	for _, m := range s.Calls {
		for _, n := range m {
			total += n
		}
	}
	fmt.Fprintf(&b, "calls: %d", total)
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s", w)
	}
	return b.String()
}
