package shellast

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// builtins are the handlers of what bash does itself.
func builtins() map[string]handler {
	return map[string]handler{
		"eval": eval, "source": source, ".": source,
		"cd": chdir, "pushd": pushd, "popd": popd, "set": set, "shift": shift,
		"trap": trap, "alias": alias, "unset": unsetNames, "read": readNames,
		"mapfile": mapfile, "readarray": mapfile, "printf": printf, "echo": echo,
		"let": letWords, "export": exportWords, "declare": exportWords, "typeset": exportWords,
		"local": exportWords, "readonly": exportWords, "hash": hashPath, "complete": complete, "compgen": complete,
		"test": testWords, "[": testWords, "kill": kill, "pkill": signal, "killall": signal,
		"getopts": getopts, "wait": waitNames, "fc": fix,
		":": ignore, "true": ignore, "false": ignore, "exit": exit, "return": leave, "break": ignore, "continue": ignore,
		"pwd": ignore, "type": ignore, "which": ignore, "whereis": ignore, "help": ignore, "umask": ignore,
		"ulimit": ignore, "jobs": ignore, "fg": ignore, "bg": ignore, "disown": ignore, "times": ignore, "shopt": shopt,
		"unalias": ignore, "enable": ignore, "dirs": ignore, "history": ignore, "logname": ignore, "seq": ignore,
		"basename": ignore, "dirname": ignore, "expr": ignore, "sleep": ignore, "yes": ignore, "hostname": ignore,
		"whoami": ignore, "id": ignore, "uname": ignore, "date": dateCommand, "getent": ignore, "nproc": ignore, "tty": ignore,
		"apropos": ignore, "whatis": ignore, "info": ignore, "tput": ignore, "stty": ignore, "locale": ignore,
	}
}

func ignore(*walker, *state, *cmd) output { return output{} }

// exit keeps what holds where the shell may end: traps run then.
func exit(w *walker, st *state, _ *cmd) output {
	if len(w.common.traps) > 0 {
		w.common.ends = append(w.common.ends, st.clone())
	}
	return output{}
}

// leave keeps what holds where a function may end before its last command.
func leave(w *walker, st *state, _ *cmd) output {
	if w.frame != nil {
		w.frame.leave(st)
	}
	return output{}
}

// fix judges fc, which runs again what the history holds.
func fix(w *walker, _ *state, c *cmd) output {
	if !newGrammar("-e posix").split(c.args).has("-l") {
		w.code(nil, argText("fc", c.args), "fc runs what the history holds", c.pos)
	}
	return output{}
}

// shopt notes when the last stage of a pipe is the shell itself.
func shopt(w *walker, _ *state, c *cmd) output {
	for _, a := range c.args {
		w.common.lastpipe = w.common.lastpipe || a.is("lastpipe") || !a.known()
	}
	return output{}
}

func dateCommand(w *walker, st *state, c *cmd) output {
	g := newGrammar("-d --date -f=r --file=r -r=t --reference=t -s --set")
	w.optionPaths(st, c, g, g.split(c.args))
	return output{}
}

// cdTo changes the directory of a state to what a word says.
func (w *walker) cdTo(st *state, c *cmd, x word, physical func(string) string) {
	if !x.known() || x.glob() {
		w.path(st, c, x, roleTest)
		st.chdir("", nil)
		return
	}
	t := x.text()
	if t == "" {
		return
	}
	w.path(st, c, x, roleTest)
	if isFile(w.resolveAt(st.cwd, t, true).Path) {
		return // bash goes nowhere
	}
	st.chdir(t, physical)
}

func chdir(w *walker, st *state, c *cmd) output {
	p := newGrammar("posix").split(c.args)
	var physical func(string) string
	if p.has("-P") {
		physical = func(to string) string { return w.a.r.Resolve("/", to, true).Path }
	}
	switch {
	case len(p.rest) > 1, slices.ContainsFunc(p.opts, func(o option) bool { return !strings.Contains("-L -P -e -@", o.name) }):
		return output{} // bash goes nowhere
	case len(p.rest) == 0:
		home := st.get("HOME", w.a.r.Home())
		if home.known {
			w.cdTo(st, c, plain(home.text, c.pos), physical)
		} else {
			st.chdir("", nil)
		}
	case p.rest[0].is("-"):
		st.chdir(st.old, nil)
	default:
		if _, ok := st.vars["CDPATH"]; ok && !strings.HasPrefix(p.rest[0].text(), "/") && !strings.HasPrefix(p.rest[0].text(), ".") {
			st.chdir("", nil)
			break
		}
		w.cdTo(st, c, p.rest[0], physical)
	}
	return output{}
}

func pushd(w *walker, st *state, c *cmd) output {
	p := newGrammar("posix").split(c.args)
	if p.has("-n") {
		if len(p.rest) > 0 {
			st.dirs = append(st.dirs, "") // it does not go there
		}
		return output{}
	}
	if len(p.opts) > 0 || len(p.rest) == 0 || strings.HasPrefix(p.rest[0].text(), "+") {
		top := ""
		if n := len(st.dirs); n > 0 && len(p.rest) == 0 {
			top, st.dirs[n-1] = st.dirs[n-1], st.cwd
		}
		st.chdir(top, nil)
		return output{}
	}
	st.dirs = append(st.dirs, st.cwd)
	w.cdTo(st, c, p.rest[0], nil)
	return output{}
}

func popd(_ *walker, st *state, c *cmd) output {
	to := ""
	if n := len(st.dirs); len(c.args) > 0 && c.args[0].is("-n") {
		st.dirs = st.dirs[:max(n-1, 0)]
		return output{}
	}
	if n := len(st.dirs); n > 0 && len(c.args) == 0 {
		to, st.dirs = st.dirs[n-1], st.dirs[:n-1]
	}
	st.chdir(to, nil)
	return output{}
}

// set takes new positional parameters.
func set(w *walker, st *state, c *cmd) output {
	for i, a := range c.args {
		pre := a.prefix()
		if !strings.HasPrefix(pre, "--") && strings.HasPrefix(pre, "-") && strings.Contains(pre, "H") || a.is("histexpand") && i > 0 && c.args[i-1].is("-o") {
			w.code(nil, argText("set", c.args), "history expansion makes new commands of old ones", c.pos)
		}
		switch {
		case a.is("--"):
			setArgs(st, c.args[i+1:])
			return output{}
		case strings.HasPrefix(pre, "-") || strings.HasPrefix(pre, "+"):
		case i > 0 && c.args[i-1].is("-o", "+o"):
		default:
			setArgs(st, c.args[i:])
			return output{}
		}
	}
	return output{}
}

func setArgs(st *state, args []word) {
	st.args, st.argsKnown = slices.Clone(args), true
}

func shift(_ *walker, st *state, c *cmd) output {
	n := 1
	if len(c.args) > 0 {
		n = -1
		if v, err := strconv.Atoi(c.args[0].text()); err == nil && c.args[0].known() {
			n = v
		}
	}
	switch {
	case !st.argsKnown || n < 0 || slices.ContainsFunc(st.args[:min(n, len(st.args))], word.uncounted):
	case n <= len(st.args):
		st.args = st.args[n:]
		return output{}
	case !slices.ContainsFunc(st.args, word.uncounted):
		return output{} // there are not so many, and it changes nothing
	}
	st.args, st.argsKnown = nil, false
	return output{}
}

func trap(w *walker, st *state, c *cmd) output {
	p := newGrammar("posix").split(c.args)
	if len(p.rest) < 2 || p.has("-p", "-l") || p.rest[0].is("-", "") {
		return output{}
	}
	sub := st.clone()
	w.program(sub, p.rest[0], "trap")
	w.common.traps = append(w.common.traps, trapped{w: *w, st: st.clone(), x: p.rest[0]})
	if !p.rest[1].is("EXIT", "0") || len(p.rest) > 2 {
		for n, v := range sub.vars {
			if !v.equal(st.vars[n]) {
				w.common.changes(n, v)
			}
		}
		st.join(sub) // it may run at any time
	}
	return output{}
}

func alias(w *walker, st *state, c *cmd) output {
	for _, a := range c.args {
		name, _, ok := strings.Cut(a.prefix(), "=")
		if !ok {
			continue
		}
		w.alias(st, name, a.cut(len(name)+1))
	}
	return output{}
}

// closed gives the text of an alias that ends in the middle of a command
// something to end with: what follows it is judged where it is used.
func closed(x word) word {
	const rest = " :"
	if !x.known() {
		return x
	}
	if _, perr := parse(x.text()); perr == nil {
		return x
	}
	if _, perr := parse(x.text() + rest); perr != nil {
		return x
	}
	return plain(x.text()+rest, x.pos)
}

// alias takes in what a word stands for from then on.
func (w *walker) alias(st *state, name string, v word) {
	w.program(st.clone(), closed(v), "alias")
	w.funcs[name] = true
	switch {
	case !v.known():
	case strings.Contains(v.text(), "\n") && strings.TrimSpace(v.text()) != "":
		w.code(v.cons, v.src, "how bash reads an alias of several lines is not known before it runs", v.pos)
	default:
		if w.common.aliases == nil {
			w.common.aliases = map[string][]string{}
		}
		w.common.aliases[name] = append(w.common.aliases[name], v.text())
	}
}

// aliasElement judges an element of BASH_ALIASES: that is an alias too.
func (w *walker) aliasElement(st *state, index syntax.ArithmExpr, v word) {
	x, ok := index.(*syntax.Word)
	if !ok {
		w.program(st.clone(), v, "BASH_ALIASES")
		return
	}
	if name := w.single(st, x); name.known() {
		w.alias(st, name.text(), v)
	} else {
		w.code(v.cons, v.src, "the name of the alias is not known before it runs", v.pos)
	}
}

// aliased judges what an alias makes of the words that follow it, and of what
// it reads: on its own it was judged where it is defined.
func (w *walker) aliased(st *state, c *cmd) {
	name := c.word.text()
	texts := w.common.aliases[name]
	if len(texts) == 0 || w.common.calling[name] || !strings.HasPrefix(c.word.src, name) {
		return // a quoted word is no alias
	}
	w.common.call(name)
	defer delete(w.common.calling, name)
	for _, t := range texts {
		if len(c.args) > 0 {
			t += " " + joined(w.nextAlias(t, c.args)).src
		}
		w.reparse(st.clone(), t, c.pos, "alias")
	}
}

// nextAlias replaces the word behind an alias that ends in a blank, which bash
// takes for an alias as well.
func (w *walker) nextAlias(text string, args []word) []word {
	next := args[0].src
	texts := w.common.aliases[next]
	if len(texts) == 0 || w.common.calling[next] || strings.TrimRight(text, " \t") == text {
		return args
	}
	if len(texts) > 1 {
		w.code(nil, next, "it is an alias for more than one text", args[0].pos)
	}
	first := args[0]
	first.src = texts[0]
	if len(args) == 1 {
		return []word{first}
	}
	return append([]word{first}, w.nextAlias(texts[0], args[1:])...)
}

func unsetNames(w *walker, st *state, c *cmd) output {
	for _, a := range newGrammar("posix").split(c.args).rest {
		w.name(st, a)
		if n := a.text(); isName(n) {
			delete(w.funcs, n)
			w.common.uncover(n, w.frame)
		}
		if a.is("HOME") {
			st.set("HOME", literal(w.a.r.Home())) // ~ is what the system has
		}
	}
	return output{}
}

func readNames(w *walker, st *state, c *cmd) output {
	p := newGrammar("-a -d -i -n -N -p -t -u posix").split(c.args)
	for _, a := range append(p.values("-a"), p.rest...) {
		w.readInto(st, a)
	}
	w.readInto(st, plain("REPLY", c.pos))
	return output{}
}

// given notes that something puts a text into a variable, if that is what
// happens.
func (w *walker) given(st *state, name string, x word) {
	w.codeVar(st, name, x)
	st.mayHold(name, x.text())
}

// readInto judges an operand that gets a part of the input. What is a part of a
// known text may be all of it.
func (w *walker) readInto(st *state, x word) {
	w.name(st, x)
	name, _, _ := strings.Cut(x.text(), "[")
	if in := st.in; in.kind == inputText && x.known() && isName(name) {
		w.given(st, name, plain(strings.TrimSuffix(in.text, "\n"), in.pos))
	}
}

// mapfile runs its callback in the shell itself, with the index and the line
// behind it: what it assigns stays.
func mapfile(w *walker, st *state, c *cmd) output {
	p := newGrammar("-d -n -O -s -u -C -c posix").split(c.args)
	for _, v := range p.values("-C") {
		sub := st.clone()
		if v.known() {
			sub.void(hole)
			v = plain(v.text()+` 0 "$`+hole+`"`, v.pos)
		}
		w.program(sub, v, c.name+" -C")
		if !v.known() {
			st.loosenAll()
		}
		st.join(sub)
	}
	for _, a := range append(p.rest, plain("MAPFILE", c.pos)) {
		w.readInto(st, a)
	}
	return output{}
}

func getopts(w *walker, st *state, c *cmd) output {
	if len(c.args) > 1 {
		w.name(st, c.args[1])
		for _, a := range c.args[2:] {
			w.given(st, "OPTARG", a)
		}
	}
	st.loosen("OPTARG")
	return output{}
}

func waitNames(w *walker, st *state, c *cmd) output {
	for _, v := range newGrammar("-p posix").split(c.args).values("-p") {
		w.name(st, v)
	}
	return output{}
}

func letWords(w *walker, st *state, c *cmd) output {
	for _, a := range c.args {
		w.evaluated(st, a)
		if n, _, ok := strings.Cut(a.text(), "="); ok {
			st.void(strings.TrimRight(strings.TrimSpace(n), "+-*/%&|^<> "))
		}
	}
	return output{}
}

// exportWords judges export and its kin behind command or builtin.
func exportWords(w *walker, st *state, c *cmd) output {
	at := w.attributes(c.name)
	for _, a := range c.args {
		if t := a.prefix(); isDeclareOption(t) {
			at.option(t)
			continue
		}
		w.declaredWord(st, a, at)
	}
	return output{}
}

// hashPath judges hash -p FILE NAME: NAME is FILE from then on.
func hashPath(w *walker, st *state, c *cmd) output {
	p := newGrammar("-p posix").split(c.args)
	for _, v := range p.values("-p") {
		w.run(st.clone(), []word{v}, "hash -p")
	}
	return output{}
}

func complete(w *walker, st *state, c *cmd) output {
	p := newGrammar("-A -C -F -G -o -P -S -W -X posix").split(c.args)
	for _, v := range p.values("-C") {
		w.program(st.clone(), v, c.name+" -C")
	}
	for _, v := range p.values("-W") {
		if v.known() {
			w.again(st.clone(), v.text(), v.pos, true)
		}
	}
	return output{}
}

// testWords judges test and [: their file operands only have to exist.
func testWords(w *walker, st *state, c *cmd) output {
	for i, a := range c.args {
		if i == 0 {
			continue
		}
		switch op := c.args[i-1].text(); op {
		case "-v", "-R":
			if a.known() || len(a.cons) > 0 {
				w.evaluated(st, a)
			}
		case "-e", "-f", "-d", "-c", "-b", "-p", "-S", "-L", "-h", "-k", "-g", "-u", "-G", "-O", "-N", "-r", "-w", "-x", "-s", "-a", "-nt", "-ot", "-ef":
			w.path(st, c, a, roleTest)
		}
	}
	return output{}
}

// kill judges only a signal to everything.
func kill(w *walker, _ *state, c *cmd) output {
	for i, a := range c.args {
		if a.is("-1") && (i == len(c.args)-1) || a.is("--") && i+1 < len(c.args) && c.args[i+1].is("-1") {
			w.act(call.Act{Kind: call.ActSignal, Name: "kill", Sub: "-1", Text: argText("kill", c.args), Pos: c.pos})
			break
		}
	}
	return output{}
}

func signal(w *walker, _ *state, c *cmd) output {
	w.act(call.Act{Kind: call.ActSignal, Name: c.name, Text: argText(c.name, c.args), Pos: c.pos})
	return output{}
}

// echo knows what it prints when its words are known.
func echo(_ *walker, _ *state, c *cmd) output {
	args := c.args
	escapes, newline := false, "\n"
	for len(args) > 0 && args[0].known() {
		t := args[0].text()
		if len(t) < 2 || t[0] != '-' || strings.Trim(t[1:], "neE") != "" {
			break
		}
		escapes = escapes || strings.Contains(t, "e")
		if strings.Contains(t, "n") {
			newline = ""
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return output{known: true, text: newline}
	}
	for _, a := range args {
		if !a.known() || a.glob() {
			return output{}
		}
	}
	t := joined(args).text()
	if escapes {
		s, cut := unescape(t, echoEscapes)
		if cut {
			newline = ""
		}
		t = s
	}
	return printed(t + newline)
}

// printf knows what it prints for a format of texts, and evaluates the name
// after -v.
func printf(w *walker, st *state, c *cmd) output {
	p := newGrammar("-v posix").split(c.args)
	out := output{}
	if len(p.rest) > 0 && !slices.ContainsFunc(p.rest, func(a word) bool { return !a.known() || a.glob() }) {
		out = format(p.rest[0].text(), p.rest[1:])
	}
	names := p.values("-v")
	for _, n := range names {
		w.printfInto(st, n, p.rest, out)
	}
	if len(names) > 0 {
		return output{}
	}
	return out
}

// printfInto judges the variable after -v.
func (w *walker) printfInto(st *state, n word, args []word, out output) {
	w.name(st, n)
	v, _, _ := strings.Cut(n.text(), "[")
	if !n.known() || !isName(v) || len(args) == 0 {
		return
	}
	text := joined(args)
	if out.known {
		text = plain(out.text, n.pos)
	}
	w.given(st, v, text)
}

// format prints by a format that holds nothing but text, %s, %b, %q, %d and %%.
func format(f string, args []word) output {
	pieces := strings.Split(f, "%")
	var b strings.Builder
	for {
		used := false
		text, _ := unescape(pieces[0], formatEscapes)
		b.WriteString(text)
		for i := 1; i < len(pieces); i++ {
			piece := pieces[i]
			if strings.HasSuffix(pieces[i-1], `\`) {
				return output{}
			}
			if piece == "" && i+1 < len(pieces) { // %%
				i++
				text, _ = unescape(pieces[i], formatEscapes)
				b.WriteString("%" + text)
				continue
			}
			if piece == "" {
				return output{}
			}
			arg, ok := directive(piece[0], args)
			if !ok {
				return output{}
			}
			if len(args) > 0 {
				args, used = args[1:], true
			}
			text, _ = unescape(piece[1:], formatEscapes)
			b.WriteString(arg + text)
		}
		if len(args) == 0 || !used || b.Len() > maxText {
			return printed(b.String())
		}
	}
}

// directive is what %s and its kin print for the next argument.
func directive(kind byte, args []word) (string, bool) {
	t := ""
	if len(args) > 0 {
		t = args[0].text()
	}
	switch kind {
	case 's':
		return t, true
	case 'b':
		t, cut := unescape(t, printfEscapes)
		return t, !cut
	case 'd':
		return t, t != "" && strings.Trim(t, "0123456789") == "" && (t == "0" || t[0] != '0')
	case 'q':
		return t, t != "" && strings.Trim(t, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == ""
	}
	return "", false
}

// printed is a known output. A NUL is read in a different way by every reader.
func printed(text string) output {
	if strings.ContainsRune(text, 0) {
		return output{}
	}
	return output{known: true, text: text}
}

// cat hands on what it reads when it has no operand.
func cat(w *walker, st *state, c *cmd) output {
	w.tableOperands(st, c)
	for _, a := range c.args {
		if t := a.text(); !a.known() || t != "-" && !strings.HasPrefix(t, "-") {
			return output{}
		}
		if !a.is("-", "-u") {
			return output{}
		}
	}
	if st.in.kind == inputText {
		return output{known: true, text: st.in.text}
	}
	return output{}
}

// tee hands on what it reads.
func tee(w *walker, st *state, c *cmd) output {
	w.tableOperands(st, c)
	if st.in.kind == inputText {
		return output{known: true, text: st.in.text}
	}
	return output{}
}

func cleanJoin(dir, name string) string { return path.Clean(dir + "/" + name) }
