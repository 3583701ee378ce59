package shellast

import (
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// git judges its global options, then the subcommand.
func git(w *walker, st *state, c *cmd) output {
	g := newGrammar("posix -C -c --git-dir=r --work-tree=r --namespace --config-env --super-prefix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	w.everyTransport(st, c)
	sub := st
	aliases := map[string]word{}
	for _, o := range p.opts {
		switch {
		case o.name == "-C" && o.has:
			sub = sub.clone()
			w.path(sub, c, o.value, roleRead)
			if o.value.known() {
				sub.chdir(o.value.text(), nil)
			} else {
				sub.chdir("", nil)
			}
		case o.name == "-c" && o.has:
			w.gitConfig(sub, o.value, aliases)
		case o.name == "--config-env" && o.has:
			w.gitConfigEnv(sub, o.value)
		case o.name == "--exec-path" && o.has:
			w.guess(sub, c, o.value)
		}
	}
	if len(p.rest) == 0 {
		return output{}
	}
	verb := p.rest[0]
	if !verb.known() {
		w.code(verb.cons, verb.src, "the git command is not known before it runs", verb.pos)
		return output{}
	}
	w.gitHere(sub, c)
	if a, ok := aliases[verb.text()]; ok {
		w.program(sub.clone(), prefixed("git ", a), "git alias")
		return output{}
	}
	v := &gitCall{w: w, st: sub, c: c, verb: verb.text(), args: p.rest[1:], pos: c.pos}
	v.judge()
	return output{}
}

func prefixed(text string, x word) word {
	out := x
	out.segs = append([]seg{{text: text, known: true, quoted: true}}, x.segs...)
	return out
}

// gitHere counts the repository as read when it is a place that needs leave.
func (w *walker) gitHere(st *state, c *cmd) {
	if st.cwd == "" {
		return
	}
	if p := w.a.r.Resolve(st.cwd, ".", true); p.Path != "" && !p.Place.Readable() {
		w.implied(st, c, roleRead)
	}
}

// everyTransport judges ext:: addresses, wherever they stand.
func (w *walker) everyTransport(st *state, c *cmd) {
	for _, a := range c.args {
		if i := strings.Index(a.prefix(), "ext::"); i >= 0 {
			w.program(st.clone(), a.cut(i+5), "git ext::")
		}
	}
}

// runsConfig reports whether git runs the value of a configuration key.
func runsConfig(key string) bool {
	k := strings.ToLower(key)
	switch k {
	case "core.sshcommand", "core.pager", "core.editor", "core.fsmonitor", "core.askpass", "core.gitproxy", "core.alternaterefscommand",
		"diff.external", "sequence.editor", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "credential.helper",
		"interactive.difffilter", "uploadpack.packobjectshook", "ssh.variant", "man.viewer", "sendemail.smtpserver", "gc.recentobjectshook":
		return k != "ssh.variant"
	}
	section, rest, _ := strings.Cut(k, ".")
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	switch section {
	case "alias", "pager":
		return true
	case "diff":
		return last == "command" || last == "textconv"
	case "merge":
		return last == "driver"
	case "filter":
		return last == "clean" || last == "smudge" || last == "process"
	case "difftool", "mergetool", "browser", "man":
		return last == "cmd" || last == "path"
	case "credential":
		return last == "helper"
	case "remote":
		return last == "uploadpack" || last == "receivepack"
	case "trailer":
		return last == "command" || last == "cmd"
	case "submodule":
		return last == "update"
	}
	return false
}

// gitConfig judges -c KEY=VALUE.
func (w *walker) gitConfig(st *state, x word, aliases map[string]word) {
	key, _, ok := strings.Cut(x.prefix(), "=")
	if !ok {
		if !x.known() {
			w.code(x.cons, x.src, "the git configuration is not known before it runs", x.pos)
		}
		return
	}
	w.gitValue(st, key, x.cut(len(key)+1), aliases)
}

func (w *walker) gitValue(st *state, key string, v word, aliases map[string]word) {
	if !runsConfig(key) {
		return
	}
	k := strings.ToLower(key)
	t := v.prefix()
	name, isAlias := strings.CutPrefix(k, "alias.")
	switch {
	case v.is("", "true", "false"):
	case isAlias && !strings.HasPrefix(t, "!"):
		if aliases != nil {
			aliases[name] = v
		} else {
			w.program(st.clone(), prefixed("git ", v), "git alias")
		}
	case k == "submodule.update" || strings.HasSuffix(k, ".update"):
		if strings.HasPrefix(t, "!") {
			w.program(st.clone(), v.cut(1), "git "+key)
		}
	case strings.HasSuffix(k, ".helper") && !strings.HasPrefix(t, "!"):
		if strings.HasPrefix(t, "/") || strings.HasPrefix(t, ".") {
			w.program(st.clone(), v, "git "+key)
		}
	default:
		if strings.HasPrefix(t, "!") {
			v = v.cut(1)
		}
		w.program(st.clone(), v, "git "+key)
	}
}

// gitConfigEnv judges --config-env=KEY=VARIABLE.
func (w *walker) gitConfigEnv(st *state, x word) {
	i := strings.LastIndexByte(x.text(), '=')
	if i < 0 || !runsConfig(x.text()[:i]) {
		return
	}
	if v := st.get(x.text()[i+1:], ""); v.known && !v.array {
		w.gitValue(st, x.text()[:i], plain(v.text, x.pos), nil)
		return
	}
	w.code(x.cons, x.src, "git runs the value of a variable nobody knows", x.pos)
}

// gitCall is one git subcommand.
type gitCall struct {
	w    *walker
	st   *state
	c    *cmd
	verb string
	args []word
	pos  call.Pos
	p    parsed
	g    grammar
}

func (v *gitCall) judge() {
	spec := "-m --message -F=r --file=r --author --date --grep -S -G --since --until --after --before --format --pretty -n --max-count -x --exec -o=w --output=w --output-directory=w -b -B --orphan -c --upload-pack --receive-pack -u -O --open-files-in-pager --extcmd --source -s --pathspec-from-file=r --depth -j --jobs --reference=r --template=r --separate-git-dir=w --strategy -X --onto --reason --trailer --cleanup --fixup --squash"
	v.g = newGrammar(spec)
	for _, drop := range v.flags() {
		delete(v.g.valued, drop)
	}
	v.p = v.g.split(v.args)
	v.runs()
	v.destroys()
	v.paths()
}

// flags lists the options that take no value in this subcommand, though they
// do in others.
func (v *gitCall) flags() []string {
	out := []string{}
	keep := map[string]string{
		"-x": "rebase difftool", "-o": "clone format-patch archive", "-b": "checkout clone switch worktree init", "-B": "checkout worktree", "-c": "clone switch commit",
		"-u": "clone", "-s": "restore merge pull rebase", "-O": "diff log", "-n": "log", "-S": "log diff show", "-G": "log diff show", "-m": "commit tag merge stash notes branch",
		"-F": "commit tag merge notes", "-j": "fetch clone submodule grep", "-X": "merge rebase pull cherry-pick revert", "--exec": "rebase push archive",
	}
	for opt, verbs := range keep {
		if !strings.Contains(" "+verbs+" ", " "+v.verb+" ") {
			out = append(out, opt)
		}
	}
	return append(out, "--open-files-in-pager")
}

// runs judges what a subcommand hands to a shell.
func (v *gitCall) runs() {
	w, st := v.w, v.st
	for _, o := range v.p.opts {
		switch o.name {
		case "--upload-pack", "--receive-pack", "--open-files-in-pager", "--extcmd", "--exec", "-x":
			if o.has && !(o.name == "-x" && v.verb != "rebase" && v.verb != "difftool") {
				w.program(st.clone(), o.value, "git "+o.name)
			}
		case "-u":
			if o.has {
				w.program(st.clone(), o.value, "git --upload-pack")
			}
		case "--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--parent-filter", "--commit-filter", "--tag-name-filter":
			if o.has {
				w.program(st.clone(), o.value, "git filter-branch")
			}
		case "-c", "--config":
			if o.has && v.verb == "clone" {
				w.gitConfig(st, o.value, nil)
			}
		}
	}
	if v.verb == "grep" {
		for _, a := range v.args {
			if t := a.prefix(); strings.HasPrefix(t, "-O") && len(t) > 2 {
				w.program(st.clone(), a.cut(2), "git grep -O")
			}
		}
	}
	rest := v.p.rest
	switch {
	case v.verb == "bisect" && len(rest) > 1 && rest[0].is("run"):
		for i, a := range v.args {
			if a.is("run") {
				w.run(st.clone(), v.args[i+1:], "git bisect run")
				break
			}
		}
	case v.verb == "submodule" && len(rest) > 1 && rest[0].is("foreach"):
		w.program(st.clone(), joined(rest[1:]), "git submodule foreach")
	case v.verb == "filter-branch":
		v.filterBranch()
	case v.verb == "config":
		v.config()
	}
}

// filterBranch judges filters given as separate words.
func (v *gitCall) filterBranch() {
	for i, a := range v.args {
		if t := a.text(); strings.HasPrefix(t, "--") && strings.HasSuffix(t, "-filter") && i+1 < len(v.args) {
			v.w.program(v.st.clone(), v.args[i+1], "git filter-branch")
		}
	}
}

// config judges "git config KEY VALUE" for a key whose value git runs.
func (v *gitCall) config() {
	rest := v.p.rest
	if len(rest) > 0 && rest[0].is("set", "add") {
		rest = rest[1:]
	}
	for i, a := range rest {
		if a.known() && strings.Contains(a.text(), ".") && i+1 < len(rest) {
			v.w.gitValue(v.st, a.text(), rest[i+1], nil)
			break
		}
	}
	if v.p.has("--global", "--system") && len(rest) > 1 {
		home := v.st.get("HOME", v.w.a.r.Home())
		target := "/etc/gitconfig"
		if v.p.has("--global") && home.known {
			target = home.text + "/.gitconfig"
		}
		v.w.path(v.st, v.c, plain(target, v.pos), roleWrite)
	}
	for _, f := range v.p.values("-f", "--file") {
		if len(rest) > 1 {
			v.w.path(v.st, v.c, f, roleWrite)
		}
	}
}

func (v *gitCall) note(kind call.ActKind, sub string) {
	v.w.act(call.Act{Kind: kind, Name: "git", Sub: sub, Text: argText("git", v.c.args), Pos: v.pos})
}

func (v *gitCall) long(name string, least int) bool {
	for _, o := range v.p.opts {
		if abbreviates(o.name, name, least) {
			return true
		}
	}
	return false
}

// destroys notes what throws work away.
func (v *gitCall) destroys() {
	first := ""
	if len(v.p.rest) > 0 {
		first = v.p.rest[0].text()
	}
	force := v.p.has("-f") || v.long("--force", 4)
	sub := ""
	switch v.verb {
	case "push":
		v.push()
	case "reset":
		sub = pick(v.long("--hard", 4), "reset --hard")
	case "clean":
		sub = pick(force && !v.p.has("-n") && !v.long("--dry-run", 4), "clean -f")
	case "checkout":
		sub = v.checkout(force)
	case "restore":
		staged := v.p.has("-S") || v.long("--staged", 5)
		sub = pick(!staged || v.p.has("-W") || v.long("--worktree", 4), "restore")
	case "switch":
		sub = pick(force || v.long("--discard-changes", 4), "switch --discard-changes")
	case "branch":
		sub = pick(v.p.has("-D") || force && (v.p.has("-d") || v.long("--delete", 5)), "branch -D")
	case "rm":
		sub = pick(v.p.has("-r") && !v.long("--cached", 4), "rm -r")
	case "stash":
		sub = pick(first == "drop" || first == "clear", "stash "+first)
	case "worktree":
		sub = pick(first == "remove" && force, "worktree remove -f")
	case "filter-branch", "filter-repo":
		sub = v.verb
	case "reflog":
		sub = pick(first == "expire" || first == "delete", "reflog "+first)
	case "gc":
		for _, o := range v.p.opts {
			if o.name == "--prune" && o.has && o.value.is("now", "all") {
				sub = "gc --prune=now"
			}
		}
	case "update-ref":
		sub = pick(v.p.has("-d") || v.long("--delete", 5), "update-ref -d")
	}
	if sub != "" {
		v.note(call.ActGit, sub)
	}
}

func pick(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

func (v *gitCall) push() {
	for _, o := range v.p.opts {
		switch {
		case o.name == "-f", o.name == "-d", abbreviates(o.name, "--mirror", 4), abbreviates(o.name, "--delete", 5), abbreviates(o.name, "--prune", 6),
			abbreviates(o.name, "--force", 4), abbreviates(o.name, "--force-with-lease", 8) && !abbreviates(o.name, "--force-if-includes", 9):
			v.note(call.ActPush, o.name)
		}
	}
	for i, x := range v.p.rest {
		if !x.known() {
			v.w.unknownOperand(v.c, x)
			continue
		}
		if t := x.text(); i > 0 && len(t) > 1 && (t[0] == '+' || t[0] == ':') {
			v.note(call.ActPush, t)
		}
	}
}

// checkout tells what replaces files from what switches branches.
func (v *gitCall) checkout(force bool) string {
	if force {
		return "checkout -f"
	}
	for i, a := range v.args {
		if a.is("--") && i+1 < len(v.args) {
			return "checkout --"
		}
	}
	if v.p.has("-b", "-B", "--orphan", "-t", "--track", "--detach", "-l") {
		return ""
	}
	for i, x := range v.p.rest {
		t := x.text()
		if i > 0 || t == "." || strings.HasPrefix(t, "./") || strings.HasPrefix(t, ":") || v.p.has("--ours", "--theirs") || len(v.p.values("--pathspec-from-file")) > 0 {
			return "checkout " + t
		}
		if p, ok := v.w.resolvePath(v.st, v.c, x, t, roleTest); ok && x.known() && t != "" && t != "-" && pathExists(p.Path) {
			return "checkout " + t
		}
	}
	return ""
}

// paths counts operands that are paths. Revisions are not: a word must look
// like a path.
func (v *gitCall) paths() {
	w, st, c, rest := v.w, v.st, v.c, v.p.rest
	w.optionPaths(st, c, v.g, v.p)
	switch v.verb {
	case "commit", "tag", "notes", "config", "branch", "switch", "remote":
		if v.verb != "remote" {
			return
		}
	case "clone":
		for i, x := range rest {
			switch {
			case i == 0:
				w.guess(st, c, x)
			case i == 1:
				w.path(st, c, x, roleInto)
			}
		}
		return
	case "init":
		for _, x := range rest {
			w.path(st, c, x, roleInto)
		}
		return
	case "worktree":
		if len(rest) > 1 && rest[0].is("add", "move") {
			w.path(st, c, rest[len(rest[:2])-1], roleInto)
		}
		return
	case "mv":
		_ = transfer(w, st, &cmd{name: "git mv", pos: c.pos, args: rest}, roleMove, roleLink)
		return
	case "rm":
		if !v.long("--cached", 4) {
			for _, x := range rest {
				w.path(st, c, x, roleDelete)
			}
		}
		return
	case "bundle":
		if len(rest) > 1 && rest[0].is("create") {
			w.path(st, c, rest[1], roleWrite)
			return
		}
	case "bisect", "submodule", "filter-branch":
		return
	}
	for _, x := range rest {
		w.guess(st, c, x)
	}
}
