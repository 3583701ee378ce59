package shellast_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
)

// FuzzCommand checks that no text panics, and that wrapping a command never
// makes its verdict more lenient.
func FuzzCommand(f *testing.F) {
	fx := newFixture(f, command.Default(), strict())
	for _, line := range lines(f, "testdata/more.tsv") {
		if p := strings.SplitN(line, "\t", 3); len(p) == 3 {
			f.Add(strings.ReplaceAll(p[2], "⏎", "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return
		}
		was, _ := fx.judge(bashArgs{Command: text})
		all := wrappings(text)
		if was.Decisive.Code == "parse_error" {
			all = all[:3] // what follows may complete the command
		}
		if strings.HasSuffix(text, `\`) {
			all = all[:3] // a line feed after it would go
		}
		for _, w := range all {
			if now, _ := fx.judge(bashArgs{Command: w}); now.Verdict > was.Verdict {
				t.Errorf("%q is %s (%s %s), but wrapped as %q it is %s", text, was.Verdict, was.Decisive.Code, was.Decisive.Reason, w, now.Verdict)
			}
		}
	})
}

// wrappings are commands that run the same text.
func wrappings(text string) []string {
	quoted := "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	return []string{
		"sh -c -- " + quoted,
		"env -i bash -c -- " + quoted,
		"eval -- " + quoted,
		"( " + text + "\n)",
		text + "\ntrue",
		"true\n" + text,
	}
}
