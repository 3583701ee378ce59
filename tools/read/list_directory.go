package read

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

//go:embed list_directory.md
var listDescription string

// ListDirectory is the list_directory tool. It is safe for concurrent use.
type ListDirectory struct{ base }

// NewListDirectory returns the list_directory tool.
func NewListDirectory(cfg Config, ws *workspace.Workspace) (*ListDirectory, error) {
	b, err := newBase(cfg, ws)
	return &ListDirectory{b}, err
}

// Spec implements tools.Tool.
func (*ListDirectory) Spec() call.Spec {
	return spec("list_directory", "List folder", listDescription, listInput, listOutput)
}

// Facts implements tools.Tool.
func (t *ListDirectory) Facts(raw json.RawMessage) (call.Facts, error) {
	var a listArgs
	if err := tools.DecodeArgs(raw, &a); err != nil {
		return call.Facts{}, err
	}
	p, err := t.ws.Argument("path", a.Path, true)
	if err != nil {
		return call.Facts{}, err
	}
	return t.facts(p, "list_directory", "list "+t.ws.Rel(p.Path)), nil
}

// entry is one line of a listing.
type entry struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // dir, file, symlink, other
	Size   int64  `json:"size"`
	Mode   string `json:"mode"`
	MTime  string `json:"mtime"`
	Target string `json:"target,omitempty"`
}

// listResult is the structured result.
type listResult struct {
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated"`
}

// Run implements tools.Tool.
func (t *ListDirectory) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a listArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	p, err := judged(auth)
	if err != nil {
		return call.Result{}, err
	}
	d, err := t.ws.OpenDir(auth.Session(), p)
	if err != nil {
		return call.Result{}, t.ws.Explain(auth.Session(), "path", p, err)
	}
	defer d.Close()
	list, err := d.ReadDir()
	if err != nil {
		return call.Result{}, t.ws.Explain(auth.Session(), "path", p, err)
	}
	entries := make([]entry, 0, len(list))
	for _, e := range list {
		if ctx.Err() != nil {
			return call.Result{}, ctx.Err()
		}
		if info, err := d.Lstat(e.Name()); err == nil { // else gone meanwhile
			entries = append(entries, describe(d, info))
		}
	}
	return t.result(a, entries)
}

func describe(d *workspace.Dir, info *workspace.Info) entry {
	e := entry{
		Name: info.Name(), Type: "other", Size: info.Size(), Mode: info.Mode().String(),
		MTime: info.ModTime().UTC().Format("2006-01-02T15:04:05Z"),
	}
	switch {
	case info.IsDir():
		e.Type, e.Size = "dir", 0
	case info.Mode().IsRegular():
		e.Type = "file"
	case info.Mode()&fs.ModeSymlink != 0:
		e.Type = "symlink"
		if target, err := d.Readlink(info.Name()); err == nil {
			e.Target = target
		}
	}
	return e
}

func (t *ListDirectory) result(a listArgs, all []entry) (call.Result, error) {
	order := []string{"dir", "file", "symlink", "other"}
	slices.SortStableFunc(all, func(x, y entry) int {
		return slices.Index(order, x.Type) - slices.Index(order, y.Type)
	})
	out := listResult{Entries: []entry{}}
	var b strings.Builder
	for _, e := range all {
		line := e.line()
		if len(out.Entries) >= t.cfg.MaxResults || b.Len()+len(line) > t.cfg.PageBytes {
			out.Truncated = true
			break
		}
		out.Entries = append(out.Entries, e)
		b.WriteString(line)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	switch {
	case len(all) == 0:
		text = "Empty directory: " + a.Path
	case out.Truncated:
		text += fmt.Sprintf("\n... (showing %d of %d entries; find_path narrows)", len(out.Entries), len(all))
	}
	structured, err := tools.EncodeResult(out)
	return call.Result{Text: text, Structured: structured, Outcome: call.Outcome{Truncated: out.Truncated, RawBytes: int64(len(text))}}, err
}

func (e entry) line() string {
	stamp := strings.Replace(e.MTime[:16], "T", " ", 1)
	e.Name = printable(e.Name)
	switch e.Type {
	case "dir":
		return fmt.Sprintf("[dir]  %s  (%s)\n", e.Name, stamp)
	case "file":
		return fmt.Sprintf("[file] %s  (%d bytes, %s)\n", e.Name, e.Size, stamp)
	case "symlink":
		return fmt.Sprintf("[symlink] %s -> %s\n", e.Name, printable(e.Target))
	}
	return fmt.Sprintf("[other] %s  (%s)\n", e.Name, e.Mode)
}
