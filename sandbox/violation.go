package sandbox

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Violation is one thing a command was denied. See [call.Violation].
type Violation = call.Violation

const (
	maxViolations = 20  // kept of one command
	maxTarget     = 200 // bytes of what a command chose the length of
)

// violations collects what one command was denied. It is safe for concurrent
// use.
type violations struct {
	mu   sync.Mutex
	list []Violation
}

// add notes one. Of several that differ in nothing but their number and who
// tried, the first is counted up.
func (vs *violations) add(v Violation) {
	v.Target, v.By = shown(v.Target), shown(v.By)
	v.Count = max(v.Count, 1)
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for i := range vs.list {
		if old := &vs.list[i]; old.Kind == v.Kind && old.Op == v.Op && old.Target == v.Target && old.Rule == v.Rule {
			if v.Source != call.SourceInferred || old.Source != call.SourceExact { // a guess adds nothing
				old.Count += v.Count
			}
			return
		}
	}
	if len(vs.list) < maxViolations {
		vs.list = append(vs.list, v)
	}
}

// all returns what was noted so far.
func (vs *violations) all() []Violation {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return append([]Violation(nil), vs.list...)
}

// shown makes a text that a command chose fit for a result: one line, nothing
// invisible, and not long.
func shown(s string) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() >= maxTarget {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// restored is one thing that was put back or set aside after a command.
type restored struct {
	path, text string
}

// note tells of what a command did that was undone.
func (r *Run) note(out *Outcome, undone []restored) {
	for _, u := range undone {
		if !slices.Contains(out.Restored, u.text) {
			out.Restored = append(out.Restored, u.text)
		}
		r.denied.add(Violation{
			Kind: call.ViolationFS, Op: "write", Target: u.path, Rule: "fs.protected", Source: call.SourceExact,
			Hint: "something would later have been run for it outside the sandbox, so it was undone; a person has to make this change",
		})
	}
}
