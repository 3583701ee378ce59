package read

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"strings"
	"syscall"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

//go:embed grep.md
var grepDescription string

// grepResults is how many matches are shown when a call does not say.
const grepResults = 100

// Grep is the grep tool. It is safe for concurrent use.
type Grep struct{ base }

// NewGrep returns the grep tool.
func NewGrep(cfg Config, ws *workspace.Workspace) (*Grep, error) {
	b, err := newBase(cfg, ws)
	return &Grep{b}, err
}

// Spec implements tools.Tool.
func (*Grep) Spec() call.Spec {
	return spec("grep", "Search contents", grepDescription, grepInput, grepOutput)
}

// Facts implements tools.Tool.
func (t *Grep) Facts(raw json.RawMessage) (call.Facts, error) {
	var a grepArgs
	if err := tools.DecodeArgs(raw, &a); err != nil {
		return call.Facts{}, err
	}
	if _, err := a.compile(); err != nil {
		return call.Facts{}, err
	}
	if a.Glob != "" && !doublestar.ValidatePattern(a.Glob) || len(a.Glob) > maxPattern {
		return call.Facts{}, call.ArgError("glob", "it is not a valid glob", "for example *.go or src/**/*.ts")
	}
	implied := a.Path == ""
	if implied {
		a.Path = "."
	}
	p, err := t.ws.Argument("path", a.Path, true)
	if err != nil {
		return call.Facts{}, err
	}
	p.Recursive = true
	if implied {
		p.ImplicitBy = "grep"
	}
	return t.facts(p, "grep", fmt.Sprintf("search %s for %q", t.ws.Rel(p.Path), a.Pattern)), nil
}

// compile makes the regular expression, or the argument error a model can act
// on.
func (a grepArgs) compile() (*regexp.Regexp, error) {
	expr := a.Pattern
	switch {
	case expr == "":
		return nil, call.ArgError("pattern", "the pattern is empty", "give a regular expression")
	case len(expr) > maxPattern:
		return nil, call.ArgError("pattern", fmt.Sprintf("the pattern is longer than %d bytes", maxPattern), "use a shorter one")
	}
	if a.CaseSensitive != nil && !*a.CaseSensitive {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err == nil {
		return re, nil
	}
	hint := "RE2 syntax: escape ( ) [ ] { } . * + ? | ^ $ with \\ to search for them"
	var se *syntax.Error
	if errors.As(err, &se) && (se.Code == syntax.ErrInvalidPerlOp || se.Code == syntax.ErrInvalidEscape) {
		hint = "RE2 has no look-around and no back-references; filter in two steps"
	}
	return nil, call.ArgError("pattern", strings.TrimPrefix(err.Error(), "error parsing regexp: "), hint)
}

// Run implements tools.Tool.
func (t *Grep) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a grepArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	p, err := judged(auth)
	if err != nil {
		return call.Result{}, err
	}
	re, err := a.compile()
	if err != nil {
		return call.Result{}, err
	}
	s := newSearch(re, a, t.results(a.MaxResults, grepResults), t.cfg)
	if err := t.search(ctx, auth.Session(), p, a, s); err != nil {
		return call.Result{}, t.ws.Explain(auth.Session(), "path", p, err)
	}
	return s.result(a)
}

// search runs s over one file or over everything below a folder.
func (t *Grep) search(ctx context.Context, session string, p call.Path, a grepArgs, s *search) error {
	f, err := openPath(t.ws, session, p)
	if err == nil {
		defer func() { _ = f.Close() }() // opened for reading
		err := s.file(ctx, f, t.shown(p.Path))
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	}
	if !errors.Is(err, syscall.EISDIR) {
		return err
	}
	w := walk{ws: t.ws, session: session, ignored: a.Ignored}
	start := len(strings.TrimSuffix(p.Path, "/")) + 1
	w.visit = func(d *workspace.Dir, e fs.DirEntry, at string) error {
		if !e.Type().IsRegular() || !globMatches(a.Glob, at[start:]) {
			return nil
		}
		f, err := d.Open(e.Name())
		if err != nil {
			s.unreadable++
			return nil // counted; one file does not end the search
		}
		defer func() { _ = f.Close() }() // opened for reading
		return s.file(ctx, f, t.shown(at))
	}
	err = w.run(ctx, p)
	s.unreadable += w.unreadable
	s.secrets += w.secrets
	return err
}

// globMatches applies the file filter: a glob without a slash to the name, one
// with a slash to the path below the start.
func globMatches(glob, rel string) bool {
	switch {
	case glob == "":
		return true
	case !strings.Contains(glob, "/"):
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(glob, "/"), rel)
}
