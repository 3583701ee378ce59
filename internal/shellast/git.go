package shellast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// git judges its global options, then the subcommand.
func git(w *walker, st *state, c *cmd) output {
	g := newGrammar("posix -C -c --git-dir=r --work-tree=r --namespace --config-env --super-prefix")
	p := g.split(c.args)
	w.optionPaths(st, c, g, p)
	w.everyTransport(st, c)
	w.gitEnviron(st, c)
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
	v.noForce = slices.ContainsFunc(p.values("-c"), cleansWithoutForce)
	v.judge()
	return output{}
}

// cleansWithoutForce reports whether a -c value lets git clean run without -f.
func cleansWithoutForce(x word) bool {
	key, value, ok := strings.Cut(strings.ToLower(x.text()), "=")
	return ok && key == "clean.requireforce" && slices.Contains([]string{"false", "no", "off", "0"}, value)
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
		if strings.HasPrefix(a.prefix(), "file:///") {
			w.path(st, c, a.cut(len("file://")), roleRead)
		}
	}
}

// runsConfig reports whether git runs the value of a configuration key.
func runsConfig(key string) bool {
	k := strings.ToLower(key)
	switch k {
	case "core.sshcommand", "core.pager", "core.editor", "core.fsmonitor", "core.askpass", "core.gitproxy", "core.alternaterefscommand",
		"diff.external", "sequence.editor", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "credential.helper",
		"interactive.difffilter", "uploadpack.packobjectshook", "man.viewer", "sendemail.smtpserver", "gc.recentobjectshook":
		return true
	}
	section, rest, _ := strings.Cut(k, ".")
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	switch section {
	case "alias", "pager":
		return true
	case "diff", "merge", "filter", "difftool", "mergetool", "browser", "man", "credential", "remote", "trailer", "submodule":
		switch section + " " + last {
		case "diff command", "diff textconv", "merge driver", "filter clean", "filter smudge", "filter process",
			"difftool cmd", "difftool path", "mergetool cmd", "mergetool path", "browser cmd", "browser path", "man cmd", "man path",
			"credential helper", "remote uploadpack", "remote receivepack", "trailer command", "trailer cmd", "submodule update":
			return true
		}
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

// gitEnviron judges configuration that comes in GIT_CONFIG_KEY_n and
// GIT_CONFIG_VALUE_n.
func (w *walker) gitEnviron(st *state, c *cmd) {
	for n := range 8 {
		k, v := st.environ(fmt.Sprint("GIT_CONFIG_KEY_", n)), st.environ(fmt.Sprint("GIT_CONFIG_VALUE_", n))
		if !k.known || !v.known {
			return
		}
		w.gitValue(st, k.text, plain(v.text, c.pos), nil)
	}
}

// gitVariable judges the configuration in GIT_CONFIG_PARAMETERS.
func (w *walker) gitVariable(st *state, x word) {
	words, ok := splitString(x)
	if !ok {
		w.code(x.cons, x.src, "the git configuration is not known before it runs", x.pos)
	}
	for _, v := range words {
		w.gitConfig(st, v, nil)
	}
}

// gitConfigEnv judges --config-env=KEY=VARIABLE.
func (w *walker) gitConfigEnv(st *state, x word) {
	i := strings.LastIndexByte(x.text(), '=')
	if i < 0 || !runsConfig(x.text()[:i]) {
		return
	}
	if v := st.environ(x.text()[i+1:]); v.known && !v.array {
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

	noForce bool // clean does not ask for -f
}

func (v *gitCall) judge() {
	spec := "-m --message -F=r --file=r --author --date --grep -S -G --since --until --after --before --format --pretty -n --max-count -x -L --config --exec -o=w --output=w --output-directory=w -b -B --orphan -c --upload-pack --receive-pack -u -O --open-files-in-pager --extcmd --source -s --pathspec-from-file=r --depth -j --jobs --reference=r --template=r --separate-git-dir=w --strategy -X --onto --reason --trailer --cleanup --fixup --squash"
	if v.verb == "config" {
		spec += " -f"
	}
	v.g = newGrammar(spec).without(v.flags()...)
	v.p = v.g.split(v.args)
	v.runs()
	v.destroys()
	v.paths()
}

// flags lists the options that take no value in this subcommand, though they
// do in others.
func (v *gitCall) flags() []string {
	out := make([]string, 0, 24)
	for _, o := range [...]struct{ name, verbs string }{ // the subcommands where they do take one
		{"-x", "rebase difftool"},
		{"-o", "clone format-patch archive"},
		{"-b", "checkout clone switch worktree init"},
		{"-B", "checkout worktree"},
		{"-c", "clone switch commit"},
		{"-u", "clone"},
		{"-s", "restore merge pull rebase"},
		{"-O", "diff log"},
		{"-n", "log"},
		{"-S", "log diff show"},
		{"-G", "log diff show"},
		{"-m", "commit tag merge stash notes branch"},
		{"-L", "log blame show annotate"},
		{"-F", "commit tag merge notes"},
		{"-j", "fetch clone submodule grep"},
		{"-X", "merge rebase pull cherry-pick revert"},
		{"--exec", "rebase push archive"},
		{"--config", "clone"},
	} {
		if wordIndex(o.verbs, v.verb) < 0 {
			out = append(out, o.name)
		}
	}
	return append(out, "--open-files-in-pager")
}

// runs judges what a subcommand hands to a shell.
func (v *gitCall) runs() {
	w, st := v.w, v.st
	for _, o := range v.p.opts {
		if o.has {
			v.runsOption(o)
		}
	}
	switch v.verb {
	case "grep":
		for _, a := range v.args {
			if t := a.prefix(); strings.HasPrefix(t, "-O") && len(t) > 2 {
				w.program(st.clone(), a.cut(2), "git grep -O")
			}
		}
	case "bisect":
		if i := slices.IndexFunc(v.args, func(a word) bool { return a.is("run") }); i >= 0 {
			w.run(st.clone(), v.args[i+1:], "git bisect run")
		}
	case "submodule":
		v.foreach()
	case "filter-branch":
		v.filterBranch()
	case "config":
		v.config()
	}
}

// foreach judges "git submodule foreach": its command starts at the first word
// that is no option.
func (v *gitCall) foreach() {
	i := slices.IndexFunc(v.args, func(a word) bool { return a.is("foreach") })
	if i < 0 {
		return
	}
	rest := v.args[i+1:]
	for len(rest) > 0 && rest[0].is("--recursive", "--quiet", "-q", "--") {
		rest = rest[1:]
	}
	if len(rest) > 0 {
		v.w.program(v.st.clone(), joined(rest), "git submodule foreach")
	}
}

// runsOption judges an option whose value git hands to a shell.
func (v *gitCall) runsOption(o option) {
	switch o.name {
	case "--upload-pack", "--receive-pack", "--open-files-in-pager", "--extcmd", "--exec", "-x":
		v.w.program(v.st.clone(), o.value, "git "+o.name)
	case "-u":
		v.w.program(v.st.clone(), o.value, "git --upload-pack")
	case "--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--parent-filter", "--commit-filter", "--tag-name-filter":
		v.w.program(v.st.clone(), o.value, "git filter-branch")
	case "-c", "--config":
		if v.verb == "clone" {
			v.w.gitConfig(v.st, o.value, nil)
		}
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
	force := v.p.has("-f") || v.long("--force", 4)
	sub := ""
	switch v.verb {
	case "push":
		v.push()
	case "checkout":
		sub = v.checkout(force)
	case "filter-branch", "filter-repo":
		sub = v.verb
	case "stash", "worktree", "reflog":
		sub = v.destroysIn(force)
	default:
		sub = v.destroysBy(force)
	}
	if sub != "" {
		v.note(call.ActGit, sub)
	}
}

// destroysIn names the destructive ones of the commands that have commands of
// their own.
func (v *gitCall) destroysIn(force bool) string {
	if len(v.p.rest) == 0 {
		return ""
	}
	switch sub := v.verb + " " + v.p.rest[0].text(); sub {
	case "stash drop", "stash clear", "reflog expire", "reflog delete":
		return sub
	case "worktree remove":
		return pick(force, sub+" -f")
	}
	return ""
}

// destroysBy names the option that makes a command destructive.
func (v *gitCall) destroysBy(force bool) string {
	switch v.verb {
	case "reset":
		return pick(v.long("--hard", 4), "reset --hard")
	case "clean":
		return pick((force || v.noForce) && !v.p.has("-n") && !v.long("--dry-run", 4), "clean -f")
	case "gc":
		now := slices.ContainsFunc(v.p.opts, func(o option) bool { return o.name == "--prune" && o.has && o.value.is("now", "all") })
		return pick(now, "gc --prune=now")
	}
	return v.destroysNames(force)
}

// destroysNames judges the commands that throw away what they are given.
func (v *gitCall) destroysNames(force bool) string {
	switch v.verb {
	case "restore":
		staged := v.p.has("-S") || v.long("--staged", 5)
		return pick(!staged || v.p.has("-W") || v.long("--worktree", 4), "restore")
	case "switch":
		return pick(force || v.long("--discard-changes", 4), "switch --discard-changes")
	case "branch":
		return pick(v.p.has("-D") || force && (v.p.has("-d") || v.long("--delete", 5)), "branch -D")
	case "rm":
		return pick(v.p.has("-r") && !v.long("--cached", 4), "rm -r")
	case "update-ref":
		return pick(v.p.has("-d") || v.long("--delete", 5), "update-ref -d")
	}
	return ""
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
	files := v.p.has("--ours", "--theirs", "--pathspec-from-file")
	for i, x := range v.p.rest {
		if files || i > 0 || v.isFile(x) {
			return "checkout " + x.text()
		}
	}
	if v.p.has("--pathspec-from-file") {
		return "checkout --pathspec-from-file"
	}
	return ""
}

// isFile reports whether an operand of checkout is a file to be replaced, not
// a branch.
func (v *gitCall) isFile(x word) bool {
	t := x.text()
	switch {
	case t == ".", strings.HasPrefix(t, "./"), strings.HasPrefix(t, ":"):
		return true
	case t == "", t == "-", !x.known():
		return false
	}
	p, ok := v.w.resolvePath(v.st, v.c, x, t, roleTest)
	return ok && pathExists(p.Path)
}

// paths counts operands that are paths. Revisions are not: a word must look
// like a path.
func (v *gitCall) paths() {
	w, st, c, rest := v.w, v.st, v.c, v.p.rest
	w.optionPaths(st, c, v.g, v.p)
	switch v.verb {
	case "commit", "tag", "notes", "config", "branch", "switch", "bisect", "submodule", "filter-branch":
	case "clone", "init":
		v.newRepository()
	case "worktree":
		if len(rest) > 1 && rest[0].is("add", "move") {
			w.path(st, c, rest[1], roleInto)
		}
	case "mv":
		_ = transfer(w, st, &cmd{name: "git mv", pos: c.pos, args: rest}, roleMove, roleLink)
	case "rm":
		if !v.long("--cached", 4) {
			w.roles(st, c, []string{"d*"}, rest)
		}
	case "bundle":
		w.roles(st, c, []string{"-", "w"}, rest)
	default:
		w.roles(st, c, []string{"g*"}, rest)
	}
}

func (v *gitCall) newRepository() {
	pattern := []string{"i"}
	switch {
	case v.verb == "clone":
		pattern = []string{"g", "i"}
	case len(v.p.rest) == 0:
		v.w.implied(v.st, v.c, roleInto)
	}
	v.w.roles(v.st, v.c, pattern, v.p.rest)
}
