// Package workspace knows what every path means: where it really leads, whether
// it lies in the workspace, is readable by default, secret or protected. It
// also opens paths for the file tools, on directory handles and without ever
// following a symbolic link, so that what was judged is what is opened.
package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Workspace answers questions about paths. It does not change after [Open] and is
// safe for concurrent use.
type Workspace struct {
	roots    []string // canonical, none inside another
	home     string   // canonical; "" = none
	homeRaw  string   // as the environment spells it, for tilde expansion
	stateDir string   // canonical; "" = none
	uid      int
	caches   []string

	secret   map[string]string // path -> rule, the path and everything below
	prefixes []secretPrefix    // secret names with an open end
	lifted   []string          // taken out of the built-in secrets
	readable []string          // readable by default besides system directories
	deny     []pattern
	allow    []pattern

	locks [32]sync.Mutex // see [Workspace.Lock]

	found struct { // see [Workspace.Secrets]
		sync.Mutex
		at    time.Time
		paths []string
	}

	seen struct { // see [Workspace.ProtectedIn]
		sync.Mutex
		in    map[string]protectedThere
		index map[string]indexSeen // by its path
	}
}

// Open builds a workspace. Roots must exist, be folders, and be neither "/"
// nor the home itself nor a secret place.
func Open(cfg Config, env Env) (*Workspace, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &Workspace{uid: env.UID, homeRaw: env.Home}
	w.home = canonicalOrClean(env.Home)
	if w.home == "/" {
		w.home, w.homeRaw = "", "/"
	}
	w.stateDir = canonicalOrClean(env.StateDir)
	for _, c := range env.Caches {
		if c = canonicalOrClean(c); c != "" && c != "/" {
			w.caches = append(w.caches, c)
		}
	}
	w.deny = w.compile("deny_read", cfg.DenyRead)
	w.allow = w.compile("allow_read", cfg.AllowRead)
	for _, p := range cfg.ReadablePaths {
		w.lifted = append(w.lifted, w.configured(p))
	}
	w.loadSecrets()
	w.loadReadable()
	if err := w.addRoots(cfg); err != nil {
		return nil, err
	}
	w.lifted = append(w.lifted, w.roots...)
	return w, nil
}

func (w *Workspace) addRoots(cfg Config) error {
	var errs []error
	var roots []string
	for _, l := range []struct {
		key  string
		vals []string
	}{{"roots", cfg.Roots}, {"allowed_paths", cfg.AllowedPaths}} {
		for i, p := range l.vals {
			r, err := w.root(p)
			if err != nil {
				errs = append(errs, fmt.Errorf("tools.file.%s[%d]: %w", l.key, i, err))
				continue
			}
			roots = append(roots, r)
		}
	}
	if len(cfg.Roots) == 0 {
		errs = append(errs, errors.New("tools.file.roots: no workspace folder is given; use --workspace DIR"))
	}
	w.roots = merge(roots)
	return errors.Join(errs...)
}

// root turns one configured root into its canonical path.
func (w *Workspace) root(p string) (string, error) {
	abs, err := filepath.Abs(w.tilde(p))
	if err != nil {
		return "", fmt.Errorf("workspace folder %q: %w", p, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("workspace folder %q: %w", p, err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", fmt.Errorf("workspace folder %q: %w", p, err)
	case !info.IsDir():
		return "", fmt.Errorf("workspace folder %q is not a folder", p)
	case real == "/":
		return "", errors.New("the workspace cannot be /; choose a folder with --workspace DIR")
	case real == w.home:
		return "", fmt.Errorf("the workspace cannot be the home folder %s itself; choose a folder in it with --workspace DIR", real)
	}
	if rule := w.secretRule(real); rule != "" && rule != ruleOtherHome && rule != ruleRootHome {
		return "", fmt.Errorf("workspace folder %q is a secret place (%s)", p, rule)
	}
	return real, nil
}

// merge drops doubled roots and roots inside others, keeping the order.
func merge(roots []string) []string {
	var out []string
	for i, r := range roots {
		covered := slices.Contains(roots[:i], r) || slices.ContainsFunc(roots, func(o string) bool {
			return o != r && within(o, r)
		})
		if !covered {
			out = append(out, r)
		}
	}
	return out
}

// Roots returns the canonical workspace folders. The first one is where
// relative paths of the file tools start.
func (w *Workspace) Roots() []string { return slices.Clone(w.roots) }

// Home returns the caller's home, "" when there is none.
func (w *Workspace) Home() string { return w.home }

// StateDir returns the server's own state directory, "" when there is none.
func (w *Workspace) StateDir() string { return w.stateDir }

// Caches returns the sandbox caches.
func (w *Workspace) Caches() []string { return slices.Clone(w.caches) }

// rootOf returns the workspace root that holds p.
func (w *Workspace) rootOf(p string) (string, bool) {
	for _, r := range w.roots {
		if within(r, p) {
			return r, true
		}
	}
	return "", false
}

// Rel returns how p is best shown: relative to the first root when it lies in
// it, absolute otherwise.
func (w *Workspace) Rel(p string) string {
	if len(w.roots) > 0 && within(w.roots[0], p) {
		if p == w.roots[0] {
			return "."
		}
		return p[len(w.roots[0])+1:]
	}
	return p
}

// tilde expands a leading "~" or "~/".
func (w *Workspace) tilde(p string) string {
	if w.homeRaw == "" {
		return p
	}
	if p == "~" {
		return w.homeRaw
	}
	if strings.HasPrefix(p, "~/") {
		return strings.TrimSuffix(w.homeRaw, "/") + p[1:]
	}
	return p
}

// configured reads a path from the configuration.
func (w *Workspace) configured(p string) string {
	abs, err := filepath.Abs(w.tilde(p))
	if err != nil {
		return filepath.Clean("/" + p)
	}
	return canonicalOrClean(abs)
}

// within reports whether p is base or lies below it, by whole components.
func within(base, p string) bool {
	if base == "/" {
		return strings.HasPrefix(p, "/")
	}
	return strings.HasPrefix(p, base) && (len(p) == len(base) || p[len(base)] == '/')
}

// canonicalOrClean resolves an existing path and cleans another one.
func canonicalOrClean(p string) string {
	if p == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(p); err == nil {
		if abs, err := filepath.Abs(real); err == nil {
			return abs
		}
	}
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return filepath.Clean(p)
}

// unknown is the path whose meaning cannot be decided.
func unknown(text, path string) call.Path {
	return call.Path{Text: text, Path: path, Place: call.PlaceUnknown}
}
