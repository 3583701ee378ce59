package audit

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Mode says what happens to a call that cannot be recorded.
type Mode uint8

// The modes. The zero value is the strict one.
const (
	Required   Mode = iota // it does not run
	BestEffort             // it runs and the program's log says so
	Off                    // nothing is recorded at all
)

// String returns the name used in config.
func (m Mode) String() string {
	switch m {
	case BestEffort:
		return "best_effort"
	case Off:
		return "off"
	case Required:
		return "required"
	}
	return "required"
}

// MarshalText writes the name used in config.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name used in config.
func (m *Mode) UnmarshalText(text []byte) error {
	for _, known := range []Mode{Required, BestEffort, Off} {
		if string(text) == known.String() {
			*m = known
			return nil
		}
	}
	return fmt.Errorf("unknown mode %q: use required, best_effort or off", text)
}

// Config is [tools.audit].
type Config struct {
	Mode            Mode   `toml:"mode"`
	Path            string `toml:"path"`              // absolute; empty = audit.jsonl in the state folder
	FlushEachRecord bool   `toml:"flush_each_record"` // fsync after every record
}

// Default returns the strict default: every call is recorded or does not run.
func Default() Config { return Config{} }

// Validate checks the values on their own.
func (c Config) Validate() error {
	var errs []error
	if c.Path != "" && !filepath.IsAbs(c.Path) {
		errs = append(errs, fmt.Errorf("tools.audit.path: %q must be an absolute path, or empty for the state folder", c.Path))
	}
	if c.Mode > Off {
		errs = append(errs, errors.New("tools.audit.mode: use required, best_effort or off"))
	}
	return errors.Join(errs...)
}

// Warnings lists what this config makes less safe than the default.
func (c Config) Warnings() []string {
	switch c.Mode {
	case BestEffort:
		return []string{`tools.audit.mode = "best_effort": calls run even when they cannot be recorded`}
	case Off:
		return []string{`tools.audit.mode = "off": no call is recorded`}
	case Required:
	}
	return nil
}
