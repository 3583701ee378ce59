package bash

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

// args are the arguments of bash.
type args struct {
	Command      string            `json:"command"`
	Description  string            `json:"description"`
	Cwd          string            `json:"cwd"`
	Env          map[string]string `json:"env"`
	TimeoutMS    int64             `json:"timeout_ms"`
	Background   bool              `json:"background"`
	AllowWrite   []string          `json:"allow_write"`
	AllowDomains []string          `json:"allow_domains"`
	Network      string            `json:"network"`
	Environment  string            `json:"environment"`
	Profile      string            `json:"profile"`
	// SkillEnv cannot come from a client: the registry adds it to arguments
	// that have passed the closed schema.
	SkillEnv map[string]string `json:"zeph/skill_env"`
}

const inputSchema = `{"type":"object","properties":{"command":{"type":"string"},` +
	`"description":{"type":"string","description":"purpose, for the person asked"},"cwd":{"type":"string"},` +
	`"environment":{"type":"string"},` +
	`"env":{"type":"object","additionalProperties":{"type":"string"}},` +
	`"timeout_ms":{"type":"integer","minimum":1},"background":{"type":"boolean"},` +
	`"allow_write":{"type":"array","items":{"type":"string"}},` +
	`"allow_domains":{"type":"array","items":{"type":"string"}},` +
	`"network":{"enum":["off","proxy","host"]},` +
	`"profile":{"type":"string","description":"only to take away: read-only"}},"required":["command"],"additionalProperties":false}`

const outputSchema = `{"type":"object","properties":{"stdout":{"type":"string"},"stderr":{"type":"string"},` +
	`"exit_code":{"type":"integer"},"stages":{"type":"array","items":{"type":"integer"}},"signal":{"type":"string"},` +
	`"running":{"type":"boolean"},"run_id":{"type":"string"},"next":{"type":"integer"},"truncated":{"type":"boolean"},` +
	`"timed_out":{"type":"boolean"},"duration_ms":{"type":"integer"},"cwd":{"type":"string"},"sandbox":{"type":"object"}}}`

// outputArgs are the arguments of bash_output.
type outputArgs struct {
	stopArgs
	WaitMS int64  `json:"wait_ms"`
	Since  *int64 `json:"since"`
}

// stopArgs are the arguments of bash_stop.
type stopArgs struct {
	RunID string `json:"run_id"`
}

// The longest wait is shorter than clients have patience.
const outputInput = `{"type":"object","properties":{"run_id":{"type":"string"},` +
	`"wait_ms":{"type":"integer","minimum":0,"maximum":50000},"since":{"type":"integer","minimum":0}},` +
	`"required":["run_id"],"additionalProperties":false}`

const stopInput = `{"type":"object","properties":{"run_id":{"type":"string"}},"required":["run_id"],"additionalProperties":false}`

const outputOutput = `{"type":"object","properties":{"output":{"type":"string"},"next":{"type":"integer"},` +
	`"running":{"type":"boolean"},"exit_code":{"type":"integer"}}}`

func (a stopArgs) id() string { return a.RunID }

func (a outputArgs) wait(l call.Limits) time.Duration {
	if a.WaitMS <= 0 {
		return 0
	}
	return call.Limits{Timeout: time.Duration(a.WaitMS) * time.Millisecond}.Tighten(call.Limits{Timeout: l.Timeout}).Timeout
}

// runFacts are the facts of a call about a run.
func runFacts(raw json.RawMessage, a interface{ id() string }, what string) (call.Facts, error) {
	if err := tools.DecodeArgs(raw, a); err != nil {
		return call.Facts{}, err
	}
	if id := a.id(); len(id) > 40 || plain(id) != id {
		return call.Facts{}, call.ArgError("run_id", "this is no run_id", "use the run_id that bash gave")
	}
	return call.Facts{Summary: what + " the run " + a.id(), Text: a.id()}, nil
}

// maxPath is the longest path the kernel takes, from linux/limits.h.
const maxPath = 4096

// check finds what the schema cannot say.
func (a args) check(cfg Config) error {
	if strings.TrimSpace(a.Command) == "" {
		return call.ArgError("command", "the command is empty", "give the text bash is to run")
	}
	if len(a.Cwd) > maxPath {
		return call.ArgError("cwd", fmt.Sprintf("a path of %d bytes is longer than any there can be (%d)", len(a.Cwd), maxPath),
			"name a folder below the workspace")
	}
	if err := checkEnv("env", a.Env); err != nil {
		return err
	}
	if err := checkEnv("_meta zeph/skill_env", a.SkillEnv); err != nil {
		return err
	}
	if err := a.checkNetwork(); err != nil {
		return err
	}
	if most := cfg.MaxTimeout.Milliseconds(); a.TimeoutMS > most {
		return call.ArgError("timeout_ms", fmt.Sprintf("%d is more than the %d allowed here", a.TimeoutMS, most),
			"do the work in shorter steps")
	}
	return nil
}

func checkEnv(field string, env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !isName(name) {
			return call.ArgError(field+"."+name, "this is no variable's name", "use letters, digits and _")
		}
		if strings.ContainsRune(env[name], 0) {
			return call.ArgError(field+"."+name, "the value holds a NUL character", "leave it out")
		}
	}
	return nil
}

// timeout is how long the command may take. Its call may not wait that long.
func (a args) timeout(cfg Config, limit time.Duration) time.Duration {
	t := cfg.Timeout
	switch {
	case a.TimeoutMS > 0:
		t = time.Duration(a.TimeoutMS) * time.Millisecond
	case a.Background || cfg.detaches():
		t = cfg.background()
	}
	return call.Limits{Timeout: t}.Tighten(call.Limits{Timeout: limit}).Timeout
}
