package permission_test

import (
	"path"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/gatestest"
	"github.com/zeph-tools/zeph-mcp-tools/gates/permission"
)

func rules(pairs ...string) []permission.Rule {
	var out []permission.Rule
	for i := 0; i < len(pairs); i += 2 {
		var a permission.Action
		if err := a.UnmarshalText([]byte(pairs[i+1])); err != nil {
			panic(err)
		}
		out = append(out, permission.Rule{Pattern: pairs[i], Action: a})
	}
	return out
}

// bash makes a call whose commands are split at semicolons, as the shell
// analyser would do with these simple texts.
func bash(text string) call.Call {
	c := call.Call{Spec: call.Spec{Name: "bash", Effect: call.RunsCommands, Confirm: call.ConfirmByPolicy}, Facts: call.Facts{Text: text}}
	for part := range strings.SplitSeq(text, ";") {
		argv := strings.Fields(part)
		c.Facts.Commands = append(c.Facts.Commands, call.Command{Name: path.Base(argv[0]), Argv: argv})
	}
	return c
}

func tool(name string, e call.Effect, text string) call.Call {
	return call.Call{Spec: call.Spec{Name: name, Effect: e, Confirm: call.ConfirmByPolicy}, Facts: call.Facts{Text: text}}
}

func unknown(text string, code bool) call.Call {
	c := bash(text)
	c.Facts.Unknown = []call.Unknown{{Text: "$x", Why: "not set", Code: code}}
	return c
}

// A refusal says which word kept the rules from matching.
func TestReasonNamesTheVariable(t *testing.T) {
	t.Parallel()
	g, err := permission.New(permission.Config{Tools: map[string][]permission.Rule{"bash": rules("curl https://api.example.com/*", "allow")}})
	if err != nil {
		t.Fatal(err)
	}
	const said = " (what $API_URL stands for is not known before it runs)"
	for text, want := range map[string]string{
		"curl $API_URL/x":          "no permission rule matches" + said + ": curl $API_URL/x",
		"curl ${API_URL}/x":        "no permission rule matches" + said + ": curl ${API_URL}/x",
		"curl https://example.com": "no permission rule matches: curl https://example.com",
		"curl '$API_URL'":          "no permission rule matches: curl '$API_URL'",
		`curl \$API_URL`:           `no permission rule matches: curl \$API_URL`,
		"curl $":                   "no permission rule matches: curl $",
	} {
		d, err := g.Check(t.Context(), bash(text))
		if err != nil || d.Verdict != gates.Confirm || d.Reason != want {
			t.Errorf("%s: %s %q, want %q, %v", text, d.Verdict, d.Reason, want, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	git := rules("git log*", "allow", "git push *", "ask", "*rm -rf*", "deny")
	push := rules("git push *", "ask", "*", "allow")
	tests := []struct {
		name  string
		level permission.Autonomy
		rules []permission.Rule
		call  call.Call
		want  gates.Verdict
		code  string
	}{
		{"no rules", permission.Supervised, nil, bash("make"), gates.Allow, ""},
		{"allow", permission.Supervised, rules("echo *", "allow"), bash("echo hello"), gates.Allow, ""},
		{"deny anywhere", permission.Supervised, git, bash("x rm -rf y"), gates.Deny, permission.CodeDenied},
		{"ask", permission.Supervised, git, bash("git push origin"), gates.Confirm, permission.CodeAsk},
		{"first match wins", permission.Supervised, rules("*safe*", "allow", "*", "deny"), bash("run safe"), gates.Allow, ""},
		{"then the next", permission.Supervised, rules("*safe*", "allow", "*", "deny"), bash("run it"), gates.Deny, permission.CodeDenied},
		{"ask with options before the subcommand", permission.Supervised, push, bash("git -C x --no-pager push origin"), gates.Confirm, permission.CodeAsk},
		{"ask with a value in the option", permission.Supervised, push, bash("git --git-dir=x push origin"), gates.Confirm, permission.CodeAsk},
		{"ask by path", permission.Supervised, push, bash("/usr/bin/git push origin"), gates.Confirm, permission.CodeAsk},
		{"ask without operands", permission.Supervised, push, bash("git push"), gates.Confirm, permission.CodeAsk},
		{"an operand is no subcommand", permission.Supervised, push, bash("git log push origin"), gates.Allow, ""},
		{"allow is not stretched by options", permission.Supervised, git, bash("git -c core.pager=x log"), gates.Confirm, permission.CodeAsk},
		{"nothing matches", permission.Supervised, git, bash("make"), gates.Confirm, permission.CodeAsk},
		{"deny by case", permission.Supervised, rules("*sudo*", "deny", "*", "allow"), bash("SUDO apt"), gates.Deny, permission.CodeDenied},
		{"allow is not stretched by case", permission.Supervised, rules("make *", "allow"), bash("MAKE all"), gates.Confirm, permission.CodeAsk},
		{"a second command is not covered", permission.Supervised, git, bash("git log -1; touch MARK"), gates.Confirm, permission.CodeAsk},
		{"a second command is denied", permission.Supervised, rules("git log*", "allow", "*", "deny"), bash("git log -1; touch MARK"), gates.Deny, permission.CodeDenied},
		{"both covered", permission.Supervised, rules("git log*", "allow", "touch *", "allow"), bash("git log -1; touch MARK"), gates.Allow, ""},
		{"a pattern over two commands", permission.Supervised, rules("*log*; touch*", "deny", "*", "allow"), bash("git log -1; touch MARK"), gates.Deny, permission.CodeDenied},
		{"unknown program", permission.Supervised, rules("*", "allow"), unknown("run it", true), gates.Confirm, permission.CodeAsk},
		{"unknown operand", permission.Supervised, rules("*", "allow"), unknown("echo it", false), gates.Allow, ""},
		{"unreadable", permission.Supervised, rules("*", "allow"), call.Call{Spec: call.Spec{Name: "bash", Effect: call.RunsCommands}, Facts: call.Facts{Text: "((", Parse: &call.ParseError{}}}, gates.Confirm, permission.CodeAsk},
		{"another tool's rules", permission.Supervised, rules("*", "deny"), tool("BASH", call.RunsCommands, "x"), gates.Allow, ""},
		{"by text of a file tool", permission.Supervised, rules("/w/*", "allow"), tool("bash", call.WritesFiles, "/w/a/b"), gates.Allow, ""},
		{"full takes ask as allow", permission.Full, git, bash("git push origin"), gates.Allow, ""},
		{"full keeps deny", permission.Full, git, bash("rm -rf x"), gates.Deny, permission.CodeDenied},
		{"readonly bash", permission.ReadOnly, rules("*", "allow"), bash("ls"), gates.Deny, permission.CodeReadOnly},
		{"readonly write", permission.ReadOnly, nil, tool("write", call.WritesFiles, "x"), gates.Deny, permission.CodeReadOnly},
		{"readonly read", permission.ReadOnly, nil, tool("read", call.ReadsFiles, "x"), gates.Allow, ""},
		{"readonly fetch", permission.ReadOnly, nil, tool("fetch", call.ReachesNetwork, "x"), gates.Allow, ""},
		{"readonly unset", permission.ReadOnly, nil, tool("x", call.EffectUnset, "x"), gates.Deny, permission.CodeReadOnly},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, err := permission.New(permission.Config{Autonomy: tt.level, Tools: map[string][]permission.Rule{"bash": tt.rules}})
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

func TestAskNamesWhatAGrantWouldCover(t *testing.T) {
	t.Parallel()
	g, err := permission.New(permission.Config{Tools: map[string][]permission.Rule{"bash": rules("x", "allow")}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.Check(t.Context(), bash("git push origin"))
	if err != nil || d.Kind != "bash: run git push" || !strings.Contains(d.Reason, "git push origin") {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := g.Check(t.Context(), unknown("x", true)); err != nil || d.Kind != "" {
		t.Errorf("an unknown program can be granted: %+v, %v", d, err)
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	g, err := permission.New(permission.Config{Tools: map[string][]permission.Rule{
		"a": rules("*", "deny"), "b": rules("echo *", "allow", "*", "deny"), "c": rules("x", "deny"), "d": rules("x", "deny", "**", "deny"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true, "e": false} {
		if got := g.Hidden(name); got != want {
			t.Errorf("Hidden(%q) = %v", name, got)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	bad := permission.Config{Autonomy: 9, Tools: map[string][]permission.Rule{"bash": {{Pattern: "x"}, {Pattern: "[", Action: permission.Deny}}}}
	_, err := permission.New(bad)
	for _, want := range []string{"security.autonomy_level: ", "tools.permissions.bash[0].action: ", "tools.permissions.bash[1].pattern: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	for _, a := range []permission.Autonomy{permission.Supervised, permission.ReadOnly, permission.Full} {
		var got permission.Autonomy
		if text, err := a.MarshalText(); err != nil || got.UnmarshalText(text) != nil || got != a {
			t.Errorf("%v does not survive text", a)
		}
		if warns := (permission.Config{Autonomy: a}).Warnings(); (len(warns) == 1) != (a == permission.Full) {
			t.Errorf("%v: %v", a, warns)
		}
	}
	if new(permission.Autonomy).UnmarshalText([]byte("Full")) == nil || new(permission.Action).UnmarshalText(nil) == nil {
		t.Error("took an unknown word")
	}
}
