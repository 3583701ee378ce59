package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// Policy is what the file system looks like to a command. Paths are absolute
// and real: no link in them.
type Policy struct {
	Roots    []string // writable
	Git      []string // writable too: where git keeps the repository of a root that is a linked worktree
	Secrets  []string // unreadable, wherever they lie
	ReadOnly []string // unchangeable below a root; what git rewrites is verified instead
	StateDir string   // the server's own state; unreadable but for the cache in it
	// RuntimeDir is the user's folder of sockets ($XDG_RUNTIME_DIR), emptied
	// like /run. "" = none outside /run.
	RuntimeDir string
	// LookSecrets and LookReadOnly find the two lists again: the first when a
	// session is made, the second before every command, because a command may
	// have made a name that is protected from now on. nil = the lists stay.
	LookSecrets, LookReadOnly func() []string
	// LookDeep finds protected names in repositories below the roots that nothing
	// names. They are looked after, but not made read-only: whoever made such a
	// repository may want to delete it. It may take its time. nil = none.
	LookDeep func() []string
	// LookIn finds what is protected in a folder that one command may write
	// besides. nil = nothing is.
	LookIn func(dir string) []string
	// CacheDir is where commands keep caches; writable. "" = one below StateDir
	// for these roots.
	CacheDir string
}

// Validate reports what cannot be a policy.
func (p Policy) Validate() error {
	var errs []error
	if len(p.Roots) == 0 {
		errs = append(errs, errors.New("sandbox policy has no root"))
	}
	for _, l := range []struct {
		what  string
		paths []string
	}{
		{"root", p.Roots},
		{"repository", p.Git},
		{"secret", p.Secrets},
		{"read-only path", p.ReadOnly},
		{"state directory", []string{p.StateDir}},
		{"runtime directory", nonEmpty(p.RuntimeDir)},
		{"cache directory", nonEmpty(p.CacheDir)},
	} {
		for _, path := range l.paths {
			if !clean(path) {
				errs = append(errs, fmt.Errorf("sandbox policy: %s %q is not an absolute, clean path below /", l.what, path))
			}
		}
	}
	return errors.Join(errs...)
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func clean(p string) bool {
	return filepath.IsAbs(p) && filepath.Clean(p) == p && p != "/" && !strings.ContainsRune(p, 0)
}

// now returns the policy with its lists as they are at this moment.
func (p Policy) now(extra []string) Policy {
	if p.LookSecrets != nil {
		p.Secrets = p.LookSecrets()
	}
	p.ReadOnly = p.readOnly(extra)
	return p
}

func (p Policy) readOnly(extra []string) []string {
	out := p.ReadOnly
	if p.LookReadOnly != nil {
		out = p.LookReadOnly()
	}
	if p.LookIn != nil {
		for _, e := range extra {
			out = append(slices.Clip(out), p.LookIn(e)...)
		}
	}
	return out
}

// cache returns where commands of this policy keep caches.
func (p Policy) cache() string {
	if p.CacheDir != "" {
		return p.CacheDir
	}
	sum := sha256.Sum256([]byte(strings.Join(p.Roots, "\x00")))
	return filepath.Join(p.StateDir, "cache", hex.EncodeToString(sum[:8]))
}

// plan is the pure decision what is done to the file system, parent before
// child, so that the deeper statement wins, and at one place the stricter one.
func (p Policy) plan(writes Places, scratch string, extra []string) []stage.Mount {
	var ms []stage.Mount
	add := func(op stage.Op, path string) { ms = append(ms, stage.Mount{Op: op, Path: path}) }
	if scratch == "" {
		add(stage.OpTmpfs, "/tmp")
	} else {
		ms = append(ms, stage.Mount{Op: stage.OpWrite, Path: "/tmp", Source: scratch})
	}
	writable := p.writable(writes, extra)
	for _, w := range writable {
		add(stage.OpWrite, w)
	}
	add(stage.OpEmpty, "/run")
	add(stage.OpKeep, "/run/current-system") // where one distribution keeps every program
	if p.RuntimeDir != "" && !below(p.RuntimeDir, "/run") {
		add(stage.OpMask, p.RuntimeDir)
	}
	ms = append(ms, p.protect(extra)...)
	for _, s := range append(slices.Clone(p.Secrets), p.StateDir) {
		op := stage.OpMask
		if slices.ContainsFunc(writable, func(w string) bool { return w != s && below(w, s) }) {
			op = stage.OpMaskHold
		}
		add(op, s)
	}
	sortPlan(ms)
	return slices.Compact(ms)
}

// sortPlan puts a parent before what is in it, and at one place the stricter
// statement last.
func sortPlan(ms []stage.Mount) {
	slices.SortStableFunc(ms, func(a, b stage.Mount) int {
		if c := comparePaths(a.Path, b.Path); c != 0 {
			return c
		}
		return int(a.Op) - int(b.Op)
	})
}

// writable lists the places that can be written besides /tmp.
func (p Policy) writable(writes Places, extra []string) []string {
	var out []string
	if writes&Roots != 0 {
		out = slices.Concat(p.Roots, p.Git)
	}
	if writes&Caches != 0 {
		out = append(out, p.cache())
	}
	return append(out, extra...)
}

// protect is what is done for the protected names.
func (p Policy) protect(extra []string) []stage.Mount {
	var ms []stage.Mount
	open := slices.Concat(p.Roots, p.Git, extra)
	for _, ro := range p.ReadOnly {
		switch {
		case verified(ro) && (inWorktrees(ro) || filepath.Base(ro) == ".git"):
			continue // its folder may go as well
		case !verified(ro):
			ms = append(ms, stage.Mount{Op: stage.OpReadOnly, Path: ro})
		}
		for _, pin := range between(ro, open) {
			ms = append(ms, stage.Mount{Op: stage.OpPin, Path: pin})
		}
	}
	return ms
}

// between lists the folders strictly between the outermost writable folder and
// path. They are pinned: a protected folder cannot be carried away with its
// parent.
func between(path string, roots []string) []string {
	root := ""
	for _, r := range roots {
		if below(path, r) && (root == "" || len(r) < len(root)) {
			root = r
		}
	}
	if root == "" {
		return nil
	}
	var out []string
	for d := filepath.Dir(path); d != root && below(d, root); d = filepath.Dir(d) {
		out = append(out, d)
	}
	return out
}

// below reports whether path is dir or lies in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// comparePaths orders paths so that a parent comes right before what is in it.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
