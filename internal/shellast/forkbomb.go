package shellast

import (
	"maps"
	"slices"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// edge is one function calling another.
type edge struct {
	to     string
	copies bool // in a pipe or in the background: both go on
	child  bool // in a shell of its own, which has only exported functions
}

// alsoRuns returns a walker for what runs beside the rest of its function.
func (w *walker) alsoRuns() *walker {
	n := *w
	n.beside = true
	return &n
}

// sameShell reports whether a text is run by the shell itself, which has its
// functions.
func sameShell(via string) bool {
	switch via {
	case "", "eval", "trap", "alias", "source", ".", "!( )", "PROMPT_COMMAND", "BASH_ALIASES", "mapfile -C", "readarray -C":
		return true
	}
	return false
}

// callsFrom notes that the body of a function calls what may be a function. A
// program of that name is none: it is what a wrapper finds.
func (w *walker) callsFrom(c *cmd) {
	if w.body == "" || c.via != w.via || !c.word.known() {
		return
	}
	if w.common.edges == nil {
		w.common.edges = map[string][]edge{}
	}
	e := edge{to: c.word.text(), copies: w.beside, child: w.child}
	if !slices.Contains(w.common.edges[w.body], e) {
		w.common.edges[w.body] = append(w.common.edges[w.body], e)
	}
}

// forkBombs notes functions that pipe or background themselves, directly or
// through another, when everything has been walked.
func (w *walker) forkBombs() {
	for _, name := range slices.Sorted(maps.Keys(w.common.edges)) {
		bodies := w.common.bodies[name]
		for _, e := range w.common.edges[name] {
			if len(bodies) > 0 && e.copies && w.common.finds(e) && w.common.reaches(e.to, name, map[string]bool{}) {
				w.act(call.Act{Kind: call.ActForkBomb, Name: name, Text: bodies[0].text, Pos: bodies[0].pos})
				break
			}
		}
	}
}

// reaches reports whether a call of one function can end in a call of another.
func (s *shared) reaches(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] || len(s.bodies[from]) == 0 {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(s.edges[from], func(e edge) bool { return s.finds(e) && s.reaches(e.to, to, seen) })
}

// finds reports whether the shell of a call knows the functions of this one.
func (s *shared) finds(e edge) bool { return !e.child || s.exported }
