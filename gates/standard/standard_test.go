package standard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/gates/paths"
	"github.com/zeph-tools/zeph-mcp-tools/gates/permission"
	"github.com/zeph-tools/zeph-mcp-tools/gates/policy"
	"github.com/zeph-tools/zeph-mcp-tools/gates/scope"
	"github.com/zeph-tools/zeph-mcp-tools/gates/standard"
	"github.com/zeph-tools/zeph-mcp-tools/gates/trust"
)

func config() standard.Config {
	return standard.Config{
		Scope: scope.Default(), Policy: policy.Default(), Trust: trust.Default(), Permission: permission.Default(),
		Command: command.Default(), Paths: paths.Default(),
	}
}

func deps(t *testing.T) standard.Deps {
	t.Helper()
	p, err := egress.NewPolicy(egress.Default())
	if err != nil {
		t.Fatal(err)
	}
	return standard.Deps{Tools: []string{"bash", "read"}, Roots: []string{"/ws"}, Posture: command.Posture{Confined: true, PIDNamespace: true}, Egress: p}
}

// TestOrder pins the list: a gate cannot go missing or move without a diff
// here.
func TestOrder(t *testing.T) {
	t.Parallel()
	ch, err := standard.Chain(config(), deps(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"scope", "policy", "trust", "permission", "command", "paths", "urls"}
	if diff := cmp.Diff(want, ch.Names()); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

func TestAGateThatCannotBeBuiltStopsStartUp(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Policy.Enabled = true
	cfg.Policy.Rules = []policy.Rule{{Tool: "bash", ArgsMatch: "("}}
	if _, err := standard.Chain(cfg, deps(t)); err == nil {
		t.Error("a rule that does not compile was accepted")
	}
	d := deps(t)
	d.Egress = nil
	if _, err := standard.Chain(config(), d); err == nil {
		t.Error("no egress policy was accepted")
	}
}
