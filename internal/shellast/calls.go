package shellast

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// The bounds of what is tried out: beyond them a variable is unknown, and a
// function is judged with nothing known.
const (
	maxWorlds    = 2 * maxCandidates // values of all variables of one statement together
	maxForks     = 1024              // statements walked more than once
	maxRecursion = 3                 // calls of a function inside itself
)

// worlds are the values that the variables of a simple command or a pipeline
// may hold together, nil when they hold one each.
func (w *walker) worlds(st *state, s *syntax.Stmt) []map[string]value {
	switch c := s.Cmd.(type) {
	case nil, *syntax.CallExpr, *syntax.DeclClause:
	case *syntax.BinaryCmd:
		if c.Op != syntax.Pipe && c.Op != syntax.PipeAll {
			return nil
		}
	default:
		return nil
	}
	if !st.forked() {
		return nil
	}
	worlds := []map[string]value{nil}
	syntax.Walk(s, func(n syntax.Node) bool {
		name := reads(n)
		v, ok := st.vars[name]
		if _, done := worlds[0][name]; !ok || done {
			return true
		}
		options := slices.Clone(v.alts)
		if !v.full {
			options = append(options, value{})
		}
		if len(v.alts) > 0 && len(worlds)*len(options) <= maxWorlds {
			worlds = times(worlds, name, options)
		}
		return true
	})
	if w.common.forks += len(worlds); w.common.forks > maxForks {
		return nil
	}
	return worlds
}

// reads is the variable whose value a node looks at.
func reads(n syntax.Node) string {
	switch x := n.(type) {
	case *syntax.ParamExp:
		if x.Param != nil {
			return x.Param.Value
		}
	case *syntax.Assign:
		if x.Append && x.Name != nil {
			return x.Name.Value
		}
	}
	return ""
}

// forked reports whether a variable may hold one of several values.
func (s *state) forked() bool {
	for _, v := range s.vars {
		if len(v.alts) > 0 {
			return true
		}
	}
	return false
}

// times puts every option of a variable beside every world so far.
func times(worlds []map[string]value, name string, options []value) []map[string]value {
	out := make([]map[string]value, 0, len(worlds)*len(options))
	for _, o := range options {
		for _, world := range worlds {
			next := maps.Clone(world)
			if next == nil {
				next = map[string]value{}
			}
			next[name] = o
			out = append(out, next)
		}
	}
	return out
}

// trapped is the program of a trap.
type trapped struct {
	w  walker
	st *state // where it was set
	x  word
}

// changes notes that a trap may give a variable a value at any time.
func (s *shared) changes(name string, v value) {
	if s.volatile == nil {
		s.volatile = map[string]value{}
	}
	if old, ok := s.volatile[name]; ok {
		v = v.union(old)
	}
	s.volatile[name] = v
}

// shellMark is how many traps and ends were known before a shell started.
type shellMark struct{ traps, ends int }

func (s *shared) mark() shellMark { return shellMark{len(s.traps), len(s.ends)} }

// finish judges what the traps of a shell run with what the shell leaves, and
// then the traps that those have set with what they leave in turn.
func (w *walker) finish(st *state, m shellMark) {
	last := st
	for {
		traps, ends := w.common.traps[m.traps:], w.common.ends[m.ends:]
		w.common.traps, w.common.ends = w.common.traps[:m.traps:m.traps], w.common.ends[:m.ends:m.ends]
		if len(traps) == 0 {
			return
		}
		last = last.clone()
		for _, end := range ends {
			last.join(end)
		}
		next := last.clone()
		for _, t := range traps {
			maps.Copy(t.st.change(), last.vars)
			t.w.program(t.st, t.x, "trap")
			next.join(t.st)
		}
		last = next
	}
}

// uncover notes that unset takes away what a calling function had for itself:
// what it assigns from then on is the outer variable.
func (s *shared) uncover(name string, own *frame) {
	for _, f := range s.frames {
		if _, ok := f.locals[name]; ok && f != own {
			f.locals[name] = false
		}
	}
}

// body is one definition of a function, and the walker that met it.
type body struct {
	w      walker
	st     *state // what holds when nothing is known of a call
	stmt   *syntax.Stmt
	text   string // of the whole definition
	pos    call.Pos
	judged bool // it was called with what is known of the call
}

// frame is one call of a function that is being judged.
type frame struct {
	body   *body
	start  *state           // what held when it was called
	locals map[string]bool  // true when the outer value surely comes back
	outer  map[string]value // else what it may be
	top    []*syntax.Stmt   // what surely runs, from the first on
	left   *state           // where the function may have ended before
}

// define keeps the body of a function. When something of its name has run
// already, a trap or a loop may call it with what nobody saw.
func (w *walker) define(b *body) {
	name := b.w.body
	if w.common.bodies == nil {
		w.common.bodies = map[string][]*body{}
	}
	for _, old := range w.common.bodies[name] {
		if old.stmt == b.stmt {
			return
		}
	}
	w.common.bodies[name] = append(w.common.bodies[name], b)
	w.common.uncalled = append(w.common.uncalled, b)
	if name == "command_not_found_handle" || slices.ContainsFunc(w.f.Commands, func(c call.Command) bool { return len(c.Argv) > 0 && c.Argv[0] == name }) {
		w.common.early = append(w.common.early, b)
	}
}

// definitions judges, with nothing known, the functions that nothing calls in
// sight, and those that may have been called before they were met.
func (w *walker) definitions() {
	for len(w.common.uncalled)+len(w.common.early) > 0 {
		list := w.common.early
		for _, b := range w.common.uncalled {
			if !b.judged && !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
		w.common.uncalled, w.common.early = nil, nil
		for _, b := range list {
			w.enter(b, b.st.clone())
		}
	}
}

// called judges the bodies a function has where it is called, and what they
// leave behind.
func (w *walker) called(st *state, c *cmd) {
	bodies := w.common.bodies[c.word.text()]
	if len(bodies) == 0 {
		st.loosenAll()
		return
	}
	var after *state
	looked := false // at the body that after comes from
	for _, b := range bodies {
		end, seen := w.callBody(st, c, b)
		if after == nil {
			after, looked = end, seen
			continue
		}
		cwd := after.cwd
		after.join(end)
		switch {
		case seen && !looked:
			after.cwd, looked = end.cwd, true
		case seen == looked && end.cwd != cwd:
			after.cwd = ""
		default:
			after.cwd = cwd // a function that has replaced itself is not called again
		}
	}
	after.args, after.argsKnown, after.in, after.env = st.args, st.argsKnown, st.in, st.env
	*st = *after
}

// callBody judges one body with the words it is given, and returns what holds
// after it, and whether it was looked at.
func (w *walker) callBody(st *state, c *cmd, b *body) (after *state, looked bool) {
	b.judged = true
	in := st.clone()
	for n, v := range st.env {
		in.set(n, v) // a prefix assignment is a variable of the function
	}
	setArgs(in, c.args)
	in.set("FUNCNAME", literal(b.w.body))
	active, again := w.common.active(b, in)
	if !again && active >= maxRecursion {
		in = b.st.clone()
		in.cwd = ""
		_, again = w.common.active(b, in)
	}
	if again {
		return unknownAfter(st), false // the very same call is being judged
	}
	if w.common.left -= len(b.text); len(w.common.frames) >= maxDepth || w.common.left < 0 {
		w.code(nil, c.word.text(), "the functions call each other too often to judge", c.pos)
		return unknownAfter(st), false
	}
	end, f := w.enter(b, in)
	for n := range st.env {
		f.locals[n] = f.locals[n] || end.vars[n].equal(st.env[n])
	}
	f.locals["FUNCNAME"] = true
	f.restore(end, st)
	return end, true
}

// active counts the calls of a body that are being judged, and reports whether
// one of them found just the same.
func (s *shared) active(b *body, in *state) (n int, same bool) {
	for _, f := range s.frames {
		if f.body == b {
			n++
			same = same || f.start.same(in)
		}
	}
	return n, same
}

// restore gives the variables back that the function had for itself.
func (f *frame) restore(end, st *state) {
	for n, surely := range f.locals {
		v, ok := st.vars[n]
		switch {
		case surely && ok:
			end.change()[n] = v
		case surely:
			delete(end.change(), n)
		default:
			end.change()[n] = end.vars[n].union(v).union(f.outer[n])
		}
	}
}

// enter walks a body in a frame of its own.
func (w *walker) enter(b *body, in *state) (*state, *frame) {
	f := &frame{body: b, start: in, locals: map[string]bool{}, outer: map[string]value{}}
	if block, ok := b.stmt.Cmd.(*syntax.Block); ok && len(b.stmt.Redirs) == 0 {
		f.top = block.Stmts
	}
	w.common.frames = append(w.common.frames, f)
	defer func() { w.common.frames = w.common.frames[:len(w.common.frames)-1] }()
	n := b.w
	n.inFunc, n.frame = true, f
	sub := in.clone()
	n.stmt(sub, b.stmt)
	if f.left != nil {
		cwd := sub.cwd
		sub.join(f.left)
		if f.left.cwd != cwd {
			sub.cwd = ""
		}
	}
	return sub, f
}

// unknownAfter is what holds after a call that was not looked at.
func unknownAfter(st *state) *state {
	out := st.clone()
	out.loosenAll()
	out.cwd = ""
	return out
}

// same reports whether a call that starts like this one finds the same.
func (s *state) same(o *state) bool {
	return s.cwd == o.cwd && s.argsKnown == o.argsKnown && slices.EqualFunc(s.args, o.args, word.equal) &&
		s.in.kind == o.in.kind && s.in.text == o.in.text && maps.EqualFunc(s.vars, o.vars, value.equal)
}

// leave keeps a state in which the function may end.
func (f *frame) leave(st *state) {
	if f.left == nil {
		f.left = st.clone()
		return
	}
	f.left.join(st)
}

// ownVariable notes a variable that a function declares for itself. The outer
// value surely comes back when every call gets there before it changes.
func (w *walker) ownVariable(st *state, x *syntax.DeclClause, name string, at attributes) {
	if !at.local || !isName(name) {
		return
	}
	f := w.frame
	if _, ok := f.locals[name]; at.global && ok {
		f.locals[name], f.outer[name] = false, value{}
	} else if at.global || ok {
		return
	}
	f.outer[name] = st.vars[name]
	first := slices.ContainsFunc(f.top, func(s *syntax.Stmt) bool { return s.Cmd == x && !s.Background })
	f.locals[name] = x != nil && first && f.left == nil && st.vars[name].equal(f.start.vars[name])
}
