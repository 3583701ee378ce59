//go:build linux || darwin

package sandbox

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const guardLimit = 1 << 20 // bytes of a configuration; a larger one is not taken

// watch looks after the protected names that no mount can hold: files that git
// rewrites, links, and what did not exist when the view was made. It remembers
// them as they were before a command and undoes what must not stay. One serves
// all sessions, and what is remembered is not read anew while any command
// runs: one that has put something harmful in place must not have it taken for
// good by the next.
//
// Without namespaces no mount holds anything. Then it remembers the content of
// every protected file and folder.
type watch struct {
	bare    bool // set before the first use
	mu      sync.Mutex
	running int
	known   map[string]state
	given   []string // folders that single commands may write, as far as remembered
	deep    nested
}

// state is what stood at a path.
type state struct {
	kind kind
	text []byte     // of a file that is verified, or where a link leads
	tree remembered // of what no mount holds; nil where one does
	gone bool       // with the folder it was in, which was told
}

type kind byte

const (
	absent kind = iota
	file        // verified, and read
	link
	other
	hookFolder // a folder of hooks that no mount holds, and what is in it
	hidden     // in a folder that may not be entered
)

// see looks at a path, knowing what was there.
func (w *watch) see(p string, was state) state {
	s := w.look(p)
	if w.bare && (s.kind == other || was.tree != nil) {
		s.tree = remember(p, was.tree)
	}
	return s
}

func look(p string) state {
	info, err := os.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return state{kind: hidden}
	case err != nil:
		return state{}
	case info.Mode()&os.ModeSymlink != 0:
		target, _ := os.Readlink(p)
		return state{kind: link, text: []byte(target)}
	case verified(p):
		if b, ok := readReal(p); ok {
			return state{kind: file, text: b}
		}
	}
	return state{kind: other}
}

func (s state) same(o state) bool {
	return s.kind == o.kind && bytes.Equal(s.text, o.text) && s.tree.same(o.tree)
}

// begin remembers the protected paths before a command. Those of the folders
// that it alone may write are remembered whoever else runs: nobody has written
// them, unless another was given the same.
func (w *watch) begin(paths, extra []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deep.first()
	if w.running++; w.running == 1 {
		w.deep.began = time.Now()
		before := w.known
		w.known, w.given = make(map[string]state, len(paths)), nil
		for _, p := range slices.Concat(paths, w.deep.paths) {
			w.known[p] = w.see(p, before[p])
		}
	}
	w.back()
	for _, dir := range extra {
		if slices.Contains(w.given, dir) {
			continue
		}
		w.given = append(w.given, dir)
		for _, p := range paths {
			if _, ok := w.known[p]; !ok && below(p, dir) {
				w.known[p] = w.see(p, state{})
			}
		}
	}
}

// back notices what has come back with its folder, and can go again.
func (w *watch) back() {
	for p, was := range w.known {
		if was.gone && look(p).kind != absent {
			was.gone = false
			w.known[p] = was
		}
	}
}

// end looks at them again, and at those that are new. What a command did to
// have something run outside later is undone: the old file or link is put
// back, what is new is set aside. It tells of each.
func (w *watch) end(paths []string) []restored {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	out := append(w.deep.told, w.settle(paths)...)
	w.deep.told = nil
	w.deep.ended(w.running)
	w.deep.later(w.adopt)
	return out
}

// check does what [watch.end] does while the command still runs, so that a
// long one cannot leave something standing until its end.
func (w *watch) check(paths []string) []restored {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settle(paths)
}

// settle is called under the lock.
func (w *watch) settle(paths []string) []restored {
	all := slices.AppendSeq(slices.Clone(paths), maps.Keys(w.known))
	slices.Sort(all)
	var out []restored
	for _, p := range slices.Compact(all) {
		was := w.known[p]
		now := w.see(p, was)
		if now.kind == hidden && was.kind != hidden {
			enterable(p)
			now = w.see(p, was)
		}
		if now.same(was) || now.kind == absent && (was.kind != link && was.tree == nil || was.gone) {
			continue
		}
		if was.tree != nil {
			if len(now.tree) >= treeEntries && len(was.tree) < treeEntries {
				// There may be more in it than was looked at.
				out = append(out, restored{p, p + " is protected, too much was put into it, and all of it was " + undo(p, state{})})
				now.tree = remembered{}
			}
			out = append(out, was.tree.settle(p, now.tree)...)
			was.tree = was.tree.kept(remember(p, now.tree))
			_, err := os.Lstat(filepath.Dir(p))
			was.gone = err != nil
			w.known[p] = was
			continue
		}
		undone := settle(p, was, now)
		out = append(out, undone...)
		w.known[p] = was.after(now, undone)
	}
	return out
}

// after is what is remembered of a path once it was judged: what was looked at
// then, and not what stands there now. A command that exchanges it between the
// judging and a second look would have it taken for good.
func (s state) after(now state, undone []restored) state {
	if len(undone) > 0 || s.kind == absent && now.kind == other {
		return s // what is in a folder that is new is judged every time
	}
	return now
}

// settle undoes a change, if it is one to undo.
func settle(p string, was, now state) []restored {
	var what []string
	if was.kind == hidden {
		was.kind = absent // nobody has seen it
	}
	switch {
	case was.kind == absent && filepath.Base(p) == "hooks" && now.kind == other:
		return newHooks(p)
	case now.kind == hookFolder:
		return changedHooks(p, was, now)
	case was.kind == absent && now.kind == file, was.kind == file && now.kind == file:
		if what = suspect(p, was.text, now.text); len(what) == 0 {
			return nil
		}
	case was.kind == other:
		return nil // a mount holds it
	case was.kind == file:
		what = []string{"what cannot be read"}
	}
	done := undo(p, was)
	if len(what) == 0 {
		return []restored{{p, p + " is protected and was " + done}}
	}
	return []restored{{p, p + " was " + done + ": it sets " + strings.Join(what, ", ")}}
}

// suspect names what makes the new text of a verified file one to undo.
func suspect(path string, before, after []byte) []string {
	switch {
	case isGitConfig(path):
		return harmful(before, after)
	case filepath.Base(path) == ".git" && (ofSubmodule(path, string(after)) || ofWorktree(path, string(after))):
		return nil
	case inWorktrees(path) && strings.TrimSuffix(string(after), "\n") == "../..":
		return nil
	}
	return []string{"the folder git reads its configuration from"}
}

// ofWorktree reports whether the text of a .git file leads to a repository that
// names it in return. That one's configuration is looked after itself, if it lies
// where a command can write.
func ofWorktree(path, text string) bool {
	to, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), "gitdir: ")
	if !ok || !strings.Contains(to, "/.git/worktrees/") {
		return false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	back, ok := readReal(filepath.Join(to, "gitdir"))
	name := strings.TrimSuffix(string(back), "\n")
	if !filepath.IsAbs(name) {
		name = filepath.Join(to, name)
	}
	return ok && name == path
}

// undo puts back what was at a path, or sets aside what is there, and says
// which.
func undo(p string, was state) string {
	done, err := "set aside", error(nil)
	switch was.kind {
	case file:
		done, err = "put back as it was", putBack(p, was.text)
	case link:
		done, err = "put back as it was", relink(p, string(was.text))
	case absent, other, hookFolder, hidden:
		err = aside(p)
	}
	switch {
	case errors.Is(err, unix.ELOOP) && asideLink(p) == nil:
		return "led to by a link, which was set aside"
	case err != nil:
		return "to be " + done + ", which failed (" + err.Error() + ")"
	}
	return done
}

// newHooks sets aside what git would run in a folder of hooks that is new. The
// samples that git itself puts there stay.
func newHooks(dir string) []restored {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		enterable(dir + "/")
		list, err = os.ReadDir(dir)
	}
	if err != nil {
		return []restored{{dir, dir + " is protected and cannot be read"}}
	}
	var out []restored
	for _, e := range list {
		if p := filepath.Join(dir, e.Name()); !strings.HasSuffix(p, ".sample") && !strings.Contains(e.Name(), quarantine) {
			out = append(out, settle(p, state{}, state{kind: other})...)
		}
	}
	return out
}

// folder opens the folder of a path no part of which is a link.
func folder(path string) (int, error) { return openFolder(filepath.Dir(path)) }

// readReal reads a regular file that is reached through no link.
func readReal(path string) ([]byte, bool) {
	fd, err := openReal(path)
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read from
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > guardLimit {
		return nil, false
	}
	b, err := io.ReadAll(io.LimitReader(f, guardLimit+1))
	return b, err == nil && len(b) <= guardLimit
}

// putBack replaces whatever is at path by a file with the content it had.
func putBack(path string, content []byte) error {
	return replace(path, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), name)
		_, err = f.Write(content)
		return errors.Join(err, f.Close())
	})
}

// relink replaces whatever is at path by the link that was there.
func relink(path, target string) error {
	return replace(path, func(dir int, name string) error { return unix.Symlinkat(target, dir, name) })
}

// replace puts what fill makes in the place of path. A folder that is in the
// way is set aside.
func replace(path string, fill func(dir int, name string) error) error {
	dir, err := folder(path)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // nothing was written through it
	name := filepath.Base(path)
	tmp := name + ".zeph-restore-" + rand.Text() // no command can have taken it
	err = fill(dir, tmp)
	if errors.Is(err, unix.EACCES) {
		open(dir)
		err = fill(dir, tmp)
	}
	if err != nil {
		return err
	}
	if err = unix.Renameat(dir, tmp, dir, name); errors.Is(err, unix.EISDIR) {
		if err = asideIn(dir, name); err == nil {
			err = unix.Renameat(dir, tmp, dir, name)
		}
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0)
	}
	return err
}

// quarantine is what the name of something that was set aside ends in.
const quarantine = ".zeph-quarantine"

// aside renames something to a name nobody looks at.
func aside(path string) error {
	dir, err := folder(path)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // nothing was written through it
	return asideIn(dir, filepath.Base(path))
}

// enterable lets the owner into the folders that lead to a path, which a
// command has closed: what it left behind would come to light when a person
// opens them.
func enterable(path string) {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		fd, err := openFolder(path[:i])
		if err != nil {
			return
		}
		open(fd)
		_ = unix.Close(fd)
	}
}

// asideLink sets the outermost link aside through which path is reached.
func asideLink(path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		info, err := os.Lstat(path[:i])
		if err != nil {
			return err
		}
		if info.Mode()&os.ModeSymlink != 0 {
			return aside(path[:i])
		}
	}
	return unix.ENOENT
}

func asideIn(dir int, name string) error {
	to := name + quarantine
	for i := range 100 {
		err := renameNew(dir, name, to)
		if errors.Is(err, unix.EACCES) {
			open(dir)
			err = renameNew(dir, name, to)
		}
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
		to = fmt.Sprintf("%s%s-%d", name, quarantine, i+1)
		if i >= 8 { // a command may have taken the names there are to come
			to = name + quarantine + "-" + rand.Text()
		}
	}
	return unix.EEXIST
}
