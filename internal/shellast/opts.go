package shellast

import (
	"slices"
	"strings"
)

// option is one option found on a command line.
type option struct {
	name  string // with its dashes; for clusters one each
	value word
	has   bool // value is set
}

// grammar says which options of a command take a value. Options it does not
// name are flags. It is read out of its text at each question, which costs less
// than a table for every command that asks two or three.
type grammar struct {
	spec   string   // see [newGrammar]
	flags  []string // options of spec that take no value after all
	single bool     // options are words after one dash: -coverprofile=x
	plus   bool     // options may start with "+"
	posix  bool     // the first operand ends the options
}

// role is that of an option's value; false when the option takes none.
func (g grammar) role(name string) (role, bool) {
	i := wordIndex(g.spec, name)
	if i < 0 || slices.Contains(g.flags, name) {
		return roleNone, false
	}
	if i += len(name); i+1 < len(g.spec) && g.spec[i] == '=' {
		return roleOf(g.spec[i+1]), true
	}
	return roleNone, true
}

func (g grammar) takes(name string) bool {
	_, ok := g.role(name)
	return ok
}

// without returns the grammar with some options that are flags.
func (g grammar) without(names ...string) grammar {
	g.flags = names
	return g
}

// wordIndex is where a word starts in a list separated by blanks, -1 when it is
// not there. In the list it may be followed by "=".
func wordIndex(list, word string) int {
	if word == "" || strings.ContainsAny(word, " =") {
		return -1
	}
	for from := 0; ; {
		i := strings.Index(list[from:], word)
		if i < 0 {
			return -1
		}
		i += from
		from = i + len(word)
		if (i == 0 || list[i-1] == ' ') && (from == len(list) || list[from] == ' ' || list[from] == '=') {
			return i
		}
	}
}

// parsed is a command line taken apart.
type parsed struct {
	opts  []option
	rest  []word // operands
	stop  int    // how many args the options took, when posix
	ended bool   // "--" was seen
}

func (p parsed) has(names ...string) bool {
	for _, o := range p.opts {
		if slices.Contains(names, o.name) {
			return true
		}
	}
	return false
}

func (p parsed) values(names ...string) []word {
	var out []word
	for _, o := range p.opts {
		for _, n := range names {
			if o.name == n && o.has {
				out = append(out, o.value)
			}
		}
	}
	return out
}

// split takes a command line apart by the rules of getopt.
func (g grammar) split(args []word) parsed {
	var p parsed
	for i := 0; i < len(args); {
		x := args[i]
		pre := x.prefix()
		switch {
		case p.ended || len(pre) < 2 || pre[0] != '-' && (!g.plus || pre[0] != '+'):
			if g.posix {
				p.rest, p.stop = args[i:], i
				return p
			}
			p.rest = append(p.rest, x)
			i++
		case x.is("--"):
			p.ended = true
			i++
			if g.posix {
				p.rest, p.stop = args[i:], i
				return p
			}
		case strings.HasPrefix(pre, "--"):
			i += g.long(&p, args[i:])
		case g.single && g.word(pre):
			i += g.long(&p, args[i:])
		default:
			i += g.cluster(&p, args[i:])
		}
	}
	p.stop = len(args)
	return p
}

// word reports whether a single-dash word is an option of its own.
func (g grammar) word(pre string) bool {
	name, _, _ := strings.Cut(pre, "=")
	return len(name) > 2 && (g.takes(name) || !g.takes(name[:2]))
}

func (g grammar) long(p *parsed, args []word) int {
	pre := args[0].prefix()
	name, _, glued := strings.Cut(pre, "=")
	full := g.full(name)
	if glued {
		p.opts = append(p.opts, option{name: full, value: args[0].cut(len(name) + 1), has: true})
		return 1
	}
	if len(args) > 1 && g.takes(full) {
		p.opts = append(p.opts, option{name: full, value: args[1], has: true})
		return 2
	}
	p.opts = append(p.opts, option{name: full})
	return 1
}

// full completes an abbreviated long option, as GNU getopt does.
func (g grammar) full(name string) string {
	if len(name) < 4 || !strings.HasPrefix(name, "--") || strings.Contains(name, " ") || g.takes(name) {
		return name
	}
	found := ""
	for at := 0; ; at++ {
		i := strings.Index(g.spec[at:], name)
		if i < 0 {
			break
		}
		if at += i; at > 0 && g.spec[at-1] != ' ' {
			continue
		}
		n, _, _ := strings.Cut(g.spec[at:], " ")
		if n, _, _ = strings.Cut(n, "="); slices.Contains(g.flags, n) {
			continue
		}
		if found != "" {
			return name
		}
		found = n
	}
	if found == "" {
		return name
	}
	return found
}

func (g grammar) cluster(p *parsed, args []word) int {
	pre := args[0].prefix()
	for i := 1; i < len(pre); i++ {
		name := pre[:1] + pre[i:i+1]
		if !g.takes(name) {
			p.opts = append(p.opts, option{name: name})
			continue
		}
		switch {
		case i+1 < len(pre) || len(pre) < len(args[0].text()):
			if g.single && i == 1 && strings.HasPrefix(pre[2:], "=") {
				i++ // -o=x
			}
			p.opts = append(p.opts, option{name: name, value: args[0].cut(i + 1), has: true})
			return 1
		case len(args) > 1:
			p.opts = append(p.opts, option{name: name, value: args[1], has: true})
			return 2
		default:
			p.opts = append(p.opts, option{name: name})
			return 1
		}
	}
	return 1
}

// newGrammar reads "-o=w --output=w -n": each word is an option that takes a
// value, with the role of that value after "=". The words single, posix and
// plus say how options are written.
func newGrammar(spec string) grammar {
	return grammar{
		spec: spec, single: wordIndex(spec, "single") >= 0, posix: wordIndex(spec, "posix") >= 0, plus: wordIndex(spec, "plus") >= 0,
	}
}
