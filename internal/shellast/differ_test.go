package shellast_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
)

// TestWhereTheParserDiffers holds the known places where our parser's tree and
// bash disagree, and those where a naive reading of it goes wrong. Every
// command runs "probe" in a real bash; the analysis must see it, call the
// command unknown, or refuse it.
func TestWhereTheParserDiffers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, c := range []struct{ name, text string }{
		{"quotes inside a quoted default", `echo "${x:-'$(probe)'}"`},
		{"quotes inside a default in a here-document", "cat <<EOF\n${x:-'$(probe)'}\nEOF"},
		{"quotes in a here-document", "cat <<EOF\n'$(probe)'\nEOF"},
		{"backticks two deep", "echo `echo \\`probe\\``"},
		{"backticks three deep", "echo `echo \\`echo \\\\\\`probe\\\\\\`\\``"},
		{"time --", "time -- probe"},
		{"time -p --", "time -p -- probe"},
		{"negated subshell without extglob", "!(probe)"},
		{"a # after quotes in a subshell", "( \"\"#; probe\n)"},
		{"a # after a word in a substitution", "echo $(echo ''#; probe\n)"},
		{"a # after an expansion in a subshell", "( echo $x#; probe\n)"},
		{"a # after a substitution in a subshell", "( echo $(true)#; probe\n)"},
		{"a # after backticks in a subshell", "( echo `true`#; probe\n)"},
		{"a # after a number in a subshell", "( echo $((1))#; probe\n)"},
		{"a # after an array", "echo $(a=(1 2)#x; probe\n)"},
		{"a coprocess that is a pipeline", "coproc probe x | cat >&2; wait"},
		{"a coprocess before a reserved word", "coproc probe time >&2; wait"},
		{"a redirect before a coprocess", "coproc 3>&1 probe; wait"},
		{"a named redirect before a coprocess", "coproc {fd}>/dev/null probe; wait"},
		{"an operator after let", "let a&probe; wait"},
		{"a pipe after let", "let a|probe"},
		{"a list after let", "let a=1&&probe"},
		{"an assignment before a coprocess", "coproc a=1 probe x; wait"},
		{"a # after a line that goes on", "( echo a\\\n#; probe\n)"},
		{"a NUL in an ANSI-C quote", `$'probe\0junk'`},
		{"a NUL ends the quote, not the word", `$'pro\0junk'be`},
		{"an index in quotes", `a=(); a['$(probe)']=1`},
		{"declare of a subscript", `declare 'a[$(probe)]=1'`},
		{"read into a subscript", `read -r 'a[$(probe)]' <<< x`},
		{"printf -v", `a=(); printf -v 'a[$(probe)]' x`},
		{"test -v", `a=(1); test -v 'a[$(probe)]'`},
		{"[[ -v ]]", `a=(1); [[ -v 'a[$(probe)]' ]]`},
		{"[[ -eq ]]", `[[ 'a[$(probe)]' -eq 0 ]]`},
		{"let", `let 'a[$(probe)]=1'`},
		{"a variable in arithmetic", `x='a[$(probe)]'; echo $((x))`},
		{"declare -i", `declare -i 'x=a[$(probe)]'`},
		{"prompt expansion", `x='$(probe)'; echo "${x@P}"`},
		{"PS4", `PS4='$(probe)'; set -x; :`},
		{"trap", `trap probe EXIT`},
		{"an alias", "shopt -s expand_aliases\nalias g='probe -x'\ng y"},
		{"mapfile -C", "mapfile -C probe -c 1 a <<< x"},
		{"a redirect before the command", "</dev/null probe"},
		{"a redirect inside exec", "exec 3</dev/null probe"},
		{"a here-string for a shell", `bash <<< probe`},
		{"a here-document for a shell", "bash <<'EOF'\nprobe\nEOF"},
		{"a literal pipe into a shell", `printf '%s\n' probe | bash`},
		{"a process substitution", `source <(echo probe)`},
		{"a case pattern", `case x in $(probe)) ;; esac`},
		{"an array call", `a=(probe -x); "${a[@]}"`},
		{"positional parameters", `set -- probe; "$@"`},
		{"an indirect variable", `a=b; b=probe; ${!a}`},
		{"a second word of a variable", `c='probe x'; $c`},
		{"an empty expansion", `pro$()be`},
		{"a vanished word", `c=; $c probe`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			facts := f.a.Analyze(shellast.Request{Command: c.text})
			seen := slices.ContainsFunc(facts.Commands, func(x call.Command) bool { return x.Name == "probe" })
			asked := slices.ContainsFunc(facts.Unknown, func(u call.Unknown) bool { return u.Code })
			if !seen && !asked && facts.Parse == nil {
				t.Errorf("%s: probe was not seen: %+v", c.text, facts.Commands)
			}
			bash, err := exec.LookPath("bash")
			if err != nil {
				return
			}
			run := exec.CommandContext(t.Context(), bash, "--norc", "-c", "probe() { echo RAN >&2; }; export -f probe; exec 2>&1\n"+strings.Replace(c.text, "exec 3</dev/null probe", "3</dev/null probe", 1))
			run.Dir = f.ws
			if out, _ := run.CombinedOutput(); !strings.Contains(string(out), "RAN") {
				t.Errorf("%s: bash did not run probe, so the case proves nothing: %s", c.text, out)
			}
		})
	}
}

// TestRefusedThoughValid lists what bash accepts and our parser does not. It is
// refused: nobody can judge what cannot be read.
func TestRefusedThoughValid(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, text := range []string{"((ls); ls)", "! ! true", "cat <<EOF\nx", "ls -la\r\necho ok\r\n", "echo a\rb", "ls \r"} {
		facts := f.a.Analyze(shellast.Request{Command: text})
		if facts.Parse == nil || facts.Parse.Line == 0 || facts.Parse.Suggestion == "" {
			t.Errorf("%q: %+v", text, facts.Parse)
		}
	}
	if p := f.a.Analyze(shellast.Request{Command: "echo 'a\r\nb'"}).Parse; p != nil {
		t.Errorf("a carriage return in quotes is text: %+v", p)
	}
}

// TestBounds checks that size and nesting are bounded.
func TestBounds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for name, text := range map[string]string{
		"size": "echo " + strings.Repeat("a", 64<<10), "subshells": strings.Repeat("( ", 20000), "substitutions": strings.Repeat("$(", 20000),
		"expansions": strings.Repeat("${a:-", 10000), "conditions": strings.Repeat("if ", 20000), "groups": strings.Repeat("{ ", 20000),
	} {
		if f.a.Analyze(shellast.Request{Command: text}).Parse == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	for name, text := range map[string]string{
		"braces":  "echo " + strings.Repeat("{a,b}", 30),
		"doubled": "a=xxxxxxxxxxxxxxxx" + strings.Repeat("; a=$a$a$a$a", 40) + "; $a",
		"shells":  nest("ls", 20),
		"arrays":  "a=(x)" + strings.Repeat("; a=(\"${a[@]}\" \"${a[@]}\")", 40) + "; \"${a[@]}\"",
	} {
		facts := f.a.Analyze(shellast.Request{Command: text})
		if len(facts.Commands) > 5000 {
			t.Errorf("%s: %d commands", name, len(facts.Commands))
		}
	}
}

func nest(text string, n int) string {
	for range n {
		if len(text) > 8000 {
			break
		}
		text = "sh -c '" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// TestCloneAndConcurrency checks that an analyzer is safe for concurrent use
// and that facts clone completely.
func TestCloneAndConcurrency(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			a := f.a.Analyze(shellast.Request{Command: "rm x; git reset --hard; echo $(ls) > y"})
			b := a.Clone()
			b.Acts[0].Text, b.Commands[0].Argv[0], b.Constructs[0].Text, b.Writes[0].Path = "", "", "", ""
			if a.Acts[0].Text == "" || a.Commands[0].Argv[0] == "" || a.Constructs[0].Text == "" || a.Writes[0].Path == "" {
				t.Error("a clone shares memory")
			}
		})
	}
}
