// Package ipi makes text that came from outside less able to give orders.
//
// It works in three steps. [Prune] removes from a parsed page what a person
// would not see, which is where most injections in the wild sit. [Clean]
// removes characters nobody sees. [Filter.Apply] scores what is left against
// weighted patterns and, when they add up, blanks what matched. [Frame] then
// marks where the text begins and ends and whose it is.
//
// None of this is a boundary: adaptive attacks pass such filters. What an
// agent may do afterwards is bounded by the gates and the sandbox.
package ipi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// DefaultThreshold is the score from which matches are blanked.
const DefaultThreshold = 0.6

// mark replaces what a pattern matched.
const mark = "[FILTERED]"

// Report says what was found in one text and what was done.
type Report struct {
	HiddenRemoved  int      `json:"hidden_removed"`  // pieces and characters nobody would have seen
	InjectionScore float64  `json:"injection_score"` // 0 to 1
	Patterns       []string `json:"patterns,omitempty"`
	Altered        bool     `json:"-"` // matches were blanked
}

// Warning is the line that goes before an altered text, "" otherwise.
func (r Report) Warning() string {
	if !r.Altered {
		return ""
	}
	return fmt.Sprintf("[IPI WARNING: score=%.2f, patterns=%s] ", r.InjectionScore, strings.Join(r.Patterns, ", "))
}

// Filter scores text. It is safe for concurrent use.
type Filter struct {
	threshold float64
	patterns  []pattern
}

// NewFilter returns a filter that blanks matches from a score of threshold on.
// A threshold above 1 never blanks; it must not be negative.
func NewFilter(threshold float64) (*Filter, error) {
	if threshold < 0 || threshold != threshold {
		return nil, errors.New("the injection threshold must not be negative")
	}
	return &Filter{threshold: threshold, patterns: patterns()}, nil
}

// Apply cleans and judges the parts of one result together and returns them in
// the same order. Scoring is joint, so an attack spread over several parts
// counts as one. Only phrases are ever blanked: invisible characters alone,
// which ordinary pages have too, are removed and reported but blank nothing.
func (f *Filter) Apply(parts ...string) ([]string, Report) {
	var rep Report
	out := make([]string, len(parts))
	found := map[string]bool{}
	spans := make([][]span, len(parts))
	phrase := false
	for i, p := range parts {
		clean, invisible := Clean(p)
		out[i] = clean
		rep.HiddenRemoved += invisible
		if invisible > 0 {
			found[zeroWidth] = true
		}
		lower := lowerASCII(clean)
		for _, pt := range f.patterns {
			hits := pt.find(clean, lower)
			if len(hits) > 0 {
				found[pt.name] = true
				phrase = phrase || pt.phrase
				spans[i] = append(spans[i], hits...)
			}
		}
	}
	score := 0
	for _, pt := range f.patterns {
		if found[pt.name] {
			score += pt.weight
			rep.Patterns = append(rep.Patterns, pt.name)
		}
	}
	rep.InjectionScore = float64(min(score, 100)) / 100
	if !phrase || rep.InjectionScore < f.threshold {
		return out, rep
	}
	rep.Altered = true
	for i := range out {
		out[i] = blank(out[i], spans[i])
	}
	return out, rep
}

// span is a matched range of bytes.
type span struct{ from, to int }

// blank replaces the union of the spans, neighbours merged.
func blank(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for i := 0; i < len(spans); {
		from, to := spans[i].from, spans[i].to
		for i++; i < len(spans) && spans[i].from <= to; i++ {
			to = max(to, spans[i].to)
		}
		b.WriteString(text[at:from])
		b.WriteString(mark)
		at = to
	}
	b.WriteString(text[at:])
	return b.String()
}

// lowerASCII lowers A to Z only, so that offsets stay those of the original.
func lowerASCII(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	if i < 0 {
		return s
	}
	b := []byte(s)
	for ; i < len(b); i++ {
		if b[i] >= 'A' && b[i] <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}
