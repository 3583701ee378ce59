package shellast

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// role is what a command does with a path.
type role uint8

const (
	roleNone role = iota
	roleRead
	roleReadAll // and everything below
	roleTest    // only whether it exists, or its own attributes
	roleWrite
	roleRedirect
	roleLink // writes the name itself, not what a link there leads to
	roleDelete
	roleDeleteAll
	roleMove
	roleMode
	roleModeAll
	roleGuess // the rule for unknown commands
	roleInto  // a folder that is written into
)

// roleOf reads the letter used in the tables.
func roleOf(c byte) role {
	switch c {
	case 'r':
		return roleRead
	case 'R':
		return roleReadAll
	case 't':
		return roleTest
	case 'w':
		return roleWrite
	case 'l':
		return roleLink
	case 'd':
		return roleDelete
	case 'D':
		return roleDeleteAll
	case 'm':
		return roleMove
	case 'o':
		return roleMode
	case 'O':
		return roleModeAll
	case 'g':
		return roleGuess
	case 'i':
		return roleInto
	}
	return roleNone
}

func (r role) op() string {
	switch r {
	case roleRead, roleReadAll, roleTest:
		return "read"
	case roleWrite, roleInto:
		return "write"
	case roleRedirect:
		return "redirect"
	case roleLink:
		return "link"
	case roleDelete, roleDeleteAll:
		return "delete"
	case roleMove:
		return "move"
	case roleMode, roleModeAll:
		return "mode"
	case roleNone, roleGuess:
		return ""
	}
	return ""
}

func (r role) writes() bool { return r.op() != "" && r.op() != "read" }

// follows reports whether a link in the last component is followed.
func (r role) follows() bool {
	return r != roleLink && r != roleDelete && r != roleDeleteAll && r != roleMove
}

func (r role) recursive() bool {
	return r == roleReadAll || r == roleDeleteAll || r == roleModeAll
}

// fixed is the part of a word that is known to be a path: all of it, or the
// folder before a pattern or an unknown part. whole is false for a folder.
func fixed(x word) (text string, whole, ok bool) {
	if x.known() && !x.glob() {
		return x.text(), true, true
	}
	var b strings.Builder
	for _, s := range x.segs {
		if !s.known {
			break
		}
		if i := globIndex(s.text); i >= 0 && !s.quoted {
			b.WriteString(s.text[:i])
			break
		}
		b.WriteString(s.text)
	}
	pre := b.String()
	i := strings.LastIndexByte(pre, '/')
	switch {
	case i > 0:
		return pre[:i], false, true
	case i == 0:
		return "/", false, true
	case x.known():
		return ".", false, true
	}
	return "", false, false
}

// through makes the folder a pattern is in one that is gone through, also when
// it is a link.
func through(text string, whole bool) string {
	if whole || strings.HasSuffix(text, "/") {
		return text
	}
	return text + "/"
}

// path adds a word to the reads or writes. What is not known is left to the
// kernel.
func (w *walker) path(st *state, c *cmd, x word, r role) {
	if r == roleGuess {
		w.guess(st, c, x)
		return
	}
	if r == roleNone {
		return
	}
	if vs := x.variants(); len(vs) > 0 {
		w.open(c, x, r)
		for _, v := range vs {
			w.path(st, c, v, r)
		}
		return
	}
	text, whole, ok := fixed(x)
	if !x.known() || ok && st.cwd == "" && !strings.HasPrefix(text, "/") {
		w.open(c, x, r)
	}
	if !ok || text == "" {
		return
	}
	text = through(text, whole)
	p, ok := w.resolvePath(st, c, x, text, r)
	if !ok {
		return
	}
	if !whole {
		w.folder(st, c, x, &p, r)
	}
	w.record(p, r)
}

// folder takes off what holds for the very folder when only names in it are
// meant, and adds what a pattern may name there.
func (w *walker) folder(st *state, c *cmd, x word, p *call.Path, r role) {
	p.Root = false
	if p.Protected == ".git" && !r.recursive() {
		p.Protected = ""
	}
	if r != roleTest { // a listing of names is not a secret
		w.matches(st, c, x, r)
	}
}

// open notes a word that names a path nobody knows before it runs. The kernel
// holds what it leads to; rules over paths have to know that there is one.
func (w *walker) open(c *cmd, x word, r role) {
	if x.number() && !x.known() || x.slot && x.prefix() != "" && w.slotted(x) {
		return // a number, or what find meets below a folder that counts as read
	}
	u := call.Unknown{Text: x.src, By: c.name, Op: r.op(), Pos: x.pos}
	switch {
	case r == roleTest:
		u.Op, u.Why = "test", "the path is not known before "+c.name+" runs"
	case u.Op == "":
		u.Why = "a word that may be a path is not known before " + c.name + " runs"
	case c.name == "redirect":
		u.Why = "the path of the redirection is not known before it runs"
	default:
		u.Why = "the path is not known before " + c.name + " runs"
	}
	w.unknown(u)
}

// unknown adds to what is not known, each once.
func (w *walker) unknown(u call.Unknown) {
	if len(w.f.Unknown) < maxCommands && !slices.Contains(w.f.Unknown, u) {
		w.f.Unknown = append(w.f.Unknown, u)
	}
}

func (w *walker) record(p call.Path, r role) {
	if r.writes() {
		w.f.Writes = append(w.f.Writes, p)
		return
	}
	w.f.Reads = append(w.f.Reads, p)
}

// dotted keeps a tilde that is left in a word from being a home: those that bash
// expands were expanded already.
func dotted(text string) string {
	if strings.HasPrefix(text, "~") {
		return "./" + text
	}
	return text
}

func (w *walker) resolvePath(st *state, c *cmd, x word, text string, r role) (call.Path, bool) {
	if !strings.HasPrefix(text, "/") {
		if st.cwd == "" {
			return call.Path{}, false
		}
	}
	p := w.resolveAt(st.cwd, dotted(text), r.follows() || strings.HasSuffix(text, "/"))
	if p.Path == "" {
		return call.Path{}, false
	}
	p.Text, p.By, p.Op, p.Pos = x.src, c.name, r.op(), x.pos
	p.Recursive = r.recursive()
	p.Test = r == roleTest
	return p, true
}

// matches adds what a pattern may name among the secrets and the protected
// names: the fixed part alone would let them pass.
func (w *walker) matches(st *state, c *cmd, x word, r role) {
	if !x.known() || st.cwd == "" {
		return
	}
	pattern := x.text()
	if !strings.HasPrefix(pattern, "/") {
		pattern = st.cwd + "/" + pattern
	}
	pattern = path.Clean(pattern)
	if !r.writes() {
		for _, place := range w.secretsAt(literalFolder(pattern)) {
			w.match(c, x, r, pattern, place)
		}
		for _, place := range [...]string{
			"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/passwd", "/etc/group", "/root",
			"/proc/4000000/environ", "/proc/2/environ", "/proc/4000000/mem", "/proc/2/mem", // of any other process
			"/proc/4000000/maps", "/proc/2/maps", "/proc/4000000/fd", "/proc/2/fd",
		} {
			w.match(c, x, r, pattern, place)
		}
		return
	}
	dir, _, _ := fixed(x)
	base := w.a.r.Resolve(st.cwd, dir, true).Path
	for _, n := range [...]string{
		".git", ".git/hooks", ".git/config", ".husky", ".mcp.json", ".vscode", ".idea", ".devcontainer", ".claude",
		".cursor", ".codex", ".envrc", "hooks", "config",
	} {
		w.match(c, x, r, pattern, cleanJoin(base, n))
	}
}

// match adds one place if the pattern may name it and it is secret or
// protected.
func (w *walker) match(c *cmd, x word, r role, pattern, place string) {
	if !matchesGlob(pattern, place) {
		return
	}
	p := w.a.r.Resolve("/", place, r.follows())
	if p.Secret == "" && p.Protected == "" || r.writes() && !pathExists(place) {
		return
	}
	p.Text, p.By, p.Op, p.Pos, p.Recursive = x.src, c.name, r.op(), x.pos, r.recursive()
	w.record(p, r)
}

// literalFolder is the folder that everything a pattern names lies in.
func literalFolder(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		pattern = pattern[:i]
	}
	if i := strings.LastIndexByte(pattern, '/'); i > 0 {
		return pattern[:i]
	}
	return "/"
}

// secretsAt lists the secret places that a pattern below a folder may reach.
func (w *walker) secretsAt(dir string) []string {
	if w.common.secretsAt != dir {
		w.common.secretsAt, w.common.secrets = dir, w.a.r.SecretsAt(dir)
	}
	return w.common.secrets
}

// matchesGlob reports whether a shell pattern names a path, or something below
// it. A wildcard matches a leading dot only when it is written.
func matchesGlob(pattern, p string) bool {
	for {
		want, restWant, moreWant := strings.Cut(pattern, "/")
		have, restHave, moreHave := strings.Cut(p, "/")
		if strings.HasPrefix(have, ".") && !strings.HasPrefix(want, ".") {
			return false
		}
		if want != have || strings.ContainsAny(want, `*?[\`) {
			if ok, err := path.Match(strings.ReplaceAll(want, "[!", "[^"), have); err != nil || !ok {
				return false
			}
		}
		switch {
		case !moreHave:
			return true
		case !moreWant:
			return false
		}
		pattern, p = restWant, restHave
	}
}

func pathExists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// implied adds the current directory that a command reads unasked.
func (w *walker) implied(st *state, c *cmd, r role) {
	if st.cwd == "" {
		w.open(c, word{src: ".", pos: c.pos}, r)
		return
	}
	p := w.a.r.Resolve(st.cwd, ".", true)
	if p.Path == "" {
		return
	}
	p.Text, p.By, p.Op, p.Pos, p.ImplicitBy, p.Recursive = ".", c.name, r.op(), c.pos, c.name, r.recursive()
	w.record(p, r)
}

// into judges files that are put into a destination: when that is a folder, the
// names in it count.
func (w *walker) into(st *state, c *cmd, dest word, sources []word, r role, isDir bool) {
	w.path(st, c, dest, r)
	text, whole, ok := fixed(dest)
	if !ok || !whole || st.cwd == "" && !strings.HasPrefix(text, "/") {
		return
	}
	p := w.a.r.Resolve(st.cwd, text, true)
	if !isDir && len(sources) < 2 && !strings.HasSuffix(text, "/") && !isFolder(p.Path) {
		return
	}
	for _, s := range sources {
		name, whole, ok := fixed(s)
		if !ok || !whole {
			continue
		}
		switch name = path.Base(path.Clean(name)); name {
		case ".", "..", "/":
		default:
			if q, ok := w.resolvePath(st, c, dest, p.Path+"/"+name, r); ok {
				w.record(q, r)
			}
		}
	}
}

// leadTo notes that the names a command makes lead to its sources: a link to
// what it names, a copy to what it was made of.
func (w *walker) leadTo(st *state, names map[string]string, dest word, sources []word, relative bool) map[string]string {
	text, whole, ok := fixed(dest)
	if !ok || !whole || st.cwd == "" || len(sources)+len(names) > maxCandidates {
		return names
	}
	at := absolute(st.cwd, text)
	isDir := strings.HasSuffix(text, "/") || len(sources) > 1 || isFolder(w.resolveAt("/", at, true).Path)
	for _, s := range sources {
		from, whole, ok := fixed(s)
		if !ok || !whole {
			continue
		}
		name, base := at, st.cwd
		if isDir {
			name = cleanJoin(at, path.Base(from))
		}
		if relative {
			base = path.Dir(name) // a symbolic link is read from where it lies
		}
		if from = absolute(base, from); from == name {
			continue
		}
		if names == nil {
			names = map[string]string{}
		}
		names[name] = from
	}
	return names
}

func absolute(dir, text string) string {
	if strings.HasPrefix(text, "/") {
		return path.Clean(text)
	}
	return cleanJoin(dir, text)
}

// linked follows the links that this command made before.
func (w *walker) linked(cwd, text string, follow bool) string {
	if len(w.common.links) == 0 || cwd == "" && !strings.HasPrefix(text, "/") {
		return text
	}
	at := absolute(cwd, text)
	for range 8 {
		next := at
		for name, to := range w.common.links {
			if rest, ok := strings.CutPrefix(at, name); ok && (rest == "" && follow || strings.HasPrefix(rest, "/")) {
				next = path.Clean(to + rest)
				break
			}
		}
		if next == at {
			break
		}
		at, text = next, next
	}
	return text
}

// resolveAt resolves a path on disk, and through the links this command made.
func (w *walker) resolveAt(cwd, text string, follow bool) call.Path {
	return w.a.r.Resolve(cwd, w.linked(cwd, text, follow), follow)
}

func isFile(p string) bool {
	info, err := os.Stat(p)
	return err == nil && !info.IsDir()
}

func isFolder(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// guess applies the rule for commands nobody has a row for: a word is a path
// when it is absolute, starts with ./ ../ ~, or holds a slash and exists.
func (w *walker) guess(st *state, c *cmd, x word) {
	w.guessAs(st, c, x, roleRead)
}

func (w *walker) guessAs(st *state, c *cmd, x word, r role) {
	if vs := x.variants(); len(vs) > 0 {
		w.open(c, x, roleGuess)
		for _, v := range vs {
			v.src = v.text()
			w.guessAs(st, c, v, r)
		}
		return
	}
	pre := x.prefix()
	if pre == "" && !x.known() {
		w.open(c, x, roleGuess)
	}
	if strings.Contains(x.text(), "://") || pre == "" || strings.ContainsAny(pre, "\n") {
		return
	}
	if strings.HasPrefix(pre, "@/") || strings.HasPrefix(pre, "@.") {
		w.guessAs(st, c, x.cut(1), r) // a file of arguments, or one to send
		return
	}
	src := strings.TrimLeft(x.src, `"'`)
	switch {
	case strings.HasPrefix(pre, "/"), strings.HasPrefix(pre, "./"), strings.HasPrefix(pre, "../"), pre == "..", strings.HasPrefix(src, "~"):
	case strings.Contains(pre, "/"):
		p, ok := w.resolvePath(st, c, x, pre, r)
		if !ok || !pathExists(p.Path) {
			return
		}
	default:
		return
	}
	w.path(st, c, x, r)
}

// guessAll applies the rule for unknown commands to every word.
func (w *walker) guessAll(st *state, c *cmd, args []word) {
	for i := 0; i < len(args); i++ {
		x := args[i]
		pre := x.prefix()
		switch {
		case len(pre) < 2, pre[0] != '-':
			w.guess(st, c, x)
		case pre == "-o" || pre == "-O" || isOutName(pre) && !strings.Contains(pre, "="):
			if i+1 < len(args) && !strings.HasPrefix(args[i+1].prefix(), "-") {
				w.guessOut(st, c, args[i+1])
				i++
			}
		default:
			w.guessGlued(st, c, x)
		}
	}
}

// guessOut judges the value of an option that names an output.
func (w *walker) guessOut(st *state, c *cmd, x word) {
	if strings.Contains(x.text(), "://") {
		return
	}
	w.path(st, c, x, roleWrite)
}

func isOutName(s string) bool {
	return strings.HasPrefix(s, "--out") && !strings.HasPrefix(s, "--output-f") && !strings.HasPrefix(s, "--output-on") &&
		!strings.HasPrefix(s, "--output-t") && !strings.HasPrefix(s, "--output-l") && !strings.HasPrefix(s, "--output-m")
}

// guessGlued judges --opt=/path and -I/path.
func (w *walker) guessGlued(st *state, c *cmd, x word) {
	pre := x.prefix()
	if i := strings.IndexByte(pre, '='); i > 0 {
		v := x.cut(i + 1)
		if isOutName(pre[:i]) {
			w.guessOut(st, c, w.homeOf(st, v))
			return
		}
		v = w.homeOf(st, v)
		v.src = strings.TrimPrefix(x.src, pre[:i+1])
		w.guess(st, c, v)
		return
	}
	if len(pre) > 2 && pre[1] != '-' {
		v := x.cut(2)
		if vp := v.prefix(); strings.HasPrefix(vp, "/") || strings.HasPrefix(vp, "../") || strings.HasPrefix(vp, "./") {
			v.src = x.src
			if pre[1] == 'o' || pre[1] == 'O' {
				w.path(st, c, v, roleWrite)
				return
			}
			w.guess(st, c, v)
		}
	}
}

// homeOf expands a tilde that bash leaves in --opt=~/x: many programs expand it
// themselves.
func (w *walker) homeOf(st *state, v word) word {
	vp := v.prefix()
	home := st.get("HOME", w.a.r.Home())
	if !strings.HasPrefix(vp, "~/") || !v.known() || !home.known {
		return v
	}
	return plain(home.text+vp[1:], v.pos)
}

// optionPaths judges the values of options by their roles; values of options
// without a role follow the rule for unknown commands.
func (w *walker) optionPaths(st *state, c *cmd, g grammar, p parsed) {
	for _, o := range p.opts {
		if !o.has {
			continue
		}
		r, ok := g.role(o.name)
		switch {
		case ok && r != roleNone:
			if !o.value.is("-") || r != roleRead && r != roleWrite {
				w.path(st, c, o.value, r)
			}
		case !ok && isOutName(o.name):
			w.guessOut(st, c, o.value)
		case !ok:
			w.guess(st, c, o.value)
		}
	}
}
