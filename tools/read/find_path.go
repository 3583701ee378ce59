package read

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

//go:embed find_path.md
var findDescription string

// The bounds of find_path.
const (
	findResults = 200
	findMost    = 100_000 // matches kept while sorting
	maxPattern  = 1000
)

// FindPath is the find_path tool. It is safe for concurrent use.
type FindPath struct{ base }

// NewFindPath returns the find_path tool.
func NewFindPath(cfg Config, ws *workspace.Workspace) (*FindPath, error) {
	b, err := newBase(cfg, ws)
	return &FindPath{b}, err
}

// Spec implements tools.Tool.
func (*FindPath) Spec() call.Spec {
	return spec("find_path", "Find files", findDescription, findInput, findOutput)
}

// splitGlob takes a pattern apart: the folder that is walked, and the glob that
// paths below it must match.
func splitGlob(a findArgs) (start, glob string, err error) {
	fail := func(message, suggestion string) (string, string, error) {
		return "", "", call.ArgError("pattern", message, suggestion)
	}
	pattern := a.Pattern
	switch {
	case pattern == "":
		return fail("the pattern is empty", "for example **/*.go")
	case len(pattern) > maxPattern:
		return fail(fmt.Sprintf("the pattern is longer than %d bytes", maxPattern), "use a shorter one")
	case !doublestar.ValidatePattern(pattern):
		return fail("the pattern is not a valid glob", "close every [ and {, or escape it with \\")
	}
	dirs := strings.HasSuffix(pattern, "/")
	start, glob = doublestar.SplitPattern(strings.TrimRight(pattern, "/"))
	if glob == "" || slices.Contains(strings.Split(glob, "/"), "..") {
		return fail("a pattern cannot go up behind a wildcard", "give the folder in path")
	}
	if dirs {
		glob += "/"
	}
	if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "~") && a.Path != "" {
		start = strings.TrimSuffix(a.Path, "/") + "/" + start
	}
	return start, glob, nil
}

// Facts implements tools.Tool.
func (t *FindPath) Facts(raw json.RawMessage) (call.Facts, error) {
	var a findArgs
	if err := tools.DecodeArgs(raw, &a); err != nil {
		return call.Facts{}, err
	}
	start, glob, err := splitGlob(a)
	if err != nil {
		return call.Facts{}, err
	}
	p, err := t.ws.Argument("path", start, true)
	if err != nil {
		return call.Facts{}, err
	}
	p.Recursive = depthOf(glob) != 1
	if a.Path == "" && start == "." {
		p.ImplicitBy = "find_path"
	}
	return t.facts(p, "find_path", fmt.Sprintf("find %s below %s", glob, t.ws.Rel(p.Path))), nil
}

// depthOf returns how many levels a glob can reach, 0 when there is no bound.
func depthOf(glob string) int {
	if strings.Contains(glob, "**") || strings.ContainsAny(glob, `{\`) {
		return 0
	}
	return strings.Count(strings.TrimSuffix(glob, "/"), "/") + 1
}

// found is one match.
type found struct {
	path  string
	mtime time.Time
}

// findResult is the structured result.
type findResult struct {
	Paths     []string `json:"paths"`
	Truncated bool     `json:"truncated"`
}

// Run implements tools.Tool.
func (t *FindPath) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a findArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	p, err := judged(auth)
	if err != nil {
		return call.Result{}, err
	}
	_, glob, err := splitGlob(a)
	if err != nil {
		return call.Result{}, err
	}
	all, err := t.find(ctx, auth.Session(), p, glob, a.Ignored)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return call.Result{}, t.ws.Explain(auth.Session(), "path", p, err)
	}
	return t.result(a, all)
}

// find collects the matches, newest first.
func (t *FindPath) find(ctx context.Context, session string, p call.Path, glob string, ignored bool) ([]found, error) {
	dirs := strings.HasSuffix(glob, "/")
	glob = strings.TrimSuffix(glob, "/")
	var all []found
	w := walk{ws: t.ws, session: session, ignored: ignored, depth: depthOf(glob)}
	skip := len(strings.TrimSuffix(p.Path, "/")) + 1
	w.visit = func(d *workspace.Dir, e fs.DirEntry, at string) error {
		if dirs && !e.IsDir() || !doublestar.MatchUnvalidated(glob, at[skip:]) {
			return nil
		}
		info, err := d.Lstat(e.Name())
		if err != nil {
			return nil //nolint:nilerr // gone meanwhile
		}
		if all = append(all, found{t.shown(at), info.ModTime()}); len(all) >= findMost {
			return errEnough
		}
		return nil
	}
	err := w.run(ctx, p)
	slices.SortFunc(all, func(x, y found) int {
		if c := y.mtime.Compare(x.mtime); c != 0 {
			return c
		}
		return strings.Compare(x.path, y.path)
	})
	return all, err
}

func (t *FindPath) result(a findArgs, all []found) (call.Result, error) {
	most := t.results(a.MaxResults, findResults)
	out := findResult{Paths: []string{}}
	var b strings.Builder
	for _, f := range all {
		if len(out.Paths) >= most || b.Len()+len(f.path) > t.cfg.PageBytes {
			out.Truncated = true
			break
		}
		out.Paths = append(out.Paths, f.path)
		b.WriteString(f.path)
		b.WriteByte('\n')
	}
	text := strings.TrimSuffix(b.String(), "\n")
	switch {
	case len(all) == 0:
		text = "No files matching: " + a.Pattern
		if !strings.Contains(a.Pattern, "**") {
			text += "\n* does not cross folders: " + path.Join("**", path.Base(a.Pattern)) + " looks in all of them"
		}
	case out.Truncated:
		text += fmt.Sprintf("\n... and more results (showing first %d of %d, newest first)", len(out.Paths), len(all))
	}
	structured, err := tools.EncodeResult(out)
	return call.Result{Text: text, Structured: structured, Outcome: call.Outcome{Truncated: out.Truncated, RawBytes: int64(len(text))}}, err
}
