package trust_test

import (
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/gatestest"
	"github.com/zeph-tools/zeph-mcp-tools/gates/trust"
)

func request(t call.Trust, skills map[string]string, tool string, e call.Effect) call.Call {
	return call.Call{Caller: call.Caller{Trust: t}, Meta: call.Meta{Skills: skills}, Spec: call.Spec{Name: tool, Effect: e, Confirm: call.ConfirmByPolicy}}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ask := trust.Config{Quarantined: trust.Ask, QuarantinedTools: []string{"write", "status"}}
	tests := []struct {
		name string
		cfg  trust.Config
		call call.Call
		want gates.Verdict
		code string
		text string
	}{
		{"trusted", trust.Default(), request(call.TrustTrusted, nil, "bash", call.RunsCommands), gates.Allow, "", ""},
		{"verified", trust.Default(), request(call.TrustVerified, nil, "bash", call.RunsCommands), gates.Allow, "", ""},
		{"quarantined bash", trust.Default(), request(call.TrustQuarantined, nil, "bash", call.RunsCommands), gates.Deny, trust.CodeQuarantined, "bash is not permitted"},
		{"quarantined write", trust.Default(), request(call.TrustQuarantined, nil, "write", call.WritesFiles), gates.Deny, trust.CodeQuarantined, ""},
		{"quarantined fetch", trust.Default(), request(call.TrustQuarantined, nil, "fetch", call.ReachesNetwork), gates.Deny, trust.CodeQuarantined, ""},
		{"quarantined read", trust.Default(), request(call.TrustQuarantined, nil, "read", call.ReadsFiles), gates.Allow, "", ""},
		{"quarantined status", trust.Default(), request(call.TrustQuarantined, nil, "status", call.ReadsState), gates.Allow, "", ""},
		{"quarantined unset effect", trust.Default(), request(call.TrustQuarantined, nil, "x", call.EffectUnset), gates.Deny, trust.CodeQuarantined, ""},
		{"blocked read", trust.Default(), request(call.TrustBlocked, nil, "read", call.ReadsFiles), gates.Deny, trust.CodeBlocked, ""},
		{"unset", trust.Default(), request(call.TrustUnset, nil, "read", call.ReadsFiles), gates.Deny, trust.CodeBlocked, ""},
		{"beyond", trust.Default(), request(99, map[string]string{"a": "trusted"}, "read", call.ReadsFiles), gates.Deny, trust.CodeBlocked, ""},
		{"weakest skill", trust.Default(), request(call.TrustTrusted, map[string]string{"disk-usage": "quarantined", "b": "trusted", "persona": "quarantined"}, "bash", call.RunsCommands), gates.Deny, trust.CodeQuarantined, `("disk-usage", "persona")`},
		{"weakest skill reads", trust.Default(), request(call.TrustTrusted, map[string]string{"a": "quarantined"}, "read", call.ReadsFiles), gates.Allow, "", ""},
		{"unknown level of a skill", trust.Default(), request(call.TrustTrusted, map[string]string{"a": "Trusted"}, "read", call.ReadsFiles), gates.Deny, trust.CodeBlocked, `("a")`},
		{"a skill never raises", trust.Default(), request(call.TrustQuarantined, map[string]string{"a": "trusted"}, "bash", call.RunsCommands), gates.Deny, trust.CodeQuarantined, "quarantined"},
		{"ask", ask, request(call.TrustQuarantined, nil, "bash", call.RunsCommands), gates.Confirm, trust.CodeQuarantined, ""},
		{"ask, blocked", ask, request(call.TrustBlocked, nil, "bash", call.RunsCommands), gates.Deny, trust.CodeBlocked, ""},
		{"listed", ask, request(call.TrustQuarantined, nil, "files_write", call.WritesFiles), gates.Deny, trust.CodeQuarantined, ""},
		{"listed reader", ask, request(call.TrustQuarantined, nil, "status", call.ReadsState), gates.Deny, trust.CodeQuarantined, ""},
		{"not listed", ask, request(call.TrustQuarantined, nil, "filesystem_write_file", call.WritesFiles), gates.Confirm, trust.CodeQuarantined, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, err := trust.New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			d, err := g.Check(t.Context(), tt.call)
			if err != nil || d.Verdict != tt.want || d.Code != tt.code || !strings.Contains(d.Reason, tt.text) {
				t.Fatalf("%+v, %v", d, err)
			}
			gatestest.Conform(t, g, tt.call)
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, cfg := range []trust.Config{{Quarantined: 7}, {QuarantinedTools: []string{"a", ""}}} {
		if _, err := trust.New(cfg); err == nil || !strings.HasPrefix(err.Error(), "tools.trust.") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, a := range []trust.Action{trust.Deny, trust.Ask} {
		var got trust.Action
		if text, err := a.MarshalText(); err != nil || got.UnmarshalText(text) != nil || got != a {
			t.Errorf("%v does not survive text", a)
		}
	}
	if new(trust.Action).UnmarshalText([]byte("allow")) == nil {
		t.Error("took an unknown action")
	}
	if len(trust.Config{Quarantined: trust.Ask}.Warnings()) != 1 || trust.Default().Warnings() != nil {
		t.Error("warnings")
	}
}
