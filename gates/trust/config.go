package trust

import (
	"errors"
	"fmt"
	"slices"
)

// Action is what happens to a quarantined caller's call that could change or
// reach something.
type Action uint8

// The actions. The zero value is the strict one.
const (
	Deny Action = iota
	Ask
)

// String returns the name used in config.
func (a Action) String() string {
	if a == Ask {
		return "ask"
	}
	return "deny"
}

// MarshalText writes the name used in config.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the name used in config.
func (a *Action) UnmarshalText(text []byte) error {
	switch string(text) {
	case "deny":
		*a = Deny
	case "ask":
		*a = Ask
	default:
		return fmt.Errorf("unknown action %q: use deny or ask", text)
	}
	return nil
}

// Config is [tools.trust].
type Config struct {
	Quarantined      Action   `toml:"quarantined"`       // deny or ask
	QuarantinedTools []string `toml:"quarantined_tools"` // further tools a quarantined caller may not use, by name or by the part after the last underscore
}

// Default returns the built-in config.
func Default() Config { return Config{} }

// Validate checks the values on their own.
func (c Config) Validate() error {
	var errs []error
	if c.Quarantined > Ask {
		errs = append(errs, errors.New("tools.trust.quarantined: use deny or ask"))
	}
	if i := slices.Index(c.QuarantinedTools, ""); i >= 0 {
		errs = append(errs, fmt.Errorf("tools.trust.quarantined_tools[%d]: the name is empty", i))
	}
	return errors.Join(errs...)
}

// Warnings lists what this config makes less safe than the default.
func (c Config) Warnings() []string {
	if c.Quarantined == Ask {
		return []string{`tools.trust.quarantined = "ask": quarantined callers may change things when a person agrees`}
	}
	return nil
}
