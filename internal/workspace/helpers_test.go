package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

// fixture is a workspace beside a home and an outside folder, in a place that
// is none of /tmp, /var, /usr or a home: there, every ".." would prove nothing.
type fixture struct {
	ws, out, home, state string
	*Workspace
}

func newFixture(tb testing.TB, change func(*Config)) fixture {
	tb.Helper()
	base := workspacetest.Base(tb)
	f := fixture{
		ws: base + "/ws", out: base + "/outside", home: base + "/home", state: base + "/state",
	}
	for _, d := range []string{
		f.ws + "/sub/deep", f.ws + "/.git/hooks", f.ws + "/.git/modules/libs/a/hooks", f.ws + "/.husky",
		f.out, f.home + "/.ssh", f.home + "/.cargo", base + "/ws-evil",
	} {
		mkdir(tb, d)
	}
	for p, text := range map[string]string{
		f.ws + "/file.txt": "a\n", f.ws + "/sub/deep/b.txt": "b\n", f.ws + "/.env": "K=V\n", f.ws + "/.envrc": "x\n",
		f.ws + "/.git/config": "[core]\n", f.ws + "/.git/modules/libs/a/HEAD": "ref\n",
		f.ws + "/.git/modules/libs/a/config": "[core]\n", f.out + "/secret.txt": "s\n",
		f.home + "/notes.txt": "n\n", f.home + "/.ssh/id": "k\n", f.home + "/.cargo/credentials.toml": "t\n",
		f.home + "/.netrc": "m\n",
	} {
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"link_etc": "/etc", "link_in": "sub", "link_git": ".git", "link_out": "../outside",
		"link_file": "../outside/secret.txt", "link_chain": "link_out", "link_dangling": "../outside/missing.txt",
		"sub/up": "..", "loop": "loop2", "loop2": "loop", "link_ssh": "../home/.ssh", "link_proc": "/proc/self",
		".vscode": "sub",
	} {
		if err := os.Symlink(target, filepath.Join(f.ws, name)); err != nil {
			tb.Fatal(err)
		}
	}
	cfg := Default()
	cfg.Roots = []string{f.ws}
	if change != nil {
		change(&cfg)
	}
	w, err := Open(cfg, Env{Home: f.home, StateDir: f.state, UID: os.Getuid()})
	if err != nil {
		tb.Fatal(err)
	}
	f.Workspace = w
	return f
}

func mkdir(tb testing.TB, p string) {
	tb.Helper()
	if err := os.MkdirAll(p, 0o755); err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, p, text string) {
	tb.Helper()
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}
