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
// name are flags.
type grammar struct {
	valued map[string]role // with dashes
	single bool            // options are words after one dash: -coverprofile=x
	plus   bool            // options may start with "+"
	posix  bool            // the first operand ends the options
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
	if _, ok := g.valued[name]; ok && len(name) > 2 {
		return true
	}
	if len(name) > 2 {
		_, glued := g.valued[name[:2]]
		return !glued
	}
	return false
}

func (g grammar) long(p *parsed, args []word) int {
	pre := args[0].prefix()
	name, _, glued := strings.Cut(pre, "=")
	full := g.full(name)
	if glued {
		p.opts = append(p.opts, option{name: full, value: args[0].cut(len(name) + 1), has: true})
		return 1
	}
	if _, ok := g.valued[full]; ok && len(args) > 1 {
		p.opts = append(p.opts, option{name: full, value: args[1], has: true})
		return 2
	}
	p.opts = append(p.opts, option{name: full})
	return 1
}

// full completes an abbreviated long option, as GNU getopt does.
func (g grammar) full(name string) string {
	if _, ok := g.valued[name]; ok || len(name) < 4 || !strings.HasPrefix(name, "--") {
		return name
	}
	found := ""
	for n := range g.valued {
		if strings.HasPrefix(n, name) {
			if found != "" {
				return name
			}
			found = n
		}
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
		if _, ok := g.valued[name]; !ok {
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

// newGrammar reads "-o=w --output=w -n" into a grammar: each word is an option
// that takes a value, with the role of that value after "=".
func newGrammar(spec string) grammar {
	g := grammar{valued: map[string]role{}}
	for f := range strings.FieldsSeq(spec) {
		switch f {
		case "single":
			g.single = true
			continue
		case "posix":
			g.posix = true
			continue
		case "plus":
			g.plus = true
			continue
		}
		name, r, ok := strings.Cut(f, "=")
		g.valued[name] = roleNone
		if ok && r != "" {
			g.valued[name] = roleOf(r[0])
		}
	}
	return g
}
