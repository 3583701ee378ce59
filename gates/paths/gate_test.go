package paths_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/paths"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	ws := call.Path{Text: "f", Path: "/ws/f", Place: call.PlaceWorkspace, Inside: true}
	with := func(p call.Path, f func(*call.Path)) call.Path {
		f(&p)
		return p
	}
	outside := call.Path{Text: "/srv/x", Path: "/srv/x", Place: call.PlaceOutside}
	secret := call.Path{Text: "/etc/shadow", Path: "/etc/shadow", Place: call.PlaceSecret, Secret: "/etc/shadow"}
	git := with(ws, func(p *call.Path) { p.Path, p.Protected = "/ws/.git", ".git" })
	for _, c := range []struct {
		name  string
		facts call.Facts
		deny  bool // outside_read = deny
		want  gates.Verdict
		code  string
	}{
		{"nothing", call.Facts{}, false, gates.Allow, ""},
		{"a write inside", call.Facts{Writes: []call.Path{ws}}, false, gates.Allow, ""},
		{"a write outside", call.Facts{Writes: []call.Path{outside}}, false, gates.Deny, "outside_workspace"},
		{"a write of nobody knows where", call.Facts{Writes: []call.Path{{Path: "/x"}}}, false, gates.Deny, "outside_workspace"},
		{"a write of a system file that is secret", call.Facts{Writes: []call.Path{secret}}, false, gates.Deny, "outside_workspace"},
		{"a write of a secret inside", call.Facts{Writes: []call.Path{with(ws, func(p *call.Path) { p.Secret, p.Place = "deny_read", call.PlaceSecret })}}, false, gates.Deny, "secret_path"},
		{"a write of a protected name", call.Facts{Writes: []call.Path{with(ws, func(p *call.Path) { p.Protected = ".envrc" })}}, false, gates.Deny, "protected_path"},
		{"git changes its own configuration", call.Facts{Writes: []call.Path{with(ws, func(p *call.Path) { p.Protected, p.By = ".git/config", "git" })}}, false, gates.Allow, ""},
		{"nobody else does", call.Facts{Writes: []call.Path{with(ws, func(p *call.Path) { p.Protected, p.By = ".git/config", "tee" })}}, false, gates.Deny, "protected_path"},
		{"a file put into .git", call.Facts{Writes: []call.Path{with(git, func(p *call.Path) { p.Op = "write" })}}, false, gates.Allow, ""},
		{".git moved", call.Facts{Writes: []call.Path{with(git, func(p *call.Path) { p.Op = "move" })}}, false, gates.Deny, "protected_path"},
		{".git deleted", call.Facts{Writes: []call.Path{with(git, func(p *call.Path) { p.Op = "delete" })}}, false, gates.Deny, "protected_path"},
		{"the root deleted", call.Facts{Writes: []call.Path{with(ws, func(p *call.Path) { p.Root, p.By, p.Op = true, "delete_path", "delete" })}}, false, gates.Deny, "destructive_delete"},
		{"a folder deleted", call.Facts{Writes: []call.Path{with(ws, func(p *call.Path) { p.Recursive, p.By, p.Op = true, "delete_path", "delete" })}}, false, gates.Confirm, "recursive_delete"},
		{"a file deleted", call.Facts{Writes: []call.Path{with(ws, func(p *call.Path) { p.By, p.Op = "delete_path", "delete" })}}, false, gates.Allow, ""},
		{"a read inside", call.Facts{Reads: []call.Path{ws}}, false, gates.Allow, ""},
		{"a read outside", call.Facts{Reads: []call.Path{outside}}, false, gates.Confirm, "outside_read"},
		{"a read outside, denied by config", call.Facts{Reads: []call.Path{outside}}, true, gates.Deny, "outside_read"},
		{"an existence test outside", call.Facts{Reads: []call.Path{with(outside, func(p *call.Path) { p.Test = true })}}, false, gates.Allow, ""},
		{"an existence test of a secret", call.Facts{Reads: []call.Path{with(secret, func(p *call.Path) { p.Test = true })}}, false, gates.Deny, "secret_path"},
		{"a secret", call.Facts{Reads: []call.Path{secret}}, false, gates.Deny, "secret_path"},
		{"a listing of /", call.Facts{Reads: []call.Path{{Path: "/", Place: call.PlaceSystem, HoldsDeny: "/home"}}}, false, gates.Allow, ""},
		{"a search of /", call.Facts{Reads: []call.Path{{Path: "/", Place: call.PlaceSystem, HoldsDeny: "/home", Recursive: true}}}, false, gates.Confirm, "outside_read"},
		{"a deny beats an earlier confirm", call.Facts{Reads: []call.Path{outside, secret}}, false, gates.Deny, "secret_path"},
		{"a working directory outside", call.Facts{Cwd: outside}, false, gates.Deny, "outside_workspace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := paths.Default()
			if c.deny {
				cfg.OutsideRead = "deny"
			}
			g, err := paths.New(cfg, "/ws")
			if err != nil {
				t.Fatal(err)
			}
			d, err := g.Check(t.Context(), call.Call{Facts: c.facts})
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict != c.want || d.Code != c.code {
				t.Errorf("got %s %q (%s), want %s %q", d.Verdict, d.Code, d.Reason, c.want, c.code)
			}
			if d.Verdict == gates.Confirm && d.Kind == "" {
				t.Error("a confirm of a path has no kind")
			}
		})
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := paths.New(paths.Config{OutsideRead: "allow"}, "/ws"); err == nil || err.Error() != `tools.file.outside_read: "allow" is neither "confirm" nor "deny"` {
		t.Errorf("got %v", err)
	}
	if _, err := paths.New(paths.Default()); err == nil {
		t.Error("a gate without a root was made")
	}
}

// corpusPath is a path of the corpus: its place is a word there.
type corpusPath struct {
	call.Path
	Word string `json:"place"`
}

// corpusCase is one line of the corpus.
type corpusCase struct {
	Want  string `json:"want"`
	Code  string `json:"code"`
	Deny  bool   `json:"deny"` // outside_read = deny
	Facts struct {
		Cwd    *corpusPath  `json:"cwd"`
		Reads  []corpusPath `json:"reads"`
		Writes []corpusPath `json:"writes"`
	} `json:"facts"`
}

func (c *corpusCase) facts(tb testing.TB) call.Facts {
	tb.Helper()
	one := func(p corpusPath) call.Path {
		for p.Place = call.PlaceUnknown; p.Place <= call.PlaceWorkspace; p.Place++ {
			if p.Place.String() == p.Word {
				return p.Path
			}
		}
		tb.Fatalf("no place is called %q", p.Word)
		return call.Path{}
	}
	var out call.Facts
	if c.Facts.Cwd != nil {
		out.Cwd = one(*c.Facts.Cwd)
	}
	for _, p := range c.Facts.Reads {
		out.Reads = append(out.Reads, one(p))
	}
	for _, p := range c.Facts.Writes {
		out.Writes = append(out.Writes, one(p))
	}
	return out
}

// TestVerdicts judges the corpus of facts.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/verdicts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var c corpusCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cfg := paths.Default()
			if c.Deny {
				cfg.OutsideRead = "deny"
			}
			g, err := paths.New(cfg, "/ws")
			if err != nil {
				t.Fatal(err)
			}
			d, err := g.Check(t.Context(), call.Call{Facts: c.facts(t)})
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict.String() != c.Want || d.Code != c.Code {
				t.Errorf("got %s %q (%s), want %s %q", d.Verdict, d.Code, d.Reason, c.Want, c.Code)
			}
		})
	}
}
