package workspace

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
)

// protectedNames are the names that no tool may change, at any depth of a
// workspace: they decide what other programs run.
func protectedNames() []string {
	return []string{".husky", ".mcp.json", ".vscode", ".idea", ".devcontainer", ".claude", ".cursor", ".codex", ".envrc"}
}

// startupFiles are protected as well when a workspace holds the caller's home.
func startupFiles() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile",
		".zlogin", ".kshrc", ".inputrc", ".gitconfig", ".config/fish/config.fish", ".config/git/config",
	}
}

// protectedName returns the protected name that p is or lies below, "" when
// there is none. Letters are compared without regard to case, because a file
// system may do so.
func (w *Workspace) protectedName(root, p string) string {
	if p == root {
		return ""
	}
	for rel, more := p[len(strings.TrimSuffix(root, "/"))+1:], true; more; {
		var c string
		c, rel, more = strings.Cut(rel, "/")
		if !strings.HasPrefix(c, ".") {
			continue
		}
		for _, n := range protectedNames() {
			if strings.EqualFold(c, n) {
				return n
			}
		}
		if strings.EqualFold(c, ".git") {
			if n := gitProtected(rel, more); n != "" {
				return n
			}
		}
	}
	if w.home != "" && within(root, w.home) && within(w.home, p) {
		for _, n := range startupFiles() {
			if within(w.home+"/"+n, p) {
				return "~/" + n
			}
		}
	}
	return ""
}

// gitProtected judges what follows ".git/", if anything does.
func gitProtected(rel string, more bool) string {
	if !more {
		return ".git"
	}
	rest := strings.Split(rel, "/")
	if n := gitName(rest[0]); n != "" {
		return ".git/" + n
	}
	switch {
	case strings.EqualFold(rest[0], "worktrees") && len(rest) > 2:
		if n := gitName(rest[2]); n != "" {
			return ".git/worktrees/*/" + n
		}
	case strings.EqualFold(rest[0], "modules") && len(rest) > 2:
		return moduleProtected(rest[2:])
	}
	return ""
}

// moduleProtected judges what follows the first component of a submodule's
// name, which may have several.
func moduleProtected(rest []string) string {
	for _, c := range rest {
		if n := gitName(c); n != "" {
			return ".git/modules/*/" + n
		}
		if slices.Contains([]string{"refs", "logs", "objects", "info", "lfs"}, c) {
			return ""
		}
	}
	return ""
}

func gitName(c string) string {
	for _, n := range gitNames() {
		if strings.EqualFold(c, n) {
			return n
		}
	}
	return ""
}

// gitNames are the entries of a repository that decide what git runs, or where
// it reads that: a "commondir" leads it to the configuration and the hooks of
// another folder.
func gitNames() []string { return []string{"hooks", "config", "config.worktree", "commondir"} }

// ProtectedIn returns the existing protected paths of a root that can be found
// without walking it: its own entries, its .git, and the submodules and linked
// worktrees in it, and the repositories inside that its own git looks into. The .git folder itself is not listed, because git works in
// it; a .git that is a file or a link, and so names a folder, is.
func (w *Workspace) ProtectedIn(root string) []string {
	at := w.folderTimes(root)
	w.seen.Lock()
	known, ok := w.seen.in[root]
	w.seen.Unlock()
	if ok && at.quiet && known.at == at && !known.deep {
		return slices.Clone(known.paths)
	}
	out := w.protectedIn(root)
	deep := w.holdsRepositories(root + "/.git")
	w.seen.Lock()
	defer w.seen.Unlock()
	if w.seen.in == nil {
		w.seen.in = map[string]protectedThere{}
	}
	w.seen.in[root] = protectedThere{at: at, paths: slices.Clone(out), deep: deep}
	return out
}

// protectedThere is what was found in a folder, and when it had last changed.
type protectedThere struct {
	at    times
	paths []string
	deep  bool // there are repositories within, where the times do not reach
}

// times says when the folders last changed in which a protected name can
// appear, so that they need not be read again before every command. It is the
// time of the last change, which no program can set, unlike that of the last
// modification. It counts only when the folders are quiet: one that changed a
// moment ago may change once more without its time telling.
type times struct {
	root, git, index folder
	quiet            bool
}

type folder struct {
	inode   uint64
	changed int64 // nanoseconds since 1970
}

const quietFor = 100 * time.Millisecond

func (w *Workspace) folderTimes(root string) times {
	var t times
	if w.home != "" && within(root, w.home) {
		return t // the startup files there are in yet another folder
	}
	now := time.Now()
	var ok bool
	if t.root, ok = lookAt(root); !ok {
		return t
	}
	t.quiet = now.Sub(time.Unix(0, t.root.changed)) > quietFor
	if t.git, ok = lookAt(root + "/.git"); !ok {
		return t
	}
	if commonDir(root) != "" {
		return times{} // what is protected lies elsewhere
	}
	// Submodules and worktrees keep protected names deeper down, where these
	// times do not reach.
	t.quiet = t.quiet && now.Sub(time.Unix(0, t.git.changed)) > quietFor &&
		!exists(root+"/.git/modules") && !exists(root+"/.git/worktrees")
	if t.index, ok = lookAt(root + "/.git/index"); ok { // it may be written in place
		t.quiet = t.quiet && now.Sub(time.Unix(0, t.index.changed)) > quietFor
	}
	return t
}

func lookAt(path string) (folder, bool) {
	var st posix.Stat_t
	if err := posix.Lstat(path, &st); err != nil {
		return folder{}, false
	}
	return folder{inode: st.Ino, changed: st.Ctim.Nano()}, true
}

func (w *Workspace) protectedIn(root string) []string {
	var out []string
	for _, n := range names(root) {
		p := root + "/" + n
		switch name := w.protectedName(root, p); name {
		case "":
		case ".git":
			out = append(out, gitProtectedIn(p)...)
			out = append(out, w.linkedProtectedIn(root, p, 4, new(1024))...)
			if dir := commonDir(root); dir != "" {
				out = append(out, gitProtectedIn(dir)...)
			}
		default:
			out = append(out, p)
		}
	}
	if w.home != "" && within(root, w.home) {
		for _, n := range startupFiles() {
			if p := w.home + "/" + n; exists(p) {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// GuardedIn returns the paths of [Workspace.ProtectedIn] that git itself has
// to rewrite (its config files and the like): a sandbox may leave them writable
// if it verifies them after a command.
func (w *Workspace) GuardedIn(root string) []string {
	return slices.DeleteFunc(w.ProtectedIn(root), func(p string) bool {
		return !strings.HasSuffix(p, "/.git") && (!strings.Contains(p, "/.git/") || strings.HasSuffix(p, "/hooks"))
	})
}

func gitProtectedIn(git string) []string {
	if info, err := os.Lstat(git); err == nil && !info.IsDir() {
		return []string{git}
	}
	out := gitEntries(git, nil)
	for i, n := range names(git + "/worktrees") {
		if i == 256 {
			break
		}
		out = gitEntries(git+"/worktrees/"+n, out)
	}
	return append(out, modulesProtectedIn(git+"/modules", 3, new(256))...)
}

// gitEntries adds the protected names that a folder of git's holds.
func gitEntries(dir string, out []string) []string {
	for _, n := range gitNames() {
		if p := dir + "/" + n; exists(p) {
			out = append(out, p)
		}
	}
	return out
}

// modulesProtectedIn looks for submodules; their names may have several
// components. The budget bounds how many folders are looked at.
func modulesProtectedIn(dir string, depth int, budget *int) []string {
	var out []string
	for _, n := range names(dir) {
		if *budget--; *budget < 0 || depth == 0 {
			return out
		}
		p := dir + "/" + n
		if exists(p + "/HEAD") {
			out = gitEntries(p, out)
			out = append(out, modulesProtectedIn(p+"/modules", depth-1, budget)...)
			continue
		}
		out = append(out, modulesProtectedIn(p, depth-1, budget)...)
	}
	return out
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
