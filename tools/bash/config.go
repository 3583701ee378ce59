package bash

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// OnTimeout says what happens at the default time limit. The zero value is
// [Kill].
type OnTimeout uint8

// The choices.
const (
	Kill   OnTimeout = iota // the command is ended
	Detach                  // it goes on in the background
)

// MarshalText returns the word used in config.
func (o OnTimeout) MarshalText() ([]byte, error) {
	if o == Detach {
		return []byte("detach"), nil
	}
	return []byte("kill"), nil
}

// UnmarshalText reads the word used in config.
func (o *OnTimeout) UnmarshalText(b []byte) error {
	switch string(b) {
	case "kill":
		*o = Kill
	case "detach":
		*o = Detach
	default:
		return fmt.Errorf("on_timeout %q is not known; say \"detach\" or \"kill\"", b)
	}
	return nil
}

// Config is the part of [tools.shell] about running commands.
type Config struct {
	Timeout    time.Duration `toml:"timeout"`     // of a call that does not ask for one
	MaxTimeout time.Duration `toml:"max_timeout"` // longest a call may ask for
	MaxOutput  int64         `toml:"max_output"`  // bytes kept of each stream
	// OnTimeout is what happens to a command that did not ask for a time and
	// whose time is up. A killed command is the strict side.
	OnTimeout             OnTimeout `toml:"on_timeout"`
	MaxBackgroundRuns     int       `toml:"max_background_runs"`     // of the whole server; 0 = none
	BackgroundTimeoutSecs int       `toml:"background_timeout_secs"` // longest one may go on
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
		OnTimeout:  Detach, MaxBackgroundRuns: 8, BackgroundTimeoutSecs: 1800,
		EnvBlocklist: []string{
			"ZEPH_", "AWS_", "AZURE_", "GCP_", "GOOGLE_", "OPENAI_", "ANTHROPIC_", "HF_", "HUGGING",
		},
		EnvPass:   []string{},
		Execution: DefaultExecution(),
	}
}

// detaches reports whether a command may go on when its time is up.
func (c Config) detaches() bool {
	return c.OnTimeout == Detach && c.MaxBackgroundRuns > 0 && c.background() > c.Timeout
}

func (c Config) background() time.Duration {
	return time.Duration(c.BackgroundTimeoutSecs) * time.Second
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
	if c.OnTimeout > Detach {
		errs = append(errs, errors.New("tools.shell.on_timeout: say \"detach\" or \"kill\""))
	}
	if c.MaxBackgroundRuns < 0 || c.MaxBackgroundRuns > 1000 {
		errs = append(errs, fmt.Errorf("tools.shell.max_background_runs: %d is not between 0 and 1000", c.MaxBackgroundRuns))
	}
	if c.BackgroundTimeoutSecs < 1 || c.BackgroundTimeoutSecs > 24*3600 {
		errs = append(errs, fmt.Errorf("tools.shell.background_timeout_secs: %d is not between 1 and 86400", c.BackgroundTimeoutSecs))
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
