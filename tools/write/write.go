// Package write holds the tools that change files: write and edit. A file is
// replaced in one step by a complete new one, and never through a link that was
// not there when the call was judged.
package write

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

//go:embed write.md
var writeDescription string

// Write is the write tool. It is safe for concurrent use.
type Write struct{ base }

// NewWrite returns the write tool.
func NewWrite(cfg Config, ws *workspace.Workspace) (*Write, error) {
	b, err := newBase(cfg, ws)
	return &Write{b}, err
}

// Spec implements tools.Tool.
func (*Write) Spec() call.Spec {
	return call.Spec{
		Name: "write", Title: "Write file", Description: strings.TrimSpace(writeDescription),
		Input: json.RawMessage(writeInput), Output: json.RawMessage(writeOutput),
		Effect: call.WritesFiles, Confirm: call.ConfirmByPolicy, Destructive: call.Yes, Idempotent: call.Yes,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
	}
}

// Facts implements tools.Tool.
func (t *Write) Facts(raw json.RawMessage) (call.Facts, error) {
	var a writeArgs
	if err := tools.DecodeArgs(raw, &a); err != nil {
		return call.Facts{}, err
	}
	p, err := t.target(a.Path, "write")
	if err != nil {
		return call.Facts{}, err
	}
	return call.Facts{
		Summary: fmt.Sprintf("write %d bytes to %s", len(a.Content), t.ws.Rel(p.Path)),
		Text:    p.Path, Writes: []call.Path{p},
	}, nil
}

// writeResult is the structured result.
type writeResult struct {
	Bytes     int    `json:"bytes"`
	Created   bool   `json:"created"`
	Diff      string `json:"diff"` // empty for a new file
	HardLinks uint64 `json:"hard_links,omitempty"`
}

// Run implements tools.Tool.
func (t *Write) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a writeArgs
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
	res, err := t.write(auth.Session(), p, a)
	return res, t.ws.Explain(auth.Session(), "path", p, err)
}

func (t *Write) write(session string, p call.Path, a writeArgs) (call.Result, error) {
	defer t.ws.Lock(p)()
	old, info, err := t.current(session, p)
	if err != nil {
		return call.Result{}, err
	}
	opt := workspace.WriteOptions{
		MustNotExist: a.Overwrite != nil && !*a.Overwrite, Expect: info, Sync: t.cfg.Sync,
	}
	if info == nil {
		dir := t.ws.ClassifyFile(path.Dir(p.Path))
		if err := t.parents(session, dir); err != nil {
			return call.Result{}, err
		}
	}
	if _, err := t.ws.WriteAtomic(session, p, []byte(a.Content), opt); err != nil {
		return call.Result{}, err
	}
	out := writeResult{Bytes: len(a.Content), Created: info == nil}
	text := fmt.Sprintf("Wrote %d bytes to %s", len(a.Content), a.Path)
	switch {
	case out.Created:
		text += " (new file)"
	case !utf8.Valid(old) || int64(len(old)) < info.Size():
		text += fmt.Sprintf(" (replaced %d bytes; no diff: binary or large)", info.Size())
	case string(old) == a.Content:
		text += " (unchanged)"
	default:
		out.Diff = diff(t.ws.Rel(p.Path), old, []byte(a.Content), t.cfg.DiffBytes)
		text += "\n" + out.Diff
	}
	if info != nil && info.Links > 1 {
		out.HardLinks = info.Links
		text += linksNote(info.Links)
	}
	structured, err := tools.EncodeResult(out)
	return call.Result{Text: text, Structured: structured, Outcome: call.Outcome{RawBytes: int64(len(a.Content))}}, err
}

// parents makes the folders a new file needs.
func (t *Write) parents(session string, dir call.Path) error {
	if _, err := t.ws.Lstat(session, dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.ws.MkdirAll(session, dir, 0o777)
}

// linksNote tells that a file had other names.
func linksNote(n uint64) string {
	return fmt.Sprintf("\nnote: hard_links: %d; the other names keep the old content", n)
}

// current reads what stands at p, as far as it is small enough to compare. A
// missing file is nil and no error.
func (b base) current(session string, p call.Path) ([]byte, *workspace.Info, error) {
	f, err := b.ws.OpenFile(session, p, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if errors.Is(err, fs.ErrPermission) { // not ours to read, perhaps ours to replace
		if info, err := b.ws.Lstat(session, p); err == nil {
			return nil, info, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	info, err := workspace.Fstat(f)
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > b.cfg.MaxFileBytes {
		return nil, info, nil
	}
	text, err := io.ReadAll(io.LimitReader(f, b.cfg.MaxFileBytes+1))
	return text, info, err
}
