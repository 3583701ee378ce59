package shellast_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// seedRow is one line of testdata/seed-rows.tsv.
type seedRow struct {
	section, seed, verdict, code, command, why string
}

func seedRows(t *testing.T) []seedRow {
	t.Helper()
	var out []seedRow
	for _, line := range lines(t, "testdata/seed-rows.tsv") {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		p := append(strings.Split(line, "\t"), "")
		if len(p) < 6 {
			t.Fatalf("bad line %q", line)
		}
		out = append(out, seedRow{p[0], p[1], p[2], p[3], p[4], p[5]})
	}
	return out
}

// TestSeedRows holds the rows that the seed's own tests assert. Where the
// default policy wins, the row says why and docs/design.md lists it.
func TestSeedRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	design, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := seedRows(t)
	if len(rows) < 250 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, r := range rows {
		t.Run(r.section+" "+r.command, func(t *testing.T) {
			t.Parallel()
			j, facts := f.judge(bashArgs{Command: f.fill(strings.ReplaceAll(r.command, "⏎", "\n"))})
			code := j.Decisive.Code
			if code == "" {
				code = "-"
			}
			if j.Verdict.String() != r.verdict || code != r.code {
				t.Errorf("got %s %s (%s), want %s %s", j.Verdict, code, j.Decisive.Reason, r.verdict, r.code)
			}
			if shown := "`" + strings.ReplaceAll(r.command, "{WS}", "WORKSPACE") + "`"; r.why != "" && !strings.Contains(string(design), shown) {
				t.Errorf("docs/design.md does not list %s", shown)
			}
			if r.why == "" {
				r.check(t, f, j, facts)
			}
		})
	}
}

// check is what a row says beyond the verdict.
func (r seedRow) check(t *testing.T, f *fixture, j gates.Judgement, facts call.Facts) {
	t.Helper()
	kind, rest, _ := strings.Cut(r.seed, " ")
	switch kind {
	case "advice":
		if !regexp.MustCompile(`\b` + rest + `\b`).MatchString(j.Decisive.Suggestion) {
			t.Errorf("the suggestion %q does not say %q", j.Decisive.Suggestion, rest)
		}
	case "none":
		if j.Decisive.Suggestion != "" {
			t.Errorf("an unasked suggestion: %s", j.Decisive.Suggestion)
		}
	case "paths":
		var got []string
		for _, p := range slices.Concat(facts.Reads, facts.Writes) {
			if p.ImplicitBy == "" {
				got = append(got, strings.Trim(p.Text, `"`))
			}
		}
		var want []string
		for w := range strings.FieldsSeq(rest) {
			want = append(want, f.fill(strings.ReplaceAll(w, "%", " ")))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("paths (-want +got):\n%s", d)
		}
	case "blocked":
		if j.Verdict != gates.Deny || j.Decisive.Suggestion == "" {
			t.Errorf("blocked without a way on: %+v", j.Decisive)
		}
	}
}

// TestSeedConfigRows holds the rows about lists in the configuration.
func TestSeedConfigRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*command.Config)
		want   map[string]gates.Verdict
	}{
		{"nothing", func(*command.Config) {}, map[string]gates.Verdict{"ping example.com": gates.Allow, "custom-danger script": gates.Allow, "curl x": gates.Deny}},
		{"allowed curl", func(c *command.Config) { c.AllowedCommands = []string{"curl"} }, map[string]gates.Verdict{"curl x": gates.Allow, "sudo id": gates.Deny, "wget x": gates.Deny}},
		{"allowed CURL", func(c *command.Config) { c.AllowedCommands = []string{"CURL"} }, map[string]gates.Verdict{"curl x": gates.Allow, "sudo id": gates.Deny}},
		{"allowed and blocked", func(c *command.Config) { c.AllowedCommands, c.BlockedCommands = []string{"curl"}, []string{"curl"} }, map[string]gates.Verdict{"curl x": gates.Deny}},
		{"allowed an unknown name", func(c *command.Config) { c.AllowedCommands = []string{"nothing-known"} }, map[string]gates.Verdict{"curl x": gates.Deny, "nothing-known": gates.Allow}},
		{"no network", func(c *command.Config) { c.AllowNetwork, c.AllowedCommands = false, []string{"curl"} }, map[string]gates.Verdict{"curl x": gates.Deny}},
		{"network", func(c *command.Config) { c.AllowNetwork = true }, map[string]gates.Verdict{"curl x": gates.Deny}},
		{"a user's own", func(c *command.Config) { c.BlockedCommands = []string{"custom-danger"} }, map[string]gates.Verdict{"custom-danger script": gates.Deny, "CUSTOM-DANGER x": gates.Deny}},
		{"a name in many letters", func(c *command.Config) { c.BlockedCommands = []string{"Sudo", "sudo", "SUDO"} }, map[string]gates.Verdict{"sudo id": gates.Deny, "sudoku": gates.Allow}},
		{"blocked later", func(c *command.Config) { c.BlockedCommands = []string{"ping"} }, map[string]gates.Verdict{"ping example.com": gates.Deny}},
		{"blocked inside constructs", func(c *command.Config) { c.BlockedCommands = []string{"wget", "curl"} }, map[string]gates.Verdict{
			"echo `curl --version 2>&1 | head -1`": gates.Deny, "cat <(wget --version 2>&1 | head -1)": gates.Deny,
		}},
		{"patterns do not unblock", func(c *command.Config) { c.ConfirmPatterns = []string{} }, map[string]gates.Verdict{"sudo id": gates.Deny, "rm x": gates.Allow}},
	} {
		cfg := command.Default()
		tt.change(&cfg)
		f := newFixture(t, cfg, strict())
		for text, want := range tt.want {
			if j, _ := f.judge(bashArgs{Command: text}); j.Verdict != want {
				t.Errorf("%s: %s is %s %s, want %s", tt.name, text, j.Verdict, j.Decisive.Code, want)
			}
		}
	}
}

// TestSeedRootRows: a workspace that does not exist, and the folder the server
// was started in, which plays no part.
func TestSeedRootRows(t *testing.T) {
	t.Parallel()
	if _, err := workspace.Open(workspace.Config{Roots: []string{"/nonexistent/sandbox"}}, workspace.Env{}); err == nil {
		t.Error("a workspace that does not exist was opened")
	}
	f := newFixture(t, command.Default(), strict())
	if j, facts := f.judge(bashArgs{Command: "echo hello"}); j.Verdict != gates.Allow || facts.Cwd.Path != f.ws {
		t.Errorf("%s in %s", j.Verdict, facts.Cwd.Path)
	}
}
