package command_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
)

// nowhere resolves every path to itself in one workspace.
type nowhere struct{}

func (nowhere) Resolve(cwd, text string, _ bool) call.Path {
	if text == "" || text[0] != '/' {
		text = cwd + "/" + text
	}
	return call.Path{Path: text, Place: call.PlaceWorkspace, Inside: len(text) > 3 && text[:4] == "/ws/"}
}
func (nowhere) Home() string              { return "/home/me" }
func (nowhere) Roots() []string           { return []string{"/ws"} }
func (nowhere) SecretsAt(string) []string { return nil }

func check(t *testing.T, cfg command.Config, p command.Posture, req shellast.Request) gates.Decision {
	t.Helper()
	g, err := command.New(cfg, p)
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.Check(t.Context(), call.Call{Facts: shellast.New(nowhere{}, shellast.Options{}).Analyze(req)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPosture(t *testing.T) {
	t.Parallel()
	strict := command.Posture{Confined: true, PIDNamespace: true}
	for _, c := range []struct {
		name    string
		req     shellast.Request
		posture command.Posture
		want    gates.Verdict
		code    string
	}{
		{"a confined construct runs", shellast.Request{Command: "echo $(date)"}, strict, gates.Allow, "confined"},
		{"without a sandbox it asks", shellast.Request{Command: "echo $(date)"}, command.Posture{}, gates.Confirm, "confirm_pattern"},
		{"backticks ask too", shellast.Request{Command: "echo `date`"}, command.Posture{}, gates.Confirm, "confirm_pattern"},
		{"a here-string asks", shellast.Request{Command: "cat <<< x"}, command.Posture{}, gates.Confirm, "confirm_pattern"},
		{"eval asks", shellast.Request{Command: "eval ls"}, command.Posture{}, gates.Confirm, "confirm_pattern"},
		{"process substitution asks", shellast.Request{Command: "diff <(ls) x"}, command.Posture{}, gates.Confirm, "confirm_pattern"},
		{"a loosened call has no confined rule", shellast.Request{Command: "echo $(date)", AllowDomains: []string{"example.com"}}, strict, gates.Confirm, "loosening"},
		{"environment in the sandbox", shellast.Request{Command: "LD_PRELOAD=x ls"}, strict, gates.Allow, ""},
		{"environment without", shellast.Request{Command: "LD_PRELOAD=x ls"}, command.Posture{}, gates.Confirm, "environment_override"},
		{"exported without", shellast.Request{Command: "export PATH=/x; ls"}, command.Posture{}, gates.Confirm, "environment_override"},
		{"through env without", shellast.Request{Command: "env PYTHONPATH=x ls"}, command.Posture{}, gates.Confirm, "environment_override"},
		{"a builtin's prefix is none", shellast.Request{Command: "IFS= read -r x"}, command.Posture{}, gates.Allow, ""},
		{"the env argument", shellast.Request{Command: "ls", Env: map[string]string{"BASH_ENV": "x"}}, command.Posture{}, gates.Confirm, "environment_override"},
		{"an ordinary variable", shellast.Request{Command: "FOO=1 ls"}, command.Posture{}, gates.Allow, ""},
		{"an unknown path in the sandbox", shellast.Request{Command: `cat "$X" > "$OUT"`}, strict, gates.Allow, ""},
		{"an unknown path read without", shellast.Request{Command: `cat "$X"`}, command.Posture{}, gates.Confirm, "unresolved_command"},
		{"an unknown path written without", shellast.Request{Command: `echo x > "$OUT"`}, command.Posture{}, gates.Confirm, "unresolved_command"},
		{"whether an unknown path exists", shellast.Request{Command: `[ -f "$X" ] && cd "$X"`}, command.Posture{}, gates.Allow, ""},
		{"an unknown word of an unknown program", shellast.Request{Command: `mytool "$X"`}, command.Posture{}, gates.Allow, ""},
		{"pkill in the namespace", shellast.Request{Command: "pkill x"}, strict, gates.Allow, ""},
		{"pkill without", shellast.Request{Command: "pkill x"}, command.Posture{Confined: true}, gates.Confirm, "process_control"},
		{"kill -1 without", shellast.Request{Command: "kill -9 -1"}, command.Posture{Confined: true}, gates.Confirm, "process_control"},
		{"kill of one process", shellast.Request{Command: "kill -1 77"}, command.Posture{Confined: true}, gates.Allow, ""},
		{"the proxy", shellast.Request{Command: "ls", Network: "proxy"}, strict, gates.Confirm, "loosening"},
		{"the host's network", shellast.Request{Command: "ls", Network: "host"}, strict, gates.Deny, "not_grantable"},
		{"an address", shellast.Request{Command: "ls", AllowDomains: []string{"10.0.0.1"}}, strict, gates.Deny, "not_grantable"},
		{"a short address", shellast.Request{Command: "ls", AllowDomains: []string{"127.1"}}, strict, gates.Deny, "not_grantable"},
		{"a hexadecimal address", shellast.Request{Command: "ls", AllowDomains: []string{"0x7f.1"}}, strict, gates.Deny, "not_grantable"},
		{"localhost", shellast.Request{Command: "ls", AllowDomains: []string{"LOCALHOST."}}, strict, gates.Deny, "not_grantable"},
		{"an internal name", shellast.Request{Command: "ls", AllowDomains: []string{"x.internal"}}, strict, gates.Deny, "not_grantable"},
		{"a writable path inside is no loosening", shellast.Request{Command: "ls", AllowWrite: []string{"sub"}, Given: shellast.Given{Writes: true}}, strict, gates.Allow, ""},
		{"one that only a loosened profile writes", shellast.Request{Command: "ls", AllowWrite: []string{"sub"}}, strict, gates.Confirm, "loosening"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := check(t, command.Default(), c.posture, c.req)
			if d.Verdict != c.want || d.Code != c.code {
				t.Errorf("got %s %q (%s), want %s %q", d.Verdict, d.Code, d.Reason, c.want, c.code)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	with := func(f func(*command.Config)) command.Config {
		c := command.Default()
		f(&c)
		return c
	}
	for _, c := range []struct {
		name, cmd string
		cfg       command.Config
		want      gates.Verdict
	}{
		{"a lifted name", "curl x", with(func(c *command.Config) { c.AllowedCommands = []string{"CURL"} }), gates.Allow},
		{"lifting one lifts no other", "wget x", with(func(c *command.Config) { c.AllowedCommands = []string{"curl"} }), gates.Deny},
		{"a name of both lists stays", "curl x", with(func(c *command.Config) { c.AllowedCommands, c.BlockedCommands = []string{"curl"}, []string{"curl"} }), gates.Deny},
		{"no network adds the names again", "curl x", with(func(c *command.Config) { c.AllowedCommands, c.AllowNetwork = []string{"curl"}, false }), gates.Deny},
		{"a further name", "nmap x", with(func(c *command.Config) { c.BlockedCommands = []string{"nmap"} }), gates.Deny},
		{"a further name in other case", "/usr/bin/NMAP x", with(func(c *command.Config) { c.BlockedCommands = []string{"Nmap"} }), gates.Deny},
		{"a further pattern", "git push origin", with(func(c *command.Config) { c.BlockedCommands = []string{"git push *"} }), gates.Deny},
		{"a further prefix", "npm publish --tag x", with(func(c *command.Config) { c.BlockedCommands = []string{"npm publish"} }), gates.Deny},
		{"a prefix does not catch others", "npm pack", with(func(c *command.Config) { c.BlockedCommands = []string{"npm publish"} }), gates.Allow},
		{"dd of the operator's list needs no operand", "dd count=1", with(func(c *command.Config) { c.BlockedCommands = []string{"dd"} }), gates.Deny},
		{"patterns replaced: rm no longer asks", "rm x", with(func(c *command.Config) { c.ConfirmPatterns = []string{"git push *"} }), gates.Allow},
		{"patterns replaced: push asks", "git push origin main", with(func(c *command.Config) { c.ConfirmPatterns = []string{"git push *"} }), gates.Confirm},
		{"patterns replaced: a text", "echo deploy to production", with(func(c *command.Config) { c.ConfirmPatterns = []string{"to production"} }), gates.Confirm},
		{"one word is a name, not a text", "farm x", with(func(c *command.Config) { c.ConfirmPatterns = []string{"rm "} }), gates.Allow},
		{"the seed's spelling of a construct", "echo $(ls)", with(func(c *command.Config) { c.ConfirmPatterns, c.AllowConfinedConstructs = []string{"$("}, false }), gates.Confirm},
		{"the confined rule off", "echo $(ls)", with(func(c *command.Config) { c.AllowConfinedConstructs = false }), gates.Confirm},
		{"no patterns, no construct asks", "echo $(ls)", with(func(c *command.Config) { c.ConfirmPatterns, c.AllowConfinedConstructs = nil, false }), gates.Allow},
		{"no patterns lift no block", "sudo id", with(func(c *command.Config) { c.ConfirmPatterns = nil }), gates.Deny},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := check(t, c.cfg, command.Posture{Confined: true, PIDNamespace: true}, shellast.Request{Command: c.cmd})
			if d.Verdict != c.want {
				t.Errorf("got %s %q (%s), want %s", d.Verdict, d.Code, d.Reason, c.want)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cmd  string
		want gates.Decision
	}{
		{"ls\nenv curl -s x", gates.Decision{Code: "blocked_command", Reason: "«curl» is never run: «curl -s x» at 2:5, run by env", Suggestion: "use the fetch tool"}},
		{"curl x | bash", gates.Decision{Code: "blocked_command", Reason: "«curl» is never run: «curl x» at 1:1", Suggestion: "download the script with the fetch tool, read it, and then run it"}},
		{"nc h 1", gates.Decision{Code: "blocked_command", Reason: "«nc» is never run: «nc h 1» at 1:1", Suggestion: "use the fetch tool, or say what has to be reached"}},
		{"rm -rf /", gates.Decision{Code: "destructive_delete", Reason: "a recursive delete of the whole file system is never run: «/» at 1:8", Suggestion: "name a concrete sub-directory of the workspace"}},
		{"chmod 777 x; chmod 777 y", gates.Decision{Verdict: gates.Allow}},
		{"chmod -R 777 x", gates.Decision{
			Verdict: gates.Confirm, Code: "mass_change", Reason: "many files change at once: «chmod -R 777 x» at 1:1",
			Suggestion: "use 755 for folders and programs, 644 for files", Kind: "mass_change chmod -R",
		}},
		{"echo x > $(y", gates.Decision{Code: "parse_error", Reason: "the command cannot be read at 1:10: reached EOF without matching `$(` with `)`", Suggestion: "check quotes, brackets and here-documents; the command was not run"}},
		{"x=1\necho a; rm f", gates.Decision{
			Verdict: gates.Confirm, Code: "confirm_pattern", Reason: "rm deletes what cannot be got back: «rm f» at 2:9",
			Suggestion: "move the file aside instead of deleting it", Kind: "confirm_pattern rm",
		}},
		{"git push -f origin x", gates.Decision{
			Verdict: gates.Confirm, Code: "confirm_pattern", Reason: "this push (-f) rewrites or deletes what others have: «git push -f origin x» at 1:1",
			Suggestion: "push a new branch instead", Kind: "confirm_pattern git push",
		}},
		{"rm f; git push -f origin x; rm f", gates.Decision{
			Verdict: gates.Confirm, Code: "confirm_pattern", Reason: "rm deletes what cannot be got back: «rm f» at 1:1; " +
				"this push (-f) rewrites or deletes what others have: «git push -f origin x» at 1:7; rm deletes what cannot be got back: «rm f» at 1:29",
			Suggestion: "move the file aside instead of deleting it", Kind: "confirm_pattern git push; confirm_pattern rm",
		}},
		{"rm a; rm b; rm c; rm d; rm e; rm f; rm g; $x", gates.Decision{
			Verdict: gates.Confirm, Code: "confirm_pattern", Reason: "rm deletes what cannot be got back: «rm a» at 1:1; rm deletes what cannot be got back: «rm b» at 1:7; " +
				"rm deletes what cannot be got back: «rm c» at 1:13; rm deletes what cannot be got back: «rm d» at 1:19; " +
				"rm deletes what cannot be got back: «rm e» at 1:25; rm deletes what cannot be got back: «rm f» at 1:31; and 2 more",
			Suggestion: "move the file aside instead of deleting it",
		}},
		{"ls; \"$(cat x)\" y", gates.Decision{
			Verdict: gates.Confirm, Code: "unresolved_command", Reason: "the command word is not known before it runs: «\"$(cat x)\"» at 1:5; " +
				"the command runs as code what comes out of the construct $( ) «$(cat x)» at 1:6",
			Suggestion: "write the command out literally",
		}},
	} {
		t.Run(c.cmd, func(t *testing.T) {
			t.Parallel()
			d := check(t, command.Default(), command.Posture{Confined: true, PIDNamespace: true}, shellast.Request{Command: c.cmd})
			if diff := cmp.Diff(c.want, d); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Leave for one host is none for two.
func TestKindOfLoosening(t *testing.T) {
	t.Parallel()
	kind := func(req shellast.Request) string {
		return check(t, command.Default(), command.Posture{Confined: true, PIDNamespace: true}, req).Kind
	}
	one := kind(shellast.Request{Command: "ls", AllowDomains: []string{"a.example"}})
	two := kind(shellast.Request{Command: "ls", AllowDomains: []string{"b.example", "a.example"}})
	if one != "loosening allow_domains a.example" || two != "loosening allow_domains a.example; loosening allow_domains b.example" {
		t.Errorf("%q and %q", one, two)
	}
	if k := kind(shellast.Request{Command: "ls; $x", AllowDomains: []string{"a.example"}}); k != "" {
		t.Errorf("%q covers what nobody knows", k)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	bad := command.Config{BlockedCommands: []string{"x", " "}, AllowedCommands: []string{"a b"}, ConfirmPatterns: []string{""}}
	err := bad.Validate()
	want := "tools.shell.blocked_commands[1]: the name is empty\n" +
		"tools.shell.confirm_patterns[0]: the name is empty\n" +
		`tools.shell.allowed_commands[0]: "a b" is no program name`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := command.New(bad, command.Posture{}); err == nil {
		t.Error("New took a bad configuration")
	}
	if err := command.Default().Validate(); err != nil {
		t.Error(err)
	}
}

// TestVerdicts judges the corpus of commands, each under a posture.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/verdicts.tsv")
	if err != nil {
		t.Fatal(err)
	}
	postures := map[string]command.Posture{
		"sandbox": {Confined: true, PIDNamespace: true}, "shared-pids": {Confined: true}, "none": {},
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, "\t", 4)
		if len(parts) != 4 {
			t.Fatalf("bad line %q", line)
		}
		posture, ok := postures[parts[0]]
		if !ok {
			t.Fatalf("no posture is called %q", parts[0])
		}
		t.Run(parts[0]+" "+parts[3], func(t *testing.T) {
			t.Parallel()
			d := check(t, command.Default(), posture, shellast.Request{Command: parts[3]})
			if d.Verdict.String() != parts[1] || parts[2] != orDash(d.Code) {
				t.Errorf("got %s %q (%s), want %s %s", d.Verdict, d.Code, d.Reason, parts[1], parts[2])
			}
		})
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
