package shellast

import (
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// find judges what is searched, what is run and what is written.
func find(w *walker, st *state, c *cmd) output {
	args := c.args
	for len(args) > 0 {
		t := args[0].text()
		if t == "-H" || t == "-L" || t == "-P" || strings.HasPrefix(t, "-O") {
			args = args[1:]
			continue
		}
		if t == "-D" && len(args) > 1 {
			args = args[2:]
			continue
		}
		break
	}
	n := 0
	for n < len(args) && !startsExpression(args[n].prefix()) {
		n++
	}
	f := &finder{w: w, st: st, c: c, roots: args[:n]}
	f.read(args[n:])
	f.expression(args[n:])
	return output{}
}

func startsExpression(s string) bool {
	return strings.HasPrefix(s, "-") && len(s) > 1 || s == "(" || s == ")" || s == "!" || s == ","
}

type finder struct {
	w     *walker
	st    *state
	c     *cmd
	roots []word
}

// read counts the searched folders; with a depth limit of 0 or 1 they are only
// listed.
func (f *finder) read(expr []word) {
	r := roleReadAll
	for i, x := range expr {
		if x.is("-maxdepth") && i+1 < len(expr) && expr[i+1].is("0", "1") {
			r = roleRead
		}
	}
	for _, x := range f.roots {
		f.w.path(f.st, f.c, x, r)
	}
	if len(f.roots) == 0 {
		f.w.implied(f.st, f.c, r)
	}
}

func (f *finder) expression(args []word) {
	for i := 0; i < len(args); i++ {
		switch x := args[i].text(); x {
		case "-delete":
			f.deletes(args[i])
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(args) {
				f.w.path(f.st, f.c, args[i+1], roleWrite)
				i++
			}
			if x == "-fprintf" {
				i++
			}
		case "-newer", "-anewer", "-cnewer", "-samefile":
			if i+1 < len(args) {
				f.w.path(f.st, f.c, args[i+1], roleTest)
				i++
			}
		case "-files0-from":
			if i+1 < len(args) {
				f.w.path(f.st, f.c, args[i+1], roleRead)
				i++
			}
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname",
			"-printf", "-perm", "-user", "-group", "-size", "-type", "-xtype", "-mtime", "-mmin", "-maxdepth", "-mindepth":
			i++
		case "-exec", "-execdir", "-ok", "-okdir":
			i = f.exec(args, i)
		}
	}
}

func (f *finder) deletes(at word) {
	f.w.act(call.Act{Kind: call.ActMassChange, Name: "find", Sub: "-delete", Text: argText("find", f.c.args), Pos: at.pos})
	for _, x := range f.roots {
		if !x.known() {
			f.w.unknownOperand(f.c, x)
		}
		f.below(x, roleDeleteAll)
	}
}

// below counts what lies below a searched folder as written: the folder itself
// may stay.
func (f *finder) below(x word, r role) {
	text, _, ok := fixed(x)
	if !ok {
		return
	}
	p, ok := f.w.resolvePath(f.st, f.c, x, text, r)
	if !ok {
		return
	}
	p.Root = false
	f.w.record(p, r)
}

// exec runs the command up to ; or +, with {} standing for what was found.
func (f *finder) exec(args []word, i int) int {
	via := "find " + args[i].text()
	end := i + 1
	for end < len(args) && !args[end].is(";") && (!args[end].is("+") || !args[end-1].is("{}")) {
		end++
	}
	found := f.roots
	if len(found) == 0 {
		found = []word{plain(".", f.c.pos)}
	}
	var words []word
	for _, x := range args[i+1 : min(end, len(args))] {
		if !x.is("{}") {
			words = append(words, withSlot(x, "{}"))
			continue
		}
		for _, r := range found {
			words = append(words, slotWord(strings.TrimSuffix(r.prefix(), "/")+"/", slotText, x.pos))
		}
	}
	f.w.run(f.st.clone(), words, via)
	return end
}

// withSlot makes every occurrence of a mark in a word unknown: another program
// puts text there.
func withSlot(x word, mark string) word {
	if mark == "" || !strings.Contains(x.text(), mark) {
		return x
	}
	out := x
	out.segs = nil
	for _, s := range x.segs {
		if !s.known {
			out.segs = append(out.segs, s)
			continue
		}
		parts := strings.Split(s.text, mark)
		for i, t := range parts {
			if i > 0 {
				out.segs = append(out.segs, seg{text: slotText, quoted: true})
			}
			if t != "" {
				out.segs = append(out.segs, seg{text: t, known: true, quoted: s.quoted})
			}
		}
	}
	return out
}

// xargs runs its operands with words from its input.
func xargs(w *walker, st *state, c *cmd) output {
	g := newGrammar("-a=r --arg-file=r -d --delimiter -E -I -L -n --max-args -P --max-procs -s --max-chars --process-slot-var -R -J posix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	mark := replaceMark(p)
	sub := st.clone()
	sub.in = input{}
	if len(p.rest) == 0 {
		p.rest = []word{plain("echo", c.pos)} // what it runs when nobody says
	}
	in := st.in
	if p.has("-d", "--delimiter", "-0", "--null", "-E", "--eof") {
		in = input{} // other things than blanks and line feeds end an item
	}
	if lines, ok := knownLines(in); ok && mark != "" {
		for _, line := range lines {
			w.run(sub.clone(), filled(p.rest, mark, line), "xargs")
		}
		return output{}
	}
	var words []word
	for _, x := range p.rest {
		if mark != "" {
			x = withSlot(x, mark)
		}
		words = append(words, x)
	}
	if mark != "" {
		w.run(sub, words, "xargs")
		return output{}
	}
	items := w.fromInput(in, p.rest[len(p.rest)-1].pos)
	w.run(sub, append(slices.Clone(words), items...), "xargs")
	if p.has("-n", "--max-args", "-L", "-l", "--max-lines", "-s", "--max-chars") {
		for i := 1; i < min(len(items), maxCandidates); i++ { // a command for some of them
			w.run(sub.clone(), append(slices.Clone(words), items[i:]...), "xargs")
		}
	}
	return output{}
}

// replaceMark is the text of an xargs command that its input replaces.
func replaceMark(p parsed) string {
	mark := ""
	for _, o := range p.opts {
		switch {
		case (o.name == "-I" || o.name == "-J") && o.has:
			mark = o.value.text()
		case o.name == "-i" || o.name == "--replace":
			mark = "{}"
			if o.has {
				mark = o.value.text()
			}
		}
	}
	return mark
}

// knownLines are the lines of an input that is known, when they are few and
// hold nothing that xargs unquotes.
func knownLines(in input) ([]string, bool) {
	if in.kind != inputText || strings.ContainsAny(in.text, `"'\`) {
		return nil, false
	}
	var out []string
	for line := range strings.Lines(in.text) {
		if line = strings.Trim(line, " \t\n"); line != "" {
			out = append(out, line)
		}
	}
	return out, len(out) > 0 && len(out) <= maxCandidates
}

// filled puts a text where the mark stands.
func filled(words []word, mark, text string) []word {
	out := make([]word, 0, len(words))
	for _, x := range words {
		if x.known() && strings.Contains(x.text(), mark) {
			x.segs = []seg{{text: strings.ReplaceAll(x.text(), mark, text), known: true, quoted: true}}
		} else {
			x = withSlot(x, mark)
		}
		out = append(out, x)
	}
	return out
}

// fromInput is the words xargs appends: those of a known input, else a slot.
func (*walker) fromInput(in input, pos call.Pos) []word {
	if in.kind == inputText && len(in.text) < 4096 && !strings.ContainsAny(in.text, `"'\`) {
		var out []word
		for f := range strings.FieldsSeq(in.text) {
			out = append(out, plain(f, pos))
		}
		return out
	}
	return []word{slotWord("", "…", pos)}
}

// parallel builds command lines for a shell from its operands and inputs.
func parallel(w *walker, st *state, c *cmd) output {
	g := newGrammar("-a=r --arg-file=r -j --jobs -P -n --max-args -N -L -I --colsep -C -d --delimiter --delay --timeout --retries --joblog=w --results=i --tmpdir=i --tempdir=i --workdir --wd -S --sshlogin --slf --sshloginfile=r --env --load --memfree --nice --progress-bar --tagstring -s --max-chars --block --recstart --recend --halt --header --basefile --return --shuf-seed posix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	n := 0
	for n < len(p.rest) && !strings.HasPrefix(p.rest[n].text(), ":::") {
		n++
	}
	command, inputs := p.rest[:n], p.rest[n:]
	sub := st.clone()
	sub.in = input{}
	files := w.parallelInputs(st, c, inputs)
	if len(command) == 0 {
		w.parallelLines(sub, st, c, inputs, files || len(p.values("-a", "--arg-file")) > 0)
		return output{}
	}
	var words []word
	slotted := false
	for _, x := range command {
		y := withReplacements(x)
		slotted = slotted || !y.known() && x.known()
		words = append(words, y)
	}
	if len(words) == 1 && strings.ContainsAny(words[0].text(), " \t;|&$`'\"(") {
		w.program(sub, words[0], "parallel")
		return output{}
	}
	if !slotted {
		words = append(words, slotWord("", "…", c.pos))
	}
	w.run(sub, words, "parallel")
	// The words are joined and read by a shell again.
	if x := joined(command); x.known() && strings.ContainsAny(x.text(), "$`;|&") {
		w.program(sub, withReplacements(x), "parallel")
	}
	return output{}
}

// parallelInputs counts the files after :::: and reports whether there are any.
func (w *walker) parallelInputs(st *state, c *cmd, inputs []word) bool {
	files, any := false, false
	for _, x := range inputs {
		if t := x.text(); strings.HasPrefix(t, ":::") {
			files = strings.HasPrefix(t, "::::")
			continue
		}
		if files {
			any = true
			w.path(st, c, x, roleRead)
		}
	}
	return any
}

// parallelLines judges inputs that are commands themselves.
func (w *walker) parallelLines(sub, st *state, c *cmd, inputs []word, files bool) {
	for _, x := range inputs {
		if !strings.HasPrefix(x.text(), ":::") {
			w.program(sub, x, "parallel")
		}
	}
	if len(inputs) == 0 && !files {
		w.inputProgram(st, st.in, "parallel")
	}
	if files || len(inputs) == 0 && st.in.kind == inputFile {
		w.code(nil, argText(c.name, c.args), "the commands parallel reads are not known before they run", c.pos)
	}
}

// withReplacements turns {}, {.}, {1} and the like into slots.
func withReplacements(x word) word {
	t := x.text()
	for i := 0; i < len(t); i++ {
		if t[i] != '{' {
			continue
		}
		j := strings.IndexByte(t[i:], '}')
		if j < 0 {
			break
		}
		if in := t[i+1 : i+j]; strings.Trim(in, "0123456789./#%+-") == "" {
			x = withSlot(x, t[i:i+j+1])
		}
		i += j
	}
	return x
}

func watch(w *walker, st *state, c *cmd) output {
	p := newGrammar("-n --interval -q --equexit posix").split(c.args)
	if len(p.rest) == 0 {
		return output{}
	}
	if p.has("-x", "--exec") {
		w.run(st.clone(), p.rest, "watch")
		return output{}
	}
	w.program(st.clone(), joined(p.rest), "watch")
	return output{}
}

func entr(w *walker, st *state, c *cmd) output {
	p := newGrammar("posix").split(c.args)
	if len(p.rest) == 0 {
		return output{}
	}
	if p.has("-s") {
		w.program(st.clone(), p.rest[0], "entr -s")
		return output{}
	}
	var words []word
	for _, x := range p.rest {
		words = append(words, withSlot(x, "/_"))
	}
	sub := st.clone()
	sub.in = input{}
	w.run(sub, words, "entr")
	return output{}
}

func script(w *walker, st *state, c *cmd) output {
	g := newGrammar("-c --command -E --echo -I=w --log-in=w -O=w --log-out=w -B=w --log-io=w -T=w --log-timing=w -o --output-limit -m --logging-format")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-c", "--command") {
		w.program(st.clone(), v, "script -c")
	}
	for i, x := range p.rest {
		if i == 0 {
			w.path(st, c, x, roleWrite)
			continue
		}
		w.run(st.clone(), p.rest[1:], "script")
		break
	}
	return output{}
}

// su judges su and runuser.
func su(w *walker, st *state, c *cmd) output {
	p := newGrammar("-c --command --session-command -g --group -G --supp-group -s --shell -u --user -w --whitelist-environment posix").split(c.args)
	args := p.rest
	for _, v := range p.values("-c", "--command", "--session-command") {
		w.program(st.clone(), v, c.name+" -c")
	}
	if c.name == "runuser" && p.has("-u", "--user") {
		return w.run(st, args, "runuser")
	}
	for i, a := range args {
		if a.is("-c", "--command", "--session-command") && i+1 < len(args) {
			w.program(st.clone(), args[i+1], c.name+" -c")
		}
		if v, ok := strings.CutPrefix(a.prefix(), "--command="); ok {
			w.program(st.clone(), a.cut(len(a.prefix())-len(v)), c.name+" -c")
		}
	}
	return output{}
}

// ssh judges a proxy command, and a command for this very machine.
func ssh(w *walker, st *state, c *cmd) output {
	g := newGrammar("-i=r -F=r -p -l -o -L -R -D -J -b -c -E=w -e -I -m -O -Q -S -W -w -B -P posix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-o") {
		w.sshOption(st, v)
	}
	if len(p.rest) < 2 {
		return output{}
	}
	host := p.rest[0].text()
	host = host[strings.LastIndexByte(host, '@')+1:]
	host = strings.TrimPrefix(host, "ssh://")
	if host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1" || host == "[::1]" || strings.HasPrefix(host, "localhost:") {
		rest := p.rest[1:]
		for len(rest) > 0 && strings.HasPrefix(rest[0].text(), "-") {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			w.program(st.clone(), joined(rest), "ssh "+host)
		}
	}
	return output{}
}

func (w *walker) sshOption(st *state, v word) {
	t := v.prefix()
	i := strings.IndexAny(t, "= ")
	if i < 0 {
		return
	}
	switch strings.ToLower(t[:i]) {
	case "proxycommand", "localcommand", "knownhostscommand", "remotecommand":
		w.program(st.clone(), v.cut(i+1), "ssh -o "+t[:i])
	}
}

// isRemote reports whether an operand names another machine: host:path.
func isRemote(t string) bool {
	i := strings.IndexByte(t, ':')
	return i > 0 && !strings.Contains(t[:i], "/") || strings.Contains(t, "://")
}

func remoteCopy(w *walker, st *state, c *cmd) output {
	g := newGrammar("-i=r -F=r -P -l -o -J -c -S -X -b=r -B -D -R -s")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-o") {
		w.sshOption(st, v)
	}
	for _, v := range p.values("-S") {
		w.run(st.clone(), []word{v}, c.name+" -S")
	}
	w.copies(st, c, p.rest)
	return output{}
}

// copies counts local operands: the last is written, the others are read.
func (w *walker) copies(st *state, c *cmd, rest []word) {
	for i, x := range rest {
		if isRemote(x.text()) {
			continue
		}
		if i == len(rest)-1 && len(rest) > 1 {
			w.into(st, c, x, rest[:i], roleWrite, false)
			continue
		}
		w.path(st, c, x, roleReadAll)
	}
}

func rsync(w *walker, st *state, c *cmd) output {
	g := newGrammar("-e --rsh --rsync-path -f --filter --exclude --include --exclude-from=r --include-from=r --files-from=r -T=i --temp-dir=i --backup-dir=i --partial-dir=i --log-file=w --password-file=r --compare-dest=r --copy-dest=r --link-dest=r -B --block-size --bwlimit --timeout --port --chmod --chown --out-format --max-size --min-size --suffix -M --remote-option")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-e", "--rsh", "--rsync-path") {
		w.program(st.clone(), v, "rsync -e")
	}
	w.copies(st, c, p.rest)
	return output{}
}

// tar takes its first word as options even without a dash.
func tar(w *walker, st *state, c *cmd) output {
	args := c.args
	if len(args) > 0 {
		if t := args[0].prefix(); t != "" && t[0] != '-' && strings.Trim(t, "AcdtruxzZjJvfkpmhwWoOPSaBbCTXKNVHGgFILM0123456789") == "" {
			args = oldStyle(args)
		}
	}
	g := tarGrammar()
	p := g.split(args)
	w.optionPaths(st, c, g, p)
	w.tarPrograms(st, p)
	w.tarPaths(st, c, p)
	return output{}
}

func tarGrammar() grammar {
	return newGrammar("-f --file -C --directory -T=r --files-from=r -X=r --exclude-from=r --exclude -I --use-compress-program --to-command --checkpoint-action -b -K -N --newer -V --label -H --format -g=w --listed-incremental=w -F --info-script --new-volume-script --rsh-command --rmt-command --transform --xform --owner --group --mode --mtime --strip-components -L --index-file=w --suffix")
}

// tarPrograms judges the options of tar that run something.
func (w *walker) tarPrograms(st *state, p parsed) {
	for _, o := range p.opts {
		if !o.has {
			continue
		}
		switch o.name {
		case "-I", "--use-compress-program", "--to-command", "-F", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command":
			w.program(st.clone(), o.value, "tar "+o.name)
		case "--checkpoint-action":
			if strings.HasPrefix(o.value.prefix(), "exec=") {
				w.program(st.clone(), o.value.cut(5), "tar --checkpoint-action")
			}
		}
	}
}

// tarVariable judges the options that TAR_OPTIONS adds to every tar.
func (w *walker) tarVariable(st *state, x word) {
	words, ok := splitString(x)
	switch {
	case ok:
		w.tarPrograms(st, tarGrammar().split(words))
	case len(x.cons) > 0:
		w.code(x.cons, x.src, "the options given to tar are not known before it runs", x.pos)
	}
}

// oldStyle turns "xzf a.tar" into "-x -z -f a.tar".
func oldStyle(args []word) []word {
	letters := args[0].text()
	values := args[1:]
	var out []word
	for _, l := range letters {
		out = append(out, plain("-"+string(l), args[0].pos))
		if strings.ContainsRune("fCTXbKNVHgFIL", l) && len(values) > 0 {
			out = append(out, values[0])
			values = values[1:]
		}
	}
	return append(out, values...)
}

func (w *walker) tarPaths(st *state, c *cmd, p parsed) {
	extract := p.has("-x", "--extract", "--get")
	create := p.has("-c", "--create", "-r", "--append", "-u", "--update", "-A")
	sub := st
	for _, v := range p.values("-C", "--directory") {
		if extract {
			w.path(st, c, v, roleInto)
		} else {
			w.path(st, c, v, roleRead)
		}
		sub = st.clone()
		if v.known() {
			sub.chdir(v.text(), nil)
		} else {
			sub.chdir("", nil)
		}
	}
	if extract && len(p.values("-C", "--directory")) == 0 && !p.has("-O", "--to-stdout", "--to-command") {
		w.implied(st, c, roleInto)
	}
	for _, v := range p.values("-f", "--file") {
		switch {
		case v.is("-") || isRemote(v.text()):
		case create:
			w.path(st, c, v, roleWrite)
		default:
			w.path(st, c, v, roleRead)
		}
	}
	if !create {
		return
	}
	for _, x := range p.rest {
		w.path(sub, c, x, roleReadAll)
	}
}

func splitFile(w *walker, st *state, c *cmd) output {
	p := newGrammar("-a --suffix-length -b --bytes -C --line-bytes -l --lines -n --number -t --separator --additional-suffix --filter").split(c.args)
	for _, v := range p.values("--filter") {
		w.program(st.clone(), v, "split --filter")
	}
	for i, x := range p.rest {
		switch {
		case x.is("-"):
		case i == 0:
			w.path(st, c, x, roleRead)
		default:
			w.path(st, c, x, roleWrite)
		}
	}
	return output{}
}

func makeTool(w *walker, st *state, c *cmd) output {
	g := newGrammar("-C=r --directory=r -f=r --file=r --makefile=r -I=r --include-dir=r -o --old-file -W --what-if -E --eval")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-f", "--file", "--makefile") {
		if t, ok := w.programFile(st, c, v); ok {
			w.makeText(st, t)
		}
	}
	for _, v := range p.values("-E", "--eval") {
		w.makeText(st, v)
		if strings.Contains(v.text(), "$(shell") || !v.known() {
			w.code(v.cons, v.src, "make runs text that cannot be judged", v.pos)
		}
	}
	for _, x := range p.rest {
		name, _, ok := strings.Cut(x.prefix(), "=")
		if !ok {
			continue
		}
		v := x.cut(len(name) + 1)
		name = strings.TrimRight(name, ":+?!")
		if name == "SHELL" {
			w.program(st.clone(), v, "make SHELL=")
		}
		w.makeText(st, v)
		w.codeVar(st, name, v)
	}
	return output{}
}

// makeText judges the recipes of a makefile, and what $(shell …) runs.
func (w *walker) makeText(st *state, v word) {
	if !v.known() {
		return
	}
	for line := range strings.Lines(v.text()) {
		line = strings.TrimSuffix(line, "\n")
		recipe, ok := strings.CutPrefix(line, "\t")
		if rule, rest, inline := strings.Cut(line, ";"); !ok && inline && strings.Contains(rule, ":") {
			recipe, ok = rest, true
		}
		if _, text, runs := strings.Cut(line, "$(shell "); runs {
			w.program(st.clone(), makeWord(text[:closing(text)], v.pos), "make")
		}
		if ok {
			w.program(st.clone(), makeWord(strings.TrimLeft(recipe, "@+- \t"), v.pos), "make")
		}
	}
}

// makeWord is text that make expands: "$$" is a dollar for the shell, and what
// else starts with a dollar is not known.
func makeWord(text string, pos call.Pos) word {
	out := word{pos: pos, src: text, slot: true}
	for text != "" {
		before, rest, ok := strings.Cut(text, "$")
		if before != "" {
			out.segs = append(out.segs, seg{text: before, known: true, quoted: true})
		}
		if !ok {
			break
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			out.segs = append(out.segs, seg{text: "$", known: true, quoted: true})
			text = rest[1:]
			continue
		case strings.HasPrefix(rest, "(") || strings.HasPrefix(rest, "{"):
			rest = rest[1:]
			rest = rest[min(closing(rest)+1, len(rest)):]
		case rest != "":
			rest = rest[1:]
		}
		out.segs = append(out.segs, seg{text: slotText, quoted: true})
		text = rest
	}
	return out
}

// closing is where the bracket that is open at the start of a text closes.
func closing(text string) int {
	depth := 1
	for i, ch := range text {
		switch ch {
		case '(', '{':
			depth++
		case ')', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// goTool judges the programs the go command is told to run, and its outputs.
func goTool(w *walker, st *state, c *cmd) output {
	g := newGrammar("single -o=w -C=r -coverprofile=w -cpuprofile=w -memprofile=w -blockprofile=w -mutexprofile=w -trace=w -outputdir=i -modfile=r -overlay=r -exec -toolexec -vettool -bench -run -count -timeout -tags -ldflags -gcflags -asmflags -mod -p -benchtime -fuzz -fuzztime -parallel -pkgdir=i -vet -func=r -html=r -skip -shuffle -list -covermode -coverpkg -cpu -fuzzminimizetime -f -go -replace -require -dropreplace")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-exec", "-toolexec", "-vettool") {
		w.program(st.clone(), v, "go")
	}
	for _, x := range p.rest {
		w.guess(st, c, x)
	}
	return output{}
}

// goVariable judges the options that GOFLAGS adds to the go command.
func (w *walker) goVariable(st *state, x word) {
	words, _ := splitString(x)
	for _, v := range newGrammar("single -exec -toolexec -vettool").split(words).values("-exec", "-toolexec", "-vettool") {
		w.program(st.clone(), v, "GOFLAGS")
	}
}

// sqlClient looks for statements that destroy, in its words and its input.
func sqlClient(w *walker, st *state, c *cmd) output {
	for _, a := range c.args {
		w.sql(c, a.text(), a.src, a.pos)
	}
	w.sql(c, st.in.text, "the input of "+c.name, c.pos)
	if len(st.in.word.segs) > 0 {
		w.sql(c, st.in.word.text(), "the input of "+c.name, c.pos)
	}
	w.clientCommands(st, c)
	g := newGrammar("-f=r --file=r -o=w --output=w -L=w --log-file=w -i=r -d -h -p -U -c -e -u -D -P -S -Q -q --command --execute --host --user --port --password --dbname --query -init=r -cmd -separator single")
	if c.name != "psql" && c.name != "sqlcmd" {
		g = g.without("-f", "-o", "-L", "-i", "-p", "-c", "-q")
	}
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	if (c.name == "sqlite3" || c.name == "duckdb") && len(p.rest) > 0 && !strings.HasPrefix(p.rest[0].text(), ":") {
		w.path(st, c, p.rest[0], roleRead)
	}
	return output{}
}

// clientCommands judges the commands of a client that leave it for a shell.
func (w *walker) clientCommands(st *state, c *cmd) {
	texts := inputLines(st.in)
	for _, a := range c.args {
		if v, ok := strings.CutPrefix(a.prefix(), "--pager="); ok {
			w.program(st.clone(), a.cut(len(a.prefix())-len(v)), c.name)
		}
		for line := range strings.Lines(a.text()) {
			texts = append(texts, plain(strings.TrimSpace(line), a.pos))
		}
	}
	for _, v := range texts {
		if text, ok := clientCommand(c.name, v.text()); ok {
			w.program(st.clone(), plain(text, v.pos), c.name)
		}
	}
}

// clientCommand is the text that a line makes a client give to a shell.
func clientCommand(client, line string) (text string, ok bool) {
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	switch {
	case client == "sqlite3" || client == "duckdb":
		arg = strings.Trim(arg, `"' `)
		if len(name) > 2 && (strings.HasPrefix(".shell", name) || strings.HasPrefix(".system", name)) {
			return arg, true
		}
		text, ok = strings.CutPrefix(arg, "|")
		return text, ok && name[0] == '.'
	case name == "system":
		return arg, true
	case strings.HasPrefix(name, `\`) && strings.HasPrefix(arg, "|"):
		return arg[1:], true
	}
	if _, text, ok = strings.Cut(line, `\!`); ok {
		return text, true
	}
	low := strings.ToLower(line)
	if i := strings.Index(low, " program '"); i >= 0 && strings.Contains(low[:i], "copy") {
		text, _, ok = strings.Cut(line[i+len(" program '"):], "'")
		return text, ok
	}
	return "", false
}

// withoutComments takes the comments out of a statement.
func withoutComments(s string) string {
	for _, c := range []struct{ from, to string }{{"/*", "*/"}, {"--", "\n"}} {
		for {
			before, rest, ok := strings.Cut(s, c.from)
			if !ok {
				break
			}
			_, after, _ := strings.Cut(rest, c.to)
			s = before + " " + after
		}
	}
	return s
}

func (w *walker) sql(c *cmd, text, src string, pos call.Pos) {
	w.statement(c, text, src, pos)
	w.statement(c, withoutComments(text), src, pos)
}

func (w *walker) statement(c *cmd, text, src string, pos call.Pos) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && !strings.ContainsRune("_-*/", r) })
	for i := 0; i+1 < len(words); i++ {
		switch s := words[i] + " " + words[i+1]; s {
		case "drop table", "drop database", "truncate table":
			w.act(call.Act{Kind: call.ActSQL, Name: c.name, Sub: s, Text: src, Pos: pos})
			return
		}
	}
}
