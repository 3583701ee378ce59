// Package scope is the gate that keeps a call inside the tools its task may
// use. A call outside is refused before anything else is looked at, and the
// refusal never names the scope or the task.
package scope

import (
	"context"
	"fmt"
	"slices"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/glob"
)

// CodeOutOfScope is the code of every refusal of this gate.
const CodeOutOfScope = "out_of_scope"

// Gate holds the compiled scopes.
type Gate struct {
	scopes   map[string]map[string]bool // task to tool names; nil = every tool for every task
	fallback map[string]bool            // the default scope; nil = every tool
	strict   bool
}

var _ gates.Gate = (*Gate)(nil)

// New compiles the scopes against the tools that exist. It refuses a pattern
// that matches no tool, and one that matches every tool in a scope other than
// the default one: both are mistakes that would go unnoticed.
func New(cfg Config, tools []string) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{strict: cfg.Strict}
	if len(cfg.Scopes) == 0 {
		return g, nil
	}
	g.scopes = make(map[string]map[string]bool, len(cfg.Scopes))
	for _, name := range slices.Sorted(mapKeys(cfg.Scopes)) {
		admitted, err := compile(name, cfg.Scopes[name], tools, name == cfg.DefaultScope)
		if err != nil {
			return nil, err
		}
		g.scopes[name] = admitted
	}
	g.fallback = g.scopes[cfg.DefaultScope] // nil when there is no default scope
	return g, nil
}

func compile(name string, s Scope, tools []string, isDefault bool) (map[string]bool, error) {
	admitted := map[string]bool{}
	for i, p := range s.Patterns {
		key := fmt.Sprintf("security.capability_scopes.%s.patterns[%d]", name, i)
		pattern, err := glob.Compile(qualify(p))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		matches := 0
		for _, tool := range tools {
			if pattern.Match(qualify(tool)) {
				admitted[tool] = true
				matches++
			}
		}
		switch {
		case matches == 0:
			return nil, fmt.Errorf("%s: %q matches no tool", key, p)
		case matches == len(tools) && len(tools) > 1 && !isDefault:
			return nil, fmt.Errorf("%s: %q matches every tool; only the default scope may", key, p)
		}
	}
	return admitted, nil
}

// Name is the gate's name in trails.
func (*Gate) Name() string { return "scope" }

// Check denies a tool outside the scope of the call's task.
func (g *Gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	if g.Admits(c.Meta.Task, c.Spec.Name) {
		return gates.Permit(), nil
	}
	return gates.Decision{Code: CodeOutOfScope, Reason: "this tool is not available for this call", Suggestion: "use one of the listed tools"}, nil
}

// Admits reports whether a tool is in scope for a task, for the list of tools
// as well as for calls. The task is what the client says it is, so it only
// narrows: what the default scope leaves out is out for every task.
func (g *Gate) Admits(task, tool string) bool {
	if g.scopes == nil {
		return true
	}
	if g.fallback != nil && !g.fallback[tool] {
		return false
	}
	if task == "" {
		return true
	}
	admitted, ok := g.scopes[task]
	if !ok {
		return !g.strict
	}
	return admitted[tool]
}
