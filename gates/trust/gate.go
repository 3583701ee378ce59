// Package trust is the gate that limits what a caller may do by how far its
// originator is believed. The weakest link decides: the caller, or any skill
// that is active while it calls.
package trust

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// The codes of this gate.
const (
	CodeBlocked     = "trust_blocked"
	CodeQuarantined = "trust_quarantined"
)

// Gate judges by trust.
type Gate struct {
	cfg Config
}

var _ gates.Gate = (*Gate)(nil)

// New returns the gate.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Gate{cfg: cfg}, nil
}

// Name is the gate's name in trails.
func (*Gate) Name() string { return "trust" }

// Check permits trusted and verified callers everything, quarantined ones only
// what reads local files or the server's own state, and blocked ones nothing.
// A level that is not set or not known counts as blocked.
func (g *Gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	switch level(c) {
	case call.TrustTrusted, call.TrustVerified:
		return gates.Permit(), nil
	case call.TrustQuarantined:
		if g.harmless(c.Spec) {
			return gates.Permit(), nil
		}
		d := gates.Decision{
			Code:       CodeQuarantined,
			Reason:     c.Spec.Name + " is not permitted at trust level quarantined" + weakest(c, call.TrustQuarantined),
			Suggestion: "use tools that only read files in the workspace",
		}
		if g.cfg.Quarantined == Ask && !g.listed(c.Spec.Name) {
			d.Verdict, d.Suggestion = gates.Confirm, ""
		}
		return d, nil
	case call.TrustBlocked, call.TrustUnset:
	}
	return gates.Decision{Code: CodeBlocked, Reason: "nothing is permitted at trust level blocked" + weakest(c, call.TrustBlocked)}, nil
}

// level is the lowest trust of the caller and of every active skill.
func level(c call.Call) call.Trust {
	l := c.Caller.Trust
	if l > call.TrustTrusted {
		return call.TrustBlocked
	}
	for _, word := range c.Meta.Skills {
		t, _ := call.ParseTrust(word)
		l = min(l, t)
	}
	return l
}

func (g *Gate) harmless(s call.Spec) bool {
	return (s.Effect == call.ReadsFiles || s.Effect == call.ReadsState) && !g.listed(s.Name)
}

// listed reports whether the config names the tool, or the part after one of
// its underscores, as files_write ends in write.
func (g *Gate) listed(tool string) bool {
	return slices.ContainsFunc(g.cfg.QuarantinedTools, func(entry string) bool {
		return tool == entry || strings.HasSuffix(tool, "_"+entry)
	})
}

// weakest names the skills that pull the level down to that of the call.
func weakest(c call.Call, l call.Trust) string {
	if c.Caller.Trust <= l {
		return ""
	}
	var names []string
	for name, word := range c.Meta.Skills {
		if t, _ := call.ParseTrust(word); t <= l {
			names = append(names, fmt.Sprintf("%.60q", name))
		}
	}
	slices.Sort(names)
	if len(names) > 5 {
		names = append(names[:5], fmt.Sprintf("%d more", len(names)-5))
	}
	return ": the weakest active skill decides (" + strings.Join(names, ", ") + ")"
}
