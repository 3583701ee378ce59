package bash_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
)

var update = flag.Bool("update", false, "rewrite the schema snapshot")

type allow struct{ limits call.Limits }

func (allow) Name() string { return "allow" }
func (g allow) Check(context.Context, call.Call) (gates.Decision, error) {
	return gates.Decision{Verdict: gates.Allow, Limits: g.limits}, nil
}

// world is the tool with everything real around it.
type world struct {
	root, outside string
	box           *sandbox.Sandbox
	reg           *tools.Registry
	progress      func(call.Progress)
	limits        call.Limits
	tool          *bash.Tool

	mu   sync.Mutex
	ends []bash.RunRecord
}

func (w *world) ended(r bash.RunRecord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, r)
}

func newWorld(t *testing.T, change func(*bash.Config, *sandbox.Config), adapt ...func(*sandbox.Policy)) *world {
	t.Helper()
	return newWorldIn(t, bash.Outside{}, change, adapt...)
}

func newWorldIn(
	t *testing.T, out bash.Outside, change func(*bash.Config, *sandbox.Config), adapt ...func(*sandbox.Policy),
) *world {
	t.Helper()
	// A test's own folder is below /tmp, which is private inside.
	base, err := os.MkdirTemp("/var/tmp", "zeph-bash-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	w := &world{root: filepath.Join(base, "root"), outside: filepath.Join(base, "outside")}
	home, state := filepath.Join(base, "home"), filepath.Join(base, "state")
	for _, d := range []string{w.root + "/sub", w.outside, home, state} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(workspace.Config{Roots: []string{w.root}}, workspace.Env{Home: home, StateDir: state, UID: os.Getuid()})
	if err != nil {
		t.Fatal(err)
	}
	cfg, scfg := bash.Default(), sandbox.Default()
	scfg.KillGrace = 300 * time.Millisecond
	if change != nil {
		change(&cfg, &scfg)
	}
	policy := sandbox.Policy{
		Roots: ws.Roots(), StateDir: state, LookSecrets: ws.Secrets,
		LookReadOnly: func() []string { return ws.ProtectedIn(w.root) },
	}
	for _, a := range adapt {
		a(&policy)
	}
	w.box, err = sandbox.New(scfg, policy, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.box.Close() })
	ast := shellast.New(ws, shellast.Options{})
	tool, err := bash.New(cfg, ast, w.box, ws, out, w.ended)
	if err != nil {
		t.Fatal(err)
	}
	w.tool = tool
	t.Cleanup(tool.Close)
	output, err := bash.NewOutput(tool)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := bash.NewStop(tool)
	if err != nil {
		t.Fatal(err)
	}
	if w.reg, err = tools.NewRegistry(tool, output, stop); err != nil {
		t.Fatal(err)
	}
	return w
}

// need skips a test where the kernel has no walls.
func (w *world) need(t *testing.T) {
	t.Helper()
	if r := w.box.Probe(t.Context()); r.Err != nil {
		if os.Getenv("ZEPH_REQUIRE_SANDBOX") == "1" {
			t.Fatal(r.Err)
		}
		t.Skip(r.Err)
	}
}

func (w *world) accept(t *testing.T, args map[string]any) (tools.Accepted, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return w.reg.Accept("bash", raw)
}

// ask calls one of the tools in a session.
func (w *world) ask(ctx context.Context, t *testing.T, session, tool string, args map[string]any) (call.Result, map[string]any, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	acc, err := w.reg.Accept(tool, raw)
	if err != nil {
		return call.Result{}, nil, err
	}
	ch, err := gates.NewChain(allow{w.limits})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := ch.Authorize(t.Context(), call.Call{
		ID: "c-" + tool, Session: session, Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts, Progress: w.progress,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.reg.Run(ctx, a)
	if err != nil {
		return res, nil, err
	}
	var got map[string]any
	if err := json.Unmarshal(res.Structured, &got); err != nil {
		t.Fatal(err)
	}
	return res, got, nil
}

func (w *world) call(ctx context.Context, t *testing.T, args map[string]any) (call.Result, error) {
	t.Helper()
	acc, err := w.accept(t, args)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := gates.NewChain(allow{w.limits})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := ch.Authorize(t.Context(), call.Call{
		ID: "c", Session: "s", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts, Progress: w.progress,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.reg.Run(ctx, a)
}

func (w *world) run(t *testing.T, args map[string]any) call.Result {
	t.Helper()
	res, err := w.call(t.Context(), t, args)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return res
}

func TestText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for _, tt := range []struct {
		name string
		args map[string]any
		want string
	}{
		{"output", map[string]any{"command": "echo hi"}, "hi"},
		{"none", map[string]any{"command": "true"}, "(no output)"},
		{"failure", map[string]any{"command": "echo out; echo err >&2; exit 42"}, "out\nerr\nexit code 42"},
		{"silent failure", map[string]any{"command": "false\n"}, "(no output)\nexit code 1"},
		{"signal", map[string]any{"command": "kill -SEGV $$"}, "(no output)\nexit code 139 (SIGSEGV)"},
		{"folder", map[string]any{"command": "pwd", "cwd": "sub"}, w.root + "/sub"},
		{"no folder given", map[string]any{"command": "pwd"}, w.root},
		{"environment", map[string]any{"command": "echo $A $TERM $TMPDIR", "env": map[string]any{"A": "b"}}, "b dumb /tmp"},
		{"blocked variable", map[string]any{"command": "echo $AWS_X", "env": map[string]any{"AWS_X": "b"}}, "(no output)\n[AWS_X was not set: env_blocklist]"},
		{"standard input", map[string]any{"command": "cat; read x || echo none"}, "none"},
		{"not a terminal", map[string]any{"command": "test -t 1 || echo no; tty"}, "no\nnot a tty\nexit code 1"},
		{"colours", map[string]any{"command": `printf '\033[31mred\033[0m\n'`}, "red"},
		{"left behind", map[string]any{"command": "sleep 1100 & echo done"}, "done\n[1 processes it left running were ended]"},
		{"time limit", map[string]any{"command": "echo before; sleep 1101", "timeout_ms": 200}, "before\ntimed out after 200ms; it and everything it started were ended. Ask for more with timeout_ms."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, w.run(t, tt.args).Text); d != "" {
				t.Errorf("text (-want +got):\n%s", d)
			}
		})
	}
}

func TestStructure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	res := w.run(t, map[string]any{"command": "echo out; echo err >&2; exit 3"})
	var got map[string]any
	if err := json.Unmarshal(res.Structured, &got); err != nil {
		t.Fatal(err)
	}
	if _, ok := got["duration_ms"].(float64); !ok {
		t.Errorf("no duration in %v", got)
	}
	delete(got, "duration_ms")
	want := map[string]any{
		"stdout": "out\n", "stderr": "err\n", "exit_code": 3.0, "truncated": false, "timed_out": false, "cwd": w.root,
		"sandbox": map[string]any{"level": 3.0, "profile": "workspace"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("structure (-want +got):\n%s", d)
	}
	three := 3
	if d := cmp.Diff(call.Outcome{ExitCode: &three, RawBytes: 8, Sandbox: 3}, res.Outcome); d != "" {
		t.Errorf("outcome (-want +got):\n%s", d)
	}
	if res := w.run(t, map[string]any{"command": "sleep 1102", "timeout_ms": 50}); !res.Outcome.TimedOut {
		t.Errorf("%+v", res.Outcome)
	}
}

// A model sees what was denied and what it can do, in text and in structure,
// whatever the exit code; the record has it too.
func TestDeniedIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *bash.Config, c *sandbox.Config) { c.MaxMemory = 64 << 20 })
	w.need(t)
	res := w.run(t, map[string]any{"command": "touch /etc/zeph-new; true"})
	var got struct {
		Sandbox struct {
			Violations []call.Violation `json:"violations"`
		} `json:"sandbox"`
	}
	if err := json.Unmarshal(res.Structured, &got); err != nil {
		t.Fatal(err)
	}
	want := []call.Violation{{
		Kind: call.ViolationFS, Op: "write", Target: "/etc/zeph-new", Rule: "fs.write", Source: call.SourceInferred, Count: 1,
		Hint: "outside the workspace; ask for allow_write",
	}}
	if d := cmp.Diff(want, got.Sandbox.Violations); d != "" {
		t.Errorf("structure (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, res.Outcome.Violations); d != "" {
		t.Errorf("outcome (-want +got):\n%s", d)
	}
	if line := "\n[denied by the sandbox: write /etc/zeph-new (it seems): outside the workspace; ask for allow_write]"; !strings.HasSuffix(res.Text, line) {
		t.Errorf("text %q", res.Text)
	}
	res = w.run(t, map[string]any{"command": "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo got it"})
	line := "exit code 137 (SIGKILL)\n[denied by the sandbox: more memory than 64 MiB: its processes together took more, so all were ended; "
	if !strings.Contains(res.Text, line) || !strings.Contains(string(res.Structured), `"out_of_memory":true`) {
		t.Errorf("text %q, %s", res.Text, res.Structured)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	res := w.run(t, map[string]any{"command": "seq 1 200000"})
	if len(res.Text) > 30_000 || !res.Outcome.Truncated || res.Outcome.RawBytes != 1288895 {
		t.Errorf("%d characters, %+v", len(res.Text), res.Outcome)
	}
	if !strings.HasPrefix(res.Text, "1\n2\n") || !strings.Contains(res.Text, "\n200000\n[cut: 1288895 bytes in all;") {
		t.Errorf("%.100s … %s", res.Text, res.Text[len(res.Text)-200:])
	}
	w.limits = call.Limits{MaxOutput: 100, Timeout: 300 * time.Millisecond}
	if res := w.run(t, map[string]any{"command": "seq 1 2000; sleep 1103"}); len(res.Text) > 500 || !res.Outcome.TimedOut {
		t.Errorf("the gates' limits do not hold: %+v, %q", res.Outcome, res.Text)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, tt := range map[string]struct {
		args  map[string]any
		field string
	}{
		"no command":         {map[string]any{}, "command"},
		"an empty command":   {map[string]any{"command": " \n"}, "command"},
		"an unknown name":    {map[string]any{"command": "true", "sandbox": false}, "sandbox"},
		"too long a time":    {map[string]any{"command": "true", "timeout_ms": 600_001}, "timeout_ms"},
		"no time":            {map[string]any{"command": "true", "timeout_ms": 0}, "timeout_ms"},
		"no variable's name": {map[string]any{"command": "true", "env": map[string]any{"A B": "c"}}, "env.A B"},
		"a NUL":              {map[string]any{"command": "true", "env": map[string]any{"A": "c\x00"}}, "env.A"},
		"a network mode":     {map[string]any{"command": "true", "network": "on"}, "network"},
	} {
		_, err := w.accept(t, tt.args)
		e, ok := errors.AsType[*call.Error](err)
		if !ok || e.Field != tt.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := os.Symlink(w.outside, filepath.Join(w.root, "out")); err != nil {
		t.Fatal(err)
	}
	acc, err := w.accept(t, map[string]any{
		"command": "make test", "description": "run\nthe \x1b[31mtests", "cwd": "sub",
		"allow_write": []string{"../out", "x"}, "network": "proxy",
	})
	if err != nil {
		t.Fatal(err)
	}
	f := acc.Facts
	if f.Cwd.Path != w.root+"/sub" || f.Text != "make test" || !strings.HasSuffix(f.Summary, `(said to be: "run the [31mtests")`) {
		t.Errorf("%+v", f)
	}
	want := []call.Loosening{{Field: "allow_write", Value: w.outside}, {Field: "network", Value: "proxy"}}
	if d := cmp.Diff(want, f.Loosening); d != "" {
		t.Errorf("loosening (-want +got):\n%s", d)
	}
}

func TestLoosening(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	write := "echo x > " + w.outside + "/f"
	if res := w.run(t, map[string]any{"command": write}); *res.Outcome.ExitCode == 0 {
		t.Error("it was writable before")
	}
	if res := w.run(t, map[string]any{"command": write, "allow_write": []string{w.outside}}); *res.Outcome.ExitCode != 0 {
		t.Error(res.Text)
	}
	for code, args := range map[string]map[string]any{
		"invalid_parameters": {"command": "true", "allow_write": []string{w.outside + "/none"}},
		"not_available":      {"command": "true", "network": "proxy"},
	} {
		_, err := w.call(t.Context(), t, args)
		if e, ok := errors.AsType[*call.Error](err); !ok || e.Code != code || e.Suggestion == "" {
			t.Errorf("%v: %v", args, err)
		}
	}
	_, err := w.call(t.Context(), t, map[string]any{"command": "true", "allow_domains": []string{"example.com"}})
	if e, ok := errors.AsType[*call.Error](err); !ok || e.Code != "not_available" {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	last := -1.0
	w.progress = func(p call.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Message != "going" || p.Done <= last {
			t.Errorf("%+v after %v", p, last)
		}
		last = p.Done
		cancel()
	}
	_, err := w.call(ctx, t, map[string]any{"command": "echo going; sleep 1104"})
	if e, ok := errors.AsType[*call.Error](err); !ok || e.Category != call.CategoryCancelled {
		t.Error(err)
	}
	_, err = w.call(ctx, t, map[string]any{"command": "touch never"})
	if e, ok := errors.AsType[*call.Error](err); !ok || e.Category != call.CategoryCancelled {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.root, "never")); err == nil {
		t.Error("a cancelled call ran")
	}
}

// A folder that is gone is told as that, and never as an exit code.
func TestNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	// Only a session knows what lies in its /tmp.
	_, err := w.call(t.Context(), t, map[string]any{"command": "true", "cwd": "/tmp/none"})
	if e, ok := errors.AsType[*call.Error](err); !ok || e.Code != "not_started" {
		t.Error(err)
	}
	if err := os.RemoveAll(w.root); err != nil {
		t.Fatal(err)
	}
	_, err = w.call(t.Context(), t, map[string]any{"command": "true"})
	if e, ok := errors.AsType[*call.Error](err); !ok || e.Code != "sandbox_failed" || e.Phase != call.PhaseSetup {
		t.Error(err)
	}
}

func TestUnconfinedSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *bash.Config, s *sandbox.Config) { s.Mode = sandbox.ModeOff })
	res := w.run(t, map[string]any{"command": "echo hi"})
	if res.Text != "hi\n[not confined: the server was started with --unconfined; this command had all rights of its user]" || res.Outcome.Sandbox != 0 {
		t.Errorf("%q %+v", res.Text, res.Outcome)
	}
	if !strings.Contains(string(res.Structured), `"profile":"unconfined"`) {
		t.Errorf("%s", res.Structured)
	}
}

func TestNewRefusesNil(t *testing.T) {
	t.Parallel()
	if _, err := bash.New(bash.Default(), nil, nil, nil, bash.Outside{}, nil); err == nil {
		t.Error("a tool without a sandbox was made")
	}
}

// The list of tools is paid for by every session.
func TestSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, s := range w.reg.List() {
		got, err := json.MarshalIndent(map[string]any{
			"name": s.Name, "title": s.Title, "description": s.Description, "input": s.Input, "output": s.Output,
			"effect": s.Effect.String(), "destructive": s.Destructive.Bool(), "idempotent": s.Idempotent.Bool(), "open_world": s.OpenWorld.Bool(),
		}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		most := map[string]int{"bash": 2500, "bash_output": 650, "bash_stop": 400}[s.Name]
		if n := len(s.Description) + len(s.Input) + len(s.Output); n > most {
			t.Errorf("%s: %d bytes", s.Name, n)
		}
		got = append(got, '\n')
		file := "testdata/" + s.Name + ".json"
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("schema of %s (-want +got):\n%s", s.Name, d)
		}
	}
}
