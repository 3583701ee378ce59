package shellast

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// cmd is one command position whose program word is resolved.
type cmd struct {
	name  string // lower case, without directory and .exe
	word  word   // the program word
	args  []word
	pos   call.Pos
	via   string
	index int // in Facts.Commands
	own   bool
}

// handler judges the arguments of one command. It returns what the command is
// known to print.
type handler func(w *walker, st *state, c *cmd) output

// simple walks a simple command: assignments, words, and what they run.
func (w *walker) simple(st *state, x *syntax.CallExpr, timed bool) output {
	if len(x.Args) == 0 {
		for _, a := range x.Assigns {
			w.assign(st, a, "assignment")
		}
		return output{}
	}
	if g, ok := x.Args[0].Parts[0].(*syntax.ExtGlob); ok && g.Op == syntax.GlobExcept {
		// Without extglob bash reads !(cmd) as a negated subshell.
		w.reparse(st.clone(), g.Pattern.Value, w.pos(g), "!( )")
	}
	words := w.all(st, x.Args)
	if timed {
		words = w.leadingAssigns(words)
	}
	if len(words) == 0 {
		return output{}
	}
	if len(x.Assigns) > 0 {
		inner := st.clone()
		how := "prefix"
		if isBuiltin(words[0].text()) {
			how = "builtin"
		}
		for _, a := range x.Assigns {
			w.assign(inner, a, how)
		}
		outer := st.env
		defer func() { st.env = outer }()
		st.env = maps.Clone(outer)
		if st.env == nil {
			st.env = map[string]value{}
		}
		for _, a := range x.Assigns {
			if a.Name != nil {
				st.env[a.Name.Value] = inner.vars[a.Name.Value]
			}
		}
	}
	return w.run(st, words, w.via)
}

// leadingAssigns drops NAME=value words that bash takes as assignments.
func (w *walker) leadingAssigns(words []word) []word {
	for len(words) > 0 {
		name, _, ok := strings.Cut(words[0].prefix(), "=")
		if !ok || !isName(name) {
			return words
		}
		w.env(name, "prefix", words[0].pos)
		w.codeVar(&state{}, name, words[0].cut(len(name)+1))
		words = words[1:]
	}
	return words
}

func (w *walker) env(name, how string, pos call.Pos) {
	if how == "builtin" {
		return
	}
	w.f.Env = append(w.f.Env, call.EnvVar{Name: name, How: how, Pos: pos})
}

// callEnv takes in the variables of the call itself.
func (w *walker) callEnv(st *state, env map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		w.env(k, "call", call.Pos{})
		st.set(k, literal(env[k]))
		if k == "IFS" {
			delete(st.change(), k) // the shell does not import it
		}
		w.codeVar(st, k, plain(env[k], call.Pos{}))
		w.pathVar(st, k, plain(env[k], call.Pos{}))
	}
}

// assign walks one assignment.
func (w *walker) assign(st *state, a *syntax.Assign, how string) {
	if a.Name == nil {
		w.single(st, a.Value)
		return
	}
	name := a.Name.Value
	pos := w.pos(a.Name)
	if a.Index != nil {
		w.arith(st, a.Index)
	}
	if w.common.namerefs[name] {
		st.loosenAll() // another variable changes
	}
	w.env(name, how, pos)
	if a.Array != nil {
		w.array(st, a)
		return
	}
	x := w.single(st, a.Value)
	w.codeVar(st, name, x)
	w.pathVar(st, name, x)
	if w.common.namerefs[name] && isCode(x.text()) {
		w.code(x.cons, x.src, "it goes to a variable that is not known before it runs, and may be evaluated there", x.pos)
	}
	if name == "BASH_ALIASES" {
		w.aliasElement(st, a.Index, x)
	}
	st.assign(a, x)
	switch {
	case w.common.integers[name]:
		w.arithmetic(st, x)
		st.void(name)
	case w.common.readonly[name]:
		st.loosen(name) // it may hold what it held before
	}
	if v, ok := w.common.volatile[name]; ok {
		st.set(name, st.vars[name].union(v))
	}
}

// assign remembers what an assignment leaves in its variable.
func (s *state) assign(a *syntax.Assign, x word) {
	name := a.Name.Value
	switch {
	case a.Index != nil && x.known() && !a.Append:
		s.setElement(name, a.Index, x.text())
	case a.Naked:
		s.void(name)
	case a.Index != nil:
		s.mayHold(name, either(s.vars[name].texts(), []string{x.text()})...)
	case a.Append:
		old, ok := s.vars[name]
		if !ok || !old.known || old.array || !x.known() || len(old.text) > maxText {
			s.mayHold(name, either(old.texts(), []string{x.text()})...)
			return
		}
		s.set(name, literal(old.text+x.text()))
	default:
		s.set(name, assigned(x))
	}
}

// assigned is what a variable holds that is given a word.
func assigned(x word) value {
	if x.known() {
		return value{known: true, text: x.text(), pattern: x.glob()}
	}
	var v value
	for _, o := range x.variants() {
		if o.known() {
			v = v.union(literal(o.text()))
		}
	}
	return v
}

func (w *walker) array(st *state, a *syntax.Assign) {
	v := value{known: true, array: true}
	if old := st.vars[a.Name.Value]; a.Append {
		v.known, v.list = old.known && old.array, slices.Clone(old.list)
	}
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			w.arith(st, e.Index)
			v.known = false
		}
		for _, f := range w.fields(st, e.Value) {
			v.known = v.known && f.known() && !f.glob()
			v.list = append(v.list, f.text())
			switch a.Name.Value {
			case "PROMPT_COMMAND":
				w.program(st.clone(), f, "PROMPT_COMMAND")
			case "BASH_ALIASES":
				w.aliasElement(st, e.Index, f)
			}
		}
	}
	if len(v.list) > maxBraces || !v.known {
		st.mayHold(a.Name.Value, either(st.vars[a.Name.Value].texts(), v.list)...)
		return
	}
	st.set(a.Name.Value, v)
}

// codeVar judges a variable whose value other programs, or bash itself, run.
func (w *walker) codeVar(st *state, name string, x word) {
	switch name {
	case "PROMPT_COMMAND", "BASH_ALIASES", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
		"GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "PAGER", "EDITOR", "VISUAL", "MANPAGER", "LESSOPEN", "LESSCLOSE", "SHELL", "BROWSER", "RSYNC_RSH", "FCEDIT":
		if !x.known() && len(x.cons) == 0 || x.known() && strings.TrimSpace(x.text()) == "" {
			return
		}
		t := x
		if name == "LESSOPEN" && x.known() {
			t = plain(strings.TrimLeft(x.text(), "|-"), x.pos)
		}
		w.program(st.clone(), t, name)
	case "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS":
		if x.known() && x.text() != "" {
			w.run(st.clone(), []word{x}, name)
		}
	default:
		w.shellVar(st, name, x)
	}
}

// shellVar judges a variable that decides what a shell, or tar, does.
func (w *walker) shellVar(st *state, name string, x word) {
	switch name {
	case "PS4", "PS1", "PS0", "PS2":
		if x.known() {
			w.again(st.clone(), x.text(), x.pos, true)
		}
	case "CC", "CXX", "CPP", "LD", "AS", "AR", "FC", "CARGO", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOC":
		if x.known() {
			w.commandLine(st, &cmd{name: name, pos: x.pos}, x)
		}
	case "GOFLAGS":
		w.goVariable(st, x)
	case "GIT_CONFIG_PARAMETERS":
		w.gitVariable(st, x)
	case "TAR_OPTIONS":
		w.tarVariable(st, x)
	case "BASHOPTS":
		w.common.lastpipe = w.common.lastpipe || !x.known() || strings.Contains(x.text(), "lastpipe")
	case "BASH_ENV", "ENV":
		if !w.startup(st, x, name) && x.known() {
			w.again(st.clone(), x.text(), x.pos, true)
		}
	default:
		w.patternVar(st, name, x)
	}
}

// patternVar judges the variables of a family: functions that bash takes from
// its environment, and the programs cargo runs for a target.
func (w *walker) patternVar(st *state, name string, x word) {
	switch {
	case strings.HasPrefix(name, "BASH_FUNC_"):
		w.program(st.clone(), prefixed("f ", x), name)
	case x.known() && strings.HasPrefix(name, "CARGO_TARGET_") && (strings.HasSuffix(name, "_RUNNER") || strings.HasSuffix(name, "_LINKER")):
		w.commandLine(st, &cmd{name: name, pos: x.pos}, x)
	}
}

// pathVar counts what a known path variable names as read.
func (w *walker) pathVar(st *state, name string, x word) {
	switch name {
	case "GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_OBJECT_DIRECTORY", "BASH_ENV", "ENV",
		"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "NODE_PATH", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME",
		"JAVA_HOME", "CLASSPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PERL5LIB", "RUBYLIB", "MANPATH", "PKG_CONFIG_PATH", "VIRTUAL_ENV":
	default:
		return
	}
	if !x.known() {
		return
	}
	if name == "BASH_ENV" && !strings.ContainsAny(x.text(), "$`") {
		w.path(st, &cmd{name: name, pos: x.pos}, x, roleRead)
		return
	}
	for _, p := range strings.FieldsFunc(x.text(), func(r rune) bool { return r == ':' }) {
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "../") {
			w.path(st, &cmd{name: name, pos: x.pos}, plain(p, x.pos), roleRead)
		}
	}
}

// attributes are what a declaration gives its names.
type attributes struct {
	how                        string
	integer, nameref, readonly bool
	lost                       bool // a local outside functions changes nothing
	global                     bool // not of the function, although it is declared there
	local                      bool // export and readonly are not
	functions                  bool // the names are those of functions
}

func (w *walker) attributes(variant string) attributes {
	at := attributes{how: "assignment", readonly: variant == "readonly", lost: variant == "local" && !w.inFunc}
	at.local = w.inFunc && w.frame != nil && variant != "export" && variant != "readonly"
	if variant == "export" {
		at.how = variant
	}
	return at
}

// option takes in one option of a declaration.
func (at *attributes) option(t string) {
	if strings.HasPrefix(t, "+") {
		return
	}
	if strings.Contains(t, "x") {
		at.how = "export"
	}
	at.global = at.global || strings.Contains(t, "g")
	at.integer = at.integer || strings.Contains(t, "i")
	at.nameref = at.nameref || strings.Contains(t, "n") && at.how != "export"
	at.readonly = at.readonly || strings.Contains(t, "r")
	at.functions = at.functions || strings.Contains(t, "f")
}

// declare walks declare, local, export, readonly and typeset.
func (w *walker) declare(st *state, x *syntax.DeclClause) {
	at := w.attributes(x.Variant.Value)
	for _, a := range x.Args {
		if a.Name != nil || a.Value == nil {
			w.declaredAll(st, x, a, at)
			continue
		}
		for _, f := range w.fields(st, a.Value) {
			if t := f.text(); f.known() && isDeclareOption(t) {
				at.option(t)
				continue
			}
			w.declaredWord(st, f, at)
		}
	}
}

func isDeclareOption(t string) bool { return len(t) > 1 && (t[0] == '-' || t[0] == '+') }

// declaredAll judges an assignment among the operands of declare: to bash it is
// a word, which brace expansion may make several of.
func (w *walker) declaredAll(st *state, d *syntax.DeclClause, a *syntax.Assign, at attributes) {
	if a.Value == nil {
		w.declared(st, d, a, at)
		return
	}
	values, ok := w.braces(a.Value)
	for _, e := range values {
		v := &syntax.Word{}
		if len(e.words) > 0 {
			v = e.words[0]
		}
		e.w.declared(st, d, &syntax.Assign{Append: a.Append, Name: a.Name, Index: a.Index, Value: v}, at)
	}
	if len(values) == 0 {
		w.declared(st, d, a, at)
	}
	if !ok {
		st.void(a.Name.Value)
	}
}

func (w *walker) declared(st *state, x *syntax.DeclClause, a *syntax.Assign, at attributes) {
	name := a.Name.Value
	defer w.common.declared(name, at)
	w.ownVariable(st, x, name, at)
	if a.Naked && a.Index == nil && a.Value == nil && a.Array == nil {
		w.naked(st, a.Name, at)
		return
	}
	if (at.integer || at.nameref) && a.Value != nil {
		w.arithmetic(st, w.single(st, a.Value))
	}
	w.assign(st, a, at.how)
	if at.integer || at.nameref || at.lost {
		st.void(name)
	}
}

// naked judges a name that is declared without a value.
func (w *walker) naked(st *state, name *syntax.Lit, at attributes) {
	switch {
	case at.how == "export":
		w.env(name.Value, at.how, w.pos(name))
	case !at.readonly || at.integer || at.nameref:
		st.void(name.Value)
	}
}

// declaredWord judges an operand of declare that is only known after expansion.
func (w *walker) declaredWord(st *state, f word, at attributes) {
	name, _, ok := strings.Cut(f.prefix(), "=")
	name = strings.TrimSuffix(name, "+")
	if at.integer || at.nameref {
		w.evaluated(st, f)
	}
	w.common.declared(name, at)
	w.ownVariable(st, nil, name, at)
	if ok && isName(name) {
		v := f.cut(strings.IndexByte(f.prefix(), '=') + 1)
		if at.integer {
			w.arithmetic(st, v)
		}
		w.env(name, at.how, f.pos)
		w.given(st, name, v)
		return
	}
	if at.how == "export" && !f.known() {
		st.loosenAll() // export takes no subscript, so nothing is evaluated
		return
	}
	w.name(st, f)
}

// run judges one command position.
func (w *walker) run(st *state, words []word, via string) output {
	if len(words) == 0 {
		return output{}
	}
	if len(w.f.Commands) >= maxCommands {
		w.code(nil, words[0].src, "there are more commands than can be judged", words[0].pos)
		return output{}
	}
	c := &w.common.cmds.take(1)[0]
	*c = cmd{word: words[0], args: words[1:], pos: words[0].pos, via: via}
	w.resolve(st, c)
	c.index = len(w.f.Commands)
	argv := w.common.argvs.take(len(words))
	for i, x := range words {
		argv[i] = x.text()
	}
	w.f.Commands = append(w.f.Commands, call.Command{Name: c.name, Argv: argv, Via: via, Dir: w.dir(st), Own: c.own, Pos: c.pos})
	if c.word.glob() || !c.word.known() {
		w.variantPrograms(st, c)
		w.unknownProgram(st, c)
		return output{}
	}
	if p := c.word.text(); strings.Contains(p, "/") {
		w.f.Commands[c.index].Path = w.programPath(st, p)
	}
	w.callsFrom(c)
	if w.funcs[c.word.text()] {
		w.called(st, c)
		w.aliased(st, c)
	}
	if !c.own {
		if h, ok := w.a.tab().handler(c.name); ok {
			return w.handle(h, st, c)
		}
	}
	w.tableOperands(st, c)
	return output{}
}

// handle runs a handler. A program on disk changes nothing in the shell, and
// where a function has the name of a builtin nobody knows which of them ran.
func (w *walker) handle(h handler, st *state, c *cmd) output {
	if strings.Contains(c.word.text(), "/") {
		return h(w, st.clone(), c)
	}
	cwd := st.cwd
	out := h(w, st, c)
	if st.cwd != cwd && w.funcs[c.word.text()] {
		st.chdir("", nil)
	}
	return out
}

// variantPrograms judges what an unknown command word may be, among others.
func (w *walker) variantPrograms(st *state, c *cmd) {
	for _, v := range c.word.variants() {
		if !v.known() || strings.TrimSpace(v.text()) == "" {
			continue
		}
		words := []word{v}
		if v = plain(v.text(), v.pos); c.word.many() {
			words = nil
			for f := range strings.FieldsSeq(v.text()) {
				words = append(words, plain(f, v.pos))
			}
		}
		w.run(st.clone(), append(words, c.args...), c.via)
	}
}

func (w *walker) unknownProgram(st *state, c *cmd) {
	why := "the command word is not known before it runs"
	if c.word.glob() && c.word.known() {
		why = "the command word is a pattern that file names replace"
	}
	w.code(c.word.cons, c.word.src, why, c.pos)
	// An unquoted unknown may vanish, or hold options only: what follows may be
	// the command.
	if c.word.many() && len(c.word.segs) == 1 && len(c.args) > 0 && c.args[0].known() {
		next := strings.ToLower(path.Base(c.args[0].text()))
		if _, ok := w.a.tab().handlers[next]; ok || w.a.tab().watched[next] {
			w.run(st.clone(), c.args, c.via)
			return
		}
	}
	w.guessAll(st, c, c.args)
}

// resolve finds the name a command is judged by. A program inside the
// workspace is its own; a link there is followed.
func (w *walker) resolve(st *state, c *cmd) {
	text := c.word.text()
	if !c.word.known() {
		text = c.word.suffix()
		if !strings.Contains(text, "/") {
			return
		}
	} else if strings.Contains(text, "/") {
		text = w.realName(st, c, text)
	}
	c.name = baseName(text)
}

// dir is the folder a command runs in, when it is not the call's.
func (w *walker) dir(st *state) string {
	switch st.cwd {
	case w.f.Cwd.Path:
		return ""
	case "":
		return call.DirUnknown
	}
	return st.cwd
}

func (w *walker) realName(st *state, c *cmd, text string) string {
	if st.cwd == "" && !strings.HasPrefix(text, "/") {
		return text
	}
	if from, ok := w.common.copies[cleanJoin(st.cwd, text)]; ok && w.a.tab().watched[baseName(from)] {
		return from
	}
	if to := w.linked(st.cwd, text, true); to != text {
		text = to
		if w.a.tab().watched[baseName(text)] {
			return text
		}
	}
	real := w.a.r.Resolve(st.cwd, text, true)
	if real.Inside {
		c.own = true
		return text
	}
	if b := baseName(real.Path); b == "busybox" || b == "toybox" {
		return text // these do what the name of the link says
	}
	if lexical := w.a.r.Resolve(st.cwd, text, false); lexical.Inside && real.Path != "" {
		return real.Path
	}
	// A link outside keeps its own name, unless only what it leads to is
	// watched: /sbin/reboot is often a link to systemctl.
	if watched := w.a.tab().watched; !watched[baseName(text)] && watched[baseName(real.Path)] {
		return real.Path
	}
	return text
}

func (w *walker) programPath(st *state, text string) string {
	if st.cwd == "" && !strings.HasPrefix(text, "/") {
		return ""
	}
	return w.resolveAt(st.cwd, text, true).Path
}

// baseName is the name a program is known by: no directory, lower case, no
// .exe.
func baseName(text string) string {
	n := strings.ToLower(text[strings.LastIndexByte(text, '/')+1:])
	return strings.TrimSuffix(n, ".exe")
}

// isBuiltin reports whether a prefix assignment of this command reaches no
// program.
func isBuiltin(name string) bool {
	switch name {
	case "read", "cd", "pushd", "popd", "echo", "printf", "test", "[", ":", "true", "false", "local", "set", "shift",
		"unset", "mapfile", "readarray", "pwd", "type", "hash", "let", "wait", "umask", "getopts", "return", "exit", "break", "continue":
		return true
	}
	return false
}
