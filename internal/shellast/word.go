package shellast

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// seg is one stretch of a word.
type seg struct {
	text   string // resolved, or as written when unknown
	known  bool
	quoted bool // no globbing and no splitting
	many   bool // may become several words, or none
	number bool // the output of a command that prints a number

	maybe []string // values an unknown stretch may have
}

// word is one word after every expansion that can be done without running.
type word struct {
	segs []seg
	pos  call.Pos
	src  string // as written
	cons []int  // constructs whose result is part of it
	slot bool   // stands for what another program puts in: {} of find, the input of xargs
}

// plain returns a known word that nobody wrote as such.
func plain(text string, pos call.Pos) word {
	return word{segs: []seg{{text: text, known: true, quoted: true}}, pos: pos, src: text}
}

// unknownWord stands for a word that is put in at run time. The prefix is what
// is known of it.
func slotWord(prefix, text string, pos call.Pos) word {
	w := word{pos: pos, src: text, slot: true}
	if prefix != "" {
		w.segs = append(w.segs, seg{text: prefix, known: true, quoted: true})
	}
	w.segs = append(w.segs, seg{text: text, quoted: true})
	return w
}

func (x word) known() bool {
	for _, s := range x.segs {
		if !s.known {
			return false
		}
	}
	return true
}

// equal reports whether two words are the same, as far as they are known.
func (x word) equal(o word) bool {
	return slices.EqualFunc(x.segs, o.segs, func(a, b seg) bool {
		return a.text == b.text && a.known == b.known && a.quoted == b.quoted && a.many == b.many
	})
}

// text is the word with unknown parts as written.
func (x word) text() string {
	if len(x.segs) == 1 {
		return x.segs[0].text
	}
	var b strings.Builder
	for _, s := range x.segs {
		b.WriteString(s.text)
	}
	return b.String()
}

// is reports whether the word is known and equal to one of the given texts.
func (x word) is(texts ...string) bool {
	if !x.known() {
		return false
	}
	return slices.Contains(texts, x.text())
}

// prefix is the known text before the first unknown part.
func (x word) prefix() string {
	var b strings.Builder
	for _, s := range x.segs {
		if !s.known {
			break
		}
		b.WriteString(s.text)
	}
	return b.String()
}

// suffix is the known text after the last unknown part.
func (x word) suffix() string {
	out := ""
	for i := len(x.segs) - 1; i >= 0 && x.segs[i].known; i-- {
		out = x.segs[i].text + out
	}
	return out
}

// variants are the words this one may be, by what its first unknown stretch may
// hold. They count for the paths they name, not for what is run.
func (x word) variants() []word {
	at := slices.IndexFunc(x.segs, func(s seg) bool { return !s.known && len(s.maybe) > 0 })
	if at < 0 {
		return nil
	}
	others := slices.ContainsFunc(x.segs[at+1:], func(s seg) bool { return len(s.maybe) > 0 })
	var out []word
	for _, m := range x.segs[at].maybe {
		v := x
		v.segs = slices.Clone(x.segs)
		v.segs[at] = seg{text: m, known: true}
		for i := at + 1; i < len(v.segs) && others; i++ {
			v.segs[i].maybe = nil // all together would be too many
		}
		out = append(out, v)
	}
	return out
}

// glob reports whether the word is a pattern that file names replace.
func (x word) glob() bool {
	for _, s := range x.segs {
		if s.known && !s.quoted && globIndex(s.text) >= 0 {
			return true
		}
	}
	return false
}

// globIndex is where a pattern starts in unquoted text, -1 when there is none.
// A bracket is one only when it is closed.
func globIndex(s string) int {
	for i := range len(s) {
		if s[i] == '*' || s[i] == '?' || s[i] == '[' && strings.IndexByte(s[i:], ']') > 1 {
			return i
		}
	}
	return -1
}

// many reports whether the word may become several words, or none.
func (x word) many() bool {
	for _, s := range x.segs {
		if s.many {
			return true
		}
	}
	return false
}

// uncounted reports whether nobody knows how many words this one becomes.
func (x word) uncounted() bool { return x.many() || x.glob() }

// number reports whether everything unknown in the word is a number.
func (x word) number() bool {
	for _, s := range x.segs {
		if !s.known && !s.number {
			return false
		}
	}
	return true
}

// cut returns the word without its first n bytes, which must be known.
func (x word) cut(n int) word {
	out := x
	out.segs = nil
	for _, s := range x.segs {
		if n >= len(s.text) && s.known {
			n -= len(s.text)
			continue
		}
		if n > 0 && s.known {
			s.text = s.text[n:]
			n = 0
		}
		out.segs = append(out.segs, s)
	}
	if len(out.segs) == 0 {
		out.segs = []seg{{known: true, quoted: true}}
	}
	return out
}

// builder collects the fields one word becomes.
type builder struct {
	w    *walker
	st   *state
	base word
	out  []word
	cur  []seg
	open bool
	one  bool // no splitting: assignments, redirects, here-documents
}

func (b *builder) push(s seg) {
	if b.w.common.left -= len(s.text); b.w.common.left < 0 && s.known && s.text != "" {
		s = seg{text: "…", quoted: s.quoted, many: !s.quoted} // too much text to follow
	}
	b.open = b.open || s.quoted || s.text != "" || !s.known
	if s.known && s.text == "" {
		return
	}
	if n := len(b.cur); n > 0 && s.known && b.cur[n-1].known && b.cur[n-1].quoted == s.quoted {
		b.cur[n-1].text += s.text
		return
	}
	if b.cur == nil {
		b.cur = b.w.common.segs.take(1)[:0]
	}
	b.cur = append(b.cur, s)
}

func (b *builder) flush() {
	if !b.open {
		return
	}
	f := b.base
	f.segs = b.cur
	if len(f.segs) == 0 {
		f.segs = []seg{{known: true, quoted: true}}
	}
	b.out = append(b.out, f)
	b.cur, b.open = nil, false
}

// split pushes a known unquoted value, which bash splits at blanks.
func (b *builder) split(text string) {
	if b.one {
		b.push(seg{text: text, known: true, quoted: true})
		return
	}
	if _, ok := b.st.vars["IFS"]; ok {
		b.push(seg{text: text, many: true})
		return
	}
	for text != "" {
		i := strings.IndexAny(text, " \t\n")
		if i < 0 {
			b.push(seg{text: text, known: true})
			return
		}
		if i > 0 {
			b.push(seg{text: text[:i], known: true})
		}
		b.flush()
		text = strings.TrimLeft(text[i:], " \t\n")
	}
}

// value pushes the value of a variable or parameter.
func (b *builder) value(v value, src string, quoted bool) {
	switch {
	case !v.known:
		b.push(seg{text: src, quoted: quoted, many: !quoted && !b.one, maybe: v.texts()})
	case v.pattern:
		b.push(seg{text: v.text, known: true})
	case v.array && len(v.list) > 0:
		b.text(v.list[0], quoted)
	case v.array:
	default:
		b.text(v.text, quoted)
	}
}

func (b *builder) text(s string, quoted bool) {
	if quoted {
		b.push(seg{text: s, known: true, quoted: true})
		return
	}
	b.split(s)
}

// words pushes the positional parameters.
func (b *builder) words(args []word, quoted, joined bool) {
	for i, x := range args {
		if i > 0 && (joined && quoted || b.one) {
			b.push(b.between(joined))
		} else if i > 0 {
			b.flush()
		}
		b.word(x, quoted)
	}
}

// word pushes a word as the value of a parameter.
func (b *builder) word(x word, quoted bool) {
	for _, s := range x.segs {
		if s.known && !quoted {
			b.split(s.text)
			continue
		}
		s.quoted = quoted && (s.quoted || s.known && globIndex(s.text) < 0)
		s.many = s.many && !b.one || !s.known && !quoted && !b.one
		b.open = b.open || quoted
		b.push(s)
	}
}

// list pushes the elements of "$@" or "${a[@]}".
func (b *builder) list(items []string, quoted, joined bool) {
	one := joined && quoted || b.one
	for i, it := range items {
		switch {
		case i > 0 && one:
			b.push(b.between(joined))
		case i > 0:
			b.flush()
		}
		b.text(it, quoted || one)
	}
}

// between is what stands between the words of a list that become one: the first
// letter of IFS when the list is "$*".
func (b *builder) between(joined bool) seg {
	v, set := b.st.vars["IFS"]
	switch {
	case !joined || !set:
		return seg{text: " ", known: true, quoted: true}
	case !v.known || v.array || strings.ContainsFunc(v.text, func(r rune) bool { return r > 127 }):
		return seg{text: "$IFS", quoted: true}
	}
	return seg{text: v.text[:min(1, len(v.text))], known: true, quoted: true}
}

// fields returns the words one word becomes.
func (w *walker) fields(st *state, x *syntax.Word) []word { return w.addFields(nil, st, x) }

func (w *walker) addFields(out []word, st *state, x *syntax.Word) []word {
	if x == nil {
		return out
	}
	base := word{pos: w.pos(x), src: w.text(x)}
	expanded, ok := w.braces(x)
	if !ok {
		base.segs = []seg{{text: base.src, many: true}}
		return append(out, base)
	}
	if expanded == nil {
		return w.split(out, st, x, base)
	}
	for _, e := range expanded {
		for _, x := range e.words {
			out = e.w.split(out, st, x, base)
		}
	}
	return out
}

// split returns the words one word becomes after brace expansion.
func (w *walker) split(out []word, st *state, x *syntax.Word, base word) []word {
	first := len(w.f.Constructs)
	b := &builder{w: w, st: st, base: base, out: out}
	b.parts(x.Parts, false)
	b.flush()
	for i := len(out); i < len(b.out); i++ {
		b.out[i].cons = w.consSince(first)
	}
	return b.out
}

// consSince lists the constructs met since there were n.
func (w *walker) consSince(n int) []int {
	var out []int
	for i := n; i < len(w.f.Constructs); i++ {
		if w.f.Constructs[i].Kind != "<<<" && w.f.Constructs[i].Kind != "eval" {
			out = append(out, i)
		}
	}
	return out
}

// all returns the fields of several words.
func (w *walker) all(st *state, xs []*syntax.Word) []word {
	out := make([]word, 0, len(xs))
	for _, x := range xs {
		out = w.addFields(out, st, x)
	}
	return out
}

// single returns one word without splitting or brace expansion.
func (w *walker) single(st *state, x *syntax.Word) word {
	if x == nil {
		return word{segs: []seg{{known: true, quoted: true}}}
	}
	first := len(w.f.Constructs)
	b := &builder{w: w, st: st, one: true, base: word{pos: w.pos(x), src: w.text(x)}}
	b.parts(x.Parts, false)
	b.open = true
	b.flush()
	b.out[0].cons = w.consSince(first)
	return b.out[0]
}

// document evaluates text as inside double quotes: here-documents, and code
// that bash expands a second time.
func (w *walker) document(st *state, parts []syntax.WordPart, pos call.Pos, src string) word {
	first := len(w.f.Constructs)
	b := &builder{w: w, st: st, one: true, base: word{pos: pos, src: src}}
	b.quotedParts(parts)
	b.open = true
	b.flush()
	b.out[0].cons = w.consSince(first)
	return b.out[0]
}

func (b *builder) parts(parts []syntax.WordPart, inQuotes bool) {
	for i, p := range parts {
		switch x := p.(type) {
		case *syntax.Lit:
			b.lit(x.Value, i == 0, i+1 == len(parts), inQuotes)
		case *syntax.SglQuoted:
			b.single(x, inQuotes)
		case *syntax.DblQuoted:
			b.open = b.open || !b.vanishes(x)
			b.quotedParts(x.Parts)
		case *syntax.ExtGlob:
			b.push(seg{text: "*", known: true})
		default:
			b.expansion(p, inQuotes)
		}
	}
}

// single pushes a single-quoted part. Inside "${x:-'…'}" such quotes do not
// quote: what is between them is expanded.
func (b *builder) single(x *syntax.SglQuoted, inQuotes bool) {
	val := x.Value
	if raw := b.w.text(x); strings.Contains(raw, "\r") {
		val = strings.TrimSuffix(raw[strings.IndexByte(raw, '\'')+1:], "'") // our parser drops it
	}
	switch {
	case inQuotes && !x.Dollar:
		d := b.w.again(b.st, val, b.w.pos(x), false)
		b.push(seg{text: "'", known: true, quoted: true})
		for _, s := range d.segs {
			b.push(s)
		}
		b.push(seg{text: "'", known: true, quoted: true})
	case x.Dollar:
		b.push(seg{text: ansiC(val), known: true, quoted: true})
	default:
		b.push(seg{text: val, known: true, quoted: true})
	}
}

func (b *builder) quotedParts(parts []syntax.WordPart) {
	for _, p := range parts {
		switch x := p.(type) {
		case *syntax.Lit:
			val := x.Value
			if raw := b.w.text(x); strings.Contains(raw, "\r") {
				val = raw // our parser drops it
			}
			b.push(seg{text: unescapeDouble(val), known: true, quoted: true})
		case *syntax.SglQuoted:
			b.single(x, true)
		case *syntax.DblQuoted:
			b.quotedParts(x.Parts)
		case *syntax.ExtGlob:
			b.push(seg{text: b.w.text(x), known: true, quoted: true})
		default:
			b.expansion(p, true)
		}
	}
}

// vanishes reports whether a quoted word is a list that is known to be empty,
// such as "$@" after "set --".
func (b *builder) vanishes(x *syntax.DblQuoted) bool {
	if len(x.Parts) != 1 || b.one {
		return false
	}
	text := b.w.text(x)
	switch p, _ := x.Parts[0].(*syntax.ParamExp); {
	case p == nil || p.Param == nil:
		return false
	case p.Param.Value == "@":
		return b.st.argsKnown && len(b.st.args) == 0 && (text == `"$@"` || text == `"${@}"`)
	default:
		v := b.st.get(p.Param.Value, "")
		return v.known && v.array && len(v.list) == 0 && text == `"${`+p.Param.Value+`[@]}"`
	}
}

func (b *builder) expansion(p syntax.WordPart, quoted bool) {
	switch x := p.(type) {
	case *syntax.ParamExp:
		b.param(x, quoted)
	case *syntax.CmdSubst:
		num := b.w.substitution(b.st, x)
		b.push(seg{text: b.w.text(x), quoted: quoted, many: !quoted && !b.one, number: num})
	case *syntax.ArithmExp:
		b.w.arith(b.st, x.X)
		b.push(seg{text: b.w.text(x), quoted: true, number: true})
	case *syntax.ProcSubst:
		b.w.procSubst(b.st, x, b.w.written(b.st, x))
		b.push(seg{text: b.w.text(x), quoted: true})
	}
}

// lit pushes unquoted text: backslashes quote, a leading tilde is a home.
func (b *builder) lit(s string, first, last, inQuotes bool) {
	if inQuotes {
		b.push(seg{text: unescapeDouble(s), known: true, quoted: true})
		return
	}
	if first {
		s = b.tilde(s, last)
	}
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			b.push(seg{text: s, known: true})
			return
		}
		if i > 0 {
			b.push(seg{text: s[:i], known: true})
		}
		if s[i+1] != '\n' {
			b.push(seg{text: s[i+1 : i+2], known: true, quoted: true})
		}
		s = s[i+2:]
	}
}

// tilde expands a tilde at the start of a word, or after "NAME=", and returns
// what follows it. A quote or an expansion right behind it keeps it as it is.
func (b *builder) tilde(s string, last bool) string {
	at := 0
	if name, _, ok := strings.Cut(s, "="); ok && isName(name) {
		at = len(name) + 1
	}
	if at >= len(s) || s[at] != '~' {
		return s
	}
	end := strings.IndexAny(s[at:], "/:")
	if end < 0 {
		end = len(s) - at
	}
	if at+end == len(s) && !last {
		return s
	}
	var dir string
	switch user := s[at+1 : at+end]; user {
	case "":
		dir = b.st.get("HOME", b.w.a.r.Home()).text
	case "+":
		dir = b.st.cwd
	case "-":
		dir = b.st.old
	default:
		if dir = homeOfUser(user); dir == "" {
			return s
		}
	}
	if at > 0 {
		b.push(seg{text: s[:at], known: true})
	}
	if dir == "" {
		b.push(seg{text: s[at : at+end], quoted: true})
	} else {
		b.push(seg{text: dir, known: true, quoted: true})
	}
	return s[at+end:]
}

// homeOfUser is where the home of a user most likely is, "" when no user can
// have that name.
func homeOfUser(user string) string {
	switch {
	case user == "root":
		return "/root"
	case isName(strings.ReplaceAll(user, "-", "_")):
		return "/home/" + user
	}
	return ""
}

// unescapeDouble removes the backslashes that quote inside double quotes.
func unescapeDouble(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
