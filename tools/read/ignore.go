package read

import (
	"io"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// ignoreBytes bounds how much of one .gitignore is read.
const ignoreBytes = 1 << 20

// ignores is the chain of .gitignore files in force in one folder, the nearest
// first. The nil chain ignores nothing.
type ignores struct {
	dir   string // folder the patterns start at
	rules []ignoreRule
	outer *ignores
}

// ignoreRule is one line of a .gitignore.
type ignoreRule struct {
	glob     string
	plain    bool // no wildcard in it
	negate   bool
	dirOnly  bool
	anchored bool // matches the path from dir, not only the last name
}

// parseIgnore reads the lines of a .gitignore. A line that is no valid pattern
// matches nothing, as in git.
func parseIgnore(text string) []ignoreRule {
	var out []ignoreRule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		if line[0] == '!' {
			r.negate, line = true, line[1:]
		}
		if strings.HasSuffix(line, "/") {
			r.dirOnly, line = true, strings.TrimRight(line, "/")
		}
		r.anchored = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		r.plain = !strings.ContainsAny(line, `*?[\`)
		r.glob = line
		if !r.plain {
			r.glob = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line) // no alternatives in git
		}
		if line != "" && doublestar.ValidatePattern(r.glob) {
			out = append(out, r)
		}
	}
	return out
}

// match reports whether the entry p of a folder is ignored.
func (g *ignores) match(p string, isDir bool) bool {
	for ; g != nil; g = g.outer {
		for _, r := range slices.Backward(g.rules) {
			if r.match(strings.TrimPrefix(p[len(g.dir):], "/"), isDir) {
				return !r.negate
			}
		}
	}
	return false
}

func (r *ignoreRule) match(rel string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if !r.anchored {
		rel = path.Base(rel)
	}
	if r.plain {
		return rel == r.glob
	}
	return doublestar.MatchUnvalidated(r.glob, rel)
}

// enter returns the chain in force inside the open folder d.
func (g *ignores) enter(d *workspace.Dir) *ignores {
	f, err := d.Open(".gitignore")
	if err != nil {
		return g // there is none, or none that can be used
	}
	defer func() { _ = f.Close() }() // opened for reading
	text, err := io.ReadAll(io.LimitReader(f, ignoreBytes))
	if err != nil {
		return g
	}
	if rules := parseIgnore(string(text)); len(rules) > 0 {
		return &ignores{dir: strings.TrimSuffix(d.Path(), "/"), rules: rules, outer: g}
	}
	return g
}
