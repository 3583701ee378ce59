package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// walked waits for the walk after a command.
func (w world) walked(tb testing.TB) {
	tb.Helper()
	for {
		w.sb.watch.mu.Lock()
		done := w.sb.watch.deep.timer == nil
		w.sb.watch.mu.Unlock()
		if done {
			return
		}
		runtime.Gosched()
	}
}

// SB-27: a repository in a folder below, which nothing names, has its hooks and
// its configuration looked after too, also when a command has just made it.
func TestCorpusNestedRepositories(t *testing.T) {
	t.Parallel()
	var root string
	mine := "[alias]\n\tst = !status\n"
	w := newWorld(t, func(_ *Config, p *Policy) {
		root = p.Roots[0]
		outsideShell(t, root, "mkdir -p vendor && git init -q vendor/mine && printf '"+strings.ReplaceAll(mine, "\n", `\n`)+"' >> vendor/mine/.git/config && echo mine > vendor/mine/.git/hooks/post-commit")
		ws, err := workspace.Open(workspace.Config{Roots: p.Roots}, workspace.Env{Home: filepath.Dir(p.Secrets[0]), StateDir: p.StateDir, UID: os.Getuid()})
		if err != nil {
			t.Fatal(err)
		}
		p.LookReadOnly, p.LookDeep = func() []string { return ws.ProtectedIn(root) }, ws.ProtectedDeep
	})
	w.need(t)
	w.sb.watch.deep.every = 0
	before := readText(t, root+"/vendor/mine/.git/config")

	// What was there is left alone, and so is honest work.
	for _, script := range []string{
		"true", "git -C vendor/mine config user.name me", "git init -q vendor/new && git -C vendor/new config user.name me",
		"git -C vendor/new -c user.email=a@b commit -q --allow-empty -m x && git -C vendor/new worktree add -q ../tree",
		"git clone -q vendor/new vendor/copy && rm -rf vendor/copy",
	} {
		out := w.run(t, identity+script)
		w.walked(t)
		if next := w.run(t, "true"); out.ExitCode != 0 || out.Restored != nil || next.Restored != nil {
			t.Errorf("%s: %q %q %s", script, out.Restored, next.Restored, out.Combined.Text())
		}
	}
	for _, tt := range []struct {
		name, script string
		gone         string
	}{
		{"a hook where there was one", "echo evil > vendor/mine/.git/hooks/post-commit", "vendor/mine/.git/hooks/post-commit"},
		{"a new hook", "echo evil > vendor/mine/.git/hooks/pre-push", "vendor/mine/.git/hooks/pre-push"},
		{"a hook in a new one", "git init -q vendor/sub && echo evil > vendor/sub/.git/hooks/pre-commit", "vendor/sub/.git/hooks/pre-commit"},
		{"a key in a new one", "git init -q vendor/deep/er && git -C vendor/deep/er config core.fsmonitor evil", "vendor/deep/er/.git/config"},
		{"a new one that leads astray", "mkdir -p vendor/led && echo gitdir: $PWD/evil > vendor/led/.git", "vendor/led/.git"},
	} {
		said := w.run(t, tt.script).Restored
		w.walked(t)
		said = append(said, w.run(t, "true").Restored...)
		if len(said) != 1 || !strings.Contains(said[0], "set aside") {
			t.Errorf("%s: %q", tt.name, said)
		}
		if _, err := os.Lstat(filepath.Join(root, tt.gone)); !os.IsNotExist(err) {
			t.Errorf("%s is in force: %v", tt.name, err)
		}
	}
	if out := w.run(t, "git -C vendor/mine config core.pager evil"); len(out.Restored) != 1 {
		t.Errorf("%q", out.Restored)
	}
	if got := readText(t, root+"/vendor/mine/.git/config"); !strings.HasPrefix(got, before) || strings.Contains(got, "evil") {
		t.Errorf("%s", got)
	}
	// Somebody else's doing, between commands, is left alone.
	time.Sleep(2 * slack) // the times of files are coarse
	if b, err := exec.Command("bash", "-c", "cd "+root+" && git init -q theirs && git -C theirs config core.pager less && echo x > theirs/.git/hooks/pre-push").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, b)
	}
	time.Sleep(2 * slack)
	out := w.run(t, "true")
	w.walked(t)
	if said := append(slices.Clone(out.Restored), w.run(t, "true").Restored...); said != nil {
		t.Errorf("%q", said)
	}
}
