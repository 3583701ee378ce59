package shellast

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// edge is one function calling another.
type edge struct {
	to     string
	copies bool // in a pipe or in the background: both go on
}

// forkBombs notes functions that pipe or background themselves, directly or
// through another.
func (w *walker) forkBombs(file *syntax.File) {
	bodies := map[string]*syntax.FuncDecl{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			bodies[f.Name.Value] = f
		}
		return true
	})
	if len(bodies) == 0 {
		return
	}
	calls := map[string][]edge{}
	for name, f := range bodies {
		collectCalls(f.Body, false, bodies, func(e edge) { calls[name] = append(calls[name], e) })
	}
	for name, f := range bodies {
		for _, e := range calls[name] {
			if e.copies && reaches(calls, e.to, name, map[string]bool{}) {
				w.act(call.Act{Kind: call.ActForkBomb, Name: name, Text: w.text(f), Pos: w.pos(f)})
				break
			}
		}
	}
}

func reaches(calls map[string][]edge, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, e := range calls[from] {
		if reaches(calls, e.to, to, seen) {
			return true
		}
	}
	return false
}

// collectCalls reports every call of a known function below a node.
func collectCalls(n syntax.Node, copies bool, bodies map[string]*syntax.FuncDecl, emit func(edge)) {
	syntax.Walk(n, func(m syntax.Node) bool {
		switch x := m.(type) {
		case *syntax.Stmt:
			if x.Background && x.Cmd != nil {
				collectCalls(x.Cmd, true, bodies, emit)
				return false
			}
		case *syntax.BinaryCmd:
			if !copies && isPipe(x) {
				collectCalls(x.X, true, bodies, emit)
				collectCalls(x.Y, true, bodies, emit)
				return false
			}
		case *syntax.CoprocClause:
			if !copies {
				collectCalls(x.Stmt, true, bodies, emit)
				return false
			}
		case *syntax.CallExpr:
			if name := firstWord(x); bodies[name] != nil {
				emit(edge{to: name, copies: copies})
			}
		}
		return true
	})
}

func isPipe(x *syntax.BinaryCmd) bool { return x.Op == syntax.Pipe || x.Op == syntax.PipeAll }

func firstWord(x *syntax.CallExpr) string {
	if len(x.Args) == 0 {
		return ""
	}
	return unquoted(x.Args[0])
}
