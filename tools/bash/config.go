package bash

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is the part of [tools.shell] about running commands.
type Config struct {
	Timeout    time.Duration `toml:"timeout"`     // of a call that does not ask for one
	MaxTimeout time.Duration `toml:"max_timeout"` // longest a call may ask for
	MaxOutput  int64         `toml:"max_output"`  // bytes kept of each stream
	// EnvBlocklist are beginnings of names of variables that commands do not
	// get, from the server's environment or from a call.
	EnvBlocklist []string `toml:"env_blocklist"`
	// EnvPass are names that commands get although they are on the list or look
	// like a secret.
	EnvPass []string `toml:"env_pass"`
	// Execution is a table of its own in the file.
	Execution Execution `toml:"-"`
}

// Default returns the configuration used when nothing is said.
func Default() Config {
	return Config{
		Timeout:    30 * time.Second,
		MaxTimeout: 10 * time.Minute,
		MaxOutput:  30_000,
		EnvBlocklist: []string{
			"ZEPH_", "AWS_", "AZURE_", "GCP_", "GOOGLE_", "OPENAI_", "ANTHROPIC_", "HF_", "HUGGING",
		},
		EnvPass:   []string{},
		Execution: DefaultExecution(),
	}
}

// Validate reports everything that is wrong with c.
func (c Config) Validate() error {
	var errs []error
	if c.Timeout <= 0 {
		errs = append(errs, errors.New("tools.shell.timeout: must be more than nothing, such as \"30s\""))
	}
	if c.MaxTimeout < c.Timeout {
		errs = append(errs, fmt.Errorf("tools.shell.max_timeout: %v is less than timeout", c.MaxTimeout))
	}
	if c.MaxOutput < 2*noteRoom || c.MaxOutput > 1<<20 {
		errs = append(errs, fmt.Errorf("tools.shell.max_output: %d is not between %d and %d", c.MaxOutput, 2*noteRoom, 1<<20))
	}
	for i, p := range c.EnvBlocklist {
		if !isName(p) {
			errs = append(errs, fmt.Errorf("tools.shell.env_blocklist[%d]: %q cannot begin a variable's name", i, p))
		}
	}
	for i, p := range c.EnvPass {
		if !isName(p) {
			errs = append(errs, fmt.Errorf("tools.shell.env_pass[%d]: %q is no variable's name", i, p))
		}
	}
	errs = append(errs, c.Execution.Validate())
	return errors.Join(errs...)
}

// Warnings lists what in c is unsafe, for the operator to read at start.
func (c Config) Warnings() []string {
	var out []string
	if len(c.EnvPass) > 0 {
		out = append(out, "tools.shell.env_pass gives commands "+strings.Join(c.EnvPass, ", "))
	}
	return out
}
