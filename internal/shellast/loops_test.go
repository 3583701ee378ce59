package shellast_test

import (
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
)

// TestDeepLoops nests loops deeper than their variables are told apart. What a
// variable holds in the second round is not known at any depth.
func TestDeepLoops(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, depth := range []int{0, 1, 30, 31, 32, 33, 34, 60} {
		open, end := strings.Repeat("for i in 1 2; do ", depth), strings.Repeat("; done", depth)
		for _, inner := range []string{
			"c=ls; for j in 1 2; do $c x; c=curl; done",
			"c=ls; while true; do $c x; read c; done",
			"for j in 1 2; do c=ls; for k in 1 2; do $c x; c=curl; done; done",
		} {
			if j, _ := f.judge(bashArgs{Command: open + inner + end}); j.Verdict == gates.Allow {
				t.Errorf("%d loops around %s: %s", depth, inner, j.Verdict)
			}
		}
		if j, _ := f.judge(bashArgs{Command: open + "cat file.txt > out.txt" + end}); j.Verdict != gates.Allow {
			t.Errorf("%d loops: %s %s", depth, j.Verdict, j.Decisive.Reason)
		}
	}
}
