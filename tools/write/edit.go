package write

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

//go:embed edit.md
var editDescription string

// Edit is the edit tool. It is safe for concurrent use.
type Edit struct{ base }

// NewEdit returns the edit tool.
func NewEdit(cfg Config, ws *workspace.Workspace) (*Edit, error) {
	b, err := newBase(cfg, ws)
	return &Edit{b}, err
}

// Spec implements tools.Tool.
func (*Edit) Spec() call.Spec {
	return call.Spec{
		Name: "edit", Title: "Edit file", Description: strings.TrimSpace(editDescription),
		Input: json.RawMessage(editInput), Output: json.RawMessage(editOutput),
		Effect: call.WritesFiles, Confirm: call.ConfirmByPolicy, Destructive: call.Yes, Idempotent: call.No,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
	}
}

// Facts implements tools.Tool. An edit reads what it changes, so that
// deny_read holds for it too.
func (t *Edit) Facts(raw json.RawMessage) (call.Facts, error) {
	var a editArgs
	if err := tools.DecodeArgs(raw, &a); err != nil {
		return call.Facts{}, err
	}
	switch a.OldString {
	case "":
		return call.Facts{}, call.ArgError("old_string", "the text to replace is empty", "use write to make a file, or quote the lines around the place")
	case a.NewString:
		return call.Facts{}, call.ArgError("new_string", "it is the same as old_string", "nothing would change")
	}
	p, err := t.target(a.Path, "edit")
	if err != nil {
		return call.Facts{}, err
	}
	read := p
	read.Op = "read"
	return call.Facts{
		Summary: "edit " + t.ws.Rel(p.Path), Text: p.Path, Reads: []call.Path{read}, Writes: []call.Path{p},
	}, nil
}

// editResult is the structured result.
type editResult struct {
	Replacements int    `json:"replacements"`
	Diff         string `json:"diff"`
	HardLinks    uint64 `json:"hard_links,omitempty"`
}

// Run implements tools.Tool.
func (t *Edit) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a editArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	p, err := judged(auth)
	if err != nil {
		return call.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return call.Result{}, err
	}
	res, err := t.edit(auth.Session(), p, a)
	return res, t.ws.Explain(auth.Session(), "path", p, err)
}

func (t *Edit) edit(session string, p call.Path, a editArgs) (call.Result, error) {
	defer t.ws.Lock(p)()
	old, info, err := t.text(session, p)
	if err != nil {
		return call.Result{}, err
	}
	text, n, err := replace(string(old), a)
	if err != nil {
		return call.Result{}, err
	}
	if _, err := t.ws.WriteAtomic(session, p, []byte(text), workspace.WriteOptions{Expect: info, Sync: t.cfg.Sync}); err != nil {
		return call.Result{}, err
	}
	out := editResult{Replacements: n, Diff: diff(t.ws.Rel(p.Path), old, []byte(text), t.cfg.DiffBytes)}
	shown := fmt.Sprintf("Edited %s (%d replacements)\n%s", a.Path, n, out.Diff)
	if n == 1 {
		shown = fmt.Sprintf("Edited %s\n%s", a.Path, out.Diff)
	}
	if info.Links > 1 {
		out.HardLinks = info.Links
		shown += linksNote(info.Links)
	}
	structured, err := tools.EncodeResult(out)
	return call.Result{Text: shown, Structured: structured, Outcome: call.Outcome{RawBytes: int64(len(text))}}, err
}

// text reads a file that can be edited: there, small enough, and UTF-8.
func (t *Edit) text(session string, p call.Path) ([]byte, *workspace.Info, error) {
	old, info, err := t.current(session, p)
	fail := func(code, message, suggestion string) ([]byte, *workspace.Info, error) {
		e := call.Failure(code, message, suggestion)
		e.Field = "path"
		return nil, nil, e
	}
	switch {
	case err != nil:
		return nil, nil, err
	case info == nil:
		return nil, nil, notThere()
	case info.Size() > t.cfg.MaxFileBytes:
		return fail("too_large", fmt.Sprintf("the file has %d bytes; edit takes up to %d", info.Size(), t.cfg.MaxFileBytes), "change it with bash: sed, awk, perl")
	case old == nil && info.Size() > 0:
		return fail("permission", "the file cannot be read", "look at its mode with list_directory")
	case !utf8.Valid(old):
		return fail("not_utf8", fmt.Sprintf("the file is not UTF-8 at byte %d", firstInvalid(old)+1), "convert it with bash: iconv, or change it with sed")
	case strings.ContainsRune(string(old), 0):
		return fail("binary", "the file is binary: it holds NUL bytes", "change it with a program for its format")
	}
	return old, info, nil
}

// firstInvalid returns where b stops being UTF-8.
func firstInvalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(b)
}
