package shellast_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
)

// parseCases are the numbers of all reports about parsing, and the file that
// holds each: what needs a configuration or a running program is tested beside
// the command line, and what does not apply is explained in the design.
func parseCases() map[string]string {
	const (
		here   = "testdata/bug-corpus.tsv"
		script = "../../cmd/zeph-mcp-tools/testdata/script/bug-corpus.txtar"
		design = "../../docs/design.md"
	)
	return map[string]string{
		"SP-01": here, "SP-03": here, "SP-04": script, "SP-08": here, "SP-11": here, "SP-12": script, "SP-13": script, "SP-14": script,
		"SP-15": script, "SP-16": script, "SP-20": script, "SP-23": here, "SP-24": here, "SP-26": here, "SP-29": here, "SP-33": here,
		"SP-34": here, "SP-35": here, "SP-40": here, "SP-41": here, "SP-42": script, "SP-43": script, "SP-45": here, "SP-46": design,
		"SP-48": here, "SP-49": script,
	}
}

// TestBugCorpus judges the reports about shell parsing.
func TestBugCorpus(t *testing.T) {
	t.Parallel()
	boxes := map[string]*fixture{
		"on": newFixture(t, command.Default(), strict()), "off": newFixture(t, command.Default(), command.Posture{}),
	}
	for _, line := range lines(t, "testdata/bug-corpus.tsv") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		p := strings.Split(line, "\t")
		if len(p) != 6 || boxes[p[1]] == nil {
			t.Fatalf("bad line %q", line)
		}
		t.Run(p[0]+" "+p[1]+" "+p[4], func(t *testing.T) {
			t.Parallel()
			j, _ := boxes[p[1]].judge(bashArgs{Command: strings.ReplaceAll(p[4], "⏎", "\n")})
			code := j.Decisive.Code
			if code == "" {
				code = "-"
			}
			if j.Verdict.String() != p[2] || code != p[3] {
				t.Errorf("got %s %s (%s), want %s %s", j.Verdict, code, j.Decisive.Reason, p[2], p[3])
			}
			if p[5] != "-" && !strings.Contains(j.Decisive.Reason, p[5]) {
				t.Errorf("the reason %q does not say %q", j.Decisive.Reason, p[5])
			}
			if j.Verdict.String() != "allow" && j.Decisive.Suggestion == "" {
				t.Errorf("no way on is named: %+v", j.Decisive)
			}
		})
	}
}

// TestBugCorpusIsWhole holds that no report is left out.
func TestBugCorpusIsWhole(t *testing.T) {
	t.Parallel()
	for id, file := range parseCases() {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), id) {
			t.Errorf("%s is not in %s", id, file)
		}
	}
}
