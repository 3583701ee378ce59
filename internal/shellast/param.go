package shellast

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param pushes a parameter expansion, and walks everything that is evaluated
// inside it.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	src := b.w.text(p)
	unknown := seg{text: src, quoted: quoted, many: !quoted && !b.one}
	if p.Param == nil {
		b.push(unknown)
		return
	}
	if p.Index != nil && !isAll(p.Index) {
		b.w.arith(b.st, p.Index)
	}
	switch {
	case p.Length || p.Width:
		unknown.number, unknown.many = true, false
		b.push(unknown)
	case p.Slice != nil:
		b.w.arith(b.st, p.Slice.Offset)
		b.w.arith(b.st, p.Slice.Length)
		if !b.slicedArgs(p, quoted) {
			b.derived(p, unknown, quoted, func(s string) (string, bool) { return slice(s, p.Slice) })
		}
	case p.Repl != nil:
		from, to := b.inner(p.Repl.Orig, quoted), b.inner(p.Repl.With, quoted)
		b.derived(p, unknown, quoted, func(s string) (string, bool) { return replace(s, from, to, p.Repl.All) })
	case p.Exp != nil:
		b.operator(p, quoted, unknown)
	case p.Excl || p.Names != 0 || p.IsSet:
		b.indirect(p, quoted, unknown)
	default:
		b.simple(p, src, quoted)
	}
}

// derived pushes what an operator makes of a known value.
func (b *builder) derived(p *syntax.ParamExp, unknown seg, quoted bool, f func(string) (string, bool)) {
	v := b.st.get(p.Param.Value, b.w.a.r.Home())
	if v.known && !v.array && !v.pattern && p.Index == nil && !p.Excl {
		if s, ok := f(v.text); ok {
			b.text(s, quoted)
			return
		}
	}
	b.push(unknown)
}

// slicedArgs pushes ${@:n} and ${@:n:m} for literal numbers, and reports
// whether it could.
func (b *builder) slicedArgs(p *syntax.ParamExp, quoted bool) bool {
	from, err := strconv.Atoi(lit(p.Slice.Offset))
	if all := p.Param.Value == "@" || p.Param.Value == "*"; !all || err != nil || from < 1 || !b.st.argsKnown || slices.ContainsFunc(b.st.args, word.uncounted) {
		return false
	}
	rest := b.st.args[min(from-1, len(b.st.args)):]
	if p.Slice.Length != nil {
		n, err := strconv.Atoi(lit(p.Slice.Length))
		if err != nil || n < 0 {
			return false
		}
		rest = rest[:min(n, len(rest))]
	}
	b.words(rest, quoted, p.Param.Value == "*")
	return true
}

// slice is ${v:offset:length} for literal numbers.
func slice(s string, x *syntax.Slice) (string, bool) {
	from, err := strconv.Atoi(lit(x.Offset))
	if err != nil || from < 0 || strings.IndexFunc(s, func(r rune) bool { return r > 127 }) >= 0 {
		return "", false
	}
	s = s[min(from, len(s)):]
	if x.Length == nil {
		return s, true
	}
	n, err := strconv.Atoi(lit(x.Length))
	if err != nil || n < 0 {
		return "", false
	}
	return s[:min(n, len(s))], true
}

// replace is ${v/from/to} for fixed texts.
func replace(s string, from, to word, all bool) (string, bool) {
	f, t := from.text(), to.text()
	if !from.known() || !to.known() || f == "" || strings.ContainsAny(f, `*?[\#%`) || strings.ContainsAny(t, `&\`) {
		return "", false
	}
	if all {
		return strings.ReplaceAll(s, f, t), true
	}
	return strings.Replace(s, f, t, 1), true
}

func isAll(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// simple pushes $name, ${name}, ${name[i]} and the special parameters.
func (b *builder) simple(p *syntax.ParamExp, src string, quoted bool) {
	name := p.Param.Value
	switch name {
	case "@", "*":
		if b.st.argsKnown {
			b.words(b.st.args, quoted, name == "*")
			return
		}
		b.push(seg{text: src, quoted: quoted, many: !b.one})
		return
	case "#":
		if b.st.argsKnown && !slices.ContainsFunc(b.st.args, word.uncounted) {
			b.text(strconv.Itoa(len(b.st.args)), true)
			return
		}
		b.push(seg{text: src, quoted: true, number: true})
		return
	case "?", "$", "!", "PPID", "UID", "EUID", "RANDOM", "SECONDS", "LINENO", "BASHPID":
		b.push(seg{text: src, quoted: true, number: true})
		return
	}
	if n, err := strconv.Atoi(name); err == nil {
		b.positional(n, src, quoted)
		return
	}
	v := b.st.get(name, b.w.a.r.Home())
	if p.Index == nil {
		b.value(v, src, quoted)
		return
	}
	if !v.known || !v.array {
		b.push(seg{text: src, quoted: quoted, many: !b.one && (!quoted || isAll(p.Index)), maybe: v.texts()})
		return
	}
	b.element(v, p, src, quoted)
}

func (b *builder) element(v value, p *syntax.ParamExp, src string, quoted bool) {
	if isAll(p.Index) {
		x, _ := p.Index.(*syntax.Word)
		b.list(v.list, quoted, x.Lit() == "*")
		return
	}
	if x, ok := p.Index.(*syntax.Word); ok {
		if i, err := strconv.Atoi(x.Lit()); err == nil && i >= 0 && i < len(v.list) {
			b.text(v.list[i], quoted)
			return
		}
	}
	b.push(seg{text: src, quoted: quoted, many: !quoted && !b.one, maybe: v.list[:min(len(v.list), maxCandidates)]})
}

func (b *builder) positional(n int, src string, quoted bool) {
	switch {
	case n == 0 && b.st.vars["0"].known:
		b.text(b.st.vars["0"].text, quoted)
	case n > 0 && b.st.argsKnown && slices.ContainsFunc(b.st.args[:min(n, len(b.st.args))], word.uncounted):
		b.push(seg{text: src, quoted: quoted, many: !quoted && !b.one})
	case n > 0 && b.st.argsKnown && n <= len(b.st.args):
		b.word(b.st.args[n-1], quoted)
	case n > 0 && b.st.argsKnown && !slices.ContainsFunc(b.st.args, word.uncounted):
		b.text("", quoted)
	default:
		b.push(seg{text: src, quoted: quoted, many: !quoted && !b.one})
	}
}

// indirect pushes ${!name}: the variable that a variable names.
func (b *builder) indirect(p *syntax.ParamExp, quoted bool, unknown seg) {
	v := b.st.get(p.Param.Value, b.w.a.r.Home())
	if !p.Excl || p.Names != 0 || p.Index != nil || !v.known || v.array {
		b.push(unknown)
		return
	}
	if !isName(v.text) {
		b.w.second(b.st, v.text, b.w.pos(p))
		b.push(unknown)
		return
	}
	b.value(b.st.get(v.text, b.w.a.r.Home()), unknown.text, quoted)
}

// operator pushes ${name:-word} and its kin.
func (b *builder) operator(p *syntax.ParamExp, quoted bool, unknown seg) {
	v := b.st.get(p.Param.Value, b.w.a.r.Home())
	if p.Exp.Op == syntax.OtherParamOps {
		if p.Exp.Word.Lit() == "P" {
			b.w.prompt(b.st, v, unknown.text, b.w.pos(p))
		}
		b.push(unknown)
		return
	}
	arg := b.inner(p.Exp.Word, quoted)
	got, ok := operate(p.Exp.Op, v, arg)
	if ok {
		b.value(got, unknown.text, quoted)
		return
	}
	given := fallback(p.Exp.Op, v, arg)
	if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
		b.w.codeVar(b.st, p.Param.Value, arg)
		b.st.set(p.Param.Value, given)
	}
	unknown.maybe = given.texts()
	b.push(unknown)
}

// fallback is what ${name:-word} and its kin may yield for a value that is not
// known.
func fallback(op syntax.ParExpOperator, v value, arg word) value {
	given := value{known: arg.known(), text: arg.text()}
	switch op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return v.union(given).perhaps()
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return given.perhaps()
	}
	return value{}
}

// operate applies an operator to a value, as far as both are known.
func operate(op syntax.ParExpOperator, v value, arg word) (value, bool) {
	if !v.known || v.pattern {
		return value{}, false
	}
	null := !v.array && v.text == ""
	given := value{known: arg.known(), text: arg.text()}
	switch op {
	case syntax.DefaultUnset, syntax.ErrorUnset, syntax.AssignUnset:
		return v, true
	case syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		if null {
			return given, given.known
		}
		return v, true
	case syntax.AlternateUnset:
		return given, given.known
	case syntax.AlternateUnsetOrNull:
		if null {
			return v, true
		}
		return given, given.known
	}
	if v.array || !given.known || strings.ContainsAny(given.text, "*?[\\") {
		return value{}, false
	}
	return strip(op, v.text, given.text)
}

// strip applies the operators that remove a fixed text or change letters.
func strip(op syntax.ParExpOperator, s, arg string) (value, bool) {
	switch op {
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return literal(strings.TrimSuffix(s, arg)), true
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return literal(strings.TrimPrefix(s, arg)), true
	case syntax.UpperAll:
		return literal(strings.ToUpper(s)), arg == ""
	case syntax.LowerAll:
		return literal(strings.ToLower(s)), arg == ""
	}
	return value{}, false
}

// inner evaluates a word inside ${…}. Within double quotes single quotes do not
// quote there.
func (b *builder) inner(x *syntax.Word, quoted bool) word {
	if x == nil {
		return word{segs: []seg{{known: true, quoted: true}}}
	}
	n := &builder{w: b.w, st: b.st, one: true, base: word{pos: b.w.pos(x), src: b.w.text(x)}}
	if quoted {
		n.quotedParts(x.Parts)
	} else {
		n.parts(x.Parts, false)
	}
	n.open = true
	n.flush()
	return n.out[0]
}
