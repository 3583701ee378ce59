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

// awkProgram finds literal commands: system("…"), "…" | getline, print | "…",
// and files print > "…".
func (w *walker) awkProgram(st *state, c *cmd, v word) {
	if len(v.cons) > 0 && !v.known() && len(v.segs) == 1 {
		w.code(v.cons, v.src, "the program given to "+c.name+" is not known before it runs", v.pos)
		return
	}
	s := awkScanner{text: v.text()}
	for s.next() {
		switch {
		case s.before("system("), s.before("|"), s.before("|&"), s.after("|") && !s.after("||"):
			w.program(st.clone(), plain(s.str, v.pos), c.name)
		case s.before(">"), s.before(">>"):
			if strings.Contains(s.before1(), "print") {
				w.path(st, c, plain(s.str, v.pos), roleRedirect)
			}
		case s.before("<") && strings.Contains(s.before1(), "getline"):
			w.path(st, c, plain(s.str, v.pos), roleRead)
		}
	}
}

// awkScanner walks the string literals of an awk program. Regular expressions
// and comments are skipped.
type awkScanner struct {
	text       string
	at         int
	str        string // the literal
	start, end int
}

func (s *awkScanner) next() bool {
	prev := byte('{') // where a slash starts a regular expression
	for s.at < len(s.text) {
		ch := s.text[s.at]
		switch {
		case ch == '"':
			s.literal()
			return true
		case ch == '#':
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.at++
			}
		case ch == '/' && strings.IndexByte("({,;!~&|=?:\n", prev) >= 0:
			s.regex()
			prev = ')'
		default:
			if ch != ' ' && ch != '\t' {
				prev = ch
			}
			s.at++
		}
	}
	return false
}

func (s *awkScanner) literal() {
	s.start = s.at
	var b strings.Builder
	i := s.at + 1
	for i < len(s.text) && s.text[i] != '"' {
		if s.text[i] == '\\' && i+1 < len(s.text) {
			i++
			if c, ok := simpleEscape(s.text[i]); ok {
				b.WriteByte(c)
				i++
				continue
			}
		}
		b.WriteByte(s.text[i])
		i++
	}
	s.str, s.end = b.String(), min(i+1, len(s.text))
	s.at = s.end
}

func (s *awkScanner) regex() {
	i := s.at + 1
	class := false
	for i < len(s.text) && (s.text[i] != '/' || class) && s.text[i] != '\n' {
		switch s.text[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		}
		i++
	}
	s.at = min(i+1, len(s.text))
}

// before reports whether the code before the literal ends with t.
func (s *awkScanner) before(t string) bool {
	code := strings.TrimRight(s.text[:s.start], " \t(")
	if strings.HasSuffix(t, "(") {
		code = strings.ReplaceAll(strings.TrimRight(s.text[:s.start], " \t"), " (", "(")
		return strings.HasSuffix(code, t)
	}
	if t == "|" && strings.HasSuffix(code, "||") {
		return false
	}
	if t == ">" && strings.HasSuffix(code, ">>") {
		return false
	}
	return strings.HasSuffix(code, t)
}

// before1 is the statement the literal stands in, up to it.
func (s *awkScanner) before1() string {
	code := s.text[:s.start]
	return code[strings.LastIndexAny(code, ";{}\n")+1:]
}

func (s *awkScanner) after(t string) bool {
	return strings.HasPrefix(strings.TrimLeft(s.text[s.end:], " \t)"), t)
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
