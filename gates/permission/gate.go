// Package permission is the gate of the user's own allow, ask and deny rules
// for each tool, and of the autonomy level.
//
// Rules match what a call means, not how it is spelled: in a shell command
// every program that would run is matched by its resolved words, so an allow
// for one does not cover the next one after a semicolon.
package permission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/glob"
	"github.com/zeph-tools/zeph-mcp-tools/internal/kind"
)

// The codes of this gate.
const (
	CodeReadOnly = "autonomy_readonly"
	CodeDenied   = "permission_denied"
	CodeAsk      = "permission_ask"
)

// Gate holds the compiled rules.
type Gate struct {
	autonomy Autonomy
	tools    map[string][]rule
}

type rule struct {
	action  Action
	pattern glob.Glob
}

var _ gates.Gate = (*Gate)(nil)

// New compiles the rules.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{autonomy: cfg.Autonomy, tools: map[string][]rule{}}
	for tool, rules := range cfg.Tools {
		for i, r := range rules {
			p, err := glob.Compile(r.Pattern)
			if err != nil {
				return nil, fmt.Errorf("tools.permissions.%s[%d].pattern: %w", tool, i, err)
			}
			if r.Action != Allow {
				p = p.Fold() // a refusal is not dodged by case, a permission is not stretched by it
			}
			g.tools[tool] = append(g.tools[tool], rule{r.Action, p})
		}
	}
	return g, nil
}

// Name is the gate's name in trails.
func (*Gate) Name() string { return "permission" }

// Check applies the autonomy level, then the tool's rules. A tool without
// rules is left to the other gates; a call that no rule of its tool matches is
// asked about.
func (g *Gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	if g.autonomy == ReadOnly && !c.Spec.Effect.ReadOnly() {
		return gates.Decision{
			Code: CodeReadOnly, Reason: c.Spec.Name + " can change things and autonomy is readonly",
			Suggestion: "use the tools that read",
		}, nil
	}
	rules := g.tools[c.Spec.Name]
	if len(rules) == 0 {
		return gates.Permit(), nil
	}
	action, what, why := judge(rules, c.Facts)
	switch {
	case action == Deny:
		return gates.Decision{Code: CodeDenied, Reason: why + ": " + what, Suggestion: "find another way, or ask the user to change [tools.permissions]"}, nil
	case action == Allow, g.autonomy == Full:
		return gates.Permit(), nil
	}
	return gates.Decision{Verdict: gates.Confirm, Code: CodeAsk, Reason: why + ": " + what, Kind: kind.Of(c)}, nil
}

// judge returns the strictest action over every part of the call, with the
// part that decides and why.
func judge(rules []rule, f call.Facts) (action Action, what, why string) {
	if a, matched := first(rules, unit{text: f.Text}); matched && a != Allow {
		// A pattern over more than one command holds too; only an allow needs
		// every part for itself.
		action, what, why = a, f.Text, ruleSays(a)
	}
	for _, part := range units(f) {
		a, matched := first(rules, part)
		if a < action || action == ActionUnset {
			action, what, why = a, part.text, ruleSays(a)
			if !matched {
				why = "no permission rule matches" + open(f.Text, part.text)
			}
		}
	}
	if action == Allow && (f.Parse != nil || undecided(f)) {
		return Ask, f.Text, "a part of it cannot be known before it runs, so no permission rule can allow it"
	}
	return action, clip(what), why
}

// open says which variable of a part is not known, so that a person sees why
// a rule that looks as if it fitted does not.
func open(text, part string) string {
	for at, c := range part {
		if c != '$' {
			continue
		}
		name := strings.TrimPrefix(part[at+1:], "{")
		if end := strings.IndexFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }); end >= 0 {
			name = name[:end]
		}
		for _, written := range []string{"$" + name, "${" + name} {
			// As it stands in the command, and neither quoted nor escaped.
			before, _, found := strings.Cut(text, written)
			if name != "" && found && !strings.HasSuffix(before, `\`) && strings.Count(before, "'")%2 == 0 {
				return " (what $" + name + " stands for is not known before it runs)"
			}
		}
	}
	return ""
}

// unit is a part of a call that rules match for itself.
type unit struct {
	text  string
	forms []string // other ways to write it, for rules that refuse or ask
}

// units are the commands of a call as their resolved words, else its canonical
// text.
func units(f call.Facts) []unit {
	if len(f.Commands) == 0 {
		return []unit{{text: f.Text}}
	}
	var out []unit
	for _, c := range f.Commands {
		u := unit{text: strings.Join(c.Argv, " ")}
		for _, words := range c.Forms() {
			u.forms = append(u.forms, strings.Join(words, " "))
		}
		out = append(out, u)
	}
	return out
}

// undecided reports whether what runs, as against what it works on, is open.
func undecided(f call.Facts) bool {
	for _, u := range f.Unknown {
		if u.Code {
			return true
		}
	}
	for _, c := range f.Commands {
		if c.Name == "" {
			return true
		}
	}
	return false
}

// first returns what the first matching rule says. Nothing matching asks.
func first(rules []rule, u unit) (a Action, matched bool) {
	for _, r := range rules {
		if r.pattern.Match(u.text) || r.action != Allow && slices.ContainsFunc(u.forms, r.stops) {
			return r.action, true
		}
	}
	return Ask, false
}

// stops reports whether a rule that refuses or asks means this: "git push *"
// is about a push to nowhere as well.
func (r rule) stops(form string) bool { return r.pattern.Match(form) || r.pattern.Match(form+" ") }

func ruleSays(a Action) string { return "a permission rule says " + a.String() }

func clip(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// Hidden reports whether every call of the tool is denied, so that it need not
// be offered.
func (g *Gate) Hidden(tool string) bool {
	for _, r := range g.tools[tool] {
		if r.action != Deny {
			return false
		}
		if p := r.pattern.String(); p == "*" || p == "**" {
			return true
		}
	}
	return false
}
