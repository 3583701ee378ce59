package session_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
	"github.com/zeph-tools/zeph-mcp-tools/tools/session"
)

type allow struct{}

func (allow) Name() string { return "allow" }
func (allow) Check(context.Context, call.Call) (gates.Decision, error) {
	return gates.Permit(), nil
}

func TestStatusTellsWhatIsInForce(t *testing.T) {
	t.Parallel()
	want := session.Status{
		Version: "1.2.3", Uptime: "1s", Workspace: []string{"/w"}, Gates: []string{"scope", "trust"},
		Sandbox: session.Sandbox{Mode: "strict", Level: 3, Profile: "workspace", Network: "off"},
		Calls:   map[string]map[string]int{"ok": {"bash": 2}, "denied": {"bash": 1}}, Warnings: []string{"look out"},
	}
	tool, err := session.NewStatus(func(context.Context) session.Status { return want })
	if err != nil {
		t.Fatal(err)
	}
	reg, err := tools.NewRegistry(tool)
	if err != nil {
		t.Fatal(err)
	}
	acc, err := reg.Accept("status", nil)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := gates.NewChain(allow{})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := ch.Authorize(t.Context(), call.Call{ID: "c", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts}, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := reg.Run(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	var got session.Status
	if err := json.Unmarshal(res.Structured, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("structured content (-want +got):\n%s", diff)
	}
	for _, s := range []string{"zeph-mcp-tools 1.2.3", "/w", "level 3", "scope, trust", "calls: 3", "warning: look out"} {
		if !strings.Contains(res.Text, s) {
			t.Errorf("text lacks %q:\n%s", s, res.Text)
		}
	}
}

func TestStatusSchemaSnapshot(t *testing.T) {
	t.Parallel()
	tool, err := session.NewStatus(func(context.Context) session.Status { return session.Status{} })
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	s := tool.Spec()
	got := string(s.Input) + "\n" + string(s.Output) + "\n"
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the served schema changed (-want +got):\n%s", diff)
	}
}

func TestStatusNeedsASource(t *testing.T) {
	t.Parallel()
	if _, err := session.NewStatus(nil); err == nil {
		t.Error("accepted no source")
	}
}
