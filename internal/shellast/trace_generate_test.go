//go:build trace

package shellast_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator makes commands that a person would not think of: ways to give a
// variable its value, ways to name a program, and ways to run one, put into each
// other.
type generator struct{ r *rand.Rand }

func newGenerator(seed uint64) *generator {
	return &generator{r: rand.New(rand.NewPCG(seed, 17))}
}

func (g *generator) pick(list ...string) string { return list[g.r.IntN(len(list))] }

func (g *generator) often(n int) bool { return g.r.IntN(n) > 0 }

// quoted is a text in quotes of one kind or another.
func (g *generator) quoted(s string) string {
	single := "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	if strings.ContainsAny(s, "$`\\\"'!\n") {
		return single
	}
	return g.pick(single, `"`+s+`"`, "$'"+s+"'", `$"`+s+`"`)
}

// command is a whole command.
func (g *generator) command() string {
	var out []string
	for range g.r.IntN(4) {
		out = append(out, g.statement(2))
	}
	out = append(out, g.running(3))
	if g.r.IntN(3) == 0 {
		out = append(out, g.running(1))
	}
	return strings.Join(out, g.pick("; ", "; ", "\n", " && "))
}

// name is a variable. There are few, so that they meet.
func (g *generator) name() string { return g.pick("c", "d", "x") }

// word is a word that may be the name of a program.
func (g *generator) word() string {
	c := g.name()
	if g.often(2) { // what is known, so that nothing is asked
		return g.pick("probe", `"probe"`, `\probe`, "p{rob,x}e", "pr''obe", `$'\x70robe'`, "{probe,-x}", "env probe", "$"+c)
	}
	return g.pick(
		"probe", "probe", "$"+c, "$"+c, `"$`+c+`"`, "${"+c+"}", "${"+c+"[0]}", "${"+c+"[@]}", `"${`+c+`[@]}"`, "${"+c+"[1]}", "${"+c+"[-1]}", `"${`+c+`[*]}"`,
		"${!"+c+"}", "${"+c+":-probe}", "${"+c+"-probe}", "${"+c+":+probe}", "${"+c+":=probe}", "${nope:-probe}", "${"+c+",,}", "${"+c+"^^}", "${"+c+"@Q}", "${"+c+"@L}",
		"${"+c+"@P}", "${"+c+"#x}", "${"+c+"%x}", "${"+c+"/x/}", "${"+c+"/#/}", "${"+c+"//a/p}", "${"+c+":1}", "${"+c+":0:5}", "${"+c+": -5}", "${"+c+"@A}",
		"$"+c+"{,}", "{$"+c+",-x}", "p{rob,x}e", "{probe,-x}", `pr''obe`, `\probe`, `"probe"`, `$'\x70robe'`, `$"probe"`, "pro$nope'be'", "$(echo probe)", "`echo probe`",
		"${m[k]}", "$1", "${@}", `"$@"`, "$*", "${@:2}", "${10}", "prob?", "+(probe)", "${!c@}", "$_", "$0", "${FUNCNAME}", "$BASH_COMMAND", "${c}${d}", "$c$x", "~/probe", "./probe",
	)
}

// value is what a variable is given.
func (g *generator) value() string {
	return g.pick(
		"probe", "probe", "probe", "ls", "ls", "xprobe", "'probe x'", "'ls -l'", "''", "'$(probe)'", "'a[$(probe)0]'", "'`probe`'", "PROBE", "$c", `"$d"`, "${x}", "${c}be", "pro", "c", "d", "x",
		"$1", "$*", "(ls probe)", "(probe ls)", "([1]=probe)", "([0]=ls [1]=probe)", "$(echo probe)", "`echo ls`", "$((1+1))", "p{a,b}", "~", "$'probe'", `$"probe"`, "5", "0", "'c=probe'", "'\\$(probe)'",
	)
}

// plain is a value that stands as one word everywhere.
func (g *generator) plain() string {
	for {
		if v := g.value(); v[0] != '(' {
			return v
		}
	}
}

// statement changes what the shell knows.
func (g *generator) statement(depth int) string {
	c, v, p := g.name(), g.value(), g.plain()
	one := func() string {
		if depth <= 0 {
			return c + "=" + v
		}
		return g.statement(depth - 1)
	}
	forms := []func() string{
		func() string { return c + "=" + v },
		func() string { return c + "=" + v },
		func() string { return c + "+=" + v },
		func() string { return c + g.pick("[0]=", "[1]=", "[x]=", "[-1]=", "[1]+=") + p },
		func() string {
			return "printf -v " + c + g.pick("", "[0]", "[1]") + " " + g.pick("%s", "'%s '", "pr%s", "%b", "%q") + " " + p
		},
		func() string {
			return "read " + g.pick("", "-r ", "-a ", "-d '' ", "-n 5 ", "-ra ") + c + g.pick("", " d") + " <<< " + p
		},
		func() string { return "echo " + p + " | read " + c },
		func() string { return "read " + c + " < <(echo " + p + ")" },
		func() string {
			return g.pick("mapfile", "readarray", "mapfile -t", "mapfile -t -O 1") + " " + c + " <<< " + p
		},
		func() string {
			return g.pick("declare", "typeset", "export", "readonly", "local", "declare -g") + " " + c + "=" + v
		},
		func() string {
			return "declare " + g.pick("-i", "-l", "-u", "-a", "-x", "-r", "-n", "+i", "-gx", "-ai", "-lx") + " " + c + g.pick("", "="+p)
		},
		func() string { return "declare -A m=([k]=" + p + ")" },
		func() string { return "m[k]=" + p },
		func() string { return "declare -n " + c + "=" + g.name() },
		func() string { return "set -- " + g.pick("", "ls ", "x ") + p },
		func() string { return g.pick("shift", "shift 2", "set --", "set -a", "set -x", "set -f", "set -e") },
		func() string { return "unset " + g.pick("", "-v ", "-n ") + g.pick(c, "'"+c+"[0]'") },
		func() string { return ": ${" + c + g.pick(":=", "=") + p + "}" },
		func() string {
			return g.pick("(( ", "let \"", "[[ 1 -eq ", ": $(( ") + "@" + g.pick(c+"=1", c+"++", c, "x="+c, c+"[0]=1", c+"[x]")
		},
		func() string { return "for " + c + " in ls " + p + "; do " + g.pick(":", "break", one()) + "; done" },
		func() string { return "while " + g.pick("false", "! true") + "; do " + one() + "; done" },
		func() string { return "until " + one() + "; do break; done" },
		func() string {
			return "if " + g.pick("true", "false", one()) + "; then " + one() + "; else " + one() + "; fi"
		},
		func() string {
			return "case " + p + " in " + g.pick("p*", "ls", "*", "x") + ") " + one() + g.pick(" ;;", " ;&", " ;;&") + " *) " + one() + " ;; esac"
		},
		func() string { return g.pick("true", "false") + g.pick(" && ", " || ") + one() },
		func() string { return one() + g.pick(" && ", " || ") + one() },
		func() string { return "{ " + one() + "; }" + g.pick("", " > out", " | cat", " &", " <<< x") },
		func() string { return "( " + one() + " )" },
		func() string { return g.pick("f", "ls") + "() { " + one() + "; }" + g.pick("", "; f", "; ls") },
		func() string { return "f() { local " + c + g.pick("", "="+p) + "; " + one() + "; }; f " + p },
		func() string { return "f() { " + c + "=$1; }; f " + p },
		func() string { return "f() { local -n r=$1; r=$2; }; f " + c + " " + p },
		func() string { return g.pick("eval ", "builtin eval ", "command eval ") + g.quoted(one()) },
		func() string { return g.pick("source", ".") + " <(echo " + g.quoted(one()) + ")" },
		func() string { return g.pick("source", ".") + " /dev/stdin <<< " + g.quoted(one()) },
		func() string {
			return "trap " + g.quoted(one()) + " " + g.pick("DEBUG", "ERR", "EXIT", "RETURN", "USR1")
		},
		func() string { return "alias " + g.pick("ls", "g") + "=" + g.pick("probe", "ls", "'probe '", p) },
		func() string {
			return "shopt -s " + g.pick("expand_aliases", "lastpipe", "extglob", "nullglob", "sourcepath")
		},
		func() string { return "IFS=" + g.pick("", "x", "-", "' '") },
		func() string { return "getopts " + g.pick("a", "ab:") + " " + c + " -a" },
		func() string { return "coproc " + g.pick("", c+" ") + "{ " + one() + "; }" },
		func() string { return "exec {" + c + "}> out" },
		func() string { return "export " + c },
		func() string { return g.pick("cd .", "pushd sub", "hash -p ls probe", "enable -n echo", "unalias -a") },
		func() string { return "wait -n -p " + c },
		func() string { return c + "=" + p + " " + g.pick(":", "eval :", "export y", "f", "ls") },
		func() string { return "select " + c + " in " + p + "; do break; done <<< 1" },
	}
	s := forms[g.r.IntN(len(forms))]()
	return closeArithmetic(s)
}

// closeArithmetic puts the end behind an arithmetic form that "@" marks.
func closeArithmetic(s string) string {
	for _, pair := range [][2]string{{"(( @", " ))"}, {"let \"@", "\""}, {"[[ 1 -eq @", " ]]"}, {": $(( @", " ))"}} {
		if rest, ok := strings.CutPrefix(s, pair[0]); ok {
			return strings.TrimSuffix(pair[0], "@") + rest + pair[1]
		}
	}
	return s
}

// running is a command that runs something.
func (g *generator) running(depth int) string {
	if depth <= 0 {
		return g.word() + g.pick("", " x", " x", " $c", ` "$@"`, " > out", " < f")
	}
	if !g.often(3) {
		return g.statement(1) + "; " + g.running(depth-1)
	}
	in := g.running(depth - 1)
	q := g.quoted(in)
	one := strings.ReplaceAll(in, "\n", "; ")
	return g.pick(
		in, "{ "+in+"\n}", "( "+in+"\n)", "! "+one, "time "+one, "coproc { "+in+"\n}", in+" &\nwait",
		g.shell()+" "+q, g.shell()+" "+q+" a probe b", "bash <<< "+q, "sh <<< "+q, "echo "+q+" | "+g.pick("sh", "bash", "bash -s x", "cat - | sh", "tee out | bash"),
		"bash <<'E'\n"+in+"\nE\n", "bash <<E\n"+in+"\nE\n", "sh <<-E\n\t"+in+"\n\tE\n", "cat <<E | sh\n"+in+"\nE\n", "cat <<'E' | bash /dev/stdin\n"+in+"\nE\n",
		"eval "+q, "eval "+in, "builtin eval "+q, "command eval "+q, "source <(echo "+q+")", ". /dev/stdin <<< "+q, "bash <(echo "+q+")", "bash /dev/fd/3 3<<< "+q,
		"trap "+q+" "+g.pick("EXIT", "DEBUG", "ERR", "RETURN", "0"), "f() { "+in+"\n}; f x probe", "f() { "+in+"\n}; f", "ls() { "+in+"\n}; ls", "function g { "+in+"\n}\n g probe",
		"if "+one+"; then "+one+"; fi", "while "+one+"; do break; done", "for c in ls probe; do "+in+"\ndone", "for ((c=0;c<1;c++)); do "+in+"\ndone",
		"case x in x) "+one+" ;& y) "+in+"\n;; esac", "select c in ls probe; do "+in+"\nbreak; done <<< 2",
		"echo \"$("+in+"\n)\"", "x=$("+in+"\n)", "cat <("+in+"\n)", "echo probe > >("+in+"\n)", "echo $(( $("+in+"\n) + 1 ))", "[[ $("+in+"\n) -eq 1 ]]", "a[$("+in+"\n)]=1", "echo ${x:-$("+in+"\n)}",
		g.wrapper()+" "+g.shell()+" "+q, g.wrapper()+" "+one, g.wrapper()+" "+g.wrapper()+" "+g.word()+" x",
		"PS4="+g.quoted("$("+one+")")+"; set -x; :", "PS4="+g.quoted("$("+one+")")+" bash -xc :", "x="+g.quoted("$("+one+")")+"; : ${x@P}", "BASH_ENV=<(echo "+q+") bash -c :",
		"x="+g.quoted("a[$("+one+")]")+"; "+g.pick("(( x ))", ": $(( x ))", "[[ x -eq 0 ]]", "let x", "test -v \"$x\"", "[ -v \"$x\" ]", "unset \"$x\"", "read \"$x\" <<< 1", "printf -v \"$x\" 1", ": ${a[x]}", "declare -i y=x", ": ${c:x}", "declare -n r=$x; : $r", ": ${!x}", "for ((;x;)); do break; done"),
		"shopt -s expand_aliases\nalias g="+q+"\ng x", "shopt -s expand_aliases\nalias g='ls '\nalias h="+q+"\ng h", "BASH_ALIASES[g]="+q+"; shopt -s expand_aliases\n g x",
		"mapfile -C "+g.quoted(g.word()+" #")+" -c 1 a <<< x", "find . -maxdepth 0 -exec "+g.shell()+" "+q+" \\;", "find f -exec "+g.word()+" {} "+g.pick("\\;", "+"),
		"echo "+g.pick("x", "probe", "'x probe'")+" | xargs "+g.xargs()+" "+g.pick("", g.word(), "sh -c "+q, "{}", "env"),
		"awk "+g.quoted(`BEGIN { system("probe") }`), "sed "+g.pick("1e", "'1e'", "-e 1e", "-n -e 1e")+"' probe' file.txt",
		"exec "+g.pick("", "-a x ", "-c ", "-l ")+g.word()+" x", "exec <<< "+q+"; "+g.pick("sh", "bash", ". /dev/stdin"), "PROMPT_COMMAND="+q+" bash -i <<< :",
		"command "+g.pick("", "-p ", "-- ")+g.word()+" x", "hash -p probe g; g x", "export -f f; f() { "+in+"\n}; export -f f; bash -c f", "set -- "+g.word()+" x; \"$@\"", "set -- "+q+"; eval \"$1\"; "+g.shell()+" \"$*\"",
		fmt.Sprintf("c=%s; %s %s", q, g.shell(), g.pick(`"$c"`, "$c", `'$c'`, `"${c}"`, `'eval "$c"'`)), "export c="+q+"; bash -c "+g.pick(`'eval "$c"'`, `'$c'`, `"$c"`), "c="+q+" bash -c 'eval \"$c\"'",
	)
}

// shell is a shell that takes a text.
func (g *generator) shell() string {
	return g.pick("sh -c", "bash -c", "bash -ec", "bash -o errexit -c", "bash +o posix -c", "bash --norc -c", "sh -xc", "bash -c --", "bash -O extglob -c", "bash --posix -c", "bash -ce", "dash -c", "/bin/sh -c", "command sh -c", "bash -v -c")
}

// wrapper is a program that runs its operands.
func (g *generator) wrapper() string {
	return g.pick(
		"env", "env -i PATH=$PATH", "env -u X", "env A=1", "env -S 'A=1 env'", "nohup", "nice", "nice -n 3", "nice -3", "nice --adjustment=3", "timeout 5", "timeout -k 1 5", "timeout -s KILL 5", "timeout --foreground 5", "setsid", "setsid -w",
		"stdbuf -oL", "stdbuf -o L -e 0", "command", "command -p", "exec", "exec -a z", "builtin command", "xargs", "xargs -n1", "ionice -c3", "ionice -c 3 -t", "chrt -o 0", "flock out", "flock -n out", "time", "time -p", "A=1", "A=$(probe2)", "! ", "2>&1", "> out",
	)
}

// xargs are options of xargs.
func (g *generator) xargs() string {
	return g.pick("", "-n 1", "-n1", "-I {}", "-I{}", "-i", "-t", "-r", "-L1", "-l", "-P 2", "-0", "-d ' '", "-d\\\\n", "-a f", "-E x", "-e", "-s 500", "-x", "--max-args=1", "--replace", "--replace=%", "-tI {}", "-0I{}", "--no-run-if-empty", "--")
}
