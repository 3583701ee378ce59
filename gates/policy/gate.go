// Package policy is the gate of the operator's own allow, confirm and deny
// rules over tools, resolved paths, URLs and arguments.
//
// A deny that applies wins over every confirm, and a confirm over every allow,
// whatever their order. A rule that forbids applies when any part of the call
// matches; a rule that allows only when every part does. What cannot be
// resolved before running may be what a rule forbids, so it asks.
package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/kind"
)

// The codes of this gate. Refusals name the rule by its number only, so that a
// model learns nothing about how to slip past it.
const (
	CodeDenied     = "policy_denied"
	CodeConfirm    = "policy_confirm"
	CodeUnresolved = "policy_unresolved"
)

// Gate holds the compiled rules.
type Gate struct {
	enabled  bool
	fallback Effect
	rules    []rule
}

var _ gates.Gate = (*Gate)(nil)

// New compiles the rules. A rule that does not compile is an error that names
// its index and field; no rule is ever left out.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{enabled: cfg.Enabled, fallback: cfg.DefaultEffect}
	for i, r := range cfg.Rules {
		c, err := compile(i, r)
		if err != nil {
			return nil, err
		}
		g.rules = append(g.rules, c)
	}
	return g, nil
}

// Name is the gate's name in trails.
func (*Gate) Name() string { return "policy" }

// Check evaluates the rules.
func (g *Gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	if !g.enabled {
		return gates.Permit(), nil
	}
	s := subject{call: c}
	best, open := rule{index: -1}, -1
	for _, r := range g.rules {
		if best.effect != EffectUnset && r.effect >= best.effect {
			continue
		}
		switch s.match(r) {
		case yes:
			best = r
			if r.effect == Deny {
				return denied(fmt.Sprintf("rule %d", r.index)), nil
			}
		case unclear:
			if open < 0 {
				open = r.index
			}
		case no:
		}
	}
	return g.settle(c, best, open), nil
}

// settle decides when no deny applies for certain: an unclear rule asks unless
// something stricter holds anyway.
func (g *Gate) settle(c call.Call, best rule, open int) gates.Decision {
	effect, why := best.effect, fmt.Sprintf("rule %d", best.index)
	if effect == EffectUnset {
		effect, why = max(g.fallback, Deny), "default"
	}
	switch {
	case effect == Deny:
		return denied(why)
	case open >= 0:
		return gates.Decision{
			Verdict: gates.Confirm, Code: CodeUnresolved,
			Reason: fmt.Sprintf("a part of the call cannot be known before it runs and may be what the operator's policy forbids (rule %d)", open),
		}
	case effect == Confirm:
		return gates.Decision{
			Verdict: gates.Confirm, Code: CodeConfirm, Reason: "the operator's policy asks before this call (" + why + ")", Kind: kind.Of(c),
		}
	}
	return gates.Permit()
}

func denied(why string) gates.Decision {
	return gates.Decision{Code: CodeDenied, Reason: "the operator's policy does not permit this call (" + why + ")", Suggestion: "find another way, or ask the user to change [tools.policy]"}
}

type answer uint8

const (
	no answer = iota
	unclear
	yes
)

// subject is one call, with what several rules look at computed once.
type subject struct {
	call  call.Call
	texts []string // every text in the arguments
	read  bool
}

// match reports whether the rule applies to the call.
func (s *subject) match(r rule) answer {
	if !r.tool.Match(s.call.Spec.Name) || !s.args(r) {
		return no
	}
	if len(r.places) == 0 {
		return yes
	}
	if r.effect == Allow {
		return s.all(r.places)
	}
	return s.any(r.places)
}

func (s *subject) args(r rule) bool {
	if r.args == nil || r.args.Match(s.call.Args) {
		return true
	}
	if r.effect == Allow {
		return false // an allow must not be reached through some other text
	}
	if !s.read {
		s.read = true
		var v any
		if json.Unmarshal(s.call.Args, &v) == nil {
			s.texts = texts(v, nil)
		}
	}
	return slices.ContainsFunc(s.texts, r.args.MatchString)
}

func texts(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = texts(e, out)
		}
	case map[string]any:
		for k, e := range v {
			out = texts(e, append(out, k))
		}
	}
	return out
}

// any is for rules that forbid: one match is enough, and what is unknown, or
// lies somewhere below a folder taken whole, may match.
func (s *subject) any(places []place) answer {
	found := no
	for p := range s.paths() {
		for _, pl := range places {
			switch {
			case pl.matchPath(p):
				return yes
			case p.Recursive:
				found = max(found, pl.inside(p.Path))
			}
		}
	}
	for _, u := range s.call.Facts.URLs {
		for _, pl := range places {
			if pl.matchURL(u) {
				return yes
			}
		}
	}
	if s.open() {
		found = max(found, unclear)
	}
	return found
}

// all is for rules that allow: every path and URL must match, there must be
// one, and nothing may be unknown.
func (s *subject) all(places []place) answer {
	if s.open() {
		return no
	}
	found := no
	for p := range s.paths() {
		if !slices.ContainsFunc(places, func(pl place) bool {
			return !pl.isURL && pl.whole.Match(p.Path) && (!p.Recursive || pl.whole.Match(strings.TrimSuffix(p.Path, "/")+"/x"))
		}) {
			return no
		}
		found = yes
	}
	for _, u := range s.call.Facts.URLs {
		if u.Fault != "" || !slices.ContainsFunc(places, func(pl place) bool { return pl.matchURL(u) }) {
			return no
		}
		found = yes
	}
	return found
}

// paths are the paths read and written.
func (s *subject) paths() iter.Seq[call.Path] {
	return func(yield func(call.Path) bool) {
		for _, list := range [2][]call.Path{s.call.Facts.Reads, s.call.Facts.Writes} {
			for _, p := range list {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// open reports whether the call has a part that could not be decided.
func (s *subject) open() bool {
	if len(s.call.Facts.Unknown) > 0 || s.call.Facts.Parse != nil {
		return true
	}
	for p := range s.paths() {
		if p.Path == "" {
			return true
		}
	}
	return false
}
