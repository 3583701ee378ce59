package write

import (
	"errors"
	"fmt"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// writeArgs are the arguments of write.
type writeArgs struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Overwrite *bool  `json:"overwrite"` // nil = true
}

const writeInput = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},` +
	`"overwrite":{"type":"boolean","default":true}},"required":["path","content"],"additionalProperties":false}`

const writeOutput = `{"type":"object","properties":{"bytes":{"type":"integer"},"created":{"type":"boolean"},` +
	`"diff":{"type":"string"}}}`

// editArgs are the arguments of edit.
type editArgs struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

const editInput = `{"type":"object","properties":{"path":{"type":"string"},"old_string":{"type":"string"},` +
	`"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},` +
	`"required":["path","old_string","new_string"],"additionalProperties":false}`

const editOutput = `{"type":"object","properties":{"replacements":{"type":"integer"},"diff":{"type":"string"}}}`

// base is what the tools have in common.
type base struct {
	cfg Config
	ws  *workspace.Workspace
}

func newBase(cfg Config, ws *workspace.Workspace) (base, error) {
	if ws == nil {
		return base{}, errors.New("write: no workspace")
	}
	if err := cfg.Validate(); err != nil {
		return base{}, err
	}
	return base{cfg: cfg, ws: ws}, nil
}

// target resolves the file a call wants to change.
func (b base) target(text, tool string) (call.Path, error) {
	p, err := b.ws.Argument("path", text, true)
	if err != nil {
		return call.Path{}, err
	}
	if text[len(text)-1] == '/' {
		return call.Path{}, call.ArgError("path", "a path that ends in / names a folder", "give a file name")
	}
	p.By, p.Op = tool, "write"
	return p, nil
}

// judged returns the path the call was permitted to write.
func judged(a gates.Authorized) (call.Path, error) {
	writes := a.Facts().Writes
	if len(writes) != 1 {
		return call.Path{}, fmt.Errorf("%s: %d writes in the facts, want 1", a.Tool(), len(writes))
	}
	return writes[0], nil
}
