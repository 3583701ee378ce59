package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
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

// Debuggers work on what they start, and on what another part of the same
// command started.
func TestDebugProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.Profile = Debug })
	if testLevel() == LevelFull {
		w.need(t)
	}
	if w.refuses(t, Debug) {
		return
	}
	for tool, tt := range map[string]struct{ script, want string }{
		"strace": {`strace -f -o trace -e trace=openat,execve bash -c 'cat /etc/hostname >/dev/null; true' && grep -c 'openat.*/etc/hostname' trace`, "1\n"},
		"gdb": {
			`gdb -nx -batch -ex 'break exit' -ex run -ex 'info breakpoints' --args /bin/true 2>&1 | grep -c 'breakpoint already hit'; ` +
				`sleep 20 & gdb -nx -batch -p $! -ex detach 2>&1 | grep -c 'Inferior.*detached'; kill $!`, "1\n1\n",
		},
	} {
		if _, err := exec.LookPath(tool); err != nil {
			continue // the attacks trace without one
		}
		if out := w.run(t, tt.script); out.Stdout.Text() != tt.want {
			t.Errorf("%s: %s", tool, out.Combined.Text())
		}
	}
}

// Who offers itself to be traced is offered to whoever started it. That is the
// anchor, which traces nobody: the command ends and nothing is left.
func TestTracedByTheAnchor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.Profile = Debug })
	if testLevel() == LevelFull {
		w.need(t)
	}
	if w.refuses(t, Debug) {
		return
	}
	cmd := w.command("")
	cmd.Argv = []string{"python3", "-c", "import ctypes, os; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0), flush=True); os.execv('/bin/true', ['true'])"}
	if out := w.runCommand(t, cmd); !strings.HasPrefix(out.Stdout.Text(), "0") || out.Signal != "SIGKILL" || out.Duration > 10*time.Second {
		t.Errorf("%+v", out)
	}
	if out := w.run(t, "echo goes on"); out.Stdout.Text() != "goes on\n" {
		t.Error(out.Combined.Text())
	}
}

// With sockets of their own, programs that talk to their parts work.
func TestPrivateSockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.UnixSockets = UnixSocketsPrivate })
	w.need(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	script := `import socket, threading, os
path = os.environ.get("TMPDIR", "/tmp") + "/s"
for name in [path, "rel"]:
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen()
    threading.Thread(target=lambda: s.accept()[0].sendall(b"met " + name.encode())).start()
    c = socket.socket(socket.AF_UNIX); c.connect(name); print(c.recv(100).decode())
    c.close(); s.close(); os.unlink(name)
c = socket.socket(socket.AF_UNIX)
for bad in ["/nowhere/s", "rel", "/etc/passwd"]:
    try: c.connect(bad)
    except OSError as e: print(e.errno)
`
	if testLevel() == LevelFull {
		script += `
t = socket.create_server(("127.0.0.1", 0)); d = socket.create_connection(t.getsockname()); d.setblocking(False); print("tcp")
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
v.connect(u.getsockname()); v.send(b"udp"); print(u.recv(9).decode())
from multiprocessing.managers import SyncManager
m = SyncManager(); m.start(); print(m.list([1, 2])); m.shutdown()
`
	}
	if err := os.WriteFile(w.root+"/s.py", []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	out := w.run(t, "python3 s.py")
	lines := strings.Split(strings.TrimSpace(out.Stdout.Text()), "\n")
	want := []string{"met ", "met rel", "2", "2", "1"}
	if testLevel() == LevelFull {
		want = append(want, "tcp", "udp", "[1, 2]")
	}
	if len(lines) == len(want) {
		lines[0] = lines[0][:4]
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q; %s", lines, want, out.Stderr.Text())
	}
}
