package shellast

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// code marks constructs whose result is run as code, and notes the unknown
// word that decides what runs.
func (w *walker) code(cons []int, text, why string, pos call.Pos) {
	for _, i := range cons {
		w.f.Constructs[i].AsCode = true
	}
	w.f.Unknown = append(w.f.Unknown, call.Unknown{Text: text, Why: why, Code: true, Pos: pos})
}

func (w *walker) act(a call.Act) { w.f.Acts = append(w.f.Acts, a) }

// reparse walks text that bash, or another shell, reads as a command. Text
// that cannot be read is unknown.
func (w *walker) reparse(st *state, text string, pos call.Pos, via string) {
	if strings.Trim(text, " \t\n") == "" {
		return
	}
	if w.common.left -= len(text); w.depth >= maxDepth || w.common.left < 0 {
		w.code(nil, text, "the shells are nested too deeply to judge", pos)
		return
	}
	file, perr := parse(text)
	if perr != nil {
		w.unreadable(text, pos, via, perr)
		return
	}
	n := *w
	n.src, n.base, n.via, n.depth = text, &pos, via, w.depth+1
	n.child = w.child || !sameShell(via)
	m := w.common.mark()
	n.stmts(st, file.Stmts)
	if !sameShell(via) {
		w.finish(st, m)
	}
}

// unreadable notes text that our parser cannot read. What a shell is given is
// refused like the command itself; what awk, sed and editors run may be only a
// part of what they make of it, so it is unknown.
func (w *walker) unreadable(text string, pos call.Pos, via string, perr *call.ParseError) {
	switch via {
	case "awk", "gawk", "mawk", "nawk", "original-awk", "sed e", "!( )":
		w.code(nil, text, "the text given to "+via+" cannot be read: "+perr.Message, pos)
		return
	}
	if w.f.Parse == nil {
		e := *perr
		e.Message, e.Pos = "the text given to "+viaName(via)+" cannot be read: "+perr.Message, pos
		w.f.Parse = &e
	}
}

func viaName(via string) string {
	if via == "" {
		return "the shell"
	}
	return via
}

// program walks a word that is a whole program for a shell. Parts that are not
// known leave it unknown, but what can be read is still judged.
func (w *walker) program(st *state, x word, via string) {
	if x.known() {
		w.reparse(st, x.text(), x.pos, via)
		return
	}
	for _, v := range x.variants() {
		if v.known() {
			w.reparse(st.clone(), v.text(), x.pos, via)
		}
	}
	slotsOnly := x.slot || w.slotted(x)
	if !slotsOnly {
		w.code(x.cons, x.src, "the text given to "+viaName(via)+" is not known before it runs", x.pos)
	}
	text, ok := withHoles(x)
	if !ok {
		if slotsOnly {
			w.code(x.cons, x.src, "the text given to "+viaName(via)+" is not known before it runs", x.pos)
		}
		return
	}
	if _, perr := parse(text); perr == nil {
		sub := st.clone()
		sub.void(hole)
		w.reparse(sub, text, x.pos, via)
	} else if slotsOnly {
		w.code(x.cons, x.src, "the text given to "+viaName(via)+" is not known before it runs", x.pos)
	}
}

// slotted reports whether every unknown part of a word is put in by find,
// xargs or parallel: a file name or a line, which is an operand.
func (w *walker) slotted(x word) bool {
	for _, s := range x.segs {
		if !s.known && s.text != slotText {
			return false
		}
	}
	return true
}

// hole is the variable that stands for an unknown part of a program text.
const (
	hole     = "__unknown__"
	slotText = "{}"
)

func withHoles(x word) (string, bool) {
	var b strings.Builder
	known := false
	for _, s := range x.segs {
		if s.known {
			known = known || strings.TrimSpace(s.text) != ""
			b.WriteString(s.text)
			continue
		}
		b.WriteString("${" + hole + "}")
	}
	return b.String(), known
}

// again expands text once more as inside double quotes.
func (w *walker) again(st *state, text string, pos call.Pos, asCode bool) word {
	if !strings.ContainsAny(text, "$`") {
		return plain(text, pos)
	}
	if w.common.left -= len(text); w.depth >= maxDepth || w.common.left < 0 {
		w.code(nil, text, "the expansions are nested too deeply to judge", pos)
		return slotWord("", text, pos)
	}
	doc, err := syntax.NewParser().Document(strings.NewReader(text))
	if err != nil {
		w.code(nil, text, "the text is expanded again and cannot be read", pos)
		return slotWord("", text, pos)
	}
	n := *w
	n.src, n.base, n.depth = text, &pos, w.depth+1
	first := len(w.f.Constructs)
	x := n.document(st, doc.Parts, pos, text)
	if asCode && !x.number() && len(x.cons) > 0 {
		w.code(w.consSince(first), text, "its result is evaluated again", pos)
	}
	return x
}

// second judges text that is evaluated a second time as arithmetic: a
// substitution in it runs even from inside quotes.
func (w *walker) second(st *state, text string, pos call.Pos) {
	if strings.ContainsAny(text, "$`") {
		w.again(st, text, pos, true)
	}
}

// prompt judges ${v@P} and PS4: text expanded as a prompt.
func (w *walker) prompt(st *state, v value, src string, pos call.Pos) {
	if !v.known {
		w.code(nil, src, "the text is expanded again as a prompt", pos)
		return
	}
	w.again(st, v.text, pos, true)
}

// arith walks an arithmetic expression. What a construct prints there is
// evaluated again, unless it is a number.
func (w *walker) arith(st *state, x syntax.ArithmExpr) {
	switch e := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		w.arith(st, e.X)
		w.arith(st, e.Y)
		if isAssignment(e.Op) {
			st.void(lit(e.X))
		}
	case *syntax.UnaryArithm:
		w.arith(st, e.X)
		if e.Op == syntax.Inc || e.Op == syntax.Dec {
			st.void(lit(e.X))
		}
	case *syntax.ParenArithm:
		w.arith(st, e.X)
	case *syntax.FlagsArithm:
		w.arith(st, e.X)
	case *syntax.Word:
		w.arithWord(st, e)
	}
}

func isAssignment(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	default:
		return false
	}
}

func (w *walker) arithWord(st *state, x *syntax.Word) {
	if name := x.Lit(); isName(name) {
		w.names(st, name, w.pos(x), 0)
		return
	}
	w.arithmetic(st, w.single(st, x))
}

// arithmetic judges a word whose value is an arithmetic expression: the
// variables it names are expressions as well.
func (w *walker) arithmetic(st *state, f word) {
	w.evaluated(st, f)
	for _, s := range f.segs {
		if s.known {
			w.names(st, s.text, f.pos, 0)
		}
		for _, m := range s.maybe {
			w.second(st, m, f.pos)
			w.names(st, m, f.pos, 0)
		}
	}
}

// names judges what the variables named in an expression hold.
func (w *walker) names(st *state, text string, pos call.Pos, depth int) {
	const deepest = 8
	if depth > deepest {
		return
	}
	inName := func(r rune) bool { return r == '_' || r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' }
	assigns := assignsNumber(text)
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return !inName(r) }) {
		v, ok := st.vars[name]
		if assigns && isName(name) {
			st.void(name)
		}
		if !ok {
			if len(st.vars) >= maxVars && isName(name) {
				w.code(nil, name, "there are more variables than can be followed", pos)
			}
			continue
		}
		for _, t := range v.texts() {
			w.second(st, t, pos)
			if t != text {
				w.names(st, t, pos, depth+1)
			}
		}
	}
}

// assignsNumber reports whether an arithmetic expression may assign.
func assignsNumber(text string) bool {
	for _, op := range []string{"++", "--", "<<=", ">>="} {
		if strings.Contains(text, op) {
			return true
		}
	}
	for i := range len(text) {
		if text[i] == '=' && (i == 0 || strings.IndexByte("=!<>", text[i-1]) < 0) && (i+1 == len(text) || text[i+1] != '=') {
			return true
		}
	}
	return false
}

// evaluated judges a word whose value is evaluated as arithmetic.
func (w *walker) evaluated(st *state, f word) {
	if f.known() {
		w.second(st, f.text(), f.pos)
		return
	}
	if len(f.cons) > 0 && !f.number() {
		w.code(f.cons, f.src, "its result is evaluated again as arithmetic", f.pos)
	}
	for _, s := range f.segs {
		if s.known && s.quoted {
			w.second(st, s.text, f.pos)
		}
		for _, m := range s.maybe {
			w.second(st, m, f.pos)
		}
	}
}

// name judges an operand that a builtin takes as the name of a variable: its
// subscript is evaluated.
func (w *walker) name(st *state, x word) {
	if strings.Contains(x.text(), "[") || !x.known() {
		w.evaluated(st, x)
	}
	n, _, _ := strings.Cut(x.text(), "[")
	if x.known() && isName(n) {
		st.void(n)
		return
	}
	if !x.known() {
		st.loosenAll()
	}
}

// test walks [[ ]].
func (w *walker) test(st *state, x syntax.TestExpr) {
	switch e := x.(type) {
	case *syntax.BinaryTest:
		switch e.Op {
		case syntax.AndTest, syntax.OrTest:
			w.test(st, e.X)
			w.test(st, e.Y)
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			w.testArith(st, e.X)
			w.testArith(st, e.Y)
		case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			w.testFile(st, e.X)
			w.testFile(st, e.Y)
		default:
			w.test(st, e.X)
			w.test(st, e.Y)
		}
	case *syntax.UnaryTest:
		w.unaryTest(st, e)
	case *syntax.ParenTest:
		w.test(st, e.X)
	case *syntax.Word:
		w.single(st, e)
	}
}

func (w *walker) unaryTest(st *state, e *syntax.UnaryTest) {
	switch e.Op {
	case syntax.TsNot, syntax.TsParen, syntax.TsEmpStr, syntax.TsNempStr, syntax.TsOptSet, syntax.TsFdTerm:
		w.test(st, e.X)
	case syntax.TsVarSet, syntax.TsRefVar:
		if x, ok := e.X.(*syntax.Word); ok {
			w.evaluated(st, w.single(st, x))
		}
	default:
		w.testFile(st, e.X)
	}
}

func (w *walker) testArith(st *state, x syntax.TestExpr) {
	if e, ok := x.(*syntax.Word); ok {
		w.arithWord(st, e)
		return
	}
	w.test(st, x)
}

func (w *walker) testFile(st *state, x syntax.TestExpr) {
	e, ok := x.(*syntax.Word)
	if !ok {
		w.test(st, x)
		return
	}
	f := w.single(st, e)
	w.path(st, &cmd{name: "[[", pos: f.pos}, f, roleTest)
}
