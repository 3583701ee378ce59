//go:build trace

package shellast_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// stub is every program that a traced command can find by name. It writes down
// how it was called; what runs other programs then does so, everything else
// ends with the status the run asks for. A bash leaves out the profile of this
// machine, and one that sources the stub, because source looks for programs
// too, finds nothing in it.
const stub = `#!/bin/sh
case ${BASH_SOURCE-$0} in "$0") ;; *) return ;; esac
export ZEPH_TRACE_DEPTH=i$ZEPH_TRACE_DEPTH
case $ZEPH_TRACE_DEPTH in iiiiiiiiiiii*) exit 1 ;; esac
d=${0%%/*}; n=${0##*/}; r=$n
for a; do r="$r%[1]s$a"; done
printf '%%s%[1]s%[2]s' "$r" >>"$d/../log"
case $n in bash) o=--noprofile ;; esac
case " %[3]s " in *" $n "*) for p in /usr/bin /bin; do [ -x "$p/$n" ] && exec "$p/$n" ${o:+"$o"} "$@"; done ;; esac
read -r s <"$d/../status"
exit "$s"
`

// prelude makes bash itself write down what it runs: programs nobody has, and
// its own builtins, by functions where one can stand in and by a DEBUG trap
// where none can.
const prelude = `case $SHLVL in [0-9]) ;; *) builtin exit 1 ;; esac
__trace() { builtin local __line; builtin printf -v __line '%%s\037' "$@"; builtin printf '%%s\036' "$__line" >>%[1]s/log; }
command_not_found_handle() { __trace "$@"; return 127; }
for __name in %[2]s; do
  builtin eval "$__name() { __trace '$__name' \"\$@\"; builtin $__name \"\$@\"; }"
done
builtin unset __name
__debug() { case ${BASH_COMMAND%%%%[ ;]*} in %[3]s) __trace "${BASH_COMMAND%%%%[ ;]*}" ;; esac; }
builtin trap __debug DEBUG
builtin set -T
`

const (
	unit, record = "\x1f", "\x1e"
	// passThrough run other programs, or make the words others are given.
	passThrough = "env sh bash dash nohup nice ionice chrt timeout setsid stdbuf flock xargs find awk gawk mawk sed tar split" +
		" cat echo printf true false head tail sort seq tr cut rev base64 xxd tee basename dirname uname"
	// bashOnly are words that bash keeps for itself and another sh looks for.
	bashOnly = "function time select coproc declare typeset source shopt builtin let mapfile readarray pushd popd dirs disown enable" +
		" history caller compgen complete compopt logout suspend bind help"
	standIns = "echo printf cd test [ true false : pwd read mapfile readarray kill type pushd popd dirs wait jobs umask ulimit getopts hash"
	// traced cannot have a stand-in: they change the shell that calls them.
	traced = "eval|exec|set|trap|.|source|unset|shift|alias|unalias|shopt"
)

// tracer runs commands in a real bash, in the sandbox, and reads what ran.
type tracer struct {
	box     *sandbox.Sandbox
	dir     string // holds bin, log, status and prelude
	work    string // the folder commands start in, made anew for each
	home    string
	session string
	have    map[string]bool
}

func newTracer(tb testing.TB, box *sandbox.Sandbox, base, home, session string) *tracer {
	tb.Helper()
	t := &tracer{box: box, dir: filepath.Join(base, "trace"), work: filepath.Join(base, "work"), home: home, session: session}
	t.build(tb)
	return t
}

// build makes the folder of programs, again when a command has taken it apart.
func (t *tracer) build(tb testing.TB) {
	tb.Helper()
	if err := errors.Join(os.RemoveAll(t.dir), os.MkdirAll(t.dir+"/bin", 0o755)); err != nil {
		tb.Error(err)
		return
	}
	t.have = map[string]bool{}
	t.write(tb, "stub", fmt.Sprintf(stub, unit, record, passThrough))
	t.write(tb, "prelude", fmt.Sprintf(prelude, t.dir, standIns, traced))
	t.offer(tb, passThrough+" curl wget sudo rm halt probe probe2 probe3 ls git id")
}

func (t *tracer) write(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(t.dir, name), []byte(text), 0o755); err != nil {
		tb.Error(err)
	}
}

// offer makes every word of a text a program, but for what nobody has: names
// that look like options ("chrt 0 -- probe" runs "--") or like hidden files, and
// the words that bash keeps for itself and another sh does not.
func (t *tracer) offer(tb testing.TB, text string) {
	tb.Helper()
	for _, name := range regexp.MustCompile(`[A-Za-z0-9_+@][A-Za-z0-9_+@.-]*`).FindAllString(text, -1) {
		if t.have[name] || len(name) > 100 || slices.Contains(strings.Fields(bashOnly), name) {
			continue
		}
		t.have[name] = true
		if err := os.Symlink("../stub", filepath.Join(t.dir, "bin", name)); err != nil {
			tb.Error(err)
		}
	}
}

// run returns what bash ran, each with its words.
func (t *tracer) run(tb testing.TB, text, status string) [][]string {
	tb.Helper()
	if _, err := os.Stat(t.dir + "/bin/probe"); err != nil {
		t.build(tb)
	}
	t.write(tb, "status", status+"\n")
	t.write(tb, "log", "")
	if err := os.RemoveAll(t.work); err != nil {
		tb.Error(err)
		return nil
	}
	for name, content := range map[string]string{"file.txt": "hello\n", "sub/a.txt": "a\n", "data.txt": "a 1\n", "f": "x\n", "scripts/build.sh": "#!/bin/sh\n"} {
		name = filepath.Join(t.work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o755)); err != nil {
			tb.Error(err)
			return nil
		}
	}
	t.offer(tb, text)
	// How a command ends says nothing here, only what it started.
	_, err := t.box.Run(tb.Context(), sandbox.Command{
		Session: t.session, Argv: []string{"/bin/bash", "--noprofile", "--norc", "-c", text}, Dir: t.work,
		Env:     []string{"PATH=" + t.dir + "/bin", "HOME=" + t.home, "BASH_ENV=" + t.dir + "/prelude", "TERM=dumb", "FUNCNEST=20"},
		Timeout: time.Second, Grace: 50 * time.Millisecond, MaxOutput: 1 << 10,
	})
	if err != nil {
		tb.Errorf("%s: %v", text, err)
		return nil
	}
	log, err := os.ReadFile(t.dir + "/log")
	if err != nil {
		return nil // the command deleted all it could
	}
	var out [][]string
	for r := range strings.SplitSeq(string(log), record) {
		if r != "" {
			out = append(out, strings.Split(strings.TrimSuffix(r, unit), unit))
		}
	}
	return out
}

// listed reports whether the analysis has a command position for what ran.
func listed(f call.Facts, ran []string) bool {
	name := path.Base(ran[0])
	return slices.ContainsFunc(f.Commands, func(c call.Command) bool {
		if !strings.EqualFold(c.Name, name) && (len(c.Argv) == 0 || path.Base(c.Argv[0]) != name) {
			return false
		}
		return len(ran) == 1 || c.Via == "xargs" || fits(c.Argv[1:], ran[1:])
	})
}

// fits reports whether words that ran can have come from the words that were
// listed. A word that holds an expansion stands for any number of words, and
// so does what the program that runs it adds.
func fits(listed, ran []string) bool {
	for i, w := range listed {
		if strings.ContainsAny(w, "$`*?[{~<>\\'\"(…") {
			return true
		}
		if i < len(ran) && strings.Contains(ran[i], "{") {
			return true // another sh leaves the braces that bash makes words of
		}
		if i < len(ran) && strings.HasPrefix(ran[i], "$") {
			return true // and for another $'' is a dollar and a text
		}
		if i >= len(ran) || w != ran[i] && w != homed(ran[i]) {
			return false
		}
	}
	return true
}

// traceCorpus is every command of our corpora that can say something here, and
// those below. What names absolute folders of the fixture cannot.
func traceCorpus(tb testing.TB) []string {
	tb.Helper()
	var out []string
	add := func(text string) {
		if text != "" && !strings.ContainsAny(text, "\x00\x1e\x1f") && !strings.Contains(text, "{WS}") && !strings.Contains(text, "{OUT}") &&
			!strings.Contains(text, "{HOME}") && !strings.Contains(text, "{PAD") {
			out = append(out, text)
		}
	}
	for _, line := range lines(tb, "testdata/more.tsv") {
		if p := strings.SplitN(line, "\t", 3); len(p) == 3 && !strings.HasPrefix(line, "#") {
			add(strings.NewReplacer("⏎", "\n", "␍", "\r").Replace(p[2]))
		}
	}
	for _, line := range lines(tb, "testdata/verdicts.jsonl") {
		var c struct {
			Tool string
			Args struct{ Command, Cwd string }
		}
		if err := json.Unmarshal([]byte(line), &c); err == nil && c.Tool == "bash" && c.Args.Cwd == "" {
			add(c.Args.Command)
		}
	}
	return slices.Concat(out, ownTraced(tb, "traced.txt"))
}

// ownTraced are the commands written for this test.
func ownTraced(tb testing.TB, file string) []string {
	tb.Helper()
	var out []string
	for _, line := range lines(tb, "testdata/"+file) {
		if !strings.HasPrefix(line, "# ") {
			out = append(out, strings.ReplaceAll(line, "⏎", "\n"))
		}
	}
	return out
}

// TestBashRunsOnlyWhatIsListed runs commands in a real bash and holds what it
// started against the command positions of the analysis. With ZEPH_TRACE_ALL=1
// every command runs twice: once where all programs succeed, once where all
// fail. Otherwise every tenth one of the large corpora and every second of
// our own is enough, and every third is run a second time.
func TestBashRunsOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	all := traceCorpus(t)
	if len(all) < 1000 {
		t.Fatalf("only %d commands", len(all))
	}
	own := ownTraced(t, "traced.txt")
	everything := os.Getenv("ZEPH_TRACE_ALL") == "1"
	commands, starts := traceAll(t, func(emit func(string, ...string)) {
		for i, text := range all {
			switch chosen := i%10 == 0 || i >= len(all)-len(own) && i%2 == 0; {
			case everything || chosen && i%3 == 0:
				emit(text, "0", "1")
			case chosen:
				emit(text, "0")
			}
		}
	})
	if commands < 250 || starts < 2*commands {
		t.Errorf("%d commands started only %d programs: the trace is not at work", commands, starts)
	}
}

// TestBashRunsOnlyWhatIsListedOfGenerated does the same with generated
// commands. ZEPH_TRACE_SEED and ZEPH_TRACE_COUNT search further.
func TestBashRunsOnlyWhatIsListedOfGenerated(t *testing.T) {
	t.Parallel()
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	count := 300
	if os.Getenv("ZEPH_TRACE_ALL") == "1" {
		count = 5000
	}
	g := newGenerator(uint64(number("ZEPH_TRACE_SEED", 1)))
	commands, starts := traceAll(t, func(emit func(string, ...string)) {
		for range number("ZEPH_TRACE_COUNT", count) {
			emit(g.command(), "0")
		}
	})
	if starts < commands {
		t.Errorf("%d commands started only %d programs: the trace is not at work", commands, starts)
	}
}

// traceAll traces what is emitted, each with the statuses that its programs end
// with. It returns how many commands there were and how much they started.
func traceAll(t *testing.T, from func(emit func(text string, statuses ...string))) (commands, starts int) {
	t.Helper()
	f := newFixture(t, command.Default(), strict())
	box, err := sandbox.New(sandbox.Default(), sandbox.Policy{Roots: []string{f.base}, StateDir: t.TempDir()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	if r := box.Probe(t.Context()); r.Err != nil {
		if os.Getenv("ZEPH_REQUIRE_SANDBOX") == "1" {
			t.Fatal(r.Err)
		}
		t.Skip(r.Err)
	}
	type job struct {
		text     string
		statuses []string
	}
	work := make(chan job)
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	for i := range max(2, runtime.GOMAXPROCS(0)) {
		tr := newTracer(t, box, fmt.Sprintf("%s/traced%d", f.ws, i), f.home, fmt.Sprint("trace", i))
		wg.Go(func() {
			for j := range work {
				n := traceOne(t, f, tr, j.text, j.statuses)
				mu.Lock()
				commands, starts = commands+1, starts+n
				mu.Unlock()
			}
		})
	}
	from(func(text string, statuses ...string) { work <- job{text, statuses} })
	close(work)
	wg.Wait()
	t.Logf("%d commands started %d programs and builtins", commands, starts)
	return commands, starts
}

// traceOne returns how many starts were seen. A fork bomb is refused and would
// starve the machine.
func traceOne(t *testing.T, f *fixture, tr *tracer, text string, statuses []string) int {
	t.Helper()
	facts := f.a.Analyze(shellast.Request{Command: text, Cwd: tr.work})
	if slices.ContainsFunc(facts.Acts, func(a call.Act) bool { return a.Kind == call.ActForkBomb }) {
		return 0
	}
	asked := facts.Parse != nil || slices.ContainsFunc(facts.Unknown, func(u call.Unknown) bool { return u.Code })
	n := 0
	told := map[string]bool{}
	for _, status := range statuses {
		for _, ran := range tr.run(t, text, status) {
			n++
			if key := strings.Join(ran, unit); !asked && !told[key] && !listed(facts, ran) && !listed(facts, tr.atHome(ran)) && !tr.elsewhere(facts, ran) {
				told[key] = true
				t.Errorf("%q: bash ran %q, which is not among %s", text, ran, positions(facts))
			}
		}
	}
	return n
}

func positions(f call.Facts) string {
	var out []string
	for _, c := range f.Commands {
		out = append(out, fmt.Sprintf("%q", c.Argv))
	}
	return strings.Join(out, " ")
}

// broken are commands that neither reads.
func broken() []string {
	return []string{
		"(", ")", "{", "}", "echo (", "echo )", "if", "if true", "if true; then", "fi", "then true", "for", "for x", "for x in; do", "while; do :; done",
		"case x in", "case x in x) ls", "esac", "ls |", "| ls", "&& ls", "ls &&", "ls ||", "; ls", "ls ;; ls", "& ls", "echo 'a", `echo "a`, "echo `a",
		"echo $(a", "echo $((1", "echo ${a", "[[ a", "[[ a ==", "f() {", "f( {", "function", "ls > ", "ls <<<", "ls > > x", "((1", "a=(1", "{ ls", "( ls", "do ls; done",
		"ls; }", "until", "select", "time (", "! (", "coproc (", "[[ ]]", "echo $(ls", "bash <(", "if ls; fi", "while ls; done", "for x do", "case in", "ls & & ls",
	}
}

// syntaxDiffers says where bash and our parser are known to differ, "" when
// they should not. What only we refuse is safe; the rest is argued.
func syntaxDiffers(text string, p *call.ParseError) string {
	switch {
	case strings.Contains(text, "\r"):
		return "a carriage return is part of a word for bash"
	case strings.HasPrefix(text, "(("):
		return "a subshell that begins a subshell"
	case strings.HasPrefix(text, "! !"), strings.HasPrefix(text, "time !"):
		return "a second negation, or one after time"
	case p != nil && strings.Contains(p.Message, "unclosed here-document"):
		return "bash warns, and takes the end of the text for the delimiter"
	case p != nil && strings.HasPrefix(p.Message, "the text given to"):
		return "bash reads the inner text when it runs"
	case strings.Contains(text, "shopt -s extglob"):
		return "bash -n does not run the shopt that makes it a pattern"
	case strings.Contains(text, "@("):
		return "bash -n has extglob off where we read the pattern"
	case p != nil && regexp.MustCompile(`\(.*\S#`).MatchString(text):
		return "in brackets our parser takes a number sign behind an expansion for the start of a comment, so we refuse it"
	case p != nil && strings.HasPrefix(p.Message, "bash reads an unquoted operator after let"):
		return "our parser takes the operator for a part of the expression, so we refuse it"
	case text == "[[ ]]":
		return "bash -n says nothing to an empty condition"
	case strings.HasPrefix(text, "time |"):
		return "our parser takes time without a command in front of a pipe; it starts nothing"
	}
	return ""
}

// TestBashAgreesOnSyntax holds our parser against bash -n.
func TestBashAgreesOnSyntax(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	f := newFixture(t, command.Default(), strict())
	all := traceCorpus(t)
	own := len(ownTraced(t, "traced.txt"))
	refused, compared := 0, 0
	for i, text := range append(broken(), all...) {
		if i >= len(broken()) && i%4 != 0 && i < len(broken())+len(all)-own && os.Getenv("ZEPH_TRACE_ALL") != "1" {
			continue
		}
		run := exec.CommandContext(t.Context(), bash, "--norc", "-n", "-c", text)
		run.Dir = f.ws
		out, err := run.CombinedOutput()
		ours := f.a.Analyze(shellast.Request{Command: text}).Parse
		compared++
		if err != nil {
			refused++
		}
		if (err != nil) == (ours != nil) || syntaxDiffers(text, ours) != "" {
			continue
		}
		t.Errorf("%q: bash -n says %v (%s), we say %+v", text, err, out, ours)
	}
	t.Logf("%d commands compared, %d refused by bash", compared, refused)
	if compared < 500 || refused < 40 {
		t.Errorf("%d commands, %d refused: the comparison is hollow", compared, refused)
	}
}

// atHome returns the words with the home of the fixture in place of the one that
// the system knows, which is what ~ is without HOME.
func (t *tracer) atHome(ran []string) []string {
	out := slices.Clone(ran)
	for i, f := range out {
		if rest, ok := strings.CutPrefix(f, systemHome()+"/"); ok {
			out[i] = t.home + "/" + rest
		}
	}
	return out
}

// systemHome is the home that the system knows for this user.
func systemHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return "/nowhere"
	}
	return u.HomeDir
}
