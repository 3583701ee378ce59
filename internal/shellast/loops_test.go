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

// TestLoopsAssignBehindQuotes changes what a loop runs in its second round, by
// builtins whose names and arguments are quoted, escaped or behind variables.
func TestLoopsAssignBehindQuotes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, change := range []string{
		`\command eval 'c=$z'`, `c\ommand eval 'c=$z'`, `\builtin eval 'c=$z'`, `\eval 'c=$z'`, `e\val 'c=$z'`, `'eval' 'c=$z'`,
		`\read c`, `read \c`, `read "c"`, `read 'c'`, `"read" c`, `read -ac`, `read $v`, `read "$v"`, `read -p x c`,
		`\printf -v c curl`, `printf -vc curl`, `printf -v "c" curl`, `printf -v "$v" curl`, `printf "-v$v" curl`, `printf -v x -v c curl`,
		`p=1; printf $p curl`, `\mapfile c`, `mapfile "c"`, `mapfile -C 'c=$z #' -c 1 m`, `getopts a: "c"`, `getopts a: $v`,
		`\declare c=$z`, `'export' c=$z`, `export "c=$z"`, `export 'c=curl'`, `declare "$v=$z"`, `typeset -g "c"=$z`,
		`r='read c'; $r`, `\unset "c"`, `unset $v`, `read "c[0]"`, `read "c[$i]"`, `printf -v "c[$i]" curl`,
	} {
		for _, line := range []string{
			"c=ls; while true; do $c x; " + change + "; done",
			"c=ls; for i in 1 2; do $c x; " + change + "; done",
			"g() { " + change + "; }; c=ls; while true; do $c x; g; done",
			`g() { ` + change + `; }; c=ls; while true; do $c x; \g; done`,
		} {
			if j, _ := f.judge(bashArgs{Command: "v=c; r='read c'; " + line}); j.Verdict == gates.Allow {
				t.Errorf("%s: %s", line, j.Verdict)
			}
		}
	}
	for _, line := range []string{
		`d=sub; while read -r f; do printf '%s\n' "$f"; cat $d/a.txt; done < file.txt`,
		`d=sub; while IFS= read -r -d $'\0' f; do cat $d/a.txt; done < file.txt`,
		`d=sub; for i in 1 2; do printf "$i\n"; printf "%s" "$i"; printf -v n '%d' "$i"; export X="$i"; cat $d/a.txt; done`,
		`d=sub; for i in 1 2; do sleep 1 & wait $!; cat $d/a.txt; done`,
		`d=sub; while getopts ab: o "$@"; do cat $d/a.txt; done`,
		`d=sub; for i in 1 2; do unset "m[$i]"; mapfile -t l < file.txt; cat $d/a.txt; done`,
	} {
		if j, _ := f.judge(bashArgs{Command: line}); j.Verdict != gates.Allow {
			t.Errorf("%s: %s %s", line, j.Verdict, j.Decisive.Reason)
		}
	}
}

// TestCallbacksStayInTheShell runs what callbacks and traps in traps have
// assigned.
func TestCallbacksStayInTheShell(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for line, want := range map[string]gates.Verdict{
		`c=ls; mapfile -C 'c=curl;:' -c 1 a <<< x; $c y`:                                   gates.Deny,
		`c=ls; readarray -C "c=$z;:" -c 1 a <<< x; $c y`:                                   gates.Confirm,
		`mapfile -C '${@} #' -c 1 a <<< x`:                                                 gates.Confirm,
		`mapfile -C 'sudo' -c 1 a <<< x`:                                                   gates.Deny,
		`mapfile -C 'echo got' -c 1 a <<< x`:                                               gates.Allow,
		`d=sub; mapfile -C 'n=$((n+1)); echo' -c 1 a < file.txt; cat $d/a.txt`:             gates.Allow,
		`trap 'trap '\''$c x'\'' EXIT; c=curl' EXIT`:                                       gates.Deny,
		`c=ls; trap 'trap '\''trap "\$c x" EXIT; c=curl'\'' EXIT; c=cat' EXIT`:             gates.Deny,
		`T='trap "$T" EXIT; trap "$T" EXIT; trap "$T" EXIT'; trap "$T" EXIT`:               gates.Confirm,
		`trap 'rm -rf build' EXIT; trap 'echo interrupted; exit 1' INT TERM; cat file.txt`: gates.Confirm,
	} {
		if j, _ := f.judge(bashArgs{Command: line}); j.Verdict != want {
			t.Errorf("%s: %s %s, want %s", line, j.Verdict, j.Decisive.Reason, want)
		}
	}
}

// TestLoopsChangeTheirFolder judges paths in rounds that start elsewhere.
func TestLoopsChangeTheirFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for line, allowed := range map[string]bool{
		`cd sub; while true; do rm -f a.txt; cd ..; done`:                       false,
		`for i in 1 2 3; do echo x > passwd; cd /etc; done`:                     false,
		`for i in 1 2 3; do echo x > x; cd ..; done`:                            false,
		`for ((i=0;i<3;i++)); do echo x > x; cd ..; done`:                       false,
		`while cd ..; do echo x > x; done`:                                      false,
		`g() { cd ..; }; for i in 1 2 3; do echo x > x; g; done`:                false,
		`for i in 1 2 3; do cd sub; cat a.txt; cd ..; done; echo x > out.txt`:   true,
		`for i in 1 2 3; do (cd sub && cat a.txt); done; echo x > out.txt`:      true,
		`for i in 1 2 3; do pushd sub; cat a.txt; popd; done; echo x > out.txt`: true,
		`while read -r f; do cd sub && cat a.txt && cd ..; done < file.txt`:     true,
		`for i in 1 2; do cd sub || exit 1; make; cd - > /dev/null; done`:       true,
		strings.Repeat("(for i in 1 2; do cd sub; done); ", 60) + "ls":          false, // more than is judged
		strings.Repeat("(for i in 1 2; do cd sub; done); ", 5) + "ls":           true,
	} {
		if j, _ := f.judge(bashArgs{Command: line}); (j.Verdict == gates.Allow) != allowed {
			t.Errorf("%s: %s %s", line, j.Verdict, j.Decisive.Reason)
		}
	}
}

// What a loop changes that nobody noted before it was walked is seen by its
// next round.
func TestNextRound(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, c := range []string{
		"c=ls; while read x; do $c y; trap 'c=$x' DEBUG; done",
		"c=ls; for i in 1 2; do for j in 1 2; do $c y; trap 'c=$x' DEBUG; done; done",
	} {
		if j, _ := f.judge(bashArgs{Command: c}); j.Verdict == gates.Allow {
			t.Errorf("%s: %s", c, j.Verdict)
		}
	}
	// Loops in loops do not multiply what it costs.
	f.judge(bashArgs{Command: strings.Repeat("for i in 1 2; do cd sub; trap 'c=$i' DEBUG; ", 60) + "cat f" + strings.Repeat("; done", 60)})
}
