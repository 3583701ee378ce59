package shellast

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// value is what a variable is known to hold.
type value struct {
	known bool
	text  string
	list  []string // of an array
	array bool

	pattern bool // the text is a pattern, and the value a file name that it stands for

	alts []value // what an unknown value may be, each known: what the branches left, the items of a loop
	full bool    // it is one of these, and nothing else
}

// texts are what the variable holds or may hold.
func (v value) texts() []string {
	switch {
	case v.known && !v.array:
		return []string{v.text}
	case v.known:
		return v.list
	}
	var out []string
	for _, a := range v.alts {
		out = append(out, a.texts()...)
	}
	return out
}

// options are the values it may have, each known.
func (v value) options() []value {
	if v.known {
		return []value{v}
	}
	return v.alts
}

// union is what is known of a variable that holds one or the other.
func (v value) union(o value) value {
	if v.equal(o) {
		return v
	}
	out := value{full: (v.known || v.full) && (o.known || o.full)}
	for _, a := range slices.Concat(v.options(), o.options()) {
		switch {
		case slices.ContainsFunc(out.alts, a.equal):
		case len(out.alts) == maxCandidates:
			out.full = false
		default:
			out.alts = append(out.alts, a)
		}
	}
	return out
}

// perhaps is a value that may be another as well.
func (v value) perhaps() value { return v.union(value{}) }

func literal(s string) value { return value{known: true, text: s} }

// input is what a command reads from its standard input.
type input struct {
	kind inputKind
	text string // known, or as written
	word word   // of inputUnknown, when parts of it are known
	cons []int  // constructs that make it
	pos  call.Pos
	idle bool // nobody need ever write to it
}

// comes reports whether a program has something to read, and so need not look
// for it elsewhere.
func (in input) comes() bool {
	return (in.kind == inputUnknown || in.kind == inputText) && !in.idle
}

type inputKind uint8

const (
	inputNone inputKind = iota
	inputFile           // a named file
	inputText           // known text
	inputUnknown
)

// state is what is known at one point of a command: variables, working
// directory, positional parameters and the standard input.
type state struct {
	vars      map[string]value
	mine      bool   // no other state has these vars: they may be changed
	cwd       string // logical; "" = unknown
	old       string
	dirs      []string
	env       map[string]value // of the program that is started, when it is not vars
	args      []word
	argsKnown bool
	in        input
	keepIn    bool // exec took the input of this command for all that follow
	fds       map[string]input
}

func newState(cwd string) *state {
	return &state{cwd: cwd}
}

// clone returns a copy. Both share the variables until one of them changes
// some.
func (s *state) clone() *state {
	s.mine = false
	c := *s
	c.dirs = slices.Clone(s.dirs)
	c.fds = maps.Clone(s.fds)
	return &c
}

// change returns the variables, to change them.
func (s *state) change() map[string]value {
	if !s.mine {
		s.vars, s.mine = maps.Clone(s.vars), true
	}
	if s.vars == nil {
		s.vars = map[string]value{}
	}
	return s.vars
}

// get returns what a variable holds. Only those that the shell or the sandbox
// sets itself are known without an assignment.
func (s *state) get(name, home string) value {
	if v, ok := s.vars[name]; ok {
		return v
	}
	switch name {
	case "HOME":
		if home != "" {
			return literal(home)
		}
	case "PWD":
		if s.cwd != "" {
			return literal(s.cwd)
		}
	case "OLDPWD":
		if s.old != "" {
			return literal(s.old)
		}
	}
	return value{}
}

// program is the command that a value names when it stands unquoted.
func (v value) program() (string, bool) {
	text := v.text
	if v.array && len(v.list) > 0 {
		text = v.list[0]
	}
	name, _, _ := strings.Cut(strings.TrimLeft(text, " \t\n"), " ")
	return name, v.known && !v.pattern && name != ""
}

// argument is the first word of $@, or the one of $1 and its kin, when it is
// known to be a name.
func (s *state) argument(name string) (string, bool) {
	n := 1
	if name != "@" && name != "*" {
		var err error
		if n, err = strconv.Atoi(name); err != nil {
			return "", false
		}
	}
	if !s.argsKnown || n < 1 || n > len(s.args) || slices.ContainsFunc(s.args[:n], word.uncounted) || !s.args[n-1].known() {
		return "", false
	}
	return s.args[n-1].text(), isName(s.args[n-1].text())
}

// environ returns what a program finds in its environment.
func (s *state) environ(name string) value {
	if v, ok := s.env[name]; ok {
		return v
	}
	return s.get(name, "")
}

// setEnviron puts a variable into the environment of the program that is
// started.
func (s *state) setEnviron(name string, x word) {
	s.env = maps.Clone(s.env)
	if s.env == nil {
		s.env = map[string]value{}
	}
	s.env[name] = value{}
	if x.known() {
		s.env[name] = literal(x.text())
	}
}

// setElement remembers one element of an array.
func (s *state) setElement(name string, index syntax.ArithmExpr, text string) {
	old := s.vars[name]
	i, err := strconv.Atoi(lit(index))
	if err != nil || i < 0 || i > len(old.list) || old.text != "" || len(old.list) > 0 && !old.known {
		s.mayHold(name, either(old.texts(), []string{text})...)
		return
	}
	v := value{known: true, array: true, list: slices.Clone(old.list)}
	if i == len(v.list) {
		v.list = append(v.list, text)
	} else {
		v.list[i] = text
	}
	s.set(name, v)
}

// set remembers what a variable holds, unless that is too much to follow.
func (s *state) set(name string, v value) {
	if len(v.text) > maxText || len(v.list) > maxBraces {
		v = value{}
	}
	if _, ok := s.vars[name]; !ok && len(s.vars) >= maxVars {
		switch name {
		case "HOME", "PWD", "OLDPWD", "IFS", "CDPATH":
		default:
			return // a variable nobody remembers is unknown
		}
	}
	s.change()[name] = v
}

// loosen forgets a variable that a loop changes, but for what it may hold when
// the loop starts.
func (s *state) loosen(name string) {
	if v, ok := s.vars[name]; ok {
		s.change()[name] = v.perhaps()
		return
	}
	s.void(name)
}

// mayHold notes that a variable has been given one of several texts, or
// something else.
func (s *state) mayHold(name string, texts ...string) {
	v := value{}
	for _, t := range texts {
		if len(t) <= maxText {
			v = v.union(literal(t))
		}
	}
	s.set(name, v)
}

// loosenAll forgets everything that code nobody looked at may have changed.
func (s *state) loosenAll() {
	for n := range s.vars {
		s.loosen(n)
	}
	s.args, s.argsKnown = nil, false
}

// leaveShell forgets what another shell does not have, but for texts that run
// something where they are evaluated again: they may be exported.
func (s *state) leaveShell() {
	for n, v := range s.vars {
		s.mayHold(n, slices.DeleteFunc(slices.Clone(v.texts()), func(t string) bool { return !isCode(t) })...)
	}
	s.args, s.argsKnown = nil, false
}

// void forgets a variable.
func (s *state) void(name string) { s.set(name, value{}) }

// join keeps what either state may hold: one of them was reached.
func (s *state) join(o *state) {
	for n, v := range s.vars {
		if w, ok := o.vars[n]; !ok || !v.equal(w) {
			s.change()[n] = v.union(w)
		}
	}
	for n, v := range o.vars {
		if _, ok := s.vars[n]; !ok {
			s.change()[n] = v.perhaps()
		}
	}
	if s.cwd != o.cwd {
		s.cwd = ""
	}
	if s.old != o.old {
		s.old = ""
	}
	if !slices.Equal(s.dirs, o.dirs) {
		s.dirs = nil
	}
	if s.in.kind != o.in.kind || s.in.text != o.in.text {
		s.in = input{kind: inputUnknown, text: "<", pos: s.in.pos}
	}
	if s.argsKnown != o.argsKnown || !slices.EqualFunc(s.args, o.args, word.equal) {
		s.args, s.argsKnown = nil, false
	}
}

// widen makes a state hold what the variables of another hold as well, and
// reports whether that was more than it held. Of a variable that does it keeps
// only what it may hold, so that widening comes to an end.
func (s *state) widen(o *state) (more bool) {
	for n, v := range o.vars {
		was, ok := s.vars[n]
		if !ok {
			was = s.get(n, v.text) // HOME is known without an assignment
		}
		if was.covers(v) || n == "PWD" || n == "OLDPWD" {
			continue
		}
		s.set(n, was.union(v).perhaps())
		more = true
	}
	if s.argsKnown && (!o.argsKnown || !slices.EqualFunc(s.args, o.args, word.equal)) {
		s.args, s.argsKnown, more = nil, false, true
	}
	return more
}

// covers reports whether whatever o may be was thought of. What is unknown may
// be anything.
func (v value) covers(o value) bool {
	switch {
	case !v.known && !v.full:
		return true
	case !o.known && !o.full:
		return false
	}
	return !slices.ContainsFunc(o.options(), func(x value) bool { return !slices.ContainsFunc(v.options(), x.equal) })
}

// either is what is in one of two lists.
func either(a, b []string) []string {
	out := slices.Clone(a)
	for _, t := range b {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func (v value) equal(o value) bool {
	return v.known == o.known && v.text == o.text && v.array == o.array && v.pattern == o.pattern && slices.Equal(v.list, o.list) &&
		v.full == o.full && slices.EqualFunc(v.alts, o.alts, value.equal)
}

// chdir follows cd: logically, as bash does.
func (s *state) chdir(to string, physical func(string) string) {
	if to == "" {
		s.old, s.cwd = s.cwd, ""
		return
	}
	if !strings.HasPrefix(to, "/") {
		if s.cwd == "" {
			return
		}
		to = s.cwd + "/" + to
	}
	to = path.Clean(to)
	if physical != nil {
		to = physical(to)
	}
	s.old, s.cwd = s.cwd, to
}
