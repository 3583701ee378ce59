package shellast

import (
	"slices"
	"strings"
)

// npx judges npx -c and npm exec -c.
func npx(w *walker, st *state, c *cmd) output {
	args := c.args
	if c.name == "npm" || c.name == "pnpm" {
		verb, rest := w.npmVerb(c)
		switch {
		case verb.is("exec", "x", "dlx"):
			args = rest
		case verb.is("run", "run-script", "test", "t", "start", "stop", "ls", "list", "outdated", "audit", "view", "info", "explain", "why", "bin", "root", "pkg", "config", "version", "help"):
			w.npmReads(st, c)
			return output{}
		default:
			w.tableOperands(st, c)
			return output{}
		}
	}
	p := newGrammar("-c --call -p --package -w --workspace posix").split(args)
	for _, v := range p.values("-c", "--call") {
		w.program(st.clone(), v, c.name+" -c")
	}
	if len(p.values("-c", "--call")) == 0 && len(p.rest) > 0 {
		if len(p.rest[0].cons) > 0 && !p.rest[0].known() {
			w.code(p.rest[0].cons, p.rest[0].src, "the program word is not known before it runs", p.rest[0].pos)
		}
		if name := p.rest[0]; name.known() && !strings.Contains(name.text(), "/") {
			name, _, _ := strings.Cut(name.text(), "@")
			return w.run(st.clone(), append([]word{plain(name, p.rest[0].pos)}, p.rest[1:]...), c.name)
		}
		w.guessAll(st, c, p.rest[1:])
	}
	return output{}
}

// npmVerb is the command among the words of npm, and what follows it.
func (w *walker) npmVerb(c *cmd) (verb word, rest []word) {
	g := w.a.tab().rows["npm"].g
	g.posix = true
	p := g.split(c.args)
	if len(p.rest) == 0 {
		return word{}, nil
	}
	return p.rest[0], p.rest[1:]
}

// npmReads judges the commands that change nothing in the folder they are told
// to work in.
func (w *walker) npmReads(st *state, c *cmd) {
	e := w.a.tab().rows["npm"]
	p := e.g.split(c.args)
	for i, o := range p.opts {
		if r, _ := e.g.role(o.name); o.has && r == roleInto {
			w.path(st, c, o.value, roleRead)
			p.opts[i].has = false
		}
	}
	w.optionPaths(st, c, e.g, p)
	w.roles(st, c, e.operands, p.rest)
}

// pythonModule finds the module after -m, and what is given to it.
func pythonModule(args []word) (module string, rest []word) {
	for i := 0; i < len(args); i++ {
		t := args[i].prefix()
		switch {
		case t == "-m" && i+1 < len(args):
			return args[i+1].text(), args[i+2:]
		case t == "-W" || t == "-X":
			i++
		case len(t) < 2 || t[0] != '-' || t == "-c" || t == "--":
			return "", nil
		}
	}
	return "", nil
}

// runModule judges the modules that are programs of their own.
func (w *walker) runModule(st *state, c *cmd) bool {
	module, rest := pythonModule(c.args)
	switch module {
	case "pip", "pytest", "venv", "virtualenv", "mypy", "black", "ruff", "flake8", "pylint", "isort", "tox":
		w.tableOperands(st, &cmd{name: module, args: rest, pos: c.pos})
		return true
	}
	return false
}

// fd judges what fd runs for every file.
func fd(w *walker, st *state, c *cmd) output {
	i := slices.IndexFunc(c.args, func(a word) bool { return a.is("-x", "--exec", "-X", "--exec-batch") })
	if i < 0 {
		w.guessAll(st, c, c.args)
		return output{}
	}
	w.guessAll(st, c, c.args[:i])
	var words []word
	for _, x := range c.args[i+1:] {
		if x.is(";") {
			break
		}
		words = append(words, withReplacements(x))
	}
	sub := st.clone()
	sub.in = input{}
	w.run(sub, words, "fd -x")
	return output{}
}

// hyperfine judges the commands it measures.
func hyperfine(w *walker, st *state, c *cmd) output {
	g := newGrammar("-w --warmup -r --runs -m --min-runs -M --max-runs -p --prepare -c --cleanup -s --setup -S --shell -n --command-name -u --time-unit --style --sort --export-json=w --export-csv=w --export-markdown=w --output=- --input=r")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	for _, v := range slices.Concat(p.values("-p", "--prepare", "-c", "--cleanup", "-s", "--setup"), p.rest) {
		w.program(st.clone(), v, "hyperfine")
	}
	return output{}
}

// at judges what it is told to run later.
func at(w *walker, st *state, c *cmd) output {
	g := newGrammar("-f=r -q -t")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	if len(p.values("-f")) == 0 && !p.has("-l", "-d", "-r", "-c", "-V") {
		w.stdinProgram(st, c.name)
	}
	return output{}
}
