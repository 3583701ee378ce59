package shellast_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/gates/paths"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// fixture is a workspace, a home and a place outside, side by side and outside
// everything that is writable or readable by default.
type fixture struct {
	base, ws, home, out string
	a                   *shellast.Analyzer
	chain               *gates.Chain
}

// fixtureBase finds a folder for the fixture. ZEPH_TEST_BASE overrides.
func fixtureBase(tb testing.TB) string {
	tb.Helper()
	if b := os.Getenv("ZEPH_TEST_BASE"); b != "" {
		return b
	}
	here, err := filepath.Abs("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	candidates := []string{here, "/srv", "/mnt", "/data"}
	for _, c := range candidates {
		bad := false
		for _, p := range []string{"/tmp/", "/var/", "/usr/", "/opt/", "/etc/", "/private/"} {
			bad = bad || strings.HasPrefix(c+"/", p)
		}
		if bad {
			continue
		}
		d, err := os.MkdirTemp(c, ".probe-") //nolint:usetesting // it has to lie outside /tmp
		if err == nil {
			_ = os.Remove(d)
			return c
		}
	}
	tb.Skip("no folder outside /tmp, /var, /usr and the homes can be made; set ZEPH_TEST_BASE")
	return ""
}

func newFixture(tb testing.TB, cfg command.Config, posture command.Posture) *fixture {
	tb.Helper()
	base, err := os.MkdirTemp(fixtureBase(tb), ".tmp-") //nolint:usetesting // it has to lie outside /tmp
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(base) })
	f := &fixture{base: base, ws: base + "/ws", home: base + "/home", out: base + "/outside"}
	for p, text := range fixtureFiles() {
		p = filepath.Join(base, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for p, target := range fixtureLinks() {
		if err := os.Symlink(target, filepath.Join(base, p)); err != nil {
			tb.Fatal(err)
		}
	}
	w, err := workspace.Open(workspace.Config{Roots: []string{f.ws}}, workspace.Env{Home: f.home, UID: os.Getuid()})
	if err != nil {
		tb.Fatal(err)
	}
	f.a = shellast.New(w, shellast.Options{})
	cg, err := command.New(cfg, posture)
	if err != nil {
		tb.Fatal(err)
	}
	pg, err := paths.New(paths.Default(), w.Roots()...)
	if err != nil {
		tb.Fatal(err)
	}
	f.chain, err = gates.NewChain(cg, pg)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func fixtureFiles() map[string]string {
	return map[string]string{
		"ws/file.txt": "hello\n", "ws/file with spaces.txt": "x\n", "ws/a;b.txt": "x\n", "ws/-dash.txt": "x\n",
		"ws/data.txt": "a 1\n", "ws/data.csv": "a,1\n", "ws/data.json": "{}\n", "ws/sub/a.txt": "a\n", "ws/sub/deep/b.txt": "b\n",
		"ws/.env": "A=1\n", "ws/.envrc": "x\n", "ws/.mcp.json": "{}\n", "ws/halt": "#!/bin/sh\n", "ws/scripts/wget.sh": "#!/bin/sh\n",
		"ws/scripts/build.sh": "#!/bin/sh\n", "ws/.git/config": "[core]\n", "ws/.git/HEAD": "ref: refs/heads/main\n", "ws/.git/hooks/pre-commit.sample": "x\n",
		"ws-evil/file.txt": "x\n", "outside/secret.txt": "x\n", "outside/curl": "#!/bin/sh\n",
		"home/notes.txt": "x\n", "home/.ssh/id_rsa": "x\n", "home/.netrc": "x\n", "home/.aws/credentials": "x\n", "home/.git-credentials": "x\n",
		"home/.cargo/credentials.toml": "x\n", "home/.claude/settings.json": "{}\n", "home/.bash_history": "ls\n",
	}
}

func fixtureLinks() map[string]string {
	return map[string]string{
		"ws/link_etc": "/etc", "ws/link_in": "sub", "ws/link_git": ".git", "ws/link_out": "../outside", "ws/link_file": "../outside/secret.txt",
		"ws/link_chain": "link_out", "ws/link_dangling": "../outside/missing.txt", "ws/sub/up": "..", "ws/helper": "../outside/curl",
		"ws/sub/curl": "../scripts/build.sh",
	}
}

// bashArgs are the arguments of the bash tool that the analyzer takes.
type bashArgs struct {
	Command      string            `json:"command"`
	Cwd          string            `json:"cwd"`
	Env          map[string]string `json:"env"`
	AllowDomains []string          `json:"allow_domains"`
	AllowWrite   []string          `json:"allow_write"`
	Network      string            `json:"network"`
}

// fill replaces the tokens of a case.
func (f *fixture) fill(s string) string {
	return strings.NewReplacer("${HOME}", "${HOME}", "{WS}", f.ws, "{HOME}", f.home, "{OUT}", f.out,
		"{PAD60K}", strings.Repeat("a", 60<<10), "{PAD66K}", strings.Repeat("a", 66<<10)).Replace(s)
}

// judge returns the verdict on one call and the facts it was made on.
func (f *fixture) judge(a bashArgs) (gates.Judgement, call.Facts) {
	facts := f.a.Analyze(shellast.Request{
		Command: a.Command, Cwd: a.Cwd, Env: a.Env, AllowDomains: a.AllowDomains, AllowWrite: a.AllowWrite, Network: a.Network, Given: shellast.Given{Writes: true},
	})
	spec := call.Spec{Name: "bash", Effect: call.RunsCommands, Confirm: call.ConfirmByPolicy}
	return f.chain.Judge(context.Background(), call.Call{Spec: spec, Facts: facts}), facts
}

// rawCase is one line of a corpus.
type rawCase struct {
	ID    string          `json:"id"`
	Args  json.RawMessage `json:"args"`
	Want  json.RawMessage `json:"want"`
	Codes []string        `json:"codes"`
	Why   string          `json:"why"`
}

func (c rawCase) wants() []string {
	var one string
	if json.Unmarshal(c.Want, &one) == nil {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(c.Want, &many)
	return many
}
