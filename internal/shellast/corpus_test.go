package shellast_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
)

func strict() command.Posture { return command.Posture{Confined: true, PIDNamespace: true} }

// TestVerdicts judges the corpus of calls whose verdict the default policy
// fixes.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, line := range lines(t, "testdata/verdicts.jsonl") {
		var c rawCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		t.Run(c.ID, func(t *testing.T) { checkCase(t, f, c) })
	}
}

// TestMore judges our own cases: "verdicts TAB codes TAB command", where several
// are separated by commas, "-" is any code "⏎" a line feed and "␍" a carriage return.
func TestMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, line := range lines(t, "testdata/more.tsv") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		parts := strings.SplitN(line, "\t", 3)
		if len(parts) != 3 {
			t.Fatalf("bad line %q", line)
		}
		want, _ := json.Marshal(strings.Split(parts[0], ","))
		args, _ := json.Marshal(bashArgs{Command: strings.NewReplacer("⏎", "\n", "␍", "\r").Replace(parts[2])})
		c := rawCase{ID: parts[2], Args: args, Want: want}
		if parts[1] != "-" {
			c.Codes = strings.Split(parts[1], ",")
		}
		t.Run(c.ID, func(t *testing.T) { checkCase(t, f, c) })
	}
}

func lines(tb testing.TB, file string) []string {
	tb.Helper()
	in, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<20)
	var out []string
	for sc.Scan() {
		out = append(out, sc.Text())
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
	return out
}

func checkCase(t *testing.T, f *fixture, c rawCase) {
	t.Helper()
	var a bashArgs
	if err := json.Unmarshal([]byte(f.fill(string(c.Args))), &a); err != nil {
		t.Fatal(err)
	}
	if a.Command == "" && strings.HasPrefix(c.ID, "bash/bad-args/") {
		return // refused before any gate, by the schema
	}
	j, facts := f.judge(a)
	if !slices.Contains(c.wants(), j.Verdict.String()) || j.Verdict != gates.Allow && len(c.Codes) > 0 && !slices.Contains(c.Codes, j.Decisive.Code) {
		shown, _ := json.Marshal(facts)
		if len(shown) > 3000 {
			shown = shown[:3000]
		}
		t.Errorf("%s\n got %s %s (%s)\nwant %s %v (%s)\nfacts %s", a.Command, j.Verdict, j.Decisive.Code, j.Decisive.Reason, c.Want, c.Codes, c.Why, shown)
	}
}
