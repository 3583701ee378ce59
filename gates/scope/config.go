package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/internal/glob"
)

// Config is [security.capability_scopes]. With no scope named, every tool is in
// scope.
type Config struct {
	DefaultScope string           `toml:"default_scope"` // for calls that name no task; what it leaves out no task gets
	Strict       bool             `toml:"strict"`        // a call that names an unknown task is refused instead of getting the default scope
	Scopes       map[string]Scope `toml:"*"`             // by task
}

// Scope is the tools of one task.
type Scope struct {
	Patterns []string `toml:"patterns"` // globs over qualified ids, such as builtin:read; a bare id means builtin
}

// Default returns the built-in config: no scopes.
func Default() Config { return Config{DefaultScope: "general"} }

// Validate checks everything that does not depend on the tools that exist.
func (c Config) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(mapKeys(c.Scopes)) {
		patterns := c.Scopes[name].Patterns
		if len(patterns) == 0 {
			errs = append(errs, fmt.Errorf("security.capability_scopes.%s.patterns: a scope without patterns permits nothing; name at least one tool", name))
		}
		for i, p := range patterns {
			if _, err := glob.Compile(qualify(p)); err != nil {
				errs = append(errs, fmt.Errorf("security.capability_scopes.%s.patterns[%d]: %w", name, i, err))
			}
		}
	}
	if len(c.Scopes) > 0 {
		if _, ok := c.Scopes[c.DefaultScope]; !ok && c.DefaultScope != Default().DefaultScope {
			errs = append(errs, fmt.Errorf("security.capability_scopes.default_scope: there is no scope %q", c.DefaultScope))
		}
	}
	return errors.Join(errs...)
}

func mapKeys(m map[string]Scope) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// qualify gives an id or a pattern without a namespace that of the built-in
// tools. A pattern that starts with a star spans every namespace.
func qualify(id string) string {
	if id == "" || strings.Contains(id, ":") || strings.HasPrefix(id, "*") {
		return id
	}
	return "builtin:" + id
}
