package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// refuses reports whether a profile cannot be held at the level of this run,
// and wants it to be refused then, with the cause.
func (w world) refuses(tb testing.TB, p Profile) bool {
	tb.Helper()
	terms := w.sb.Terms(p, nil)
	if terms.heldAt(testLevel()) == nil {
		return false
	}
	cmd := w.command("echo ran >ran")
	cmd.Terms = terms
	_, err := w.sb.Run(tb.Context(), cmd)
	u, ok := errors.AsType[*UnavailableError](err)
	if !ok || u.Step != "hold the profile "+p.String() || u.Cause == nil || u.Fix == "" {
		tb.Errorf("%s: %v", p, err)
	}
	if _, err := os.Stat(w.root + "/ran"); err == nil {
		tb.Errorf("%s ran", p)
	}
	return true
}

// Where level 2 is good enough but cannot hold the operator's profile, the probe
// says so and nothing runs.
func TestProfileOfOperatorNotHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.Profile, c.MinLevel = ReadOnly, LevelShared })
	w.sb.only = LevelShared
	if testLevel() == LevelFull {
		w.need(t)
	}
	_, err := w.sb.Run(t.Context(), w.command("echo ran >ran"))
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("it ran: %v", err)
	}
}

// A command that may only read writes to its private /tmp and nowhere else.
func TestReadOnlyProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	if w.refuses(t, ReadOnly) {
		return
	}
	if err := os.WriteFile(w.root+"/file", []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, w.root)
	cmd := w.command(`cat file; for c in 'echo x >file' 'echo x >new' 'rm file' 'mv file f2' 'mkdir d' 'chmod 777 file' 'touch file' 'echo x >` + w.sb.CacheDir() + `/x'
do bash -c "$c" 2>/dev/null && echo "worked: $c"; done
echo kept >"${TMPDIR:-/tmp}/mine" && cat "${TMPDIR:-/tmp}/mine"; echo x >file`)
	cmd.Terms = w.sb.Terms(ReadOnly, nil)
	out := w.runCommand(t, cmd)
	if got := out.Stdout.Text(); got != "as it waskept\n" {
		t.Errorf("%q %s", got, out.Stderr.Text())
	}
	if after := snapshot(t, w.root); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("it changed the workspace: %q", after)
	}
	if len(out.Violations) != 1 || out.Violations[0].Rule != "fs.write" || out.Violations[0].Target != w.root+"/file" {
		t.Errorf("%+v", out.Violations)
	}
	// Nothing is changed under a session that stands: the next call has its own.
	if out := w.run(t, "echo x >file && cat file"); out.Stdout.Text() != "x\n" {
		t.Error(out.Combined.Text())
	}
}

// What a person permits is written where everything else is read-only.
func TestReadOnlyProfileWithOnePlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.Profile = ReadOnly })
	w.need(t)
	if w.refuses(t, ReadOnly) {
		return
	}
	if err := os.Mkdir(w.root+"/build", 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := w.command("echo x >build/out; echo x >src")
	cmd.ExtraWrite = []string{w.root + "/build"}
	w.runCommand(t, cmd)
	if _, err := os.Stat(w.root + "/build/out"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.root + "/src"); err == nil {
		t.Error("it wrote beside it")
	}
}
