package shellast_test

import (
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
)

func TestPlainPipeline(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"false | true":                    true,
		"grep -c x f | sort -n | tail -1": true,
		"make 2>&1 | tee log":             true,
		"make |& tail -3 > out":           true,
		"X=1 go test ./... | cat # why":   true,
		"/usr/bin/seq 3 | wc -l\n\n":      true,
		"seq 3 |\n  wc -l":                true,
		`echo "a|b"`:                      false,
		"true":                            false,
		"a || b":                          false,
		"a | b; c":                        false,
		"a | b;":                          false,
		"a | b\nc":                        false,
		"cd x && a | b":                   false,
		"! a | b":                         false,
		"time a | b":                      false,
		"a | b &":                         false,
		"(a | b)":                         false,
		"{ a | b; }":                      false,
		"a | (b; c)":                      false,
		"a | while read x; do y; done":    false,
		"cat <<E | b\nE":                  false,
		"cat <<E | b\nE\n":                false,
		`a | b \`:                         false,
		"a | $B":                          false,
		`a | "b"x`:                        false,
		"kill $$ | cat":                   false,
		"ps aux | grep x":                 false,
		"echo $BASH_EXECUTION_STRING | a": false,
		"a > x | X=1":                     false,
		"a | 'b":                          false,
		"":                                false,
	} {
		if got := shellast.PlainPipeline(command); got != want {
			t.Errorf("PlainPipeline(%q) = %v", command, got)
		}
	}
}
