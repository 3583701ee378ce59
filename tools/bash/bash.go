// Package bash holds the tool that runs shell commands. It knows what a
// command means through the shell analyzer, and runs it only through the
// sandbox.
package bash

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/filter"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

//go:embed bash.md
var description string

// noteRoom is what is left of the output limit for what is said about a run.
const noteRoom = 600

// Tool is the bash tool. It is safe for concurrent use.
type Tool struct {
	cfg Config
	ast *shellast.Analyzer
	box *sandbox.Sandbox
	ws  *workspace.Workspace
	env map[string]string // what every command's starts from
}

// New returns the bash tool. Every dependency is required.
func New(cfg Config, ast *shellast.Analyzer, box *sandbox.Sandbox, ws *workspace.Workspace) (*Tool, error) {
	if ast == nil || box == nil || ws == nil {
		return nil, errors.New("bash: the analyzer, the sandbox and the workspace are required")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var err error
	if cfg.Execution, err = cfg.Execution.open(ws); err != nil {
		return nil, err
	}
	cacheDir := ""
	if box.Confined() {
		cacheDir = box.CacheDir()
	}
	return &Tool{cfg: cfg, ast: ast, box: box, ws: ws, env: cfg.base(os.Environ(), cacheDir)}, nil
}

// Spec implements tools.Tool.
func (t *Tool) Spec() call.Spec {
	open := call.No
	if !t.box.Confined() {
		open = call.Yes
	}
	return call.Spec{
		Name: "bash", Title: "Run command", Description: strings.TrimSpace(description),
		Input: json.RawMessage(inputSchema), Output: json.RawMessage(outputSchema),
		Effect: call.RunsCommands, Confirm: call.ConfirmByPolicy, Destructive: call.Yes, Idempotent: call.No, SkillEnv: true,
		OpenWorld: open, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
	}
}

// Facts implements tools.Tool.
func (t *Tool) Facts(raw json.RawMessage) (call.Facts, error) {
	var a args
	if err := decode(raw, &a); err != nil {
		return call.Facts{}, err
	}
	if err := a.check(t.cfg); err != nil {
		return call.Facts{}, err
	}
	set, err := t.cfg.setting(a)
	if err != nil {
		return call.Facts{}, err
	}
	cwd, err := t.folder(set)
	if err != nil {
		return call.Facts{}, err
	}
	req := shellast.Request{
		Command: a.Command, Cwd: cwd, Env: set.known(t.cfg),
		AllowDomains: a.AllowDomains, AllowWrite: a.AllowWrite, Network: a.Network,
	}
	f := t.ast.Analyze(req)
	if len(a.AllowWrite) > 0 {
		// What a person permits is the real path, and that is what is opened.
		req.AllowWrite = t.real(f.Cwd.Path, a.AllowWrite)
		f = t.ast.Analyze(req)
	}
	f.Env = set.attribute(f.Env)
	if d := plain(a.Description); d != "" {
		f.Summary += fmt.Sprintf(" (said to be: %q)", d)
	}
	return f, nil
}

// real resolves paths as far as they can be.
func (t *Tool) real(cwd string, paths []string) []string {
	out := make([]string, len(paths))
	for i, text := range paths {
		out[i] = text
		if p := t.ws.Resolve(cwd, text, true); p.Path != "" && p.Place != call.PlaceUnknown {
			out[i] = p.Path
		}
	}
	return out
}

// plain is a caller's own words made fit for one line of a question.
func plain(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)), " ")
	if r := []rune(s); len(r) > 120 {
		return string(r[:120]) + "…"
	}
	return s
}

// Run implements tools.Tool.
func (t *Tool) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a args
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	cmd, set, err := t.command(a, auth)
	if err != nil {
		return call.Result{}, err
	}
	out, err := t.box.Run(ctx, cmd)
	if err != nil {
		return call.Result{}, explain(ctx, err)
	}
	if out.Cancelled && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return call.Result{}, cancelled(out)
	}
	out.TimedOut = out.TimedOut || out.Cancelled
	return t.result(cmd, out, set)
}

// command is what the sandbox is asked to run, and in which setting.
func (t *Tool) command(a args, auth gates.Authorized) (sandbox.Command, setting, error) {
	facts := auth.Facts()
	set, err := t.cfg.setting(a)
	if err != nil {
		return sandbox.Command{}, set, err
	}
	if len(a.AllowDomains) > 0 || a.Network != "" && a.Network != "off" {
		return sandbox.Command{}, set, call.Failure("not_available",
			"commands have no network in this version, whatever was permitted",
			"get what is needed with fetch, then run the command on the file without network and allow_domains")
	}
	extra, err := extraWrite(facts)
	if err != nil {
		return sandbox.Command{}, set, err
	}
	scratch := ""
	if t.box.Confined() {
		if scratch, err = t.ws.Scratch(auth.Session()); err != nil && !errors.Is(err, workspace.ErrNoScratch) {
			return sandbox.Command{}, set, err
		}
	}
	limits := auth.Limits()
	cmd := sandbox.Command{
		Session: auth.Session(), Scratch: scratch,
		Argv: []string{shell(), "--noprofile", "--norc", "-c", a.Command},
		Dir:  facts.Cwd.Path, Env: environment(t.env, set.vars), ExtraWrite: extra,
		Timeout:   a.timeout(t.cfg, limits.Timeout),
		MaxOutput: call.Limits{MaxOutput: t.cfg.MaxOutput - noteRoom}.Tighten(limits).MaxOutput,
	}
	if auth.WantsProgress() {
		cmd.Progress = progress(auth)
	}
	return cmd, set, nil
}

// shell is where bash is. It is not looked up in a command's own PATH, which
// the workspace may have a part in.
func shell() string {
	for _, p := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"} {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return "/bin/bash" // the sandbox will say that it is not there
}

// extraWrite are the further writable places that were permitted.
func extraWrite(f call.Facts) ([]string, error) {
	var out []string
	for _, l := range f.Loosening {
		if l.Field != "allow_write" {
			continue
		}
		if _, err := os.Lstat(l.Value); err != nil {
			return nil, call.ArgError("allow_write", l.Value+" does not exist", "name the folder it is to be made in")
		}
		out = append(out, l.Value)
	}
	return out, nil
}

// progress passes reports on. Their number has to grow even when the command
// is silent.
func progress(auth gates.Authorized) func(string, int64) {
	last := -1.0
	return func(line string, bytes int64) {
		last = max(float64(bytes), last+0.001)
		auth.Progress(call.Progress{Message: line, Done: last})
	}
}

// explain turns what the sandbox says into an error the model can act on. What
// is not the command's fault is never told as its exit code.
func explain(ctx context.Context, err error) error {
	var fix string
	if u, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		fix = u.Fix
	}
	start, notStarted := errors.AsType[*sandbox.StartError](err)
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return &call.Error{
			Category: call.CategoryPermanentFailure, Code: "sandbox_failed", Phase: call.PhaseSetup,
			Message:    "the command was not run, because this machine could not confine it: " + err.Error(),
			Suggestion: strings.TrimSpace("this is not about the command; tell the person who runs the server. " + fix), Cause: err,
		}
	case notStarted:
		e := call.Failure("not_started", "the command was not started: "+start.Error(), "check that cwd exists and is a folder")
		e.Cause = err
		return e
	case ctx.Err() != nil:
		return cancelled(sandbox.Outcome{})
	case errors.Is(err, sandbox.ErrLost):
		return &call.Error{
			Category: call.CategoryServerError, Code: "sandbox_lost", Phase: call.PhaseExecution,
			Message:    "the sandbox of this session ended while the command ran; how far it came is not known",
			Suggestion: "look at what was done before running it again", Retryable: true, Cause: err,
		}
	}
	return err
}

func cancelled(out sandbox.Outcome) error {
	return &call.Error{
		Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution,
		Message: "the call was cancelled; the command and everything it started were ended",
		Details: map[string]any{"duration_ms": out.Duration.Milliseconds(), "survivors": out.Survivors},
	}
}

// result tells how a command ended.
func (t *Tool) result(cmd sandbox.Command, out sandbox.Outcome, set setting) (call.Result, error) {
	r := result{
		Stdout: filter.Clean(out.Stdout.Text()), Stderr: filter.Clean(out.Stderr.Text()),
		ExitCode: out.ExitCode, Signal: out.Signal, TimedOut: out.TimedOut,
		Truncated:  out.Stdout.Truncated || out.Stderr.Truncated || out.Combined.Truncated,
		DurationMS: out.Duration.Milliseconds(), Killed: out.Killed, Survivors: out.Survivors,
		Cwd: cmd.Dir, Env: set.name,
		Sandbox: confine{Level: out.Level, Profile: "workspace"},
	}
	if out.Level == sandbox.LevelNone {
		r.Sandbox.Profile = "unconfined"
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return call.Result{}, err
	}
	code := out.ExitCode
	return call.Result{
		Text: text(cmd, out, set.refused), Structured: raw,
		Outcome: call.Outcome{
			ExitCode: &code, TimedOut: out.TimedOut, Truncated: r.Truncated,
			RawBytes: out.Combined.Total, Sandbox: out.Level,
		},
	}, nil
}

// text is what the model reads: the output as it came, then what is worth
// saying about the run.
func text(cmd sandbox.Command, out sandbox.Outcome, refused []string) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(filter.Clean(out.Combined.Text()), "\n"))
	if b.Len() == 0 {
		b.WriteString("(no output)")
	}
	note := func(format string, a ...any) { fmt.Fprintf(&b, "\n"+format, a...) }
	if out.Combined.Truncated {
		note("[cut: %d bytes in all; run it again with > /tmp/out.txt 2>&1 and read that file with offset]", out.Combined.Total)
	}
	switch {
	case out.TimedOut:
		note("timed out after %v; it and everything it started were ended. Ask for more with timeout_ms.", cmd.Timeout)
	case out.Signal != "":
		note("exit code %d (%s)", out.ExitCode, out.Signal)
	case out.ExitCode != 0:
		note("exit code %d", out.ExitCode)
	}
	if out.Killed > 0 && !out.TimedOut {
		note("[%d processes it left running were ended]", out.Killed)
	}
	if out.Survivors > 0 {
		note("[%d processes could not be ended]", out.Survivors)
	}
	for _, r := range out.Restored {
		note("[%.300s]", r)
	}
	for i, name := range refused {
		if i == 3 {
			note("[… and %d more variables]", len(refused)-i)
			break
		}
		note("[%.60s was not set: env_blocklist]", name)
	}
	if out.Level == sandbox.LevelNone {
		note("[not confined: tools.sandbox.mode is \"off\"]")
	}
	return b.String()
}
