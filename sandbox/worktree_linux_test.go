package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

const identity = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null; "

// outsideShell runs a script on the host.
func outsideShell(tb testing.TB, dir, script string) string {
	tb.Helper()
	c := exec.CommandContext(tb.Context(), "bash", "-c", identity+script)
	c.Dir = dir
	b, err := c.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s: %v: %s", script, err, b)
	}
	return strings.TrimSpace(string(b))
}

// A workspace that is a linked worktree can be worked in: its repository, which
// lies outside, takes what git writes, and stays protected (SB-09).
func TestLinkedWorktree(t *testing.T) {
	t.Parallel()
	main := ""
	w := newWorld(t, func(_ *Config, p *Policy) {
		root := p.Roots[0]
		main = filepath.Join(filepath.Dir(root), "main")
		outsideShell(t, filepath.Dir(root), "rm -rf root && git init -qb main main && cd main && echo one > f && git add f && git commit -qm one && git worktree add -q ../root -b side")
		ws, err := workspace.Open(workspace.Config{Roots: []string{root}}, workspace.Env{Home: filepath.Dir(p.Secrets[0]), StateDir: p.StateDir, UID: os.Getuid()})
		if err != nil {
			t.Fatal(err)
		}
		p.ReadOnly, p.Git, p.LookIn = nil, ws.Repositories(), ws.ProtectedIn
		p.LookReadOnly = func() []string { return ws.ProtectedIn(root) }
	})
	w.need(t)
	for _, script := range []string{
		"echo two > f && git add f && git commit -qm two && git status --porcelain | wc -l | grep -qx 0",
		"git checkout -qb other && git tag v1 && git stash list && git checkout -q side",
		"git init -q -b main --bare remote.git && git remote add origin $PWD/remote.git && git push -qu origin side",
		"git config user.name me && git gc -q",
		"git worktree add -q sub && cd sub && echo three > f && git commit -qam three && cd .. && git worktree remove sub",
	} {
		if out := w.run(t, identity+script); out.ExitCode != 0 || out.Restored != nil {
			t.Errorf("%s: exit %d %q %s", script, out.ExitCode, out.Restored, out.Combined.Text())
		}
	}
	if got := outsideShell(t, main, "git log --oneline side | wc -l"); got != "2" {
		t.Errorf("%s commits", got)
	}
	for name, script := range map[string]string{
		"a hook":             "echo x > " + main + "/.git/hooks/post-commit",
		"the hooks":          "mv " + main + "/.git/hooks " + main + "/.git/h",
		"the main worktree":  "echo x > " + main + "/f",
		"the repository":     "mv " + main + "/.git " + main + "/git",
		"somewhere else too": "echo x > " + w.outside + "/file",
	} {
		if out := w.run(t, script); out.ExitCode == 0 && len(out.Restored) == 0 {
			t.Errorf("%s could be changed", name)
		}
	}
	for name, script := range map[string]string{
		"its configuration":     "git config core.fsmonitor evil",
		"where it is led":       "echo gitdir: $PWD/evil > .git",
		"the shared folder":     "echo $PWD/evil > $(git rev-parse --git-dir)/commondir",
		"a worktree's settings": "printf '[core]\nfsmonitor = evil\n' > $(git rev-parse --git-dir)/config.worktree",
	} {
		if out := w.run(t, script); len(out.Restored) != 1 {
			t.Errorf("%s: %q %s", name, out.Restored, out.Combined.Text())
		}
	}
	if out := w.run(t, "git status --porcelain"); out.ExitCode != 0 {
		t.Error(out.Combined.Text())
	}
}

// What one command may write besides is protected as the workspace is.
func TestExtraWriteIsProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Policy) {
		p.LookIn = func(dir string) []string {
			return present(dir, ".git/hooks", ".git/config", ".envrc", ".vscode")
		}
	})
	w.need(t)
	mine := "[alias]\n\tst = !status\n"
	outsideShell(t, w.outside, "git init -q . && mkdir .vscode && printf '"+strings.ReplaceAll(mine, "\n", `\n`)+"' >> .git/config")
	before := readText(t, w.outside+"/.git/config")
	for _, tt := range []struct {
		name, script string
		exit         bool // it is refused
		restored     int
	}{
		{"work", "echo x > new && git config user.name me && git add new", false, 0},
		{"a hook", "echo x > .git/hooks/pre-commit", true, 0},
		{"a setting of the editor", "echo x > .vscode/tasks.json", true, 0},
		{"the hooks carried away", "mv .git git2", true, 0},
		{"a harmful key", "git config core.pager evil", false, 1},
		{"a new name", "echo x > .envrc", false, 1},
	} {
		if testLevel() == LevelShared && tt.exit {
			if tt.name == "the hooks carried away" {
				continue
			}
			tt.exit, tt.restored = false, 1 // what is not prevented is undone
		}
		cmd := w.command(tt.script)
		cmd.Dir, cmd.ExtraWrite = w.outside, []string{w.outside}
		if out := w.runCommand(t, cmd); (out.ExitCode != 0) != tt.exit || len(out.Restored) != tt.restored {
			t.Errorf("%s: exit %d %q %s", tt.name, out.ExitCode, out.Restored, out.Combined.Text())
		}
	}
	if got := readText(t, w.outside+"/.git/config"); !strings.HasPrefix(got, before) || strings.Contains(got, "evil") {
		t.Errorf("%s", got)
	}
	// Another command runs meanwhile: what stood there before is not judged.
	r := w.start(t, w.command("echo up; sleep 20"))
	w.until(t, r, "up")
	cmd := w.command("true")
	cmd.Dir, cmd.ExtraWrite = w.outside, []string{w.outside}
	if out := w.runCommand(t, cmd); out.Restored != nil {
		t.Errorf("%q", out.Restored)
	}
	r.Stop()
	if _, err := r.Wait(); err != nil {
		t.Error(err)
	}
}
