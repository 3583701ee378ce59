package shellast

import "strings"

// awk judges system() and pipes in a program, and the files it reads.
func awk(w *walker, st *state, c *cmd) output {
	g := newGrammar("-f=r --file=r -F --field-separator -v --assign -E=r --exec=r -i --include -l --load -o=w --pretty-print -e --source posix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	rest := p.rest
	programs := p.values("-e", "--source")
	if !p.has("-f", "--file", "-e", "--source", "-E", "--exec") && len(rest) > 0 {
		programs = append(programs, rest[0])
		rest = rest[1:]
	}
	for _, v := range p.values("-f", "--file", "-E", "--exec", "-i", "--include") {
		if t, ok := w.programFile(st, c, v); ok {
			programs = append(programs, t)
		}
	}
	for _, v := range programs {
		w.awkProgram(st, c, v)
	}
	for _, x := range rest {
		if name, _, ok := strings.Cut(x.prefix(), "="); ok && isName(name) {
			continue
		}
		if !x.is("-") {
			w.path(st, c, x, roleRead)
		}
	}
	return output{}
}

// awkProgram finds commands: system("…"), "…" | getline and print | "…", and
// files print > "…". What is not a literal there is unknown.
func (w *walker) awkProgram(st *state, c *cmd, v word) {
	if len(v.cons) > 0 && !v.known() && len(v.segs) == 1 {
		w.code(v.cons, v.src, "the program given to "+c.name+" is not known before it runs", v.pos)
		return
	}
	a := &awkCode{w: w, st: st, c: c, v: v, tokens: awkTokens(v.text())}
	for i := range a.tokens {
		a.at(i)
	}
}

// awkToken is one token of an awk program.
type awkToken struct {
	text    string
	literal bool // a string; text is its value
}

// awkTokens takes a program apart. Regular expressions and comments yield
// nothing that could be taken for code.
func awkTokens(s string) []awkToken {
	var out []awkToken
	regexMay := true // a slash starts a regular expression here
	for i := 0; i < len(s); {
		ch := s[i]
		switch {
		case ch == ' ' || ch == '\t':
			i++
			continue
		case ch == '"':
			text, n := awkString(s[i:])
			out = append(out, awkToken{text: text, literal: true})
			i, regexMay = i+n, false
			continue
		case ch == '#':
			if j := strings.IndexByte(s[i:], '\n'); j >= 0 {
				i += j
			} else {
				i = len(s)
			}
			continue
		case ch == '/' && regexMay:
			i += awkRegex(s[i:])
			out = append(out, awkToken{text: "/re/"})
			regexMay = false
			continue
		}
		n := awkWord(s[i:])
		out = append(out, awkToken{text: s[i : i+n]})
		regexMay = strings.Contains("({,;!~&|=?:\n", s[i:i+1])
		i += n
	}
	return out
}

func awkString(s string) (string, int) {
	var b strings.Builder
	i := 1
	for ; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if c, ok := simpleEscape(s[i], ansiEscapes); ok {
				b.WriteByte(c)
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), min(i+1, len(s))
}

func awkRegex(s string) int {
	class := false
	i := 1
	for ; i < len(s) && (s[i] != '/' || class) && s[i] != '\n'; i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		}
	}
	return min(i+1, len(s))
}

// awkWord is the length of the name or operator at the start of s.
func awkWord(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || s[n] >= '0' && s[n] <= '9') {
		n++
	}
	if n > 0 {
		return n
	}
	for _, op := range []string{"||", "&&", "|&", ">>"} {
		if strings.HasPrefix(s, op) {
			return len(op)
		}
	}
	return 1
}

// awkCode is one program in the middle of being judged.
type awkCode struct {
	w      *walker
	st     *state
	c      *cmd
	v      word
	tokens []awkToken
}

func (a *awkCode) token(i int) awkToken {
	if i < 0 || i >= len(a.tokens) {
		return awkToken{}
	}
	return a.tokens[i]
}

func (a *awkCode) at(i int) {
	if a.tokens[i].literal {
		return
	}
	switch a.tokens[i].text {
	case "system":
		if a.is(i+1, "(") {
			a.command(i + 2)
		}
	case "|", "|&":
		if a.is(i+1, "getline") {
			a.command(i - 1)
			return
		}
		sub := *a
		sub.st = a.st.clone()
		sub.st.in = input{kind: inputUnknown, text: a.v.src, pos: a.v.pos}
		sub.command(i + 1)
	case ">", ">>":
		if a.token(i+1).literal && a.printing(i) {
			a.w.path(a.st, a.c, plain(a.token(i+1).text, a.v.pos), roleRedirect)
		}
	case "<":
		if a.token(i+1).literal && (a.is(i-1, "getline") || a.is(i-2, "getline")) {
			a.w.path(a.st, a.c, plain(a.token(i+1).text, a.v.pos), roleRead)
		}
	}
}

func (a *awkCode) is(i int, text string) bool {
	t := a.token(i)
	return !t.literal && t.text == text
}

// printing reports whether the statement before token i prints.
func (a *awkCode) printing(i int) bool {
	for i--; i >= 0; i-- {
		switch t := a.tokens[i]; {
		case t.literal:
		case t.text == "print" || t.text == "printf":
			return true
		case strings.Contains(";{}\n", t.text):
			return false
		}
	}
	return false
}

// command judges the command at token i: a literal on its own is read again, a
// literal that goes on is partly unknown, and anything else is unknown.
func (a *awkCode) command(i int) {
	t := a.token(i)
	switch {
	case t.literal && a.ends(i+1) && a.starts(i-1):
		a.w.program(a.st.clone(), plain(t.text, a.v.pos), a.c.name)
	case t.literal:
		x := word{pos: a.v.pos, src: a.v.src, segs: []seg{{text: t.text, known: true, quoted: true}, {text: "…", quoted: true}}}
		a.w.program(a.st.clone(), x, a.c.name)
	default:
		a.w.code(nil, a.v.src, "the command "+a.c.name+" runs is not known before it runs", a.v.pos)
	}
}

// ends reports whether an expression ends before token i.
func (a *awkCode) ends(i int) bool {
	t := a.token(i)
	return t.text == "" && !t.literal || !t.literal && strings.Contains(");}\n|,|&", t.text)
}

// starts reports whether an expression starts after token i.
func (a *awkCode) starts(i int) bool {
	t := a.token(i)
	return t.text == "" && !t.literal || !t.literal && strings.Contains("(;{}\n||&&|&", t.text)
}

// sed judges e and w commands, and -i.
func sed(w *walker, st *state, c *cmd) output {
	g := newGrammar("-e --expression -f=r --file=r -l --line-length")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	rest := p.rest
	scripts := p.values("-e", "--expression")
	if !p.has("-e", "--expression", "-f", "--file") && len(rest) > 0 {
		scripts = append(scripts, rest[0])
		rest = rest[1:]
	}
	for _, v := range p.values("-f", "--file") {
		if t, ok := w.programFile(st, c, v); ok {
			scripts = append(scripts, t)
		}
	}
	inPlace := false
	for _, o := range p.opts {
		inPlace = inPlace || o.name == "-i" || o.name == "--in-place"
	}
	for _, v := range scripts {
		w.sedScript(st, c, v)
	}
	r := roleRead
	if inPlace {
		r = roleWrite
	}
	for _, x := range rest {
		if !x.is("-") {
			w.path(st, c, x, r)
		}
	}
	return output{}
}

func (w *walker) sedScript(st *state, c *cmd, v word) {
	if len(v.cons) > 0 && !v.known() && len(v.segs) == 1 {
		w.code(v.cons, v.src, "the script given to sed is not known before it runs", v.pos)
		return
	}
	s := sedScanner{text: v.text()}
	for {
		cmd, arg, ok := s.next()
		if !ok {
			return
		}
		switch cmd {
		case 'e':
			if strings.TrimSpace(arg) == "" {
				w.code(v.cons, v.src, "sed e runs what it reads", v.pos)
				continue
			}
			w.program(st.clone(), plain(arg, v.pos), "sed e")
		case 'w', 'W':
			w.path(st, c, plain(strings.TrimSpace(arg), v.pos), roleRedirect)
		case 'r', 'R':
			w.path(st, c, plain(strings.TrimSpace(arg), v.pos), roleRead)
		case 'x': // the e flag of s
			w.code(v.cons, v.src, "the e flag of sed s runs what it makes", v.pos)
		}
	}
}

// sedScanner walks the commands of a sed script.
type sedScanner struct {
	text string
	at   int
}

// next returns the next command that runs, reads or writes something: e, w, W,
// r, R, or x for the e flag of s.
func (s *sedScanner) next() (cmd byte, arg string, ok bool) {
	for s.at < len(s.text) {
		s.address()
		if s.at >= len(s.text) {
			break
		}
		ch := s.text[s.at]
		s.at++
		switch ch {
		case 'e', 'w', 'W', 'r', 'R':
			return ch, s.line(), true
		case 's':
			s.delimited(true)
			s.at--
			s.delimited(false)
			if c, a, found := s.flags(); found {
				return c, a, true
			}
		case 'y':
			s.delimited(false)
			s.at--
			s.delimited(false)
		case 'a', 'i', 'c':
			s.appended()
		case ':', 'b', 't', 'T':
			s.label()
		}
	}
	return 0, "", false
}

// address skips blanks and addresses before a command.
func (s *sedScanner) address() {
	for s.at < len(s.text) {
		switch ch := s.text[s.at]; {
		case ch == '/':
			s.delimited(true)
		case ch == '\\' && s.at+1 < len(s.text):
			s.at++
			s.delimited(true)
		case ch == '#':
			s.line()
		case strings.IndexByte(" \t\n;,{}!$~+*0123456789", ch) >= 0:
			s.at++
		case (ch == 'I' || ch == 'M') && s.at > 0 && s.text[s.at-1] == '/':
			s.at++
		default:
			return
		}
	}
}

// delimited skips from a delimiter to its next unescaped occurrence. In a
// regular expression it is text inside brackets.
func (s *sedScanner) delimited(regex bool) {
	if s.at >= len(s.text) {
		return
	}
	d := s.text[s.at]
	class := false
	for s.at++; s.at < len(s.text); s.at++ {
		switch ch := s.text[s.at]; {
		case ch == d && !class:
			s.at++
			return
		case ch == '\\':
			s.at++
		case ch == '[' && regex && strings.IndexByte(s.text[s.at:], ']') > 0:
			class = true
		case ch == ']' || ch == '\n':
			class = false
		}
	}
	s.at = len(s.text)
}

// flags reads what follows s///.
func (s *sedScanner) flags() (cmd byte, arg string, found bool) {
	for s.at < len(s.text) {
		switch ch := s.text[s.at]; {
		case ch == 'e':
			s.at++
			return 'x', "", true
		case ch == 'w':
			s.at++
			return 'w', s.line(), true
		case strings.IndexByte("gpiIMm0123456789", ch) >= 0:
			s.at++
		default:
			return 0, "", false
		}
	}
	return 0, "", false
}

// line takes the rest of the line.
func (s *sedScanner) line() string {
	end := strings.IndexByte(s.text[s.at:], '\n')
	if end < 0 {
		end = len(s.text) - s.at
	}
	out := s.text[s.at : s.at+end]
	s.at += end
	return strings.TrimSuffix(strings.TrimSpace(out), "}")
}

func (s *sedScanner) label() {
	for s.at < len(s.text) && s.text[s.at] != '\n' && s.text[s.at] != ';' {
		s.at++
	}
}

// appended skips the text of a, i and c, whose lines go on after a backslash.
func (s *sedScanner) appended() {
	for s.at < len(s.text) {
		if s.text[s.at] == '\\' {
			s.at += 2
			continue
		}
		if s.text[s.at] == '\n' {
			return
		}
		s.at++
	}
	s.at = min(s.at, len(s.text))
}
