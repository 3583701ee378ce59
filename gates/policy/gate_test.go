package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/gatestest"
	"github.com/zeph-tools/zeph-mcp-tools/gates/policy"
)

func request(tool, args string, f call.Facts) call.Call {
	return call.Call{Spec: call.Spec{Name: tool, Effect: call.RunsCommands, Confirm: call.ConfirmByPolicy}, Args: json.RawMessage(args), Facts: f}
}

func reads(paths ...string) call.Facts {
	var f call.Facts
	for _, p := range paths {
		f.Reads = append(f.Reads, call.Path{Path: p})
	}
	return f
}

func deny(tool string, paths ...string) policy.Rule {
	return policy.Rule{Effect: policy.Deny, Tool: tool, Paths: paths}
}

func allow(tool string, paths ...string) policy.Rule {
	return policy.Rule{Effect: policy.Allow, Tool: tool, Paths: paths}
}

func confirm(tool string, paths ...string) policy.Rule {
	return policy.Rule{Effect: policy.Confirm, Tool: tool, Paths: paths}
}

func on(def policy.Effect, rules ...policy.Rule) policy.Config {
	return policy.Config{Enabled: true, DefaultEffect: def, Rules: rules}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	sudo := policy.Rule{Effect: policy.Deny, Tool: "bash", ArgsMatch: `sudo`}
	status := policy.Rule{Effect: policy.Allow, Tool: "bash", ArgsMatch: `"command":"git status"`}
	url := func(host, path string) call.Facts {
		return call.Facts{URLs: []call.URL{{URL: "https://" + host + path, Scheme: "https", Host: host, Port: 443, Path: path}}}
	}
	folder := func(p string) call.Facts { return call.Facts{Reads: []call.Path{{Path: p, Recursive: true}}} }
	open := call.Facts{Unknown: []call.Unknown{{Text: "$x"}}}
	tests := []struct {
		name string
		cfg  policy.Config
		call call.Call
		want gates.Verdict
		code string
	}{
		{"off", policy.Config{Rules: []policy.Rule{deny("*")}}, request("bash", `{}`, call.Facts{}), gates.Allow, ""},
		{"no rules, deny", on(policy.Deny), request("bash", `{}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"no rules, unset", on(policy.EffectUnset), request("bash", `{}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"no rules, allow", on(policy.Allow), request("bash", `{}`, call.Facts{}), gates.Allow, ""},
		{"no rules, confirm", on(policy.Confirm), request("bash", `{}`, call.Facts{}), gates.Confirm, policy.CodeConfirm},
		{"deny by path", on(policy.Allow, deny("*", "/etc/*")), request("read", `{}`, reads("/etc/ssh/x")), gates.Deny, policy.CodeDenied},
		{"deny needs one of many", on(policy.Allow, deny("*", "/etc/*")), request("bash", `{}`, reads("/w/a", "/etc/x")), gates.Deny, policy.CodeDenied},
		{"a write is a path", on(policy.Allow, deny("*", "*/notes.txt")), request("bash", `{}`, call.Facts{Writes: []call.Path{{Path: "/w/notes.txt"}}}), gates.Deny, policy.CodeDenied},
		{"another path", on(policy.Allow, deny("*", "/etc/*")), request("read", `{}`, reads("/w/etc/x")), gates.Allow, ""},
		{"tool by case", on(policy.Allow, deny("Ba*")), request("bash", `{}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"another tool", on(policy.Allow, deny("bash")), request("web_scrape", `{}`, call.Facts{}), gates.Allow, ""},
		{"deny wins, first", on(policy.Allow, deny("*", "/tmp/secret"), allow("*", "/tmp/*")), request("read", `{}`, reads("/tmp/secret")), gates.Deny, policy.CodeDenied},
		{"deny wins, last", on(policy.Allow, allow("*", "/tmp/*"), deny("*", "/tmp/secret")), request("read", `{}`, reads("/tmp/secret")), gates.Deny, policy.CodeDenied},
		{"confirm over allow", on(policy.Deny, allow("*"), confirm("bash")), request("bash", `{}`, call.Facts{}), gates.Confirm, policy.CodeConfirm},
		{"deny over confirm", on(policy.Deny, confirm("bash"), deny("*")), request("bash", `{}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"allow needs every path", on(policy.Deny, allow("*", "/w/*")), request("bash", `{}`, reads("/w/a", "/x")), gates.Deny, policy.CodeDenied},
		{"allow of every path", on(policy.Deny, allow("*", "/w/*", "/x")), request("bash", `{}`, reads("/w/a", "/x")), gates.Allow, ""},
		{"allow needs a path", on(policy.Deny, allow("*", "/w/*")), request("bash", `{}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"allow with an unknown part", on(policy.Deny, allow("*", "/w/*")), request("bash", `{}`, call.Facts{Reads: reads("/w/a").Reads, Unknown: open.Unknown}), gates.Deny, policy.CodeDenied},
		{"allow of a folder", on(policy.Deny, allow("*", "/w")), request("grep", `{}`, folder("/w")), gates.Deny, policy.CodeDenied},
		{"deny with an unknown part", on(policy.Allow, deny("*", "/etc/*")), request("bash", `{}`, open), gates.Confirm, policy.CodeUnresolved},
		{"deny with an unreadable command", on(policy.Allow, deny("*", "/etc/*")), request("bash", `{}`, call.Facts{Parse: &call.ParseError{}}), gates.Confirm, policy.CodeUnresolved},
		{"deny with an unresolved path", on(policy.Allow, deny("*", "/etc/*")), request("bash", `{}`, reads("")), gates.Confirm, policy.CodeUnresolved},
		{"unknown part, other tool", on(policy.Allow, deny("read", "/etc/*")), request("bash", `{}`, open), gates.Allow, ""},
		{"unknown part and default deny", on(policy.Deny, confirm("*", "/etc/*")), request("bash", `{}`, open), gates.Deny, policy.CodeDenied},
		{"folder above", on(policy.Allow, deny("*", "/w/secret/*")), request("grep", `{}`, folder("/w")), gates.Deny, policy.CodeDenied},
		{"folder of the root", on(policy.Allow, deny("*", "/w/secret/*")), request("grep", `{}`, folder("/")), gates.Deny, policy.CodeDenied},
		{"folder that may hold one", on(policy.Allow, deny("*", "*.pem")), request("grep", `{}`, folder("/w")), gates.Confirm, policy.CodeUnresolved},
		{"folder beside", on(policy.Allow, deny("*", "/w/secret/*")), request("grep", `{}`, folder("/w/src")), gates.Allow, ""},
		{"args", on(policy.Allow, sudo), request("bash", `{"command":"sudo rm -rf /"}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"args, no match", on(policy.Allow, sudo), request("bash", `{"command":"echo hello"}`, call.Facts{}), gates.Allow, ""},
		{"args past an escape", on(policy.Allow, policy.Rule{Effect: policy.Deny, Tool: "*", ArgsMatch: "^a\"b\nc$"}), request("bash", `{"x":[{"y":"a\"b\nc"}]}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"allow by args", on(policy.Deny, status), request("bash", `{"command":"git status"}`, call.Facts{}), gates.Allow, ""},
		{"allow not by another text", on(policy.Deny, status), request("bash", `{"command":"rm x","description":"\"command\":\"git status\""}`, call.Facts{}), gates.Deny, policy.CodeDenied},
		{"host", on(policy.Allow, deny("*", "*.evil.example")), request("fetch", `{}`, url("A.evil.example", "/x")), gates.Deny, policy.CodeDenied},
		{"url", on(policy.Deny, allow("*", "https://*.example.com/docs/*")), request("fetch", `{}`, url("a.example.com", "/docs/x")), gates.Allow, ""},
		{"url, other path", on(policy.Deny, allow("*", "https://*.example.com/docs/*")), request("fetch", `{}`, url("a.example.com", "/x")), gates.Deny, policy.CodeDenied},
		{"a star for a host stays in the host", on(policy.Deny, allow("*", "https://*.example.com/*")), request("fetch", `{}`, url("evil.example", "/.example.com/")), gates.Deny, policy.CodeDenied},
		{"url with port", on(policy.Deny, allow("*", "https://a.example.com:443")), request("fetch", `{}`, url("a.example.com", "")), gates.Allow, ""},
		{"a path pattern is no url", on(policy.Deny, allow("*", "/*")), request("fetch", `{}`, url("a.example.com", "/x")), gates.Deny, policy.CodeDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, err := policy.New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			d, err := g.Check(t.Context(), tt.call)
			if err != nil || d.Verdict != tt.want || d.Code != tt.code {
				t.Fatalf("%+v, %v", d, err)
			}
			gatestest.Conform(t, g, tt.call)
		})
	}
}

func TestRefusalsDoNotTellTheRule(t *testing.T) {
	t.Parallel()
	g, err := policy.New(on(policy.Allow, confirm("nothing"), deny("bash", "/etc/hidden/*")))
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.Check(t.Context(), request("bash", `{}`, reads("/etc/hidden/x")))
	if err != nil || strings.Contains(d.Reason, "hidden") || !strings.Contains(d.Reason, "rule 1") {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ok := allow("*")
	many := make([]policy.Rule, policy.MaxRules+1)
	for i := range many {
		many[i] = ok
	}
	tests := []struct {
		name  string
		rules []policy.Rule
		want  string
	}{
		{"effect", []policy.Rule{ok, {Tool: "*"}}, "tools.policy.rules[1].effect: is required"},
		{"tool", []policy.Rule{{Effect: policy.Deny}}, "tools.policy.rules[0].tool: the pattern is empty"},
		{"tool glob", []policy.Rule{{Effect: policy.Deny, Tool: "["}}, "tools.policy.rules[0].tool: "},
		{"path glob", []policy.Rule{deny("*", "/a", "/[")}, "tools.policy.rules[0].paths[1]: "},
		{"url glob", []policy.Rule{deny("*", "https:///x")}, "tools.policy.rules[0].paths[0]: the host: "},
		{"regex", []policy.Rule{{Effect: policy.Deny, Tool: "*", ArgsMatch: "("}}, "tools.policy.rules[0].args_match: "},
		{"long regex", []policy.Rule{{Effect: policy.Deny, Tool: "*", ArgsMatch: strings.Repeat("a", policy.MaxPattern+1)}}, "args_match: is longer than"},
		{"many", many, "257 rules are more than 256"},
	}
	for _, tt := range tests {
		for _, enabled := range []bool{true, false} {
			_, err := policy.New(policy.Config{Enabled: enabled, Rules: tt.rules})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, enabled %v: %v", tt.name, enabled, err)
			}
		}
	}
	if _, err := policy.New(policy.Config{Enabled: true, Rules: many[1:]}); err != nil {
		t.Error(err)
	}
	if _, err := policy.New(policy.Config{DefaultEffect: 9}); err == nil {
		t.Error("took an unknown default effect")
	}
}

// TestADenyNeverLoosens adds a deny rule anywhere in a random policy and wants
// no verdict to get looser; the same for a confirm where calls are permitted
// when no rule names them.
func TestADenyNeverLoosens(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	random := func() policy.Rule {
		r := policy.Rule{Effect: policy.Effect(1 + rng.IntN(3)), Tool: pick("*", "bash", "read", "b*")}
		if rng.IntN(2) == 0 {
			r.Paths = []string{pick("/w/*", "/etc/*", "*.pem", "*.example.com")}
		}
		if rng.IntN(3) == 0 {
			r.ArgsMatch = pick("a", "^x$", "rm")
		}
		return r
	}
	calls := []call.Call{
		request("bash", `{"command":"rm a"}`, reads("/w/a", "/etc/b")), request("read", `{"x":"x"}`, reads("/w/k.pem")), request("bash", `{}`, call.Facts{Unknown: []call.Unknown{{Text: "$x"}}}),
		request("fetch", `{}`, call.Facts{URLs: []call.URL{{Host: "a.example.com", Scheme: "https"}}}), request("bash", `{}`, call.Facts{Reads: []call.Path{{Path: "/w", Recursive: true}}}),
	}
	for range 2000 {
		cfg := on(policy.Effect(1 + rng.IntN(3)))
		for range rng.IntN(5) {
			cfg.Rules = append(cfg.Rules, random())
		}
		more := cfg
		extra := random()
		extra.Effect = policy.Deny
		if cfg.DefaultEffect == policy.Allow && rng.IntN(2) == 0 {
			extra.Effect = policy.Confirm
		}
		more.Rules = append([]policy.Rule{extra}, cfg.Rules...)
		before, errBefore := policy.New(cfg)
		after, errAfter := policy.New(more)
		if errBefore != nil || errAfter != nil {
			t.Fatal(errBefore, errAfter)
		}
		for _, c := range calls {
			a, _ := before.Check(t.Context(), c)
			b, _ := after.Check(t.Context(), c)
			if b.Verdict > a.Verdict {
				t.Fatalf("%+v\nplus %+v\ntook %s from %v to %v", cfg, extra, c.Args, a.Verdict, b.Verdict)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, e := range []policy.Effect{policy.Deny, policy.Confirm, policy.Allow} {
		var got policy.Effect
		if text, err := e.MarshalText(); err != nil || got.UnmarshalText(text) != nil || got != e {
			t.Errorf("%v does not survive text", e)
		}
	}
	if new(policy.Effect).UnmarshalText([]byte("Allow")) == nil {
		t.Error("took an unknown effect")
	}
	if policy.Default().Warnings() != nil || len(on(policy.Allow).Warnings()) != 1 || len((policy.Config{Rules: []policy.Rule{deny("*")}}).Warnings()) != 1 {
		t.Error("warnings")
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add("ba*", "/w/*", "sudo", `{"command":"sudo x"}`, "/w/a")
	f.Add("*", "https://*.example.com/*", "^a$", `{"a":["b"]}`, "")
	f.Fuzz(func(t *testing.T, tool, path, re, args, read string) {
		rule := policy.Rule{Effect: policy.Deny, Tool: tool, Paths: []string{path}, ArgsMatch: re}
		g, err := policy.New(on(policy.Allow, rule))
		if err != nil {
			return
		}
		if _, err := g.Check(t.Context(), request("bash", args, reads(read))); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkCheck256Rules(b *testing.B) {
	cfg := on(policy.Allow)
	for i := range policy.MaxRules {
		cfg.Rules = append(cfg.Rules, policy.Rule{Effect: policy.Deny, Tool: "*", Paths: []string{fmt.Sprintf("/x%d/*", i)}, ArgsMatch: fmt.Sprintf("nothing%d", i)})
	}
	g, err := policy.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	c := request("bash", `{"command":"go test ./... 2>&1 | tail -20","timeout_ms":120000}`, reads("/w/a", "/w/b"))
	for b.Loop() {
		if _, err := g.Check(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
