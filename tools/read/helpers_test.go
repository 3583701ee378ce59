package read

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

type allow struct{}

func (allow) Name() string { return "allow" }
func (allow) Check(context.Context, call.Call) (gates.Decision, error) {
	return gates.Permit(), nil
}

// rig is a registry of the four tools over a workspace of its own.
type rig struct {
	tb       testing.TB
	ws, base string
	w        *workspace.Workspace
	reg      *tools.Registry
	chain    *gates.Chain
}

func newRig(tb testing.TB, cfg Config, change func(*workspace.Config)) *rig {
	tb.Helper()
	base := workspacetest.Base(tb)
	r := &rig{tb: tb, base: base, ws: base + "/ws"}
	for _, d := range []string{r.ws, base + "/outside", base + "/home/.ssh"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	wc := workspace.Config{Roots: []string{r.ws}}
	if change != nil {
		change(&wc)
	}
	w, err := workspace.Open(wc, workspace.Env{Home: base + "/home", StateDir: base + "/state", UID: os.Getuid()})
	if err != nil {
		tb.Fatal(err)
	}
	r.w = w
	var list []tools.Tool
	for _, f := range []func() (tools.Tool, error){
		func() (tools.Tool, error) { return NewRead(cfg, w) },
		func() (tools.Tool, error) { return NewFindPath(cfg, w) },
		func() (tools.Tool, error) { return NewGrep(cfg, w) },
		func() (tools.Tool, error) { return NewListDirectory(cfg, w) },
	} {
		tool, err := f()
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, tool)
	}
	if r.reg, err = tools.NewRegistry(list...); err != nil {
		tb.Fatal(err)
	}
	if r.chain, err = gates.NewChain(allow{}); err != nil {
		tb.Fatal(err)
	}
	return r
}

// put writes a file below the base, making folders.
func (r *rig) put(name, text string) {
	r.tb.Helper()
	p := filepath.Join(r.ws, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.tb.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		r.tb.Fatal(err)
	}
}

// accept is the call as far as the gates see it.
func (r *rig) accept(tool string, args map[string]any) (tools.Accepted, error) {
	r.tb.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.tb.Fatal(err)
	}
	return r.reg.Accept(tool, raw)
}

// run makes one call with every gate open.
func (r *rig) run(ctx context.Context, tool string, args map[string]any) (call.Result, error) {
	r.tb.Helper()
	acc, err := r.accept(tool, args)
	if err != nil {
		return call.Result{}, err
	}
	a, _, err := r.chain.Authorize(ctx, call.Call{ID: "c", Session: "s", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts}, nil)
	if err != nil {
		return call.Result{}, err
	}
	return r.reg.Run(ctx, a)
}

// ok is run for a call that must succeed; it returns the text and fills v from
// the structured result.
func (r *rig) ok(tool string, args map[string]any, v any) string {
	r.tb.Helper()
	res, err := r.run(context.Background(), tool, args)
	if err != nil {
		r.tb.Fatalf("%s %v: %v", tool, args, err)
	}
	if v != nil {
		if err := json.Unmarshal(res.Structured, v); err != nil {
			r.tb.Fatal(err)
		}
	}
	return res.Text
}

// fails is run for a call that must fail with a code.
func (r *rig) fails(tool string, args map[string]any, code string) *call.Error {
	r.tb.Helper()
	res, err := r.run(context.Background(), tool, args)
	var ce *call.Error
	if !errors.As(err, &ce) || ce.Code != code || ce.Suggestion == "" {
		r.tb.Fatalf("%s %v: %v (result %q), want code %s with a suggestion", tool, args, err, res.Text, code)
	}
	return ce
}
