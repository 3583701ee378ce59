package shellast

import (
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func shellNames() []string {
	return []string{
		"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh",
		"yash", "posh", "lksh", "oksh", "loksh", "osh", "hush", "rksh", "rzsh", "ksh93", "ksh2020", "pdksh", "bash-static", "zsh-static", "mksh-static",
	}
}

// shell judges a shell that is given text, a script or its standard input.
func shell(w *walker, st *state, c *cmd) output {
	text, stdin, args := shellOptions(c)
	w.startupFile(st, c)
	if c.name == "zsh" || c.name == "ksh" || strings.Contains(argText("", c.args), "lastpipe") {
		w.common.lastpipe = true
	}
	switch {
	case text:
		w.shellText(st, c, args)
	case stdin || len(args) == 0:
		w.stdinProgram(st, c.name)
	default:
		w.script(st, c, args)
	}
	return output{}
}

// shellOptions takes the options off a shell's words: any order, any bundle.
// -o and -O take a word each, wherever they stand in a bundle.
func shellOptions(c *cmd) (text, stdin bool, args []word) {
	args = c.args
	for len(args) > 0 {
		pre := args[0].prefix()
		if args[0].is("--", "-") {
			return text, stdin, args[1:]
		}
		if len(pre) < 2 || pre[0] != '-' && pre[0] != '+' {
			break
		}
		takes := 0
		if strings.HasPrefix(pre, "--") {
			if args[0].is("--rcfile", "--init-file") {
				takes = 1
			}
			text = text || args[0].is("--command") && c.name == "fish"
		} else {
			text = text || pre[0] == '-' && strings.Contains(pre, "c")
			stdin = stdin || pre[0] == '-' && strings.Contains(pre, "s")
			takes = strings.Count(pre, "o") + strings.Count(pre, "O")
		}
		args = args[min(1+takes, len(args)):]
	}
	return text, stdin, args
}

// shellText judges the text after -c, and the parameters after it.
func (w *walker) shellText(st *state, c *cmd, args []word) {
	if len(args) == 0 {
		return
	}
	sub := st.clone()
	sub.leaveShell() // a variable that is not exported does not reach it
	for n, v := range st.env {
		sub.set(n, v)
	}
	sub.env = nil
	if len(args) > 1 {
		if args[1].known() && !args[1].glob() {
			sub.set("0", literal(args[1].text()))
		}
		setArgs(sub, args[2:])
		w.guessAll(st, c, args[2:])
	}
	n := *w
	n.inFunc, n.frame = false, nil
	n.program(sub, args[0], c.name+" -c")
}

// stdinProgram judges the standard input as the program of a shell.
func (w *walker) stdinProgram(st *state, via string) {
	w.inputProgram(st, st.in, via)
}

func (w *walker) inputProgram(st *state, in input, via string) {
	sub := st.clone()
	sub.leaveShell()
	sub.in = input{}
	switch in.kind {
	case inputText:
		w.reparse(sub, in.text, in.pos, via)
	case inputUnknown:
		if len(in.word.segs) > 0 {
			w.program(sub, in.word, via)
		}
		w.code(in.cons, in.text, "what "+via+" reads is not known before it runs", in.pos)
	case inputNone, inputFile:
	}
}

// startupFile judges the file that --rcfile names. Bash takes one dash too.
func (w *walker) startupFile(st *state, c *cmd) {
	for i, a := range c.args {
		if a.is("--rcfile", "--init-file", "-rcfile", "-init-file") && i+1 < len(c.args) && !w.startup(st, c.args[i+1], c.name) {
			w.path(st, c, c.args[i+1], roleRead)
		}
	}
}

// startup judges a file that a shell reads first, when it is no file but text
// that comes from another command. It reports whether it is.
func (w *walker) startup(st *state, x word, via string) bool {
	in, ok := w.passed(st, x)
	if !ok {
		return false
	}
	if in.kind == inputNone {
		in = input{kind: inputUnknown, text: x.src, cons: x.cons, pos: x.pos} // of the shell to come
	}
	w.inputProgram(st, in, via)
	return true
}

// passed returns what is read from an operand that is no file on disk: a
// process substitution, or the input under the name of a device.
func (w *walker) passed(st *state, x word) (input, bool) {
	if len(x.cons) > 0 && !x.known() {
		out, ok := w.printed[x.cons[0]]
		switch {
		case !ok:
			return input{}, false
		case len(x.cons) == 1 && out.known:
			return input{kind: inputText, text: out.text, pos: x.pos}, true
		}
		return input{kind: inputUnknown, text: x.src, cons: x.cons, pos: x.pos}, true
	}
	t := x.text()
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if fd, ok := strings.CutPrefix(t, dir); ok && fd != "0" && x.known() {
			in, ok := st.fds[fd]
			if !ok {
				in = input{kind: inputUnknown, text: t, pos: x.pos}
			}
			return in, true
		}
	}
	if x.is("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/thread-self/fd/0") {
		return st.in, true
	}
	return input{}, false
}

// programFile returns the program that a file operand of awk or sed names, when
// it comes from another command and is known. What is not known asks.
func (w *walker) programFile(st *state, c *cmd, x word) (word, bool) {
	in, ok := w.passed(st, x)
	if x.is("-") {
		in, ok = st.in, true
	}
	switch {
	case !ok:
	case in.kind == inputText:
		return plain(in.text, in.pos), true
	case in.kind == inputUnknown:
		w.code(in.cons, in.text, "the program "+c.name+" reads is not known before it runs", in.pos)
	}
	return word{}, false
}

// script judges a shell, or source, that reads a file.
func (w *walker) script(st *state, c *cmd, args []word) {
	x := args[0]
	t := x.text()
	switch {
	case len(x.cons) == 1 && w.printed[x.cons[0]].known:
		sub := st.clone()
		if !sameShell(c.name) {
			sub.leaveShell() // a variable that is not exported does not reach it
		}
		w.reparse(sub, w.printed[x.cons[0]].text, x.pos, c.name)
	case len(x.cons) > 0:
		w.code(x.cons, x.src, "what "+c.name+" reads is not known before it runs", x.pos)
	case x.known() && (t == "/dev/stdin" || t == "/dev/fd/0" || t == "/proc/self/fd/0"):
		w.stdinProgram(st, c.name)
	case x.known() && strings.HasPrefix(t, "/dev/fd/"):
		in, ok := st.fds[strings.TrimPrefix(t, "/dev/fd/")]
		if !ok {
			in = input{kind: inputUnknown, text: t, pos: x.pos}
		}
		w.inputProgram(st, in, c.name)
	case !x.known() && x.many():
		w.code(nil, x.src, "what "+c.name+" runs is not known before it runs", x.pos)
	default:
		w.path(st, c, x, roleRead)
	}
	w.guessAll(st, c, args[1:])
}

// source judges "source FILE" and ". FILE".
func source(w *walker, st *state, c *cmd) output {
	args := c.args
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	if len(args) > 0 {
		w.script(st, c, args)
	}
	st.loosenAll()
	return output{}
}

// eval judges the text its words make.
func eval(w *walker, st *state, c *cmd) output {
	args := c.args
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	i := len(w.f.Constructs)
	w.f.Constructs = append(w.f.Constructs, call.Construct{Kind: "eval", Text: argText(c.name, args), Pos: c.pos})
	if len(args) == 0 {
		return output{}
	}
	x := joined(args)
	if !x.known() {
		x.cons = append(x.cons, i)
		w.program(st, x, "eval")
		st.loosenAll()
		return output{}
	}
	w.program(st, x, "eval")
	return output{}
}

func argText(name string, args []word) string {
	var b strings.Builder
	b.WriteString(name)
	for _, a := range args {
		b.WriteByte(' ')
		b.WriteString(a.src)
	}
	return b.String()
}

// joined is several words with blanks between them.
func joined(args []word) word {
	if len(args) == 1 {
		return args[0]
	}
	out := word{pos: args[0].pos}
	var src []string
	for i, a := range args {
		if i > 0 {
			out.segs = append(out.segs, seg{text: " ", known: true, quoted: true})
		}
		out.segs = append(out.segs, a.segs...)
		out.cons = append(out.cons, a.cons...)
		out.slot = out.slot || a.slot
		src = append(src, a.src)
	}
	out.src = strings.Join(src, " ")
	return out
}
