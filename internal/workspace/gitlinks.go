package workspace

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
)

// The bounds of what is read of git's index.
const (
	indexBytes = 64 << 20
	indexLinks = 4096
)

// indexSeen is what was found in an index, and which one it was.
type indexSeen struct {
	at    folder
	links []string
}

// gitlinks lists the folders of a workspace that its repository holds as
// repositories of their own: git looks into them, by their own configuration,
// whenever it is used above.
func (w *Workspace) gitlinks(git string) []string {
	out := w.indexLinks(git + "/index")
	for _, n := range names(git) { // an index may be split in two
		if strings.HasPrefix(n, "sharedindex.") {
			out = append(out, w.indexLinks(git+"/"+n)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// holdsRepositories reports whether a repository names others in its index, or
// may come to by a part of it that is not looked at every time.
func (w *Workspace) holdsRepositories(git string) bool {
	return len(w.gitlinks(git)) > 0 ||
		slices.ContainsFunc(names(git), func(n string) bool { return strings.HasPrefix(n, "sharedindex.") })
}

// linkedProtectedIn lists the protected names in the repositories that a
// repository holds, and in those that they hold.
func (w *Workspace) linkedProtectedIn(root, git string, depth int, budget *int) []string {
	var out []string
	for _, l := range w.gitlinks(git) {
		if *budget--; *budget < 0 || depth == 0 {
			break
		}
		p := root + "/" + l + "/.git"
		found := gitProtectedIn(p)
		if len(found) == 0 {
			continue
		}
		out = append(out, found...)
		if found[0] == p { // a file that names the folder
			p = gitdirOf(p)
		}
		if p != "" {
			out = append(out, w.linkedProtectedIn(root+"/"+l, p, depth-1, budget)...)
		}
	}
	return out
}

// The bounds of the search for repositories that nothing names.
const (
	deepLook = 20_000
	deepMost = 64
)

// ProtectedDeep returns the protected names of the repositories in the folders
// of the workspace, whether anything names them or not. It walks them, those at
// the top first, and not without end.
func (w *Workspace) ProtectedDeep() []string {
	var out []string
	todo, looked, repositories := slices.Clone(w.roots), 0, 0
	for len(todo) > 0 && looked < deepLook && repositories < deepMost {
		dir := todo[0]
		todo = todo[1:]
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range list {
			looked++
			p := dir + "/" + e.Name()
			switch {
			case strings.EqualFold(e.Name(), ".git"):
				if !slices.Contains(w.roots, dir) {
					out = append(out, gitProtectedIn(p)...)
					repositories++
				}
			case e.IsDir():
				todo = append(todo, p)
			}
		}
	}
	return out
}

// gitdirOf reads where a .git file leads, "" when it cannot be told.
func gitdirOf(file string) string {
	b, err := readRegular(file, maxPath)
	to, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if !strings.HasPrefix(to, "/") {
		to = parent(file) + "/" + to
	}
	return path.Clean(to)
}

// Repositories returns the folders outside the workspace in which git keeps the
// repository of a root that is a linked worktree: what git writes for it goes
// there. A .git file alone proves nothing, because a workspace may come with
// one; the repository has to name the worktree in return.
func (w *Workspace) Repositories() []string {
	var out []string
	for _, r := range w.roots {
		dir := commonDir(r)
		if dir == "" || w.secretRule(dir) != "" || w.denied(dir) != "" {
			continue
		}
		if _, inside := w.rootOf(dir); !inside {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// commonDir returns where the repository of a linked worktree lies, "" when
// root is none.
func commonDir(root string) string {
	git := gitdirOf(root + "/.git")
	if git == "" {
		return ""
	}
	git, err := filepath.EvalSymlinks(git)
	if err != nil || path.Base(parent(git)) != "worktrees" {
		return ""
	}
	named := func(file, dir string) string {
		b, err := readRegular(git+"/"+file, maxPath)
		to := strings.TrimRight(string(b), "\r\n")
		if err != nil || to == "" {
			return ""
		}
		if !strings.HasPrefix(to, "/") {
			to = dir + "/" + to
		}
		real, err := filepath.EvalSymlinks(path.Dir(to))
		if err != nil {
			return ""
		}
		return path.Clean(real + "/" + path.Base(to))
	}
	common := parent(parent(git))
	if named("gitdir", git) != root+"/.git" || named("commondir", git) != common ||
		!exists(common+"/HEAD") || !exists(common+"/objects") || common == "/" {
		return ""
	}
	return common
}

func (w *Workspace) indexLinks(file string) []string {
	at, ok := lookAt(file)
	if !ok {
		return nil
	}
	w.seen.Lock()
	known, ok := w.seen.index[file]
	w.seen.Unlock()
	quiet := time.Since(time.Unix(0, at.changed)) > quietFor
	if ok && quiet && known.at == at {
		return slices.Clone(known.links)
	}
	b, err := readRegular(file, indexBytes)
	if err != nil {
		return nil
	}
	links := parseIndex(b)
	w.seen.Lock()
	defer w.seen.Unlock()
	if w.seen.index == nil || len(w.seen.index) > 64 {
		w.seen.index = map[string]indexSeen{}
	}
	w.seen.index[file] = indexSeen{at: at, links: slices.Clone(links)}
	return links
}

// readRegular reads the start of a file that is no link. What a command may have
// put there instead, such as a pipe, does not hold anybody up.
func readRegular(file string, most int64) ([]byte, error) {
	fd, err := openat(posix.AT_FDCWD, file, os.O_RDONLY|posix.O_NONBLOCK|posix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), file)
	defer func() { _ = f.Close() }() // opened for reading
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// parseIndex finds the entries that are repositories. Which hash a repository
// uses is not written in its index, so both are tried; the wrong one finds names
// that do not exist.
func parseIndex(b []byte) []string {
	if len(b) < 12 || string(b[:4]) != "DIRC" {
		return nil
	}
	version, n := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if version < 2 || version > 4 {
		return nil
	}
	return append(indexEntries(b[12:], version, n, 20), indexEntries(b[12:], version, n, 32)...)
}

func indexEntries(b []byte, version, n uint32, hash int) []string {
	var out []string
	e := indexEntry{version: version, hash: hash}
	for range n {
		if b = e.read(b); b == nil {
			break
		}
		if e.mode>>12 == 0o16 && len(out) < indexLinks && localName(e.name) {
			out = append(out, string(e.name))
		}
	}
	return out
}

// indexEntry is one entry; in version 4 its name builds on the one before.
type indexEntry struct {
	version, mode uint32
	hash          int
	name          []byte
}

// read reads the entry b starts with and returns what is behind it, nil when
// there is none.
func (e *indexEntry) read(b []byte) []byte {
	start := 40 + e.hash + 2
	if len(b) < start+1 {
		return nil
	}
	flags := binary.BigEndian.Uint16(b[start-2:])
	e.mode = binary.BigEndian.Uint32(b[24:])
	if flags&0x4000 != 0 && e.version > 2 {
		start += 2
	}
	keep := 0
	if e.version == 4 {
		strip, size := indexVarint(b[min(start, len(b)):])
		if size == 0 || strip > len(e.name) {
			return nil
		}
		keep, start = len(e.name)-strip, start+size
	}
	end := int(flags&0xfff) - keep // of what is written of the name; as git reads it
	if flags&0xfff == 0xfff && start <= len(b) {
		end = bytes.IndexByte(b[start:], 0)
	}
	if end < 0 || start+end > len(b) {
		return nil
	}
	e.name = append(e.name[:keep:keep], b[start:start+end]...)
	next := start + end + 1
	if e.version < 4 {
		next = (start + end + 8) &^ 7 // one to eight zero bytes are behind the name
	}
	if next > len(b) {
		return nil
	}
	return b[next:]
}

// indexVarint reads a number and how many bytes it takes, 0 when there is none.
func indexVarint(b []byte) (value, size int) {
	for i, c := range b[:min(len(b), 4)] {
		if i > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// localName reports whether a name in an index stays in its workspace.
func localName(name []byte) bool {
	for c := range strings.SplitSeq(string(name), "/") {
		if c == "" || c == "." || c == ".." {
			return false
		}
	}
	return true
}
