package pipeline

import (
	"context"
	"errors"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

// Verdict is the answer of a dry run: what would happen and why. It is the
// JSON of `zeph-mcp-tools explain`.
type Verdict struct {
	Verdict    string         `json:"verdict"`
	Gate       string         `json:"gate"`
	Code       string         `json:"code"`
	Reason     string         `json:"reason"`
	Suggestion string         `json:"suggestion"`
	Facts      ExplainedFacts `json:"facts"`
	Trail      []TrailEntry   `json:"trail"`
}

// TrailEntry is one gate's answer in a [Verdict].
type TrailEntry struct {
	Gate       string `json:"gate"`
	Verdict    string `json:"verdict"`
	Code       string `json:"code"`
	Reason     string `json:"reason,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// ExplainedFacts are the facts of a [Verdict]; no list is ever null.
type ExplainedFacts struct {
	Summary    string           `json:"summary"`
	Commands   []call.Command   `json:"commands"`
	Reads      []call.Path      `json:"reads"`
	Writes     []call.Path      `json:"writes"`
	URLs       []call.URL       `json:"urls"`
	Unknown    []call.Unknown   `json:"unknown"`
	Constructs []call.Construct `json:"constructs"`
}

// Explain judges a call and runs nothing: no record, no question, no grant, no
// count. It needs no pipeline, so that `explain` opens neither log nor store.
func Explain(ctx context.Context, reg *tools.Registry, chain *gates.Chain, r Request) Verdict {
	acc, err := reg.AcceptFor(r.Tool, r.Args, r.skillEnv())
	if err != nil {
		return Refuse(err)
	}
	j := chain.Judge(ctx, call.Call{
		ID: "explain", Session: r.Session, Caller: r.Caller, Meta: r.Meta,
		Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts,
	})
	d := j.Decisive
	v := Verdict{
		Verdict: j.Verdict.String(), Gate: d.Gate, Code: d.Code, Reason: d.Reason, Suggestion: d.Suggestion,
		Facts: explained(acc.Facts), Trail: make([]TrailEntry, len(j.Trail)),
	}
	for i, f := range j.Trail {
		v.Trail[i] = TrailEntry{Gate: f.Gate, Verdict: f.Verdict.String(), Code: f.Code, Reason: f.Reason, Suggestion: f.Suggestion}
	}
	return v
}

// Refuse is the verdict on a call that could not be accepted.
func Refuse(err error) Verdict {
	v := Verdict{Verdict: gates.Deny.String(), Gate: "accept", Code: "internal", Reason: err.Error(), Trail: []TrailEntry{}}
	if e, ok := errors.AsType[*call.Error](err); ok {
		v.Code, v.Reason, v.Suggestion = e.Code, e.Error(), e.Suggestion
	}
	v.Facts = explained(call.Facts{})
	return v
}

func explained(f call.Facts) ExplainedFacts {
	return ExplainedFacts{
		Summary: f.Summary, Commands: list(f.Commands), Reads: list(f.Reads), Writes: list(f.Writes),
		URLs: list(f.URLs), Unknown: list(f.Unknown), Constructs: list(f.Constructs),
	}
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
