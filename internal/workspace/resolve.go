package workspace

import (
	"os"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
)

// The kernel's own limits: a path, and the links followed in one.
const (
	maxPath  = 4096
	maxLinks = 40
)

// Resolve says where text, written by a command whose working directory is
// cwd, really leads, and what that place is. It only looks at directory
// entries: nothing is opened. Symbolic links are followed component by
// component, so ".." after a link is the parent of the link's target; what does
// not exist is kept as written. With followLast false a link in the last
// component is itself, as for rm, mv and ln.
func (w *Workspace) Resolve(cwd, text string, followLast bool) call.Path {
	return w.resolve(cwd, text, followLast, false)
}

// ResolveFile is [Workspace.Resolve] for the file tools: a relative path starts
// at the first root, and /proc, /dev and /run are never readable.
func (w *Workspace) ResolveFile(text string, followLast bool) call.Path {
	return w.resolve(w.roots[0], text, followLast, true)
}

func (w *Workspace) resolve(cwd, text string, followLast, fileTool bool) call.Path {
	if text == "" || len(text) >= maxPath || strings.ContainsRune(text, 0) {
		return unknown(text, "")
	}
	full := w.tilde(text)
	if !strings.HasPrefix(full, "/") {
		if !strings.HasPrefix(cwd, "/") || strings.ContainsRune(cwd, 0) {
			return unknown(text, "")
		}
		full = cwd + "/" + full
	}
	k := walker{w: w, cwd: cwd, fileTool: fileTool, cur: "/", follow: followLast, full: full, rest: full}
	if !k.run() {
		return unknown(text, k.cur)
	}
	out := w.classify(text, k.cur, fileTool)
	if k.secret != "" && out.Secret == "" {
		out.Place, out.Secret = call.PlaceSecret, k.secret
	}
	if k.protected != "" && out.Protected == "" {
		out.Protected = k.protected
	}
	return out
}

// walker follows one path from the root of the file system.
type walker struct {
	w         *Workspace
	cwd       string
	fileTool  bool
	follow    bool
	cur       string // resolved so far; absolute and clean
	full      string // the path that is walked; cur is cut out of it as long as it starts so
	rest      string // still to walk
	links     int
	buf       [256]byte
	secret    string // a link on the way is itself secret
	protected string // a link on the way is itself protected
}

// next takes the next component off what is left to walk. A slash after the last
// one stays, so that it is not the last.
func (k *walker) next() (c string, ok bool) {
	rest := strings.TrimLeft(k.rest, "/")
	end := strings.IndexByte(rest, '/')
	if end < 0 {
		end = len(rest)
	}
	c, k.rest = rest[:end], rest[end:]
	return c, c != ""
}

// below is the path of an entry of cur.
func (k *walker) below(entry string) string {
	at := strings.TrimSuffix(k.cur, "/")
	end := len(at) + 1 + len(entry)
	if end <= len(k.full) && k.full[:len(at)] == at && k.full[len(at)] == '/' && k.full[len(at)+1:end] == entry {
		return k.full[:end]
	}
	return at + "/" + entry
}

// run walks to the end. It returns false when too many links were met.
func (k *walker) run() bool {
	for {
		c, ok := k.next()
		if !ok {
			return true
		}
		switch c {
		case ".":
		case "..":
			k.cur = parent(k.cur)
		default:
			if !k.step(k.below(c)) {
				return false
			}
		}
	}
}

// step walks into next, through a link if it is one.
func (k *walker) step(next string) bool {
	last := k.rest == ""
	if target, ok := k.virtual(next, last); ok {
		k.cur = target
		return true
	}
	if last && !k.follow {
		k.cur = next
		return true
	}
	target, ok := k.readlink(next)
	if !ok { // not a link, missing, or not ours to see
		k.cur = next
		return true
	}
	k.note(next)
	if k.links++; k.links > maxLinks || target == "" {
		k.cur = next
		return false
	}
	if strings.HasPrefix(target, "/") {
		k.cur = "/"
	}
	k.rest = target + k.rest
	return true
}

// readlink reads a link without allocating for what is none.
func (k *walker) readlink(p string) (string, bool) {
	n, err := posix.Readlink(p, k.buf[:])
	switch {
	case err != nil:
		return "", false
	case n < len(k.buf):
		return string(k.buf[:n]), true
	}
	target, err := os.Readlink(p)
	return target, err == nil
}

// note remembers when a link that is followed is itself secret or protected:
// what it leads to must not be judged more leniently than its name.
func (k *walker) note(link string) {
	root, inside := k.w.rootOf(link)
	if k.secret == "" {
		k.secret = k.w.secretOf(link, inside, false)
	}
	if inside && k.protected == "" {
		k.protected = k.w.protectedName(root, link)
	}
}

// virtual handles the places where the links of this process are not those of
// the one that will open the path: /proc, the descriptors in /dev, and /tmp,
// which is private to the session.
func (k *walker) virtual(next string, last bool) (string, bool) {
	switch {
	case within("/proc", next):
		if k.fileTool {
			k.secret = "/proc of the server"
		}
		if last && !k.follow {
			return next, true
		}
		return k.procLink(next), true
	case next == "/dev/stdin", next == "/dev/stdout", next == "/dev/stderr", within("/dev/fd", next):
		return next, true
	case within("/tmp", next), within("/dev/shm", next):
		_, inRoot := k.w.rootOf(next)
		return next, !inRoot
	}
	return "", false
}

// procLink reads the links of /proc that lead back into the file system.
func (k *walker) procLink(next string) string {
	f := strings.Split(next, "/") // "", proc, PID, …
	if len(f) > 4 && f[3] == "task" {
		f = append(f[:3:3], f[5:]...)
	}
	if len(f) != 4 {
		return next
	}
	switch {
	case f[3] == "root":
		return "/"
	case f[3] == "cwd" && strings.HasPrefix(k.cwd, "/"):
		return k.w.Resolve("/", k.cwd, true).Path
	}
	return next
}
