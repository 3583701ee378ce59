package bash

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/filter"
	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

// result is the structured result.
type result struct {
	Stdout     string  `json:"stdout"`
	Stderr     string  `json:"stderr"`
	ExitCode   *int    `json:"exit_code,omitempty"` // nil while it runs
	Stages     []int   `json:"stages,omitempty"`    // of a pipeline, when they differ
	Signal     string  `json:"signal,omitempty"`
	Masked     bool    `json:"masked_failure,omitempty"` // a stage failed, and the last one hid it
	Truncated  bool    `json:"truncated"`
	Invalid    int     `json:"invalid_utf8,omitempty"` // bytes that were no text and were replaced
	TimedOut   bool    `json:"timed_out"`
	OOM        bool    `json:"out_of_memory,omitempty"`
	Running    bool    `json:"running,omitempty"`
	RunID      string  `json:"run_id,omitempty"`
	Next       int64   `json:"next,omitempty"` // of bash_output
	DurationMS int64   `json:"duration_ms"`
	Killed     int     `json:"killed_descendants,omitempty"`
	Survivors  int     `json:"survivors,omitempty"`
	Cwd        string  `json:"cwd"`
	Env        string  `json:"environment,omitempty"` // name of the one in force
	Sandbox    confine `json:"sandbox"`
}

// confine says how the command was confined.
type confine struct {
	Level      int                 `json:"level"`
	Profile    string              `json:"profile"`
	Network    string              `json:"network,omitempty"`    // when it is not off
	Violations []sandbox.Violation `json:"violations,omitempty"` // what it was denied
}

// confinement tells how a command was confined, and what it was denied.
func confinement(out sandbox.Outcome, cmd sandbox.Command) confine {
	c := confine{Level: out.Level, Profile: cmd.Terms.Profile.String(), Violations: out.Violations}
	if net := cmd.Network.Mode; net != sandbox.NetworkOff {
		c.Network = net.String()
	}
	return c
}

// result tells how a command ended, or what it printed so far. r is nil when
// there is nothing more to ask about.
func (j job) result(out sandbox.Outcome, r *run, running bool) (call.Result, error) {
	res := result{
		Stdout: filter.Clean(out.Stdout.Text()), Stderr: filter.Clean(out.Stderr.Text()),
		Invalid: out.Combined.InvalidUTF8, Signal: out.Signal, TimedOut: out.TimedOut, OOM: out.OutOfMemory, Running: running,
		Truncated:  out.Stdout.Truncated || out.Stderr.Truncated || out.Combined.Truncated,
		DurationMS: out.Duration.Milliseconds(), Killed: out.Killed, Survivors: out.Survivors,
		Cwd: j.cmd.Dir, Env: j.set.name,
		Sandbox: confinement(out, j.cmd),
	}
	if !running {
		code := out.ExitCode
		res.ExitCode, res.Stages = &code, differing(j.stages())
		res.Masked = code == 0 && telling(res.Stages) != ""
	}
	if r != nil {
		res.RunID, res.Next = r.id, r.cursor(-1)
	}
	raw, err := tools.EncodeResult(res)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{
		Text: j.text(out, res), Structured: raw,
		Outcome: call.Outcome{
			ExitCode: res.ExitCode, TimedOut: out.TimedOut, Truncated: res.Truncated,
			RawBytes: out.Combined.Total, Sandbox: out.Level, Violations: out.Violations,
		},
	}, nil
}

// text is what the model reads: the output as it came, then what is worth
// saying about the run.
func (j job) text(out sandbox.Outcome, res result) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(filter.Clean(out.Combined.Text()), "\n"))
	if b.Len() == 0 {
		b.WriteString("(no output)")
	}
	note := func(format string, a ...any) { fmt.Fprintf(&b, "\n"+format, a...) }
	switch {
	case out.Combined.Truncated && res.RunID != "":
		note("[cut: %d bytes in all; bash_output with run_id %s and since %d reads on from the cut]", out.Combined.Total, res.RunID, res.Next)
	case out.Combined.Truncated:
		note("[cut: %d bytes in all; run it again with > $TMPDIR/out.txt 2>&1 and read /tmp/out.txt with offset]", out.Combined.Total)
	}
	switch {
	case res.Running:
		note("[still running as %s: bash_output waits for more of it, bash_stop ends it]", res.RunID)
	case out.TimedOut && j.full:
		note("timed out after %v; it and everything it started were ended: too many background runs for it to go on. "+
			"End one with bash_stop, or ask for more with timeout_ms.", j.cmd.Timeout)
	case out.TimedOut:
		note("timed out after %v; it and everything it started were ended. Ask for more with timeout_ms.", j.cmd.Timeout)
	default:
		b.WriteString(status(out))
	}
	if s := telling(res.Stages); s != "" {
		note("[stages of the pipeline: %s]", s)
	}
	if missed(out, res.Masked) {
		note(noNetwork)
	}
	if out.Killed > 0 && !out.TimedOut && !overLimit(out) {
		note("[%d processes it left running were ended]", out.Killed)
	}
	j.remarks(out, note)
	return b.String()
}

// remarks are what is worth saying beside the output and the status.
func (j job) remarks(out sandbox.Outcome, note func(string, ...any)) {
	if n := out.Combined.InvalidUTF8; n > 0 {
		note("[%d bytes that are no UTF-8 were replaced by �]", n)
	}
	if out.Survivors > 0 {
		note("[%d processes could not be ended]", out.Survivors)
	}
	for _, r := range out.Restored {
		note("[%.300s]", r)
	}
	if s := denials(out.Violations); s != "" {
		note("[%s]", s)
	}
	for i, name := range j.set.refused {
		if i == 3 {
			note("[… and %d more variables]", len(j.set.refused)-i)
			break
		}
		note("[%.60s was not set: env_blocklist]", name)
	}
	if out.Level == sandbox.LevelNone {
		note("[not confined: the server was started with --unconfined; this command had all rights of its user]")
	}
}

// maxDenials bounds the line about what was denied; the whole is in the
// structured result.
const maxDenials = 300

// denials is one line about what the sandbox denied, "" for nothing. What was
// put back or set aside has a line of its own.
func denials(vs []sandbox.Violation) string {
	var b strings.Builder
	left := 0
	for _, v := range vs {
		if v.Rule == "fs.protected" && v.Source == call.SourceExact {
			continue
		}
		s := v.Op
		switch {
		case v.Kind == call.ViolationLimit:
			s = "more " + v.Op + " than " + v.Target
		case v.Target != "":
			s += " " + v.Target
		}
		if v.Count > 1 {
			s += fmt.Sprintf(" (%d times)", v.Count)
		}
		if v.Source == call.SourceInferred {
			s += " (it seems)"
		}
		if v.Hint != "" {
			s += ": " + v.Hint
		}
		if b.Len() > 0 && b.Len()+len(s) > maxDenials {
			left++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%.*s", maxDenials, s)
	}
	if b.Len() == 0 {
		return ""
	}
	if left > 0 {
		fmt.Fprintf(&b, "; and %d more", left)
	}
	return "denied by the sandbox: " + b.String()
}

// overLimit reports whether the command was ended for a limit, which is told as
// what it was denied.
func overLimit(out sandbox.Outcome) bool {
	return slices.ContainsFunc(out.Violations, func(v sandbox.Violation) bool {
		return v.Kind == call.ViolationLimit && v.Source == call.SourceExact
	})
}

// status is the line about how a command ended; "" for a success.
func status(out sandbox.Outcome) string {
	code := out.ExitCode
	why := ""
	switch {
	case out.Signal != "":
		why = " (" + out.Signal + ")"
	case code == 126:
		why = " (for bash: found, but it cannot be executed)"
	case code == 127:
		why = " (for bash: command not found)"
	case code > 128:
		if name := posix.SignalName(code - 128); name != "" {
			why = " (for bash: ended by " + name + ")"
		}
	}
	if code == 0 {
		return ""
	}
	if out.OutOfMemory && !overLimit(out) {
		why += "; the kernel ended a process for lack of memory"
	}
	return fmt.Sprintf("\nexit code %d%s", code, why)
}

// telling returns the stages as text when one that is not the last failed. The
// end of a pipe that nobody reads any more is no failure.
func telling(stages []int) string {
	const brokenPipe = 128 + posix.SIGPIPE
	var out []string
	failed := false
	for i, s := range stages {
		failed = failed || i < len(stages)-1 && s != 0 && s != brokenPipe
		out = append(out, fmt.Sprint(s))
	}
	if !failed {
		return ""
	}
	return strings.Join(out, ", ")
}
