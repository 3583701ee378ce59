package shellast

import (
	"slices"
	"strings"
)

// vim judges the commands of + and -c, and in batch mode those on the standard
// input.
func vim(w *walker, st *state, c *cmd) output {
	g := newGrammar("-c --cmd -S=r -u=r -U=r -i=r -s=r -w=w -W=w -T -t --remote-expr --servername")
	var commands, args []word
	for _, a := range c.args {
		if strings.HasPrefix(a.prefix(), "+") {
			commands = append(commands, a.cut(1))
			continue
		}
		args = append(args, a)
	}
	if c.name == "ex" || slices.ContainsFunc(args, func(a word) bool { return a.is("-es", "-s") }) {
		g = g.without("-s")
		commands = append(commands, inputLines(st.in)...)
	}
	p := g.split(args)
	w.optionPaths(st, c, g, p)
	r := roleRead
	for _, v := range append(commands, p.values("-c", "--cmd")...) {
		w.exCommand(st, c, v)
		for part := range strings.SplitSeq(v.text(), "|") {
			if w.exFile(st, c, part, v) {
				r = roleWrite
			}
		}
	}
	for _, x := range p.rest {
		w.path(st, c, x, r)
	}
	return output{}
}

// inputLines are the lines of a known input.
func inputLines(in input) []word {
	if in.kind != inputText {
		return nil
	}
	var out []word
	for line := range strings.Lines(in.text) {
		out = append(out, plain(strings.TrimSpace(line), in.pos))
	}
	return out
}

// exFile judges the file an ex command reads or writes, and reports whether it
// writes the one that is edited.
func (w *walker) exFile(st *state, c *cmd, part string, v word) bool {
	part = strings.TrimLeft(part, " :%0123456789,$.'<>")
	name, file, _ := strings.Cut(part, " ")
	name, file = strings.TrimSuffix(name, "!"), strings.TrimSpace(file)
	if strings.HasPrefix(file, "!") {
		return false
	}
	switch name {
	case "w", "write", "wq", "x", "xit", "wa", "wqa", "xa", "up", "update", "sav", "saveas":
		if file != "" {
			w.path(st, c, plain(strings.TrimPrefix(file, ">> "), v.pos), roleWrite)
		}
		return file == ""
	case "r", "read", "so", "source", "e", "edit", "sp", "split", "vs", "vsplit", "tabe", "tabedit":
		if file != "" {
			w.path(st, c, plain(file, v.pos), roleRead)
		}
	}
	return false
}

// exCommand judges "!cmd" and "system('cmd')" of an ex command.
func (w *walker) exCommand(st *state, c *cmd, v word) {
	t := v.text()
	if !v.known() {
		if len(v.cons) > 0 {
			w.code(v.cons, v.src, "the command given to "+c.name+" is not known before it runs", v.pos)
		}
		return
	}
	if i := strings.IndexByte(t, '!'); i >= 0 && runsBang(t[:i]) {
		text := v.cut(i + 1)
		if q := t[:i]; strings.HasSuffix(q, `"`) || strings.HasSuffix(q, "'") {
			text = plain(strings.TrimRight(text.text(), `"'`), v.pos) // exe "!cmd"
		}
		w.program(st.clone(), text, c.name+" !")
		return
	}
	for _, q := range []string{"system('", `system("`, "systemlist('"} {
		if _, rest, ok := strings.Cut(t, q); ok {
			if j := strings.IndexAny(rest, `'"`); j >= 0 {
				w.program(st.clone(), plain(rest[:j], v.pos), c.name+" system()")
			}
		}
	}
}

// runsBang reports whether "!" after this part of an ex command runs what
// follows.
func runsBang(before string) bool {
	if strings.Trim(before, "0123456789,$%.':<> ") == "" {
		return true
	}
	before = strings.TrimRight(before, `"'`)
	last := before[strings.LastIndexByte(strings.TrimRight(before, " "), ' ')+1:]
	switch strings.TrimLeft(strings.TrimSpace(last), ":%0123456789,$") {
	case "silent", "sil", "execute", "exe", "r", "read", "w", "write":
		return strings.HasSuffix(before, " ")
	}
	return false
}
