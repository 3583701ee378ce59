package workspace

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is one compiled deny_read or allow_read entry.
type pattern struct {
	glob  string // absolute or starting with "**/"
	rule  string // what is shown to the caller
	plain bool   // holds no wildcard
}

// compile turns validated patterns into matchable ones. Nothing is skipped: a
// pattern that cannot match anything would be a hole that looks like a fence.
func (w *Workspace) compile(key string, patterns []string) []pattern {
	out := make([]pattern, 0, len(patterns))
	for i, raw := range patterns {
		p := path.Clean(w.tilde(raw))
		if base, all := strings.CutSuffix(p, "/**"); all && key == "deny_read" && strings.HasPrefix(p, "/") {
			p = base // a folder and all in it, which is what its name alone says
		}
		plain := !hasMeta(p)
		switch {
		case strings.HasPrefix(p, "/") && plain:
			p = canonicalOrClean(p)
		case strings.HasPrefix(p, "/"):
			p = canonicalBase(p)
		case !strings.HasPrefix(p, "**/"):
			p, plain = "**/"+p, false
		}
		out = append(out, pattern{glob: p, rule: fmt.Sprintf("tools.file.%s[%d] %s", key, i, raw), plain: plain})
	}
	return out
}

// canonicalBase resolves the part of a glob before its first wildcard, so that
// a pattern written through a symbolic link matches the resolved path.
func canonicalBase(glob string) string {
	base, rest := doublestar.SplitPattern(glob)
	real := canonicalOrClean(base)
	if hasMeta(real) {
		return glob
	}
	return path.Join(real, rest)
}

func hasMeta(p string) bool { return strings.ContainsAny(p, `*?[{\`) }

// denied returns the deny_read rule in force for p: one that matches p or a
// folder above it, unless an allow_read pattern matches p itself.
func (w *Workspace) denied(p string) string {
	if len(w.deny) == 0 {
		return ""
	}
	rule := ""
	for _, d := range w.deny {
		if d.plain && within(d.glob, p) || !d.plain && d.matchAny(p) {
			rule = d.rule
			break
		}
	}
	if rule == "" {
		return ""
	}
	for _, a := range w.allow {
		if doublestar.MatchUnvalidated(a.glob, p) {
			return ""
		}
	}
	return rule
}

// matchAny reports whether the pattern matches p or a folder above it.
func (d pattern) matchAny(p string) bool {
	for q := p; q != "/" && q != "." && q != ""; q = path.Dir(q) {
		if doublestar.MatchUnvalidated(d.glob, q) {
			return true
		}
	}
	return false
}
