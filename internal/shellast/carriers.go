package shellast

import "strings"

// carrier is one row: a program that has a task of its own, and runs what some
// of its options or operands say. Its paths are those of its row in the table.
type carrier struct {
	spec  string // its options with a value, see newGrammar
	sub   string // the subcommand it is one for, "" = all
	text  string // options whose value a shell reads
	words string // options whose value is a program and its arguments
	rest  string // options after which all words are one command
	each  bool   // every operand is text for a shell
	all   bool   // the operands together are
}

// carrierRows is the table of carriers; several names may share a row.
func carrierRows() map[string]carrier {
	return map[string]carrier{
		"man":                {spec: "-P --pager -H --html -C -M -L -m -s -S -e -E -p -r -T", text: "-P --pager -H --html"},
		"nano pico rnano":    {spec: "-s --speller", text: "-s --speller"},
		"nix-shell":          {spec: "-p --packages --run --command", text: "--run --command"},
		"nix":                {rest: "-c --command"},
		"nodemon":            {spec: "-x --exec -w --watch -e --ext -i --ignore -d --delay --config --signal", text: "-x --exec"},
		"chokidar":           {spec: "-c --command", text: "-c --command"},
		"onchange":           {rest: "--"},
		"watchexec":          {spec: "-e --exts -w --watch -i --ignore -f --filter -s --signal -d --debounce --shell -E --env --workdir --delay-run --stop-timeout --stop-signal --project-origin -o --on-busy-update posix", all: true},
		"concurrently":       {spec: "-n --names -c --prefix-colors -p --prefix -l --prefix-length -t --timestamp-format -m --max-processes -s --success --name-separator --restart-tries --restart-after --default-input-target", each: true},
		"mispipe pee":        {each: true},
		"cargo":              {sub: "watch", spec: "-s --shell -x --exec -w --watch -i --ignore", text: "-s --shell", rest: "--"},
		"start-stop-daemon":  {spec: "-x --exec -a -p --pidfile -u --user -c --chuid -d --chdir -n --name", words: "-x --exec -a"},
		"xterm uxterm urxvt": {rest: "-e"},
		"konsole alacritty":  {rest: "-e"},
		"gnome-terminal":     {rest: "--"},
		"ctest":              {rest: "--test-command"},
		"rpm rpmbuild":       {spec: "--pipe", text: "--pipe"},
		"dpkg":               {spec: "--pre-invoke --post-invoke --status-logger", text: "--pre-invoke --post-invoke --status-logger"},
		"tcpdump":            {spec: "-z -w -r -i -c -C -G -W -s -F", words: "-z"},
		"zip":                {spec: "-TT --unzip-command single", text: "-TT --unzip-command"},
		"cpio":               {spec: "--rsh-command", words: "--rsh-command"},
		"mosh":               {spec: "--ssh --server -p --port", text: "--ssh"},
		"gcc g++ cc c++":     {spec: "-wrapper single", words: "-wrapper"},
	}
}

// carry judges what a carrier runs.
func (row carrier) carry() handler {
	g := newGrammar(row.spec)
	text, words, rest := strings.Fields(row.text), strings.Fields(row.words), strings.Fields(row.rest)
	return func(w *walker, st *state, c *cmd) output {
		args := c.args
		if row.sub != "" && (len(args) == 0 || !args[0].is(row.sub)) {
			w.tableOperands(st, c)
			return output{}
		}
		if i := firstOf(args, rest); i >= 0 {
			if last := args[i+1:]; len(last) == 1 && strings.Contains(last[0].text(), " ") {
				w.program(st.clone(), last[0], c.name)
			} else {
				w.run(st.clone(), last, c.name)
			}
			args = args[:i]
		}
		p := g.split(args)
		for _, v := range p.values(text...) {
			w.program(st.clone(), v, c.name)
		}
		for _, v := range p.values(words...) {
			w.commandLine(st, c, v)
		}
		switch {
		case row.each:
			for _, x := range p.rest {
				w.shorthand(st, c, x)
			}
		case row.all && len(p.rest) > 0:
			w.program(st.clone(), joined(p.rest), c.name)
		default:
			w.tableOperands(st, &cmd{name: c.name, word: c.word, args: args, pos: c.pos, own: c.own})
		}
		return output{}
	}
}

// firstOf is where the first of some words stands, -1 when none does.
func firstOf(args []word, names []string) int {
	for i, a := range args {
		if len(names) > 0 && a.is(names...) {
			return i
		}
	}
	return -1
}

// commandLine judges a value that is a program and its arguments, which no
// shell reads. gcc separates them with commas.
func (w *walker) commandLine(st *state, c *cmd, x word) {
	if !x.known() {
		w.program(st.clone(), x, c.name)
		return
	}
	var words []word
	for _, f := range strings.FieldsFunc(x.text(), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' }) {
		words = append(words, plain(f, x.pos))
	}
	w.run(st.clone(), words, c.name)
}

// shorthand judges an operand of concurrently, which knows "npm:name" for a
// script of the package.
func (w *walker) shorthand(st *state, c *cmd, x word) {
	tool, _, ok := strings.Cut(x.prefix(), ":")
	switch tool {
	case "npm", "pnpm", "yarn", "bun", "node", "deno":
		if ok {
			return
		}
	}
	w.program(st.clone(), x, c.name)
}

// multiplexer judges what tmux runs: in a new window, or by itself.
func multiplexer(w *walker, st *state, c *cmd) output {
	g := newGrammar("-c -f=r -L -S -T posix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-c") {
		w.program(st.clone(), v, "tmux -c")
	}
	for args := p.rest; len(args) > 0; {
		end := firstOf(args, []string{";"})
		if end < 0 {
			end = len(args)
		}
		if end > 0 {
			w.tmuxCommand(st, args[0].text(), args[1:end])
		}
		args = args[min(end+1, len(args)):]
	}
	return output{}
}

func (w *walker) tmuxCommand(st *state, name string, args []word) {
	var spec string
	switch name {
	case "new", "new-session", "neww", "new-window", "splitw", "split-window", "respawnp", "respawn-pane", "respawnw", "respawn-window":
		spec = "-c -e -F -f -l -n -s -t -x -y posix"
	case "popup", "display-popup":
		spec = "-b -c -d -e -h -s -S -t -T -w -x -y posix"
	case "run", "run-shell", "if", "if-shell", "pipep", "pipe-pane":
		spec = "-c -d -t posix"
	case "send", "send-keys":
		w.keys(st, newGrammar("-t -N posix").split(args).rest)
		return
	default:
		return
	}
	rest := newGrammar(spec).split(args).rest
	if len(rest) == 0 {
		return
	}
	if strings.HasPrefix(name, "if") {
		rest = rest[:1] // the others are commands of tmux
	}
	w.program(st.clone(), joined(rest), "tmux "+name)
}

// keys judges what is typed into a terminal, if it can be a command.
func (w *walker) keys(st *state, keys []word) {
	for _, k := range keys {
		if _, perr := parse(k.text()); perr == nil && k.known() {
			w.program(st.clone(), k, "tmux send-keys")
		}
	}
}

// screen judges what it starts, and what -X makes it run or type.
func screen(w *walker, st *state, c *cmd) output {
	g := newGrammar("-c=r -e -h -p -s -S -t -T posix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	rest := p.rest
	if p.has("-X") {
		if len(rest) > 1 && rest[0].is("stuff") {
			w.keys(st, rest[1:])
			return output{}
		}
		if len(rest) > 1 && rest[0].is("exec", "screen") {
			rest = rest[1:]
		}
	}
	w.run(st.clone(), rest, "screen")
	return output{}
}

// debugger judges the commands given to gdb and lldb that leave it, and the
// program it is told to start.
func debugger(w *walker, st *state, c *cmd) output {
	args := c.args
	starts := []string{"--args", "-args"}
	if c.name == "lldb" {
		starts = []string{"--"}
	}
	if i := firstOf(args, starts); i >= 0 {
		w.run(st.clone(), args[i+1:], c.name)
		args = args[:i]
	}
	g := newGrammar("single -ex -eval-command -iex -init-eval-command --ex --eval-command --iex --init-eval-command -x=r -command=r -p -pid -c=r -core=r -cd -d=r -tty -s=r -e=r")
	if c.name == "lldb" {
		g = newGrammar("-o --one-line -O --one-line-before-file -k --one-line-on-crash -s=r --source=r -S=r -f=r --file=r -c=r --core=r -p --attach-pid -n -a")
	}
	p := g.split(args)
	w.optionPaths(st, c, g, p)
	for _, o := range p.opts {
		if r, ok := g.role(o.name); o.has && ok && r == roleNone {
			w.debuggerCommand(st, c, o.value)
		}
	}
	w.guessAll(st, c, p.rest)
	return output{}
}

func (w *walker) debuggerCommand(st *state, c *cmd, v word) {
	t := strings.TrimLeft(v.prefix(), " ")
	t = strings.TrimPrefix(t, "platform ")
	for _, name := range []string{"!", "shell ", "she "} {
		if text, ok := strings.CutPrefix(t, name); ok {
			w.program(st.clone(), v.cut(len(v.prefix())-len(text)), c.name)
			return
		}
	}
	if i := strings.LastIndexByte(t, '|'); i >= 0 && (strings.HasPrefix(t, "pipe ") || strings.HasPrefix(t, "|")) {
		w.program(st.clone(), v.cut(len(v.prefix())-len(t)+i+1), c.name)
	}
}

// crontab judges the commands of a table it is given on its input.
func crontab(w *walker, st *state, c *cmd) output {
	p := newGrammar("-u").split(c.args)
	if p.has("-l", "-r", "-e", "-i") || len(p.rest) > 0 && !p.rest[0].is("-") {
		w.guessAll(st, c, p.rest)
		return output{}
	}
	for _, line := range inputLines(st.in) {
		t := line.text()
		fields := 5
		if strings.HasPrefix(t, "@") {
			fields = 1
		}
		if name, _, ok := strings.Cut(t, "="); t == "" || t[0] == '#' || ok && isName(strings.TrimSpace(name)) {
			continue
		}
		for range fields {
			_, t, _ = strings.Cut(strings.TrimLeft(t, " \t"), " ")
		}
		w.program(st.clone(), plain(t, line.pos), "crontab")
	}
	if st.in.kind == inputUnknown {
		w.code(st.in.cons, st.in.text, "what crontab reads is not known before it runs", st.in.pos)
	}
	return output{}
}

// socat judges the addresses that start a program.
func socat(w *walker, st *state, c *cmd) output {
	for _, x := range c.args {
		kind, _, ok := strings.Cut(x.prefix(), ":")
		if !ok {
			w.guess(st, c, x)
			continue
		}
		v := x.cut(len(kind) + 1)
		if i := strings.IndexByte(v.text(), ','); i >= 0 && v.known() {
			v = plain(v.text()[:i], x.pos) // options follow
		}
		sub := st.clone()
		sub.in = input{kind: inputUnknown, text: x.src, pos: x.pos}
		switch strings.ToLower(kind) {
		case "exec":
			w.commandLine(sub, c, v)
		case "system", "shell":
			w.program(sub, v, c.name)
		case "open", "create", "file", "gopen":
			w.path(st, c, v, roleWrite)
		}
	}
	return output{}
}

// setarch takes an architecture first, unless an option stands there.
func setarch(w *walker, st *state, c *cmd) output {
	args := c.args
	if len(args) > 0 && !strings.HasPrefix(args[0].text(), "-") {
		args = args[1:]
	}
	return w.run(st.clone(), newGrammar("-p --pid posix").split(args).rest, c.name)
}

// bubble judges what bwrap starts, behind options that take up to three words.
func bubble(w *walker, st *state, c *cmd) output {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0].text(), "-") {
		n := 1
		switch args[0].text() {
		case "--":
			return w.run(st.clone(), args[1:], c.name)
		case "--bind", "--bind-try", "--dev-bind", "--dev-bind-try", "--ro-bind", "--ro-bind-try", "--symlink", "--setenv",
			"--file", "--bind-data", "--ro-bind-data", "--chmod", "--bind-fd", "--ro-bind-fd":
			n = 3
		case "--proc", "--dev", "--tmpfs", "--mqueue", "--dir", "--chdir", "--unsetenv", "--uid", "--gid", "--hostname", "--args", "--seccomp",
			"--add-seccomp-fd", "--lock-file", "--sync-fd", "--info-fd", "--userns", "--pidns", "--cap-add", "--cap-drop", "--perms", "--size",
			"--exec-label", "--file-label", "--block-fd", "--argv0", "--remount-ro":
			n = 2
		}
		args = args[min(n, len(args)):]
	}
	return w.run(st.clone(), args, c.name)
}

// ipTool judges what ip runs in another network.
func ipTool(w *walker, st *state, c *cmd) output {
	rest := newGrammar("-n -netns -f -family single posix").split(c.args).rest
	if len(rest) > 3 && rest[0].is("netns", "vrf") && rest[1].is("exec") {
		return w.run(st.clone(), rest[3:], "ip "+rest[0].text()+" exec")
	}
	return output{}
}

// group judges what sg runs as another group.
func group(w *walker, st *state, c *cmd) output {
	args := c.args
	for len(args) > 0 && args[0].is("-") {
		args = args[1:]
	}
	if len(args) > 1 {
		args = args[1:]
		if args[0].is("-c") {
			args = args[1:]
		}
		if len(args) > 0 {
			w.program(st.clone(), args[0], "sg")
		}
	}
	return output{}
}

// capsh hands what follows -- to bash.
func capsh(w *walker, st *state, c *cmd) output {
	if i := firstOf(c.args, []string{"--", "=="}); i >= 0 {
		w.run(st.clone(), append([]word{plain("bash", c.pos)}, c.args[i+1:]...), "capsh")
	}
	return output{}
}

// cmake judges "cmake -E env" and its kin.
func cmake(w *walker, st *state, c *cmd) output {
	if len(c.args) < 2 || !c.args[0].is("-E") {
		w.tableOperands(st, c)
		return output{}
	}
	rest := c.args[2:]
	switch c.args[1].text() {
	case "env":
		return w.run(st.clone(), append([]word{plain("env", c.pos)}, rest...), "cmake -E env")
	case "time":
		return w.run(st.clone(), rest, "cmake -E time")
	case "chdir":
		if len(rest) > 0 {
			sub := st.clone()
			w.cdTo(sub, c, rest[0], nil)
			return w.run(sub, rest[1:], "cmake -E chdir")
		}
	}
	w.tableOperands(st, c)
	return output{}
}

// packageManager judges what apt is told to run around its work.
func packageManager(w *walker, st *state, c *cmd) output {
	g := newGrammar("-o --option -c=r --config-file=r -t")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range p.values("-o", "--option") {
		key, _, ok := strings.Cut(v.prefix(), "=")
		if ok && strings.Contains(strings.ToLower(key), "invoke") {
			w.program(st.clone(), v.cut(len(key)+1), c.name+" -o")
		}
	}
	w.guessAll(st, c, p.rest)
	return output{}
}

// expect judges what a script starts: spawn, exec and system, a line each.
func expect(w *walker, st *state, c *cmd) output {
	g := newGrammar("-c -f=r -b=r posix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	texts := p.values("-c")
	if len(texts) == 0 && (len(p.rest) == 0 || p.rest[0].is("-")) {
		texts = inputLines(st.in)
	}
	for _, v := range texts {
		w.programText(c, v)
		for line := range strings.FieldsFuncSeq(v.text(), func(r rune) bool { return r == ';' || r == '\n' }) {
			name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch name {
			case "spawn", "exec", "system":
				args = strings.TrimLeft(args, " ")
				for strings.HasPrefix(args, "-") {
					_, args, _ = strings.Cut(args, " ")
				}
				if _, perr := parse(args); perr == nil {
					w.program(st.clone(), plain(args, v.pos), "expect "+name)
				}
			}
		}
	}
	w.guessAll(st, c, p.rest)
	return output{}
}

// lineEditor judges the commands ed reads.
func lineEditor(w *walker, st *state, c *cmd) output {
	p := newGrammar("-p --prompt").split(c.args)
	r := roleRead
	for _, v := range inputLines(st.in) {
		t := strings.TrimLeft(v.text(), "0123456789,$.%;' ")
		if rest, ok := strings.CutPrefix(t, "e !"); ok {
			w.program(st.clone(), plain(rest, v.pos), "ed !")
			continue
		}
		if strings.HasPrefix(t, "!") || strings.HasPrefix(t, "r !") || strings.HasPrefix(t, "w !") {
			w.program(st.clone(), plain(t[strings.IndexByte(t, '!')+1:], v.pos), "ed !")
			continue
		}
		if w.exFile(st, c, t, v) {
			r = roleWrite
		}
	}
	for _, x := range p.rest {
		if rest, ok := strings.CutPrefix(x.prefix(), "!"); ok {
			w.program(st.clone(), x.cut(len(x.prefix())-len(rest)), "ed !")
			continue
		}
		w.path(st, c, x, r)
	}
	return output{}
}

// dotenv judges what follows its options, or its "run".
func dotenv(w *walker, st *state, c *cmd) output {
	g := newGrammar("-e=r -f=r --file=r -v -c -p -q posix").without("-c")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	rest := p.rest
	if len(rest) > 0 && rest[0].is("run") {
		rest = newGrammar("posix").split(rest[1:]).rest
	}
	return w.run(st.clone(), rest, c.name)
}
