package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/zeph-tools/zeph-mcp-tools/internal/glob"
)

// Limits of a policy.
const (
	MaxRules   = 256
	MaxPattern = 1024 // bytes of one args_match
)

// Effect is what a rule, or the absence of a match, does. The zero value is
// refused in a rule and denies as the default.
type Effect uint8

// The effects, strictest first.
const (
	EffectUnset Effect = iota
	Deny
	Confirm
	Allow
)

// String returns the name used in config.
func (e Effect) String() string {
	switch e {
	case Deny:
		return "deny"
	case Confirm:
		return "confirm"
	case Allow:
		return "allow"
	case EffectUnset:
		return ""
	}
	return ""
}

// MarshalText writes the name used in config.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the name used in config.
func (e *Effect) UnmarshalText(text []byte) error {
	for _, known := range []Effect{Deny, Confirm, Allow} {
		if string(text) == known.String() {
			*e = known
			return nil
		}
	}
	return fmt.Errorf("unknown effect %q: use allow, confirm or deny", text)
}

// Rule is one rule. Everything it states must hold for it to apply.
type Rule struct {
	Effect    Effect   `toml:"effect"`     // allow, confirm or deny
	Tool      string   `toml:"tool"`       // glob over the tool's name
	Paths     []string `toml:"paths"`      // globs over resolved paths, host names (*.example.com) or URLs (https://*.example.com/docs/*)
	ArgsMatch string   `toml:"args_match"` // RE2 pattern over the canonical JSON arguments; deny and confirm also try each text in them
}

// Config is [tools.policy].
type Config struct {
	Enabled       bool   `toml:"enabled"`
	DefaultEffect Effect `toml:"default_effect"` // when no rule applies
	Rules         []Rule `toml:"rules"`
}

// Default returns the built-in config: no policy.
func Default() Config { return Config{DefaultEffect: Deny} }

// Validate checks every rule, also while the policy is off.
func (c Config) Validate() error {
	var errs []error
	if c.DefaultEffect > Allow {
		errs = append(errs, errors.New("tools.policy.default_effect: use allow, confirm or deny"))
	}
	if len(c.Rules) > MaxRules {
		errs = append(errs, fmt.Errorf("tools.policy.rules: %d rules are more than %d", len(c.Rules), MaxRules))
	}
	for i, r := range c.Rules {
		if _, err := compile(i, r); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Warnings lists what makes this policy weaker than it looks.
func (c Config) Warnings() []string {
	switch {
	case !c.Enabled && len(c.Rules) > 0:
		return []string{"tools.policy.enabled = false: the policy's rules do nothing"}
	case c.Enabled && c.DefaultEffect == Allow:
		return []string{`tools.policy.default_effect = "allow": calls that no rule names are permitted`}
	}
	return nil
}

// Unmatched lists the rules that name no tool of these: they do nothing, which
// is seldom what was meant.
func (c Config) Unmatched(tools []string) []string {
	var out []string
	for i, r := range c.Rules {
		g, err := glob.Compile(r.Tool)
		if err == nil && !slices.ContainsFunc(tools, g.Fold().Match) {
			out = append(out, fmt.Sprintf("tools.policy.rules[%d].tool = %q matches no tool: the rule does nothing", i, r.Tool))
		}
	}
	return out
}

// rule is one compiled rule.
type rule struct {
	index  int
	effect Effect
	tool   glob.Glob
	places []place
	args   *regexp.Regexp // nil = any
}

// compile compiles one rule. The error names every field that is wrong.
func compile(i int, r Rule) (rule, error) {
	out := rule{index: i, effect: r.Effect}
	var errs []error
	fault := func(field string, err error) {
		errs = append(errs, fmt.Errorf("tools.policy.rules[%d].%s: %w", i, field, err))
	}
	if r.Effect == EffectUnset || r.Effect > Allow {
		fault("effect", errors.New("is required: allow, confirm or deny"))
	}
	var err error
	if out.tool, err = glob.Compile(r.Tool); err != nil {
		fault("tool", err)
	}
	out.tool = out.tool.Fold()
	for j, p := range r.Paths {
		g, err := compilePlace(p)
		if err != nil {
			fault(fmt.Sprintf("paths[%d]", j), err)
		}
		out.places = append(out.places, g)
	}
	switch {
	case len(r.ArgsMatch) > MaxPattern:
		fault("args_match", fmt.Errorf("is longer than %d bytes", MaxPattern))
	case r.ArgsMatch != "":
		if out.args, err = regexp.Compile(r.ArgsMatch); err != nil {
			fault("args_match", err)
		}
	}
	return out, errors.Join(errs...)
}
