package shellast

import (
	"path"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// programs are the handlers of programs whose arguments need more than a row.
func programs() map[string]handler {
	m := map[string]handler{
		"env": envCommand(), "flock": flock(), "busybox": multicall, "toybox": multicall,
		"cat": cat, "tee": tee, "rm": rm, "jq": jq, "gojq": jq, "jaq": jq, "bazel": ignore, "fd": fd, "fdfind": fd, "hyperfine": hyperfine, "at": at, "batch": at, "sem": parallel, "mv": move, "cp": copyFiles, "install": install, "ln": link,
		"chmod": changeMode, "chown": changeMode, "chgrp": changeMode, "truncate": truncate,
		"dd": dd, "ls": list, "dir": list, "vdir": list, "exa": list, "eza": list, "lsd": list,
		"find": find, "xargs": xargs, "parallel": parallel, "watch": watch, "entr": entr,
		"script": script, "su": su, "runuser": su, "ssh": ssh, "scp": remoteCopy, "sftp": remoteCopy,
		"rsync": rsync, "tar": tar, "bsdtar": tar, "split": splitFile, "make": makeTool, "gmake": makeTool, "ninja": makeTool,
		"vim": vim, "vi": vim, "ex": vim, "nvim": vim, "view": vim, "gvim": vim,
		"awk": awk, "gawk": awk, "mawk": awk, "nawk": awk, "original-awk": awk, "sed": sed, "gsed": sed,
		"git": git, "npx": npx, "npm": npx, "pnpm": npx, "bunx": npx, "go": goTool, "sort": sortFiles, "ssh-keygen": sshKeygen,
		"psql": sqlClient, "mysql": sqlClient, "mariadb": sqlClient, "sqlite3": sqlClient, "duckdb": sqlClient,
		"sqlcmd": sqlClient, "clickhouse-client": sqlClient, "clickhouse": sqlClient,
		"init": ignore, "telinit": ignore, "deno": deno,
		"tmux": multiplexer, "screen": screen, "gdb": debugger, "lldb": debugger, "crontab": crontab, "socat": socat,
		"setarch": setarch, "bwrap": bubble, "ip": ipTool, "sg": group, "capsh": capsh, "cmake": cmake, "expect": expect, "ed": lineEditor, "red": lineEditor,
		"dotenv": dotenv, "apt": packageManager, "apt-get": packageManager, "aptitude": packageManager, "rush": parallel,
	}
	for _, n := range []string{"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "ugrep"} {
		m[n] = grep
	}
	for _, n := range []string{"gzip", "bzip2", "xz", "zstd", "lz4", "pigz", "pbzip2", "lzma", "compress", "brotli", "gunzip", "bunzip2", "unxz", "unzstd", "unlzma", "uncompress"} {
		m[n] = compress
	}
	for _, n := range interpreters() {
		m[n] = interpreter
	}
	for _, v := range []string{"8", "9", "10", "11", "12", "13", "14", "15"} {
		m["python3."+v] = interpreter
	}
	return m
}

// rm judges what is removed. Its own links are not followed.
func rm(w *walker, st *state, c *cmd) output {
	p := newGrammar("").split(c.args)
	recursive, force, everything := false, false, false
	for _, o := range p.opts {
		recursive = recursive || o.name == "-r" || o.name == "-R" || abbreviates(o.name, "--recursive", 3)
		force = force || o.name == "-f" || abbreviates(o.name, "--force", 3)
		everything = everything || abbreviates(o.name, "--no-preserve-root", 5)
	}
	sub := ""
	if recursive {
		sub = "recursive"
	}
	w.act(call.Act{Kind: call.ActRemove, Name: "rm", Sub: sub, Text: argText("rm", c.args), Pos: c.pos})
	if everything {
		w.destroy(c, c.word, "--no-preserve-root")
	}
	for _, x := range p.rest {
		w.removed(st, c, x, recursive, force)
	}
	return output{}
}

func abbreviates(name, long string, least int) bool {
	return len(name) >= least && strings.HasPrefix(long, name)
}

func (w *walker) destroy(c *cmd, x word, rule string) {
	w.act(call.Act{Kind: call.ActDestroy, Name: c.name, Sub: rule, Text: x.src, Pos: x.pos})
}

func (w *walker) removed(st *state, c *cmd, x word, recursive, force bool) {
	r := roleDelete
	if recursive {
		r = roleDeleteAll
	}
	if !x.known() && recursive && (strings.HasPrefix(strings.TrimLeft(x.src, `"`), "/") || x.prefix() == "/") {
		w.unknownOperand(c, x)
		w.destroy(c, x, "an absolute path with an unknown part")
		return
	}
	if vs := x.variants(); len(vs) > 0 {
		w.unknownOperand(c, x)
		for _, v := range vs {
			v.src = v.text()
			w.removed(st, c, v, recursive, force)
		}
		return
	}
	if !x.known() {
		w.unknownOperand(c, x)
	}
	text, whole, ok := fixed(x)
	if recursive && ok {
		if rule := w.destroys(st, text, whole, force, x); rule != "" {
			w.destroy(c, x, rule)
		}
	}
	w.path(st, c, x, r)
}

// destroys names the rule that makes a recursive delete one that is never
// given.
func (w *walker) destroys(st *state, text string, whole, force bool, x word) string {
	if st.cwd == "" && !strings.HasPrefix(text, "/") {
		return ""
	}
	text = through(text, whole)
	p := w.resolveAt(st.cwd, dotted(text), strings.HasSuffix(text, "/"))
	switch {
	case p.Path == "" || p.Place == call.PlaceUnknown:
		return ""
	case p.Path == "/":
		return "the whole file system"
	case p.Path == path.Clean(w.a.r.Home()):
		return "the home directory"
	case p.Root && whole:
		return "the workspace root"
	case !p.Place.Writable() || p.Place == call.PlaceDevice:
		return "a place outside the workspace"
	case whole && w.holdsRoot(p.Path):
		return "a folder that holds the workspace"
	case force && namesGit(p.Path, whole, x):
		return ".git"
	}
	return ""
}

// namesGit reports whether a delete names .git or the work trees it keeps. For
// a pattern, p is the folder it is in.
func namesGit(p string, whole bool, x word) bool {
	rel := strings.ToLower(p) + "/"
	if strings.HasSuffix(rel, "/.git/") || strings.Contains(rel, "/.git/worktrees/") {
		return true
	}
	return !whole && x.known() && matchesGlob(path.Clean(p+"/"+path.Base(x.text())), p+"/.git")
}

func (w *walker) holdsRoot(p string) bool {
	for _, r := range w.a.r.Roots() {
		if r == p || strings.HasPrefix(r, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

func (w *walker) unknownOperand(c *cmd, x word) {
	w.act(call.Act{Kind: call.ActUnknownOperand, Name: c.name, Text: x.src, Pos: x.pos})
}

func move(w *walker, st *state, c *cmd) output {
	return transfer(w, st, c, roleMove, roleLink)
}

func copyFiles(w *walker, st *state, c *cmd) output {
	return transfer(w, st, c, roleRead, roleWrite)
}

func transfer(w *walker, st *state, c *cmd, from, to role) output {
	g := newGrammar("-t --target-directory -S --suffix")
	p := g.split(c.args)
	sources := p.rest
	var dest []word
	isDir := false
	if t := p.values("-t", "--target-directory"); len(t) > 0 {
		dest, isDir = t[:1], true
	} else if len(sources) > 1 {
		dest, sources = sources[len(sources)-1:], sources[:len(sources)-1]
	}
	for _, s := range sources {
		r := from
		if r == roleRead && p.has("-r", "-R", "-a", "--recursive", "--archive") {
			r = roleReadAll
		}
		w.path(st, c, s, r)
	}
	for _, d := range dest {
		w.into(st, c, d, sources, to, isDir)
		if from == roleRead {
			w.common.copies = w.leadTo(st, w.common.copies, d, sources, false)
		}
	}
	return output{}
}

func install(w *walker, st *state, c *cmd) output {
	g := newGrammar("-t --target-directory -S --suffix -m --mode -o --owner -g --group --strip-program")
	p := g.split(c.args)
	if p.has("-d", "--directory") {
		for _, x := range p.rest {
			w.path(st, c, x, roleWrite)
		}
		return output{}
	}
	return transfer(w, st, &cmd{name: c.name, pos: c.pos, args: withoutOptions(c.args, g)}, roleRead, roleWrite)
}

// withoutOptions keeps -t and the operands of a command line.
func withoutOptions(args []word, g grammar) []word {
	p := g.split(args)
	var out []word
	for _, t := range p.values("-t", "--target-directory") {
		out = append(out, plain("-t", t.pos), t)
	}
	return append(append(out, plain("--", call.Pos{})), p.rest...)
}

func link(w *walker, st *state, c *cmd) output {
	p := newGrammar("-t --target-directory -S --suffix").split(c.args)
	rest := p.rest
	symbolic := p.has("-s", "--symbolic")
	targets, dest := rest, []word(nil)
	if t := p.values("-t", "--target-directory"); len(t) > 0 {
		dest = t[:1]
	} else if len(rest) > 1 {
		targets, dest = rest[:len(rest)-1], rest[len(rest)-1:]
	}
	if !symbolic {
		for _, t := range targets {
			w.path(st, c, t, roleRead)
		}
	} else {
		w.linkTargets(st, c, targets)
	}
	for _, d := range dest {
		w.into(st, c, d, targets, roleLink, false)
		w.common.links = w.leadTo(st, w.common.links, d, targets, symbolic)
	}
	if len(dest) == 0 && len(targets) == 1 {
		w.common.links = w.leadTo(st, w.common.links, plain(".", c.pos), targets, symbolic)
	}
	return output{}
}

// linkTargets counts what a symbolic link will lead to as named, so that a
// secret is not reached under another name.
func (w *walker) linkTargets(st *state, c *cmd, targets []word) {
	for _, t := range targets {
		w.path(st, c, t, roleTest)
	}
}

func changeMode(w *walker, st *state, c *cmd) output {
	args, mode := c.args, 1
	if c.name == "chmod" {
		args, mode = chmodArgs(c.args)
	}
	p := newGrammar("--reference=t --from").split(args)
	if p.has("--reference") {
		mode = 0
	}
	r := roleMode
	if slices.ContainsFunc(p.opts, func(o option) bool { return o.name == "-R" || abbreviates(o.name, "--recursive", 5) }) {
		r = roleModeAll
		w.act(call.Act{Kind: call.ActMassChange, Name: c.name, Sub: "-R", Text: argText(c.name, c.args), Pos: c.pos})
	}
	for _, x := range p.rest[min(mode, len(p.rest)):] {
		if r == roleModeAll && !x.known() {
			w.unknownOperand(c, x)
		}
		w.path(st, c, x, r)
	}
	return output{}
}

// chmodArgs takes out a mode that looks like options, as in "chmod -x f", and
// says how many operands are a mode.
func chmodArgs(in []word) (args []word, mode int) {
	mode = 1
	for _, a := range in {
		if pre := a.prefix(); len(pre) > 1 && pre[0] == '-' && pre[1] != '-' && strings.Trim(pre[1:], "rwxXstugo,+=-") == "" {
			mode = 0
			continue
		}
		args = append(args, a)
	}
	return args, mode
}

func truncate(w *walker, st *state, c *cmd) output {
	w.act(call.Act{Kind: call.ActTruncate, Name: "truncate", Text: argText("truncate", c.args), Pos: c.pos})
	w.tableOperands(st, c)
	return output{}
}

func dd(w *walker, st *state, c *cmd) output {
	for _, x := range c.args {
		switch pre := strings.ToLower(x.prefix()); {
		case strings.HasPrefix(pre, "if="):
			w.path(st, c, x.cut(3), roleRead)
		case strings.HasPrefix(pre, "of="):
			w.path(st, c, x.cut(3), roleWrite)
		}
	}
	return output{}
}

func list(w *walker, st *state, c *cmd) output {
	p := newGrammar("-I --ignore -w --width -T --tabsize --block-size --hide --sort --time --format --level").split(c.args)
	r := roleRead
	switch {
	case p.has("-d", "--directory"):
		r = roleTest
	case p.has("-R", "--recursive"):
		r = roleReadAll
	}
	for _, x := range p.rest {
		w.path(st, c, x, r)
	}
	if len(p.rest) == 0 && r != roleTest {
		w.implied(st, c, r)
	}
	return output{}
}

// grep reads files; with -r folders, and the current one unasked.
func grep(w *walker, st *state, c *cmd) output {
	g := newGrammar("-e --regexp -f=r --file=r -A -B -C -m --after-context --before-context --context --max-count --include --exclude --exclude-dir --exclude-from=r --color --colour --label -d -D --directories --devices --binary-files -g --glob --iglob -t --type -T --type-not -j --threads --sort -M --max-columns --max-depth -r=- --replace --ignore-file=r --pre --hostname-bin --pager")
	r := roleRead
	switch c.name {
	case "rg", "ag", "ack", "ugrep":
		r = roleReadAll
	default:
		g = g.without("-r", "-g", "-t", "-T", "-j", "-M")
	}
	piped := r == roleReadAll && st.in.comes()
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("--pre", "--hostname-bin") {
		w.run(st.clone(), []word{v}, c.name+" --pre")
	}
	for _, v := range p.values("--pager") {
		w.program(st.clone(), v, c.name+" --pager")
	}
	rest := p.rest
	if !p.has("-e", "--regexp", "-f", "--file", "--files", "--type-list") && len(rest) > 0 {
		rest = rest[1:]
	}
	if p.has("-r", "-R", "--recursive", "--dereference-recursive") {
		r = roleReadAll
	}
	for _, x := range rest {
		if !x.is("-") {
			w.path(st, c, x, r)
		}
	}
	if len(rest) == 0 && r == roleReadAll && !piped {
		w.implied(st, c, roleReadAll)
	}
	return output{}
}

func compress(w *walker, st *state, c *cmd) output {
	p := newGrammar("-S --suffix -o=w --output=w -T --threads -b -D=r --block-size -M --memlimit").split(c.args)
	r := roleWrite
	if p.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test") || len(p.values("-o", "--output")) > 0 {
		r = roleRead
	}
	for _, v := range p.values("-o", "--output") {
		w.path(st, c, v, roleWrite)
	}
	for _, x := range p.rest {
		if !x.is("-") {
			w.path(st, c, x, r)
		}
	}
	return output{}
}

func sortFiles(w *walker, st *state, c *cmd) output {
	w.tableOperands(st, c)
	for _, v := range w.a.tab().rows["sort"].g.split(c.args).values("--compress-program") {
		w.run(st.clone(), []word{v}, "sort --compress-program")
	}
	return output{}
}

// jq takes two words after --arg and its kin; some of them name a file.
func jq(w *walker, st *state, c *cmd) output {
	g := newGrammar("-f=r --from-file=r --indent -L=r")
	var args []word
	for i := 0; i < len(c.args); i++ {
		switch t := c.args[i].text(); t {
		case "--slurpfile", "--rawfile":
			if i+2 < len(c.args) {
				w.path(st, c, c.args[i+2], roleRead)
			}
			i += 2
		case "--arg", "--argjson":
			i += 2
		case "--args", "--jsonargs":
			i = len(c.args)
		default:
			args = append(args, c.args[i])
		}
	}
	p := g.split(args)
	w.optionPaths(st, c, g, p)
	rest := p.rest
	if len(rest) > 0 && !p.has("-f", "--from-file") {
		rest = rest[1:]
	}
	w.roles(st, c, []string{"r*"}, rest)
	return output{}
}

func sshKeygen(w *walker, st *state, c *cmd) output {
	g := newGrammar("-f -t -b -C -N -P -m -Y -s=r -I -n -V -O -a -w -D -F -R -r -Z")
	p := g.split(c.args)
	r := roleWrite
	if p.has("-l", "-y", "-F", "-B", "-e") {
		r = roleRead
	}
	for _, v := range p.values("-f") {
		w.path(st, c, v, r)
	}
	for _, x := range p.rest {
		w.path(st, c, x, roleRead)
	}
	return output{}
}

// interpreters are the programs that take a program as text or as a file.
func interpreters() []string {
	return []string{"python", "python2", "python3", "node", "nodejs", "perl", "ruby", "php", "lua", "luajit", "rscript", "bun", "pypy3", "tclsh", "osascript", "pwsh", "powershell", "nu", "elvish", "xonsh"}
}

// interpreterRow says which options of an interpreter take a value, and which
// of them a program text.
type interpreterRow struct {
	spec string
	code []string
}

func interpreterRows(name string) interpreterRow {
	if strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") {
		name = ""
	}
	switch withoutVersion(name) {
	case "node", "nodejs", "bun":
		return interpreterRow{
			"posix single -pe -e --eval -p --print -r=g --require=g --import --loader --input-type --conditions -C --env-file=r",
			[]string{"-e", "--eval", "-p", "--print", "-pe"},
		}
	case "perl":
		return interpreterRow{"posix -e -E -M -m -I=r", []string{"-e", "-E"}}
	case "ruby":
		return interpreterRow{"posix -e -r -I=r -C -E -F", []string{"-e"}}
	case "php":
		return interpreterRow{"posix -r -f=r -d -c=r -B -R -E", []string{"-r", "-B", "-R", "-E"}}
	case "lua", "luajit", "rscript", "osascript", "tclsh":
		return interpreterRow{"posix -e -l", []string{"-e"}}
	case "pwsh", "powershell":
		return interpreterRow{"posix single -c -Command -command -f=r -File=r -file=r", []string{"-c", "-Command", "-command"}}
	}
	return interpreterRow{"posix -c -m -W -X -Q --check-hash-based-pycs", []string{"-c"}}
}

// interpreter judges a program text that a construct makes, and the script.
func interpreter(w *walker, st *state, c *cmd) output {
	if strings.HasPrefix(c.name, "py") && w.runModule(st, c) {
		return output{}
	}
	row := interpreterRows(c.name)
	g := newGrammar(row.spec)
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	texts, rest := p.values(row.code...), p.rest
	for _, v := range texts {
		w.programText(c, v)
	}
	switch {
	case len(texts) > 0 && (c.name == "perl" || c.name == "ruby"):
		r := "r*"
		if p.has("-i") {
			r = "w*"
		}
		w.roles(st, c, []string{r}, rest)
		return output{}
	case len(texts) > 0 || p.has("-m"):
	case len(rest) == 0 || rest[0].is("-"):
		w.interpreterInput(st, c)
	case !rest[0].known() && len(rest[0].cons) > 0:
		w.programText(c, rest[0])
		rest = rest[1:]
	default:
		w.path(st, c, rest[0], roleRead)
		rest = rest[1:]
	}
	w.guessAll(st, c, rest)
	return output{}
}

// deno judges "deno eval TEXT", and a script like other interpreters.
func deno(w *walker, st *state, c *cmd) output {
	if len(c.args) > 1 && c.args[0].is("eval") {
		w.programText(c, c.args[1])
		w.guessAll(st, c, c.args[2:])
		return output{}
	}
	w.guessAll(st, c, c.args)
	return output{}
}

// programText asks about text that a construct or a variable makes for an
// interpreter.
func (w *walker) programText(c *cmd, x word) {
	if !x.known() || x.glob() {
		w.code(x.cons, x.src, "the program text given to "+c.name+" is not known before it runs", x.pos)
	}
}

// interpreterInput judges an interpreter that reads its program from a pipe or
// a here-document.
func (w *walker) interpreterInput(st *state, c *cmd) {
	in := st.in
	if in.kind != inputUnknown || len(in.cons) == 0 {
		return // what an interpreter does is the business of the sandbox
	}
	w.code(in.cons, in.text, "the program "+c.name+" reads is not known before it runs", in.pos)
}
