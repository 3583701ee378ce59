package shellast

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// redirects walks the redirections of one command. It returns the standard
// input they set, nil when they leave it, and whether they take the standard
// output elsewhere.
func (w *walker) redirects(st *state, rs []*syntax.Redirect) (in *input, out bool) {
	for _, r := range rs {
		fd := ""
		if r.N != nil {
			fd = r.N.Value
			if name := strings.Trim(fd, "{}"); isName(name) {
				st.void(name) // bash puts the number there
			}
		}
		got := w.redirect(st, r)
		switch {
		case got == nil:
			out = out || fd == "" || fd == "1"
		case fd == "" || fd == "0":
			in = got
		default:
			if st.fds == nil {
				st.fds = map[string]input{}
			}
			st.fds[fd] = *got
		}
	}
	return in, out
}

// redirect walks one redirection and returns the input it opens, nil for an
// output.
func (w *walker) redirect(st *state, r *syntax.Redirect) *input {
	pos := w.pos(r)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return w.hereDoc(st, r)
	case syntax.WordHdoc:
		i := len(w.f.Constructs)
		w.f.Constructs = append(w.f.Constructs, call.Construct{Kind: "<<<", Text: w.text(r.Word), Pos: pos})
		x := w.single(st, r.Word)
		cons := append(x.cons, i)
		if x.known() {
			return &input{kind: inputText, text: x.text(), cons: cons, pos: pos}
		}
		return &input{kind: inputUnknown, text: x.src, word: x, cons: cons, pos: pos}
	case syntax.RdrIn:
		if p, ok := procPart(r.Word); ok {
			first := len(w.f.Constructs)
			res := w.procSubst(st, p, input{})
			in := &input{kind: inputUnknown, text: w.text(p), cons: []int{first}, pos: pos}
			if res.known {
				in.kind, in.text = inputText, res.text
			}
			return in
		}
		w.redirectPath(st, r, "read")
		return &input{kind: inputFile, pos: pos}
	case syntax.DplIn:
		x := w.single(st, r.Word)
		if in, ok := st.fds[strings.TrimSuffix(x.text(), "-")]; ok {
			return &in
		}
		return &input{kind: inputFile, pos: pos}
	case syntax.DplOut:
		if x := w.single(st, r.Word); isDescriptor(x) {
			return nil
		}
	}
	if _, ok := procOutput(r); !ok {
		w.redirectPath(st, r, "write")
	}
	return nil
}

// procOutput returns the >( ) that a redirection writes to.
func procOutput(r *syntax.Redirect) (*syntax.ProcSubst, bool) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.DplOut:
	default:
		return nil, false
	}
	p, ok := procPart(r.Word)
	return p, ok && p.Op == syntax.CmdOut
}

// written is what the command of a >( ) among the operands of another reads:
// what that one passes on, most likely its own input, and nobody knows more.
func (w *walker) written(st *state, x *syntax.ProcSubst) input {
	if x.Op != syntax.CmdOut {
		return input{}
	}
	in := input{kind: inputUnknown, text: w.text(x), cons: []int{len(w.f.Constructs)}, pos: w.pos(x)}
	if st.in.kind == inputText {
		in.word = plain(st.in.text, in.pos)
	}
	return in
}

func isDescriptor(x word) bool {
	t := strings.TrimSuffix(x.text(), "-")
	return !x.known() || strings.Trim(t, "0123456789") == ""
}

// procPart returns the process substitution that is all of a word.
func procPart(x *syntax.Word) (*syntax.ProcSubst, bool) {
	if len(x.Parts) != 1 {
		return nil, false
	}
	p, ok := x.Parts[0].(*syntax.ProcSubst)
	return p, ok
}

func (w *walker) hereDoc(st *state, r *syntax.Redirect) *input {
	pos := w.pos(r)
	if r.Hdoc == nil {
		return &input{kind: inputText, pos: pos}
	}
	if hereDocQuoted(r.Word) {
		text := w.text(r.Hdoc)
		if !strings.Contains(text, "\r") {
			text = r.Hdoc.Lit()
		}
		if r.Op == syntax.DashHdoc {
			text = stripTabs(text)
		}
		return &input{kind: inputText, text: text, pos: pos}
	}
	x := w.document(st, r.Hdoc.Parts, pos, w.text(r.Hdoc))
	text := x.text()
	if r.Op == syntax.DashHdoc {
		text = stripTabs(text)
	}
	if x.known() {
		return &input{kind: inputText, text: text, pos: pos}
	}
	return &input{kind: inputUnknown, text: text, word: x, cons: x.cons, pos: pos}
}

func stripTabs(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "")
}

func hereDocQuoted(x *syntax.Word) bool {
	for _, p := range x.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok || strings.Contains(l.Value, `\`) {
			return true
		}
	}
	return false
}

func (w *walker) redirectPath(st *state, r *syntax.Redirect, op string) {
	for _, x := range w.fields(st, r.Word) {
		if pre := x.prefix(); strings.HasPrefix(pre, "/dev/tcp/") || strings.HasPrefix(pre, "/dev/udp/") {
			w.act(call.Act{Kind: call.ActNetworkDevice, Name: "redirect", Sub: pre[:8], Text: x.src, Pos: x.pos})
			continue
		}
		c := &cmd{name: "redirect", pos: x.pos}
		if op == "read" {
			w.path(st, c, x, roleRead)
		} else {
			w.path(st, c, x, roleRedirect)
			if r.Op == syntax.RdrInOut {
				w.path(st, c, x, roleRead)
			}
		}
	}
}
