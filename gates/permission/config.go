package permission

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zeph-tools/zeph-mcp-tools/internal/glob"
	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
)

// Autonomy is how much the agent may do without a person. The zero value is
// the default.
type Autonomy uint8

// The levels.
const (
	Supervised Autonomy = iota // the rules decide
	ReadOnly                   // only tools whose effect is reading
	Full                       // rules that ask are taken as allow; everything else holds
)

// String returns the name used in config.
func (a Autonomy) String() string {
	switch a {
	case ReadOnly:
		return "readonly"
	case Full:
		return "full"
	case Supervised:
		return "supervised"
	}
	return "readonly"
}

// MarshalText writes the name used in config.
func (a Autonomy) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the name used in config.
func (a *Autonomy) UnmarshalText(text []byte) error {
	for _, known := range []Autonomy{Supervised, ReadOnly, Full} {
		if string(text) == known.String() {
			*a = known
			return nil
		}
	}
	return fmt.Errorf("unknown level %q: use supervised, readonly or full", text)
}

// Action is what a rule says. The zero value is refused.
type Action uint8

// The actions.
const (
	ActionUnset Action = iota
	Deny
	Ask
	Allow
)

// String returns the name used in config.
func (a Action) String() string {
	switch a {
	case Deny:
		return "deny"
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	case ActionUnset:
		return ""
	}
	return ""
}

// MarshalText writes the name used in config.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the name used in config.
func (a *Action) UnmarshalText(text []byte) error {
	for _, known := range []Action{Deny, Ask, Allow} {
		if string(text) == known.String() {
			*a = known
			return nil
		}
	}
	return fmt.Errorf("unknown action %q: use allow, ask or deny", text)
}

// Rule says what happens to calls that match a pattern.
type Rule struct {
	Pattern string `toml:"pattern"` // glob over one command, path or URL; * spans everything
	Action  Action `toml:"action"`  // allow, ask or deny
}

// Config is [tools.permissions], with the level from [security].
type Config struct {
	Autonomy Autonomy          `toml:"-"`
	Tools    map[string][]Rule `toml:"*"` // by tool; the first rule that matches decides
}

// Default returns the built-in config: no rules, supervised.
func Default() Config { return Config{} }

// Validate checks the values on their own.
func (c Config) Validate() error {
	var errs []error
	if c.Autonomy > Full {
		errs = append(errs, errors.New("security.autonomy_level: use supervised, readonly or full"))
	}
	for _, tool := range slices.Sorted(maps.Keys(c.Tools)) {
		for i, r := range c.Tools[tool] {
			key := fmt.Sprintf("tools.permissions.%s[%d]", tool, i)
			if r.Action == ActionUnset || r.Action > Allow {
				errs = append(errs, fmt.Errorf("%s.action: is required: allow, ask or deny", key))
			}
			if _, err := glob.Compile(r.Pattern); err != nil {
				errs = append(errs, fmt.Errorf("%s.pattern: %w", key, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Unmatched lists the rules that name no tool of these: they do nothing, which
// is seldom what was meant.
func (c Config) Unmatched(tools []string) []string {
	var out []string
	for _, tool := range slices.Sorted(maps.Keys(c.Tools)) {
		if slices.Contains(tools, tool) {
			continue
		}
		hint := ""
		if near, ok := suggest.Nearest(tool, tools); ok {
			hint = "; did you mean " + near + "?"
		}
		out = append(out, fmt.Sprintf("tools.permissions.%s: there is no such tool, so its rules do nothing%s", tool, hint))
	}
	return out
}

// Warnings lists what this config makes less safe than the default.
func (c Config) Warnings() []string {
	if c.Autonomy == Full {
		return []string{`security.autonomy_level = "full": permission rules never ask`}
	}
	return nil
}
