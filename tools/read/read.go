// Package read holds the tools that read files: read, find_path, grep and
// list_directory. They judge paths through the workspace and open them on its
// handles, following no link that was not there when the call was judged.
package read

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

//go:embed read.md
var readDescription string

// Read is the read tool. It is safe for concurrent use.
type Read struct{ base }

// NewRead returns the read tool.
func NewRead(cfg Config, ws *workspace.Workspace) (*Read, error) {
	b, err := newBase(cfg, ws)
	return &Read{b}, err
}

// Spec implements tools.Tool.
func (*Read) Spec() call.Spec {
	s := spec("read", "Read file", readDescription, readInput, readOutput)
	s.Cacheable = call.Yes
	return s
}

// Facts implements tools.Tool.
func (t *Read) Facts(raw json.RawMessage) (call.Facts, error) {
	var a readArgs
	if err := tools.DecodeArgs(raw, &a); err != nil {
		return call.Facts{}, err
	}
	p, err := t.ws.Argument("path", a.Path, true)
	if err != nil {
		return call.Facts{}, err
	}
	return t.facts(p, "read", "read "+t.ws.Rel(p.Path)), nil
}

// readResult is the structured result.
type readResult struct {
	Content    string `json:"content"`
	Lines      int    `json:"lines"`
	TotalLines *int   `json:"total_lines,omitempty"` // left out when the file is too large to count
	NextOffset *int   `json:"next_offset,omitempty"`
	Truncated  bool   `json:"truncated"`
	Encoding   string `json:"encoding,omitempty"` // when it is not plain UTF-8
}

// Run implements tools.Tool.
func (t *Read) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a readArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	p, err := judged(auth)
	if err != nil {
		return call.Result{}, err
	}
	f, err := t.ws.OpenFile(auth.Session(), p, os.O_RDONLY, 0)
	if err != nil {
		return call.Result{}, t.ws.Explain(auth.Session(), "path", p, err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	res, err := t.read(ctx, f, a)
	return res, t.ws.Explain(auth.Session(), "path", p, err)
}

// judged returns the path the call was permitted on.
func judged(a gates.Authorized) (call.Path, error) {
	reads := a.Facts().Reads
	if len(reads) != 1 {
		return call.Path{}, fmt.Errorf("%s: %d paths in the facts, want 1", a.Tool(), len(reads))
	}
	return reads[0], nil
}

func (t *Read) read(ctx context.Context, f *os.File, a readArgs) (call.Result, error) {
	info, err := f.Stat()
	if err != nil {
		return call.Result{}, err
	}
	size := info.Size()
	src, err := newSource(f, size)
	if err != nil {
		return call.Result{}, err
	}
	if src.kind.image && size <= t.cfg.ImageBytes {
		return t.image(f, src.kind, size)
	}
	if src.kind.binary {
		return call.Result{}, binaryError(src.kind, size)
	}
	limit := a.Limit
	if limit <= 0 {
		limit = t.cfg.PageLines
	}
	pg := pager{src: src, offset: a.Offset, limit: limit, pageBytes: t.cfg.PageBytes, lineBytes: t.cfg.LineBytes}
	if err := pg.run(ctx); err != nil {
		return call.Result{}, err
	}
	return pg.result(size)
}

// image returns the whole file as image content.
func (t *Read) image(f *os.File, k kind, size int64) (call.Result, error) {
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return call.Result{}, err
	}
	text := fmt.Sprintf("%s image, %d bytes", k.name, size)
	structured, err := tools.EncodeResult(readResult{Content: text})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{
		Text: text, Structured: structured, Images: []call.Image{{MIME: k.mime, Data: data}},
		Outcome: call.Outcome{RawBytes: size},
	}, nil
}

func binaryError(k kind, size int64) error {
	e := call.Failure("binary", fmt.Sprintf("binary, %d bytes, %s", size, k.name),
		"look at it with bash: file, strings, xxd, or a program for its format")
	e.Field, e.Details = "path", map[string]any{"bytes": size, "type": k.name}
	return e
}
