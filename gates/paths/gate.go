// Package paths is the gate that judges which files a call names: writes
// outside the workspace, protected names, secrets, and reads of places that
// need leave. It judges commands and file tools by the same rules.
package paths

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// Gate judges paths. It is safe for concurrent use.
type Gate struct {
	ask   bool // outside reads ask; false denies them
	roots []string
}

// New returns a gate. The roots are only shown in suggestions.
func New(cfg Config, roots ...string) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		return nil, errors.New("paths: no workspace root")
	}
	return &Gate{ask: cfg.OutsideRead == "confirm", roots: slices.Clone(roots)}, nil
}

// Name returns "paths".
func (*Gate) Name() string { return "paths" }

type finding struct {
	gates.Decision
	pos call.Pos
}

// Check judges every named path of a call.
func (g *Gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	f := &c.Facts
	var found []finding
	if f.Cwd.Path != "" && !f.Cwd.Place.Writable() {
		found = append(found, g.outsideCwd(f.Cwd))
	}
	for i := range f.Writes {
		if d, bad := g.write(&f.Writes[i]); bad {
			found = append(found, d)
		}
	}
	for i := range f.Reads {
		if d, bad := g.read(&f.Reads[i]); bad {
			found = append(found, d)
		}
	}
	if len(found) == 0 {
		return gates.Permit(), nil
	}
	best := slices.MinFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.pos.Line, b.pos.Line), cmp.Compare(a.pos.Column, b.pos.Column))
	})
	return best.Decision, nil
}

func deny(p *call.Path, code, reason, suggestion string) (finding, bool) {
	return finding{gates.Decision{Verdict: gates.Deny, Code: code, Reason: reason + ": " + show(p), Suggestion: suggestion}, p.Pos}, true
}

func (g *Gate) outsideCwd(p call.Path) finding {
	d, _ := deny(&p, "outside_workspace", "the working directory lies outside the writable roots", "leave cwd out, or use "+g.roots[0])
	return d
}

// show names a path as written, where it leads, and where it stands.
func show(p *call.Path) string {
	out := "«" + p.Text + "»"
	if p.Text != p.Path && p.Path != "" {
		out += " (" + p.Path + ")"
	}
	if p.By != "" {
		out += " of " + p.By
	}
	if p.Line > 0 {
		out += fmt.Sprintf(" at %d:%d", p.Line, p.Column)
	}
	return out
}

func (g *Gate) write(p *call.Path) (finding, bool) {
	switch {
	case p.Protected != "" && g.protects(p):
		return deny(p, "protected_path", p.Protected+" decides what other programs run and is not changed by tools", "ask the person to change it")
	case p.Secret != "" && p.Inside:
		return deny(p, "secret_path", "the path is never given ("+p.Secret+")", "use another file")
	case !p.Place.Writable():
		return deny(p, "outside_workspace", "the write lands outside the writable roots", g.elsewhere(p))
	case p.By == "delete_path":
		return g.deletePath(p)
	}
	return finding{}, false
}

// elsewhere says what to do instead of a write outside.
func (g *Gate) elsewhere(p *call.Path) string {
	const open = " or /tmp"
	switch p.Op {
	case "mode":
		return "change modes only below " + g.roots[0] + open + ", with 755 for folders and programs and 644 for files"
	case "delete":
		return "delete only below " + g.roots[0] + open
	}
	return "write below " + g.roots[0] + open + ", and copy it from there"
}

// protects reports whether this kind of write changes a protected name. The
// folder .git may be written into, but neither moved, deleted nor replaced; git
// itself may change its own configuration, which the sandbox verifies.
func (*Gate) protects(p *call.Path) bool {
	switch p.Protected {
	case ".git":
		return p.Op == "delete" || p.Op == "move" || p.Op == "link" || p.Op == "mode" && p.Recursive
	case ".git/config":
		return p.By != "git"
	}
	return true
}

func (g *Gate) deletePath(p *call.Path) (finding, bool) {
	switch {
	case p.Root:
		return deny(p, "destructive_delete", "the workspace root is never deleted", "name a concrete sub-directory")
	case p.Recursive:
		d := gates.Decision{
			Verdict: gates.Confirm, Code: "recursive_delete", Kind: "recursive_delete " + path.Dir(p.Path),
			Reason: "everything below is deleted: " + show(p), Suggestion: "delete single files, or move the folder aside",
		}
		return finding{d, p.Pos}, true
	}
	return finding{}, false
}

func (g *Gate) read(p *call.Path) (finding, bool) {
	switch {
	case p.Secret != "":
		return deny(p, "secret_path", "the path is never readable ("+p.Secret+")", "ask the person for what you need to know")
	case p.Test:
		return finding{}, false
	case p.Place.Readable() && (!p.Recursive || p.HoldsDeny == ""):
		return finding{}, false
	}
	reason := "the read leaves what is readable by default"
	if p.Place.Readable() {
		reason = "the search goes through " + p.HoldsDeny
	}
	if !g.ask {
		return deny(p, "outside_read", reason, "work below "+g.roots[0])
	}
	d := gates.Decision{
		Verdict: gates.Confirm, Code: "outside_read", Kind: "outside_read " + path.Dir(p.Path),
		Reason: reason + ": " + show(p), Suggestion: "work below " + g.roots[0],
	}
	return finding{d, p.Pos}, true
}
