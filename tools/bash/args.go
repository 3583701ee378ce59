package bash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// args are the arguments of bash.
type args struct {
	Command      string            `json:"command"`
	Description  string            `json:"description"`
	Cwd          string            `json:"cwd"`
	Env          map[string]string `json:"env"`
	TimeoutMS    int64             `json:"timeout_ms"`
	AllowWrite   []string          `json:"allow_write"`
	AllowDomains []string          `json:"allow_domains"`
	Network      string            `json:"network"`
	Environment  string            `json:"environment"`
	// SkillEnv cannot come from a client: the registry adds it to arguments
	// that have passed the closed schema.
	SkillEnv map[string]string `json:"zeph/skill_env"`
}

const inputSchema = `{"type":"object","properties":{"command":{"type":"string"},` +
	`"description":{"type":"string","description":"purpose, for the person asked"},"cwd":{"type":"string"},` +
	`"environment":{"type":"string"},` +
	`"env":{"type":"object","additionalProperties":{"type":"string"}},` +
	`"timeout_ms":{"type":"integer","minimum":1},` +
	`"allow_write":{"type":"array","items":{"type":"string"}},` +
	`"allow_domains":{"type":"array","items":{"type":"string"}},` +
	`"network":{"enum":["off","proxy","host"]}},"required":["command"],"additionalProperties":false}`

const outputSchema = `{"type":"object","properties":{"stdout":{"type":"string"},"stderr":{"type":"string"},` +
	`"exit_code":{"type":"integer"},"signal":{"type":"string"},"truncated":{"type":"boolean"},` +
	`"timed_out":{"type":"boolean"},"duration_ms":{"type":"integer"},"cwd":{"type":"string"},"sandbox":{"type":"object"}}}`

// result is the structured result.
type result struct {
	Stdout     string  `json:"stdout"`
	Stderr     string  `json:"stderr"`
	ExitCode   int     `json:"exit_code"`
	Signal     string  `json:"signal,omitempty"`
	Truncated  bool    `json:"truncated"`
	TimedOut   bool    `json:"timed_out"`
	DurationMS int64   `json:"duration_ms"`
	Killed     int     `json:"killed_descendants,omitempty"`
	Survivors  int     `json:"survivors,omitempty"`
	Cwd        string  `json:"cwd"`
	Env        string  `json:"environment,omitempty"` // name of the one in force
	Sandbox    confine `json:"sandbox"`
}

// confine says how the command was confined.
type confine struct {
	Level   int    `json:"level"`
	Profile string `json:"profile"`
}

func decode(raw json.RawMessage, v *args) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return call.ArgError("", "the arguments cannot be read: "+err.Error(), "")
	}
	return nil
}

// check finds what the schema cannot say.
func (a args) check(cfg Config) error {
	if strings.TrimSpace(a.Command) == "" {
		return call.ArgError("command", "the command is empty", "give the text bash is to run")
	}
	if err := checkEnv("env", a.Env); err != nil {
		return err
	}
	if err := checkEnv("_meta zeph/skill_env", a.SkillEnv); err != nil {
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

// timeout is how long the command may take.
func (a args) timeout(cfg Config, limit time.Duration) time.Duration {
	t := cfg.Timeout
	if a.TimeoutMS > 0 {
		t = time.Duration(a.TimeoutMS) * time.Millisecond
	}
	return call.Limits{Timeout: t}.Tighten(call.Limits{Timeout: limit}).Timeout
}
