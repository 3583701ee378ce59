package bash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
)

// gate is a named pipe that a command waits at until the test lets it go on.
func (w *world) gate(t *testing.T, name string) (open func()) {
	t.Helper()
	path := filepath.Join(w.root, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) must(t *testing.T, tool string, args map[string]any) (call.Result, map[string]any) {
	t.Helper()
	res, got, err := w.ask(t.Context(), t, "s", tool, args)
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	return res, got
}

func (w *world) records() []bash.RunRecord {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]bash.RunRecord{}, w.ends...)
}

func code(t *testing.T, err error, want string) *call.Error {
	t.Helper()
	e, ok := errors.AsType[*call.Error](err)
	if !ok || e.Code != want {
		t.Fatalf("%v instead of %s", err, want)
	}
	return e
}

func TestBackground(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	open := w.gate(t, "go")
	res, got := w.must(t, "bash", map[string]any{"command": "echo one; read x < go; echo two >&2; exit 5", "background": true})
	id, _ := got["run_id"].(string)
	if got["running"] != true || got["exit_code"] != nil || id == "" || !strings.Contains(res.Text, "still running as "+id) || res.Outcome.ExitCode != nil {
		t.Fatalf("%v\n%s", got, res.Text)
	}
	// What the first look did not see yet is read on from there.
	seen, _ := got["stdout"].(string)
	res, got = w.must(t, "bash_output", map[string]any{"run_id": id, "wait_ms": 300})
	more, _ := got["output"].(string)
	if seen+more != "one\n" || got["running"] != true || got["next"] != 4.0 || !strings.Contains(res.Text, "[running for ") {
		t.Errorf("%v\n%s", got, res.Text)
	}
	open()
	_, got = w.must(t, "bash_output", map[string]any{"run_id": id, "wait_ms": 20000})
	if got["output"] != "two\n" || got["running"] != false || got["exit_code"] != 5.0 || got["next"] != 8.0 {
		t.Errorf("%v", got)
	}
	res, got = w.must(t, "bash_output", map[string]any{"run_id": id, "since": 2})
	if got["output"] != "e\ntwo\n" || res.Text != "e\ntwo\nexit code 5" || *res.Outcome.ExitCode != 5 {
		t.Errorf("%v\n%s", got, res.Text)
	}
	if res, _ = w.must(t, "bash_output", map[string]any{"run_id": id}); res.Text != "(no more output)\nexit code 5" {
		t.Error(res.Text)
	}
	if res, _ = w.must(t, "bash_stop", map[string]any{"run_id": id}); res.Text != "(no more output)\nexit code 5" {
		t.Error(res.Text)
	}
	ends := w.records()
	if len(ends) != 1 || ends[0].RunID != id || ends[0].CallID != "c-bash" || ends[0].Session != "s" || ends[0].ExitCode != 5 ||
		ends[0].Bytes != 8 || ends[0].Duration <= 0 || ends[0].Stopped || ends[0].Err != nil {
		t.Errorf("%+v", ends)
	}
}

// A background command that ends at once, or cannot be started, is told as
// that.
func TestBackgroundEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *bash.Config, _ *sandbox.Config) { c.MaxBackgroundRuns = 1 })
	w.need(t)
	res, got := w.must(t, "bash", map[string]any{"command": "exit 127", "background": true})
	if got["running"] == true { // on a machine that is busy
		res, got = w.must(t, "bash_output", map[string]any{"run_id": got["run_id"], "wait_ms": 20000})
	}
	if got["exit_code"] != 127.0 || !strings.HasSuffix(res.Text, "output)\nexit code 127 (for bash: command not found)") {
		t.Errorf("%v\n%s", got, res.Text)
	}
	if err := os.RemoveAll(w.root); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.ask(t.Context(), t, "s", "bash", map[string]any{"command": "true", "background": true})
	code(t, err, "sandbox_failed")
	_, _, err = w.ask(t.Context(), t, "s", "bash", map[string]any{"command": "true", "background": true})
	code(t, err, "sandbox_failed") // the place was given back
}

func TestBashStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	_, got := w.must(t, "bash", map[string]any{"command": "sleep 1201 & setsid sleep 1202 & echo up; wait", "background": true})
	id := got["run_id"]
	if _, _, err := w.ask(t.Context(), t, "other", "bash_stop", map[string]any{"run_id": id}); code(t, err, "run_not_found").Field != "run_id" {
		t.Error(err)
	}
	_, _, err := w.ask(t.Context(), t, "other", "bash_output", map[string]any{"run_id": id})
	code(t, err, "run_not_found")
	res, got := w.must(t, "bash_stop", map[string]any{"run_id": id})
	if got["running"] != false || got["stopped"] != true || got["exit_code"] != 143.0 || !strings.Contains(res.Text, "[stopped]\nexit code 143 (SIGTERM)") {
		t.Errorf("%v\n%s", got, res.Text)
	}
	if ends := w.records(); len(ends) != 1 || !ends[0].Stopped || ends[0].Signal != "SIGTERM" || ends[0].Survivors != 0 {
		t.Errorf("%+v", ends)
	}
}

func TestBackgroundLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *bash.Config, _ *sandbox.Config) { c.MaxBackgroundRuns, c.Timeout = 2, 700*time.Millisecond })
	w.need(t)
	var ids []any
	for range 2 {
		_, got := w.must(t, "bash", map[string]any{"command": "sleep 1203", "background": true})
		ids = append(ids, got["run_id"])
	}
	_, _, err := w.ask(t.Context(), t, "another", "bash", map[string]any{"command": "touch ran", "background": true})
	if e := code(t, err, "too_many_runs"); !strings.Contains(e.Message, "max_background_runs = 2") || e.Suggestion == "" {
		t.Error(e)
	}
	if _, err := os.Stat(filepath.Join(w.root, "ran")); err == nil {
		t.Error("it ran")
	}
	// A command that would go on has no place either.
	res, got := w.must(t, "bash", map[string]any{"command": "echo x; sleep 1204"})
	if got["timed_out"] != true || got["run_id"] != nil || !strings.HasPrefix(res.Text, "x\ntimed out after 700ms; ") || !strings.Contains(res.Text, "too many background runs") {
		t.Errorf("%v\n%s", got, res.Text)
	}
	w.must(t, "bash_stop", map[string]any{"run_id": ids[0]})
	w.must(t, "bash", map[string]any{"command": "sleep 1203", "background": true})
	// Its time is up after as long as the call says.
	w.must(t, "bash_stop", map[string]any{"run_id": ids[1]})
	_, got = w.must(t, "bash", map[string]any{"command": "sleep 1203", "background": true, "timeout_ms": 200})
	res, got = w.must(t, "bash_output", map[string]any{"run_id": got["run_id"], "wait_ms": 20000})
	if got["timed_out"] != true || got["running"] != false || !strings.Contains(res.Text, "[ended after 200ms: its time was up]") {
		t.Errorf("%v\n%s", got, res.Text)
	}
}

func TestDetach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *bash.Config, _ *sandbox.Config) { c.Timeout = time.Second })
	w.need(t)
	open := w.gate(t, "go")
	res, got := w.must(t, "bash", map[string]any{"command": "echo before; read x < go; echo after; false | true"})
	if got["running"] != true || got["stdout"] != "before\n" || got["timed_out"] != false || got["next"] != 7.0 ||
		!strings.HasPrefix(res.Text, "before\n[still running as r-") {
		t.Fatalf("%v\n%s", got, res.Text)
	}
	open()
	_, got = w.must(t, "bash_output", map[string]any{"run_id": got["run_id"], "wait_ms": 20000})
	if got["output"] != "after\n" || got["exit_code"] != 0.0 {
		t.Errorf("%v", got)
	}
	if len(w.records()) != 1 {
		t.Errorf("%+v", w.records())
	}
}

func TestNoDetach(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bash.Config, *sandbox.Config){
		"kill":         func(c *bash.Config, _ *sandbox.Config) { c.OnTimeout = bash.Kill },
		"no runs":      func(c *bash.Config, _ *sandbox.Config) { c.MaxBackgroundRuns = 0 },
		"the sandbox":  func(_ *bash.Config, s *sandbox.Config) { s.MaxTimeout = 200 * time.Millisecond },
		"a short call": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *bash.Config, s *sandbox.Config) {
				c.Timeout = 200 * time.Millisecond
				if change != nil {
					change(c, s)
				}
			})
			w.need(t)
			args := map[string]any{"command": "sleep 1205"}
			if change == nil {
				args["timeout_ms"] = 250
			}
			if _, got := w.must(t, "bash", args); got["timed_out"] != true || got["running"] != nil {
				t.Errorf("%v", got)
			}
		})
	}
}

// Runs end with their session, and with the server.
func TestRunsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	start := func(session string) any {
		t.Helper()
		_, got, err := w.ask(t.Context(), t, session, "bash", map[string]any{"command": "echo $$; sleep 1206", "background": true})
		if err != nil {
			t.Fatal(err)
		}
		return got["run_id"]
	}
	a, b := start("a"), start("b")
	w.tool.End("a")
	if ends := w.records(); len(ends) != 1 || ends[0].RunID != a || !ends[0].Stopped {
		t.Errorf("%+v", ends)
	}
	_, _, err := w.ask(t.Context(), t, "a", "bash_output", map[string]any{"run_id": a})
	code(t, err, "run_not_found")
	if _, got, err := w.ask(t.Context(), t, "b", "bash_output", map[string]any{"run_id": b}); err != nil || got["running"] != true {
		t.Errorf("%v, %v", got, err)
	}
	w.tool.Close()
	if ends := w.records(); len(ends) != 2 || ends[1].RunID != b || !ends[1].Stopped {
		t.Errorf("%+v", ends)
	}
	_, _, err = w.ask(t.Context(), t, "c", "bash", map[string]any{"command": "true", "background": true})
	code(t, err, "stopping")
}

// A run whose end nobody was told of is not forgotten for those that were read,
// however many may run at a time.
func TestUnreadRunsAreKept(t *testing.T) {
	t.Parallel()
	const many = 40
	w := newWorld(t, func(c *bash.Config, _ *sandbox.Config) { c.MaxBackgroundRuns = many })
	w.need(t)
	ids := make([]any, many)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			_, got := w.must(t, "bash", map[string]any{"command": fmt.Sprintf("echo a%[1]d; until test -e go; do sleep 0.02; done; echo b%[1]d; exit %[1]d", i), "background": true})
			ids[i] = got["run_id"]
		})
	}
	wg.Wait()
	_, _, err := w.ask(t.Context(), t, "s", "bash", map[string]any{"command": "true", "background": true})
	code(t, err, "too_many_runs")
	if err := os.WriteFile(filepath.Join(w.root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.waitForEnds(t, many)
	for range 30 { // read at once, or foreground and cut
		w.must(t, "bash", map[string]any{"command": "true", "background": true})
		w.must(t, "bash", map[string]any{"command": "seq 20000"})
	}
	for i, id := range ids {
		_, got := w.must(t, "bash_output", map[string]any{"run_id": id, "since": 0})
		if want := fmt.Sprintf("a%[1]d\nb%[1]d\n", i); got["output"] != want || got["exit_code"] != float64(i) {
			t.Errorf("%v instead of %q", got, want)
		}
	}
}

// A client hears of a quiet command too, every second, so that it does not give
// up on it.
func TestQuietProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	var mu sync.Mutex
	var heard []float64
	w.progress = func(p call.Progress) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, p.Done)
	}
	w.run(t, map[string]any{"command": "sleep 2.3"})
	mu.Lock()
	defer mu.Unlock()
	if len(heard) < 2 || heard[1] <= heard[0] {
		t.Errorf("heard %v", heard)
	}
}

// What a run prints while it is read comes whole and once, page by page.
func TestReadWhileItPrints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	const lines = 600_000
	_, got := w.must(t, "bash", map[string]any{"command": fmt.Sprintf("for i in 1 2 3; do seq $((i * %[1]d / 3 - %[1]d / 3 + 1)) $((i * %[1]d / 3)); sleep 0.05; done", lines), "background": true})
	id, at := got["run_id"], got["next"]
	seen, ok := at.(float64)
	if !ok {
		seen = 0 // nothing was printed yet
	}
	next, line := int64(seen), 1
	rest := seenPart(t, got, next)
	for ended := false; ; {
		for {
			text, after, whole := strings.Cut(rest, "\n")
			if !whole {
				break
			}
			if text != fmt.Sprint(line) {
				t.Fatalf("%q instead of %d", text, line)
			}
			rest, line = after, line+1
		}
		if ended {
			break
		}
		_, got = w.must(t, "bash_output", map[string]any{"run_id": id, "wait_ms": 1000})
		out, _ := got["output"].(string)
		now, _ := got["next"].(float64)
		if int64(now) != next+int64(len(out)) || got["skipped"] != nil {
			t.Fatalf("from %d to %v with %d bytes, skipped %v", next, now, len(out), got["skipped"])
		}
		next, rest = int64(now), rest+out
		ended = got["running"] == false && got["next"] == got["total"]
	}
	if rest != "" || line != lines+1 {
		t.Errorf("ended before line %d with %q", line, rest)
	}
}

// seenPart is what the first result has shown, up to where reading goes on.
func seenPart(t *testing.T, got map[string]any, next int64) string {
	t.Helper()
	out, _ := got["stdout"].(string)
	if int64(len(out)) < next {
		t.Fatalf("%d bytes shown, reading goes on at %d", len(out), next)
	}
	return out[:next]
}

// waitForEnds waits until so many background runs have ended.
func (w *world) waitForEnds(t *testing.T, n int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(w.records()) < n {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("they do not end")
		}
	}
}

// Output that was cut can be read from the cut on, whole.
func TestReadOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	res, got := w.must(t, "bash", map[string]any{"command": "seq 1 30000"})
	next, _ := got["next"].(float64)
	id := got["run_id"]
	if got["truncated"] != true || got["running"] != nil || !strings.Contains(res.Text, fmt.Sprintf("bash_output with run_id %v and since %v reads on", id, next)) {
		t.Fatalf("%s", res.Text[len(res.Text)-300:])
	}
	stdout, _ := got["stdout"].(string)
	head, _, _ := strings.Cut(stdout, "\n[... ")
	all := strings.Builder{}
	all.WriteString(head[:int(next)])
	for more := true; more; {
		res, got = w.must(t, "bash_output", map[string]any{"run_id": id})
		text, _ := got["output"].(string)
		if all.WriteString(text); len(res.Text) > 30_000 {
			t.Fatalf("%d bytes", len(res.Text))
		}
		more = got["next"] != got["total"]
	}
	want := strings.Builder{}
	for i := range 30000 {
		fmt.Fprintln(&want, i+1)
	}
	if all.String() != want.String() {
		t.Errorf("%d bytes instead of %d", all.Len(), want.Len())
	}
	// Only the newest are kept.
	for range 16 {
		w.must(t, "bash", map[string]any{"command": "seq 1 8000"})
	}
	_, _, err := w.ask(t.Context(), t, "s", "bash_output", map[string]any{"run_id": id})
	code(t, err, "run_not_found")
}

func TestOutputIsCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	_, got := w.must(t, "bash", map[string]any{"command": "echo going; sleep 1207", "background": true})
	id := got["run_id"]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	w.progress = func(p call.Progress) {
		if p.Message == "going" {
			once.Do(cancel)
		}
	}
	_, _, err := w.ask(ctx, t, "s", "bash_output", map[string]any{"run_id": id, "wait_ms": 20000})
	code(t, err, "cancelled")
	if _, got := w.must(t, "bash_output", map[string]any{"run_id": id}); got["running"] != true {
		t.Errorf("%v", got)
	}
}

func TestRunArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, tt := range []struct {
		tool, field string
		args        map[string]any
	}{
		{"bash_output", "run_id", map[string]any{}},
		{"bash_stop", "run_id", map[string]any{"run_id": "a\nb"}},
		{"bash_stop", "run_id", map[string]any{"run_id": strings.Repeat("r", 41)}},
		{"bash_output", "wait_ms", map[string]any{"run_id": "r-x", "wait_ms": 50_001}},
		{"bash_output", "since", map[string]any{"run_id": "r-x", "since": -1}},
		{"bash_stop", "since", map[string]any{"run_id": "r-x", "since": 1}},
		{"bash", "background", map[string]any{"command": "true", "background": "yes"}},
	} {
		_, _, err := w.ask(t.Context(), t, "s", tt.tool, tt.args)
		if e, ok := errors.AsType[*call.Error](err); !ok || e.Field != tt.field {
			t.Errorf("%s %v: %v", tt.tool, tt.args, err)
		}
	}
	if _, err := bash.NewOutput(nil); err == nil {
		t.Error("a tool without runs was made")
	}
	if _, err := bash.NewStop(nil); err == nil {
		t.Error("a tool without runs was made")
	}
}

func TestRunConfig(t *testing.T) {
	t.Parallel()
	for key, change := range map[string]func(*bash.Config){
		"on_timeout":              func(c *bash.Config) { c.OnTimeout = 7 },
		"max_background_runs":     func(c *bash.Config) { c.MaxBackgroundRuns = -1 },
		"background_timeout_secs": func(c *bash.Config) { c.BackgroundTimeoutSecs = 0 },
	} {
		c := bash.Default()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "tools.shell."+key+": ") {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, word := range []string{"detach", "kill"} {
		var o bash.OnTimeout
		if err := o.UnmarshalText([]byte(word)); err != nil {
			t.Error(err)
		}
		if b, err := o.MarshalText(); err != nil || string(b) != word {
			t.Errorf("%s, %v", b, err)
		}
	}
	if err := new(bash.OnTimeout).UnmarshalText([]byte("wait")); err == nil {
		t.Error("a word that is none was taken")
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for _, tt := range []struct {
		command string
		env     map[string]any
		stages  any
		text    string
	}{
		{"false | true", nil, []any{1.0, 0.0}, "(no output)\n[stages of the pipeline: 1, 0]"},
		{"true | false", nil, []any{0.0, 1.0}, "(no output)\nexit code 1"},
		{"sh -c 'exit 3' | cat | sh -c 'exit 4'", nil, []any{3.0, 0.0, 4.0}, "(no output)\nexit code 4\n[stages of the pipeline: 3, 0, 4]"},
		{"yes | head -1", nil, []any{141.0, 0.0}, "y"},
		{"false | false", nil, nil, "(no output)\nexit code 1"},
		{"echo a | cat # why", nil, nil, "a"},
		{"true && false | true", nil, nil, "(no output)"},
		{"false | true", map[string]any{"BASH_COMPAT": "4.2"}, nil, "(no output)"},
		{"false | ls -A /tmp", nil, []any{1.0, 0.0}, "(no output)\n[stages of the pipeline: 1, 0]"},
	} {
		args := map[string]any{"command": tt.command}
		if tt.env != nil {
			args["env"] = tt.env
		}
		res, got, err := w.ask(t.Context(), t, "s", "bash", args)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.stages, got["stages"]); d != "" {
			t.Errorf("%s: stages (-want +got):\n%s", tt.command, d)
		}
		if d := cmp.Diff(tt.text, res.Text); d != "" {
			t.Errorf("%s: text (-want +got):\n%s", tt.command, d)
		}
	}
	// Nothing of it stays in /tmp.
	if res, _ := w.must(t, "bash", map[string]any{"command": "ls -A /tmp"}); res.Text != "(no output)" {
		t.Error(res.Text)
	}
}

// With the line that asks for the stages, a pipeline is what it was without.
func TestStagesChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for _, command := range []string{
		"false | sh -c 'kill -SEGV $PPID; exit 9'", "true | sh -c 'exit 77'", "seq 3 | tac", "cat nothing | wc -l",
		"exit 4 | exit 5", "trap 'echo trapped' EXIT | cat", "set -e | false | echo x", "echo $_ $# $0 | cat", "nothing | cat",
		"echo a | tee >(cat >&2) | cat", "read x | echo \"[$x]\"", "seq 100000 | head -1", "echo a |& cat", "X=1 env | grep ^X=",
		"echo 'a\nb' | sort -r", "true | sh -c 'echo err >&2; exit 255'", "false | exec true", "umask 077 | umask",
	} {
		_, with := w.must(t, "bash", map[string]any{"command": command})
		_, without := w.must(t, "bash", map[string]any{"command": command, "env": map[string]any{"BASH_COMPAT": "5.2"}})
		for _, got := range []map[string]any{with, without} {
			delete(got, "duration_ms")
		}
		if without["stages"] != nil {
			t.Errorf("%s: the line was not left out", command)
		}
		delete(with, "stages")
		delete(with, "masked_failure") // which is known by the stages
		if d := cmp.Diff(without, with); d != "" {
			t.Errorf("%s (-without +with):\n%s", command, d)
		}
	}
}

// What is too long to be started with is told as that.
func TestTooLongToStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for _, n := range []int{140_000, 250_000} { // more than one text may have, and more than a message
		_, _, err := w.ask(t.Context(), t, "s", "bash", map[string]any{"command": "true", "env": map[string]any{"X": strings.Repeat("a", n)}})
		if e := code(t, err, "not_started"); !strings.Contains(e.Message, "argument list too long") || !strings.Contains(e.Suggestion, "into a file") {
			t.Errorf("%d: %s (%s)", n, e.Message, e.Suggestion)
		}
	}
}

func TestExitCodesAreExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for command, want := range map[string]string{
		"exit 126":                       "exit code 126 (for bash: found, but it cannot be executed)",
		"exit 127":                       "exit code 127 (for bash: command not found)",
		"sh -c 'kill -KILL $$'; exit $?": "exit code 137 (for bash: ended by SIGKILL)",
		"exit 255":                       "exit code 255",
		"exit 128":                       "exit code 128",
		"kill -40 $$":                    "exit code 168 (signal 40)",
		"echo permission denied":         "permission denied",
	} {
		if res := w.run(t, map[string]any{"command": command}); !strings.HasSuffix(res.Text, want) {
			t.Errorf("%s: %q", command, res.Text)
		}
	}
}
