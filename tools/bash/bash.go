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
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

//go:embed bash.md
var description string

// noteRoom is what is left of the output limit for what is said about a run.
const noteRoom = 600

// firstLook is how long a background run's call waits, so that a command that
// fails at once is told as that.
const firstLook = 50 * time.Millisecond

// Tool is the bash tool. It is safe for concurrent use.
type Tool struct {
	cfg Config
	ast *shellast.Analyzer
	box *sandbox.Sandbox
	ws  *workspace.Workspace
	env map[string]string // what every command's starts from
	out Outside

	runs *runs
}

// New returns the bash tool. Every dependency is required; out may be zero.
// ended is told of every background run's end, from a goroutine of that run.
func New(
	cfg Config, ast *shellast.Analyzer, box *sandbox.Sandbox, ws *workspace.Workspace, out Outside, ended func(RunRecord),
) (*Tool, error) {
	if ast == nil || box == nil || ws == nil || ended == nil {
		return nil, errors.New("bash: the analyzer, the sandbox, the workspace and the record of ends are required")
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
	return &Tool{
		cfg: cfg, ast: ast, box: box, ws: ws, env: cfg.base(os.Environ(), cacheDir), out: out,
		runs: newRuns(cfg.MaxBackgroundRuns, ended),
	}, nil
}

// End ends the background runs of a session that will not come back.
func (t *Tool) End(session string) { t.runs.end(session) }

// Close ends all background runs and waits until their ends are recorded. No
// run starts any more.
func (t *Tool) Close() { t.runs.close() }

// Spec implements tools.Tool.
func (t *Tool) Spec() call.Spec {
	open := call.No
	if !t.box.Confined() || !t.Offline() {
		open = call.Yes
	}
	return call.Spec{
		Name: "bash", Title: "Run command", Description: strings.TrimSpace(description) + says(t.Terms()),
		Input: json.RawMessage(inputSchema), Output: json.RawMessage(outputSchema),
		Effect: call.RunsCommands, Confirm: call.ConfirmByPolicy, Destructive: call.Yes, Idempotent: call.No, SkillEnv: true,
		OpenWorld: open, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
	}
}

// Facts implements tools.Tool.
func (t *Tool) Facts(raw json.RawMessage) (call.Facts, error) {
	var a args
	if err := tools.DecodeArgs(raw, &a); err != nil {
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
	has, err := t.terms(a, set)
	if err != nil {
		return call.Facts{}, err
	}
	gives, err := given(has)
	if err != nil {
		return call.Facts{}, err
	}
	req := shellast.Request{
		Command: a.Command, Cwd: cwd, Env: set.known(t.cfg),
		AllowDomains: a.AllowDomains, AllowWrite: a.AllowWrite, Network: a.Network, Given: gives,
	}
	f := t.ast.Analyze(req)
	if len(a.AllowWrite) > 0 {
		// What a person permits is the real path, and that is what is opened.
		req.AllowWrite = t.real(f.Cwd.Path, a.AllowWrite)
		f = t.ast.Analyze(req)
	}
	if err := checkDomains(a.AllowDomains, f.Loosening); err != nil {
		return call.Facts{}, err
	}
	f.Env, f.ExecEnv = set.attribute(f.Env), set.name
	if a.Background {
		f.Summary += " (in the background)"
	}
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
	if a.Background {
		if err := t.runs.reserve(); err != nil {
			return call.Result{}, err
		}
	}
	j := job{set: set, stages: withStages(&cmd, t.box.Tmp(ctx, cmd.Scratch), a.Command)}
	voice := &voice{tell: cmd.Progress}
	if cmd.Progress != nil {
		cmd.Progress = voice.say
	}
	j.box, err = t.box.Start(ctx, cmd)
	if err != nil {
		if a.Background {
			t.runs.release()
		}
		return call.Result{}, explain(ctx, err)
	}
	j.began, j.cmd, j.cmd.Timeout = time.Now(), cmd, j.box.Limit()
	r := newRun(auth.Session(), auth.CallID(), j)
	if a.Background {
		t.runs.track(r)
	}
	if t.attend(ctx, r, a) {
		voice.hush()
		return r.detached()
	}
	return t.finished(ctx, r)
}

// attend waits for a command as long as its call does, and reports whether it
// goes on without it.
func (t *Tool) attend(ctx context.Context, r *run, a args) (goesOn bool) {
	patience := t.cfg.Timeout
	if a.Background {
		patience = firstLook
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for due := limit.C; ; {
		select {
		case <-r.box.Done():
			return false
		case <-ctx.Done():
			r.box.Stop()
			<-r.box.Done()
			return false
		case <-due:
			due = nil
			switch {
			case a.Background:
				goesOn = true
			case a.TimeoutMS > 0 || r.box.Limit() <= t.cfg.Timeout || ctx.Err() != nil: // its own limit ends it
			case t.runs.reserve() == nil:
				t.runs.track(r)
				goesOn = true
			default:
				r.full = true
				r.box.Stop()
			}
			if goesOn && ctx.Err() != nil {
				r.box.Stop() // its session may have been ended before it was seen to have this run
			}
			if goesOn {
				return true
			}
		}
	}
}

// detached is the result of a command that goes on without its call.
func (r *run) detached() (call.Result, error) {
	out := r.box.Snapshot()
	r.gave(out)
	return r.result(out, r, true)
}

// finished is the result of a command that has ended.
func (t *Tool) finished(ctx context.Context, r *run) (call.Result, error) {
	out, err := r.box.Wait()
	r.stages() // also removes what the shell left for us
	if r.recorded != nil {
		<-r.recorded
	}
	if err != nil {
		return call.Result{}, explain(ctx, err)
	}
	if out.Cancelled && !r.full && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return call.Result{}, cancelled(out)
	}
	out.TimedOut = out.TimedOut || out.Cancelled
	if r.full {
		r.cmd.Timeout = t.cfg.Timeout
	}
	more := out.Combined.Truncated && r.box.Spooled()
	switch {
	case r.recorded == nil && !more:
		r.box.Discard()
		return r.result(out, nil, false)
	case r.recorded == nil:
		t.runs.keep(r)
	}
	r.gave(out)
	r.mark(r.recorded == nil || !more)
	return r.result(out, r, false)
}

// gave notes how much of the output the model has got, up to the cut if there
// is one.
func (r *run) gave(out sandbox.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = out.Combined.HeadBytes
}

// command is what the sandbox is asked to run, and in which setting.
func (t *Tool) command(a args, auth gates.Authorized) (sandbox.Command, setting, error) {
	facts := auth.Facts()
	set, err := t.cfg.setting(a)
	if err != nil {
		return sandbox.Command{}, set, err
	}
	has, err := t.terms(a, set)
	if err != nil {
		return sandbox.Command{}, set, err
	}
	var network sandbox.Network // without walls there is nothing to open
	if t.box.Confined() {
		if network, err = t.out.network(a, has); err != nil {
			return sandbox.Command{}, set, err
		}
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
		Dir:  facts.Cwd.Path, Env: t.environment(network.Mode, set.vars), ExtraWrite: extra,
		Network: network, Terms: has, CallID: auth.CallID(),
		Timeout:   a.timeout(t.cfg, limits.Timeout),
		MaxOutput: t.page(limits), Spool: true,
	}
	if auth.WantsProgress() {
		cmd.Progress = progress(auth)
	}
	return cmd, set, nil
}

// page is how much output one result holds.
func (t *Tool) page(limits call.Limits) int64 {
	return call.Limits{MaxOutput: t.cfg.MaxOutput - noteRoom}.Tighten(limits).MaxOutput
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

// voice passes progress on as long as the call is not answered.
type voice struct {
	mu   sync.Mutex
	tell func(string, int64)
}

func (v *voice) say(line string, bytes int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tell != nil {
		v.tell(line, bytes)
	}
}

func (v *voice) hush() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tell = nil
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
		return notStartedError(start, err)
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

// notStartedError says which argument a command could not be started with.
func notStartedError(start *sandbox.StartError, cause error) error {
	e := call.Failure("not_started", "the command was not started: "+start.Error(), "tell the person who runs the server")
	e.Cause = cause
	switch {
	case strings.HasPrefix(start.Step, "enter "):
		e.Field, e.Suggestion = "cwd", "check that cwd exists and is a folder"
	case errors.Is(start, syscall.E2BIG):
		e.Suggestion = "put long values into a file and let the command read it"
	}
	return e
}

func cancelled(out sandbox.Outcome) error {
	return &call.Error{
		Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution,
		Message: "the call was cancelled; the command and everything it started were ended",
		Details: map[string]any{"duration_ms": out.Duration.Milliseconds(), "survivors": out.Survivors},
	}
}
