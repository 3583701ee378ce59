package shellast

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// walker goes through one tree and adds what it means to the facts.
type walker struct {
	a       *Analyzer
	f       *call.Facts
	src     string    // the text this tree was parsed from
	base    *call.Pos // place of everything in it when it is text inside the command
	via     string    // what runs this text
	depth   int
	loops   int             // loops around what is walked
	inFunc  bool            // the text is the body of a function
	frame   *frame          // of the call whose body it is
	body    string          // the function whose body it is
	beside  bool            // it runs beside the rest of that function
	child   bool            // it runs in another shell than that function
	funcs   map[string]bool // functions and aliases defined so far
	printed map[int]output  // what constructs are known to print
	common  *shared
}

// shared is what all walkers of one analysis have in common.
type shared struct {
	left int // bytes of resolved text that may still be made

	segs  arena[seg]
	argvs arena[string]
	cmds  arena[cmd]

	secrets   []string // the secret places near a folder, looked up once
	secretsAt string   // that folder

	namerefs map[string]bool // names that stand for other variables

	bodies  map[string][]*body // of functions, to judge what they do with their input
	calling map[string]bool    // aliases being judged

	uncalled, early []*body  // definitions that are still to be judged with nothing known
	frames          []*frame // calls that are being judged, the innermost last
	forks           int      // statements walked for several values
	moves           int      // loops walked again for their folder

	traps    []trapped
	volatile map[string]value  // what traps may give a variable at any time
	ends     []*state          // what holds where exit is called
	edges    map[string][]edge // what functions call

	exported bool // functions may be known to the shells that are started

	aliases  map[string][]string
	readonly map[string]bool // names that no assignment changes
	integers map[string]bool // names whose assignments are arithmetic

	links  map[string]string // names that this command makes lead elsewhere
	copies map[string]string // files that this command makes of others

	lastpipe bool // the last stage of a pipe may run in the shell itself
}

// arena hands out short slices of longer arrays. Those of one array stay as long
// as any of them, so it is for what lives as long as one analysis or its facts.
type arena[T any] struct {
	free []T
	next int // length of the next array
}

// take returns n zero values that nothing else has.
func (a *arena[T]) take(n int) []T {
	const least, most = 4, 64
	if n > len(a.free) {
		if n > most {
			return make([]T, n)
		}
		a.next = max(least, n, min(2*a.next, most))
		a.free = make([]T, a.next)
	}
	out := a.free[:n:n]
	a.free = a.free[n:]
	return out
}

func (s *shared) call(name string) {
	if s.calling == nil {
		s.calling = map[string]bool{}
	}
	s.calling[name] = true
}

// declared remembers the attributes that a declaration gives a name.
func (s *shared) declared(name string, a attributes) {
	note := func(m *map[string]bool) {
		if *m == nil {
			*m = map[string]bool{}
		}
		(*m)[name] = true
	}
	if a.nameref {
		note(&s.namerefs)
	}
	if a.readonly {
		note(&s.readonly)
	}
	if a.integer {
		note(&s.integers)
	}
	s.exported = s.exported || a.functions && a.how == "export"
}

// output is what a command is known to print.
type output struct {
	known bool
	text  string
}

func (w *walker) pos(n syntax.Node) call.Pos {
	if w.base != nil {
		return *w.base
	}
	p := n.Pos()
	return call.Pos{Line: p.Line(), Column: p.Col()}
}

// text is a node as written.
func (w *walker) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.src) || from >= to {
		return ""
	}
	return w.src[from:to]
}

func (w *walker) stmts(st *state, list []*syntax.Stmt) output {
	var out output
	for i, s := range list {
		out = w.stmt(st, s)
		if i > 0 || len(list) > 1 {
			out = output{}
		}
	}
	return out
}

// stmt walks one statement, once for every value its variables may hold.
func (w *walker) stmt(st *state, s *syntax.Stmt) output {
	worlds := w.worlds(st, s)
	if len(worlds) < 2 {
		return w.once(st, s)
	}
	var after *state
	var out output
	for i, vars := range worlds {
		sub := st.clone()
		maps.Copy(sub.change(), vars)
		o := w.once(sub, s)
		if i == 0 {
			after, out = sub, o
			continue
		}
		after.join(sub)
		if o != out {
			out = output{}
		}
	}
	*st = *after
	return out
}

// once walks one statement with what is known.
func (w *walker) once(st *state, s *syntax.Stmt) output {
	if s.Background || s.Coprocess {
		st, w = st.clone(), w.alsoRuns()
		m := w.common.mark()
		defer func() { w.finish(st, m) }()
	}
	saved := st.in
	in, redirected := w.redirects(st, s.Redirs)
	if in != nil {
		st.in = *in
	}
	out := w.command(st, s.Cmd)
	if in != nil && !st.keepIn {
		st.in = saved
	}
	st.keepIn = false
	w.fed(st, s.Redirs, out)
	if redirected {
		return output{}
	}
	return out
}

// fed walks the commands of >( ) that a command writes to: they read what it
// prints.
func (w *walker) fed(st *state, rs []*syntax.Redirect, out output) {
	for _, r := range rs {
		p, ok := procOutput(r)
		if !ok {
			continue
		}
		in := input{kind: inputUnknown, text: w.text(p), cons: []int{len(w.f.Constructs)}, pos: w.pos(p)}
		if out.known {
			in.kind, in.text, in.cons = inputText, out.text, nil
		}
		w.procSubst(st, p, in)
	}
}

// command walks one command. Everything that is a command position ends in
// [walker.run].
func (w *walker) command(st *state, c syntax.Command) output {
	switch x := c.(type) {
	case *syntax.CallExpr:
		return w.simple(st, x, false)
	case *syntax.BinaryCmd:
		return w.binary(st, x)
	case *syntax.Block:
		return w.stmts(st, x.Stmts)
	case *syntax.Subshell:
		sub, m := st.clone(), w.common.mark()
		out := w.stmts(sub, x.Stmts)
		w.finish(sub, m)
		return out
	case *syntax.IfClause:
		w.ifClause(st, x)
	case *syntax.WhileClause, *syntax.ForClause:
		w.loops++
		w.loop(st, x)
		w.loops--
	case *syntax.CaseClause:
		w.caseClause(st, x)
	case *syntax.FuncDecl:
		w.function(st, x)
	case *syntax.TimeClause:
		return w.timed(st, x)
	case *syntax.CoprocClause:
		w.coproc(st, x)
	default:
		w.evaluation(st, c)
	}
	return output{}
}

// evaluation walks the commands that evaluate rather than run.
func (w *walker) evaluation(st *state, c syntax.Command) {
	switch x := c.(type) {
	case *syntax.ArithmCmd:
		w.arith(st, x.X)
	case *syntax.LetClause:
		for _, e := range x.Exprs {
			w.arith(st, e)
		}
	case *syntax.TestClause:
		w.test(st, x.X)
	case *syntax.DeclClause:
		w.declare(st, x)
	case *syntax.TestDecl:
		w.stmt(st.clone(), x.Body)
	}
}

func (w *walker) binary(st *state, x *syntax.BinaryCmd) output {
	if x.Op == syntax.Pipe || x.Op == syntax.PipeAll {
		return w.pipeline(st, x)
	}
	ok, failed := w.andOr(st.clone(), x)
	cwd, old, dirs := ok.cwd, ok.old, ok.dirs
	ok.join(failed)
	ok.cwd, ok.old, ok.dirs = cwd, old, dirs
	*st = *ok
	return output{}
}

// andOr walks a list of && and || and returns what is known after it succeeded
// and after it failed. Commands are taken to do what they are asked: after
// "cd sub && make" the directory is sub.
func (w *walker) andOr(st *state, x *syntax.BinaryCmd) (ok, failed *state) {
	side := func(st *state, s *syntax.Stmt) (ok, failed *state) {
		b, isList := s.Cmd.(*syntax.BinaryCmd)
		if isList && (b.Op == syntax.AndStmt || b.Op == syntax.OrStmt) && len(s.Redirs) == 0 && !s.Background && !s.Negated {
			return w.andOr(st, b)
		}
		w.stmt(st, s)
		return st, st.clone()
	}
	ok, failed = side(st, x.X)
	if x.Op == syntax.AndStmt {
		ok2, failed2 := side(ok, x.Y)
		failed.join(failed2)
		return ok2, failed
	}
	ok2, failed2 := side(failed, x.Y)
	cwd := ok.cwd
	ok.join(ok2)
	ok.cwd = cwd
	return ok, failed2
}

// pipeline walks the stages, each in its own subshell, and hands on what a
// stage is known to print.
func (w *walker) pipeline(st *state, x *syntax.BinaryCmd) output {
	var stages []*syntax.Stmt
	for cur := x; ; {
		stages = append(stages, cur.Y)
		left, ok := cur.X.Cmd.(*syntax.BinaryCmd)
		if !ok || left.Op != syntax.Pipe && left.Op != syntax.PipeAll || len(cur.X.Redirs) > 0 {
			stages = append(stages, cur.X)
			break
		}
		cur = left
	}
	slices.Reverse(stages)
	w = w.alsoRuns()
	var out output
	for i, s := range stages {
		sub := st.clone()
		if i > 0 {
			sub.in = input{kind: inputUnknown, text: w.text(stages[i-1]), pos: w.pos(s)}
			if out.known {
				sub.in = input{kind: inputText, text: out.text, pos: w.pos(stages[i-1])}
			}
		}
		m := w.common.mark()
		out = w.stmt(sub, s)
		w.finish(sub, m)
		if w.common.lastpipe && i == len(stages)-1 {
			sub.in = st.in
			st.join(sub)
		}
	}
	return out
}

func (w *walker) ifClause(st *state, x *syntax.IfClause) {
	w.stmts(st, x.Cond)
	then := st.clone()
	w.stmts(then, x.Then)
	if x.Else != nil {
		if len(x.Else.Cond) > 0 {
			w.ifClause(st, x.Else)
		} else {
			w.stmts(st, x.Else.Then)
		}
	}
	st.join(then)
}

func (w *walker) loop(st *state, c syntax.Command) {
	switch x := c.(type) {
	case *syntax.WhileClause:
		w.voidAssigned(st, x.Cond, x.Do)
		w.rounds(st, func(st *state) *state {
			start := st.cwd
			w.stmts(st, x.Cond)
			body := st.clone()
			w.stmts(body, x.Do)
			w.nextRound(start, body, x.Cond, x.Do)
			return body
		})
	case *syntax.ForClause:
		w.forClause(st, x)
	}
}

func (w *walker) forClause(st *state, x *syntax.ForClause) {
	var each value
	switch l := x.Loop.(type) {
	case *syntax.WordIter:
		items, known := w.all(st, l.Items), true
		if !l.InPos.IsValid() {
			items, known = st.args, st.argsKnown
		}
		for _, x := range items {
			w.codeVar(st, l.Name.Value, x)
		}
		each = candidates(items)
		each.full = each.full && known
		st.set(l.Name.Value, each) // what the body runs by it is known
		w.voidAssigned(st, x.Do)
		st.set(l.Name.Value, each.perhaps())
	case *syntax.CStyleLoop:
		w.voidAssigned(st, x.Do)
		w.arith(st, l.Init)
		w.arith(st, l.Cond)
		w.arith(st, l.Post)
	}
	w.rounds(st, func(st *state) *state {
		body := st.clone()
		if l, ok := x.Loop.(*syntax.WordIter); ok {
			body.set(l.Name.Value, each)
		}
		w.stmts(body, x.Do)
		next := body.clone()
		if l, ok := x.Loop.(*syntax.WordIter); ok {
			next.set(l.Name.Value, each)
		}
		w.nextRound(st.cwd, next, x.Do)
		body.join(next)
		return body
	})
}

// rounds walks a loop again when one round leaves a variable as nobody noted
// before it was walked, such as what a trap assigns. round changes the state to
// what holds where the loop may end, and returns what the body leaves.
func (w *walker) rounds(st *state, round func(*state) *state) {
	for range 2 {
		more := st.clone()
		left := round(st)
		if !more.widen(left) {
			st.join(left)
			return
		}
		more.cwd, more.old, more.dirs = st.cwd, st.old, st.dirs
		*st = *more
	}
	st.loosenAll()
	st.join(round(st))
}

// nextRound walks what a loop repeats again as long as a round leaves another
// folder than it started in, the last time with no folder known.
func (w *walker) nextRound(start string, st *state, bodies ...[]*syntax.Stmt) {
	for i := 0; start != "" && st.cwd != start; i++ {
		if w.common.moves++; w.common.moves > maxMoves {
			w.code(nil, w.text(bodies[0][0]), "too many loops change their folder", w.pos(bodies[0][0]))
			st.chdir("", nil)
			return
		}
		if i == maxRounds {
			st.chdir("", nil)
		}
		start = st.cwd
		for _, list := range bodies {
			w.stmts(st, list)
		}
	}
	if start == "" {
		st.chdir("", nil)
	}
}

// candidates are the values a loop gives its variable, as far as they are
// known.
func candidates(items []word) value {
	if len(items) == 0 {
		return value{}
	}
	out := assigned(items[0])
	for _, x := range items[1:] {
		out = out.union(assigned(x))
	}
	return out
}

func (w *walker) caseClause(st *state, x *syntax.CaseClause) {
	w.single(st, x.Word)
	start := st.clone()
	var after, above *state // what an item leaves, and what goes on into the next
	every := false          // one of the patterns matches whatever is left
	for _, it := range x.Items {
		for _, p := range it.Patterns {
			w.single(start, p)
			every = every || p.Lit() == "*" && it.Op == syntax.Break
		}
		body := start.clone()
		if above != nil {
			body.join(above)
		}
		w.stmts(body, it.Stmts)
		above = nil
		if it.Op != syntax.Break {
			above = body.clone()
		}
		if after == nil {
			after = body
		} else {
			after.join(body)
		}
	}
	switch {
	case after == nil:
		after = start
	case !every:
		after.join(start)
	}
	*st = *after
}

// function keeps a body until it is called: then it is known what it is given.
func (w *walker) function(st *state, x *syntax.FuncDecl) {
	n := *w
	n.inFunc = true
	inside := st.clone()
	inside.loosenAll()
	inside.in = input{}
	if x.Name != nil {
		n.body, n.beside, n.child = x.Name.Value, false, false
		w.funcs[n.body] = true
		inside.set("FUNCNAME", literal(n.body))
		w.define(&body{w: n, st: inside, stmt: x.Body, text: w.text(x), pos: w.pos(x)})
		return
	}
	n.stmt(inside, x.Body)
}

// timed walks what the reserved word time runs. Our parser keeps a "--".
func (w *walker) timed(st *state, x *syntax.TimeClause) output {
	if x.Stmt == nil {
		return output{}
	}
	c, ok := x.Stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || c.Args[0].Lit() != "--" || len(c.Assigns) > 0 {
		return w.stmt(st, x.Stmt)
	}
	saved := st.in
	if in, _ := w.redirects(st, x.Stmt.Redirs); in != nil {
		st.in = *in
	}
	w.simple(st, &syntax.CallExpr{Args: c.Args[1:]}, true)
	st.in = saved
	return output{}
}

// coproc walks what a coprocess runs. A name is one only before a compound
// command; our parser takes it off other commands too.
func (w *walker) coproc(st *state, x *syntax.CoprocClause) {
	w = w.alsoRuns()
	sub := st.clone()
	sub.in = input{kind: inputUnknown, text: w.text(x), pos: w.pos(x), idle: true} // the shell may write to it
	first := x.Stmt.Cmd
	for {
		b, ok := first.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		first = b.X.Cmd
	}
	simple, isSimple := first.(*syntax.CallExpr)
	switch {
	case x.Name == nil && isSimple && first == x.Stmt.Cmd:
		saved := sub.in
		if in, _ := w.redirects(sub, x.Stmt.Redirs); in != nil {
			sub.in = *in
		}
		if args := simple.Args; len(args) > 1 && isDescriptorName(args[0].Lit()) {
			w.simple(sub.clone(), &syntax.CallExpr{Args: args[1:]}, true) // 2>&1 cmd, {fd}>out cmd
		}
		w.simple(sub, simple, true)
		sub.in = saved
		return
	case x.Name != nil && isSimple:
		w.simple(sub.clone(), &syntax.CallExpr{Args: append([]*syntax.Word{x.Name}, simple.Args...)}, true)
	case x.Name != nil && !isCompound(first):
		w.simple(sub.clone(), &syntax.CallExpr{Args: []*syntax.Word{x.Name}}, true)
	case x.Name != nil:
		st.void(x.Name.Lit())
	}
	m := w.common.mark()
	w.stmt(sub, x.Stmt)
	w.finish(sub, m)
}

func isDescriptorName(s string) bool {
	return strings.Trim(s, "0123456789") == "" || strings.HasPrefix(s, "{")
}

func isCompound(c syntax.Command) bool {
	switch c.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.ArithmCmd, *syntax.TestClause:
		return true
	}
	return false
}

// voidAssigned forgets every variable that the bodies of a loop may change,
// before the loop is walked: its second round sees them. In a loop that lies too
// deep in others nobody looks which those are: the outer loops have noted them
// already, and all are forgotten.
func (w *walker) voidAssigned(st *state, bodies ...[]*syntax.Stmt) {
	if w.loops > maxLoops {
		st.loosenAll()
		return
	}
	for _, list := range bodies {
		for _, s := range list {
			syntax.Walk(s, func(n syntax.Node) bool {
				switch x := n.(type) {
				case *syntax.Assign:
					w.voidAssign(st, x)
				case *syntax.WordIter:
					st.loosen(x.Name.Value)
				case *syntax.CallExpr:
					w.voidBy(st, x)
				case *syntax.BinaryArithm:
					st.loosen(lit(x.X))
				case *syntax.UnaryArithm:
					st.loosen(lit(x.X))
				case *syntax.ParamExp:
					if x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) && x.Param != nil {
						st.loosen(x.Param.Value)
						if x.Excl {
							st.loosenAll() // it is the variable of that name
						}
					}
				}
				return true
			})
		}
	}
}

func lit(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return w.Lit()
	}
	return ""
}

// voidBy forgets what a command inside a loop may assign by name. The name is
// read as bash reads it, without its quotes and escapes; what stands behind a
// variable comes with arguments that nobody sees here.
func (w *walker) voidBy(st *state, x *syntax.CallExpr) {
	if len(x.Args) == 0 {
		return
	}
	if name, ok := leading(x.Args[0]); ok {
		w.voidByName(st, name, x.Args[1:], true)
		return
	}
	v, ok := wholeVar(x.Args[0])
	if !ok {
		st.loosenAll()
		return
	}
	// What a variable may run is judged in the loop; when the loop changes it,
	// it is unknown there and asks.
	var names []string
	if n, ok := st.argument(v); ok {
		names = []string{n}
	}
	for _, o := range st.get(v, "").options() {
		n, ok := o.program()
		if !ok {
			names = nil
			break
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		st.loosenAll()
	}
	for _, n := range names {
		w.voidByName(st, n, nil, false)
	}
}

// voidByName forgets what a command of that name may assign. Its arguments are
// all there is of them only when they are seen.
func (w *walker) voidByName(st *state, name string, args []*syntax.Word, seen bool) {
	if w.funcs[name] {
		w.voidByBodies(st, name)
	}
	switch name {
	case "", "eval", "source", ".":
		st.loosenAll()
	case "command", "builtin":
		first, ok := "", false
		if seen && len(args) > 0 {
			first, ok = leading(args[0])
		}
		if !ok || !strings.HasPrefix(strings.ToLower(first), "-v") {
			st.loosenAll() // eval and its kin work behind it
		}
	case "declare", "typeset", "local", "export", "readonly", "let":
		st.loosenAll() // quoted, so that our parser has not read its assignments
	case "read", "unset", "mapfile", "readarray", "printf", "getopts", "wait":
		if !seen {
			st.loosenAll()
			return
		}
		st.loosenNamed(name, args)
	case "set", "shift":
		st.args, st.argsKnown = nil, false
	}
}

// voidByBodies forgets what the bodies of a function may assign.
func (w *walker) voidByBodies(st *state, name string) {
	if len(w.common.bodies[name]) == 0 || len(w.common.aliases[name]) > 0 {
		st.loosenAll()
		return
	}
	if w.common.calling[name] {
		return
	}
	w.common.call(name)
	defer delete(w.common.calling, name)
	for _, b := range w.common.bodies[name] {
		args, known := st.args, st.argsKnown
		b.w.voidAssigned(st, []*syntax.Stmt{b.stmt})
		st.args, st.argsKnown = args, known
	}
}

// wholeVar returns the variable that a word is: $name or "$name".
func wholeVar(x *syntax.Word) (string, bool) {
	if len(x.Parts) != 1 {
		return "", false
	}
	part := x.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 {
		return "", false
	}
	return p.Param.Value, true
}

// substitution walks $( ) and backticks and reports whether the output is a
// number.
func (w *walker) substitution(st *state, x *syntax.CmdSubst) bool {
	kind := "$( )"
	if x.Backquotes {
		kind = "``"
	}
	w.f.Constructs = append(w.f.Constructs, call.Construct{Kind: kind, Text: w.text(x), Pos: w.pos(x)})
	sub := st.clone()
	if raw := w.text(x); x.Backquotes && strings.Contains(raw, `\`) && len(raw) > 1 {
		w.reparse(sub, unslash(raw[1:len(raw)-1], "$`\\"), w.pos(x), w.via)
		return false
	}
	if x.TempFile || x.ReplyVar {
		st.loosenAll()
	}
	m := w.common.mark()
	w.stmts(sub, x.Stmts)
	w.finish(sub, m)
	return printsNumber(x.Stmts)
}

// isCode reports whether a text runs something where it is evaluated again.
func isCode(t string) bool { return strings.ContainsAny(t, "$`") }

func (w *walker) procSubst(st *state, x *syntax.ProcSubst, in input) output {
	kind := "<( )"
	if x.Op == syntax.CmdOut {
		kind = ">( )"
	}
	w.f.Constructs = append(w.f.Constructs, call.Construct{Kind: kind, Text: w.text(x), Pos: w.pos(x)})
	i := len(w.f.Constructs) - 1
	sub := st.clone()
	sub.in = in
	m := w.common.mark()
	out := w.alsoRuns().stmts(sub, x.Stmts)
	w.finish(sub, m)
	w.printed[i] = out
	return out
}

// printsNumber reports whether the last command of a substitution prints
// nothing but a number.
func printsNumber(list []*syntax.Stmt) bool {
	if len(list) != 1 || list[0].Cmd == nil {
		return false
	}
	c := list[0].Cmd
	for {
		b, ok := c.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.Pipe {
			break
		}
		c = b.Y.Cmd
	}
	x, ok := c.(*syntax.CallExpr)
	return ok && len(x.Args) > 0 && callPrintsNumber(x)
}

func callPrintsNumber(x *syntax.CallExpr) bool {
	last := x.Args[len(x.Args)-1]
	switch x.Args[0].Lit() {
	case "nproc", "expr":
		return true
	case "wc":
		// With a file operand wc prints its name as well.
		return len(x.Args) == 1 || strings.HasPrefix(last.Lit(), "-")
	case "date":
		return numericFormat(unquoted(last), "+")
	case "stat":
		for i := 1; i+1 < len(x.Args); i++ {
			if x.Args[i].Lit() == "-c" && numericFormat(unquoted(x.Args[i+1]), "") {
				return true
			}
		}
	}
	return false
}

// unquoted is the text of a word of literal and single- or double-quoted parts.
func unquoted(x *syntax.Word) string {
	var b strings.Builder
	for _, p := range x.Parts {
		switch q := p.(type) {
		case *syntax.Lit:
			b.WriteString(q.Value)
		case *syntax.SglQuoted:
			b.WriteString(q.Value)
		case *syntax.DblQuoted:
			for _, d := range q.Parts {
				l, ok := d.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(l.Value)
			}
		default:
			return ""
		}
	}
	return b.String()
}

// numericFormat reports whether a date or stat format prints digits only.
func numericFormat(s, lead string) bool {
	f, ok := strings.CutPrefix(s, lead)
	if !ok || f == "" || len(f)%2 != 0 {
		return false
	}
	for i := 0; i < len(f); i += 2 {
		if f[i] != '%' || strings.IndexByte("sYmdHMSNujVyXWZbBhgi", f[i+1]) < 0 {
			return false
		}
		if lead == "+" && strings.IndexByte("sYmdHMSNujVy", f[i+1]) < 0 {
			return false
		}
	}
	return true
}
