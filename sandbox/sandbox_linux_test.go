package sandbox

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// world is a workspace with everything around it that must stay out of reach.
type world struct {
	root, outside, secret, secretDir, state, scratch, hooks string
	sb                                                      *Sandbox
}

func newWorld(t testing.TB, change func(*Config, *Policy)) world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{
		root: filepath.Join(base, "root"), outside: filepath.Join(base, "outside"),
		secretDir: filepath.Join(base, "home", ".ssh"), state: filepath.Join(base, "state"),
		scratch: filepath.Join(base, "scratch"),
	}
	w.secret = filepath.Join(base, "home", ".netrc")
	w.hooks = filepath.Join(w.root, ".git", "hooks")
	for _, d := range []string{w.root, w.outside, w.secretDir, w.state, w.scratch, w.hooks} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{w.secret, filepath.Join(w.secretDir, "id"), filepath.Join(w.outside, "file"), filepath.Join(w.state, "audit")} {
		if err := os.WriteFile(f, []byte("canary\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Default()
	cfg.KillGrace = 500 * time.Millisecond
	policy := Policy{
		Roots: []string{w.root}, Secrets: []string{w.secret, w.secretDir},
		ReadOnly: []string{w.hooks}, StateDir: w.state,
	}
	if change != nil {
		change(&cfg, &policy)
	}
	w.sb, err = New(cfg, policy, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.sb.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestProbe(t *testing.T) {
	w := newWorld(t, nil)
	r := w.sb.Probe(t.Context())
	t.Logf("%+v", r)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}

func TestEcho(t *testing.T) {
	w := newWorld(t, nil)
	for range 3 {
		out, err := w.sb.Run(t.Context(), Command{Argv: []string{"bash", "-c", "echo hi; echo err >&2; ls -la /tmp / /dev; id; cat /proc/self/status | grep Cap; mount | head -50"}, Dir: w.root, Env: []string{"PATH=/usr/bin:/bin"}, MaxOutput: 30000})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %v", out.Combined.Text(), out.Duration)
	}
}
