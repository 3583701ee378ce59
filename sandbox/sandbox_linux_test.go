package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// world is a workspace with everything around it that must stay out of reach.
type world struct {
	root, outside, secret, secretDir, state, scratch, hooks string
	sb                                                      *Sandbox
}

func emptyFolder(tb testing.TB) string {
	tb.Helper()
	// A test's own folder is below /tmp, which is private inside and would hide
	// what is tested.
	dir, err := os.MkdirTemp(cmp.Or(os.Getenv("ZEPH_TEST_DIR"), "/var/tmp"), "zeph-sandbox-") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// anchorPID is how a script names its session's anchor.
func anchorPID() string {
	if testLevel() == LevelShared {
		return "$PPID"
	}
	return "1"
}

// testLevel is the level of confinement this run of the tests is about.
func testLevel() int {
	if os.Getenv("ZEPH_TEST_LEVEL") == "2" {
		return LevelShared
	}
	return LevelFull
}

func newWorld(tb testing.TB, change func(*Config, *Policy)) world {
	tb.Helper()
	base := emptyFolder(tb)
	w := world{
		root: filepath.Join(base, "root"), outside: filepath.Join(base, "outside"),
		secretDir: filepath.Join(base, "home", ".ssh"), state: filepath.Join(base, "state"),
		scratch: filepath.Join(base, "scratch"),
	}
	w.secret = filepath.Join(base, "home", ".netrc")
	w.hooks = filepath.Join(w.root, ".git", "hooks")
	for _, d := range []string{w.root, w.outside, w.secretDir, w.state, w.scratch, w.hooks} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	for _, f := range []string{w.secret, filepath.Join(w.secretDir, "id"), filepath.Join(w.outside, "file"), filepath.Join(w.state, "audit")} {
		if err := os.WriteFile(f, []byte("canary\n"), 0o600); err != nil {
			tb.Fatal(err)
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
	var err error
	w.sb, err = New(cfg, policy, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	if testLevel() == LevelShared {
		w.sb.only = LevelShared
	}
	tb.Cleanup(func() {
		if err := w.sb.Close(); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// need skips a test where the kernel has no walls, and fails it where the
// operator of the test says it has.
func (w world) need(tb testing.TB) {
	tb.Helper()
	if r := w.sb.Probe(tb.Context()); r.Err != nil {
		if os.Getenv("ZEPH_REQUIRE_SANDBOX") == "1" {
			tb.Fatal(r.Err)
		}
		tb.Skip(r.Err)
	}
}

func (w world) command(script string) Command {
	return Command{
		Session: "s", Scratch: w.scratch, Argv: []string{"bash", "--noprofile", "--norc", "-c", script}, Dir: w.root,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + filepath.Dir(w.secret)}, MaxOutput: 30000,
		Timeout: 20 * time.Second,
	}
}

func (w world) run(tb testing.TB, script string) Outcome {
	tb.Helper()
	return w.runCommand(tb, w.command(script))
}

func (w world) runCommand(tb testing.TB, cmd Command) Outcome {
	tb.Helper()
	out, err := w.sb.Run(tb.Context(), cmd)
	if err != nil {
		tb.Fatalf("%q: %v", cmd.Argv, err)
	}
	if out.Survivors != 0 {
		tb.Errorf("%q: %d survivors", cmd.Argv, out.Survivors)
	}
	return out
}

func TestProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	r := w.sb.Probe(t.Context())
	if testLevel() == LevelShared {
		if !slices.Equal(r.Missing, gaps()) {
			t.Errorf("missing: %q", r.Missing)
		}
		r.Missing = nil
	}
	if r.Level != testLevel() || r.Mode != "strict" || r.LandlockABI < 3 || len(r.Missing) != 0 || len(r.Held) < 15 {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(w.state + "/probe-*"); len(left) != 0 {
		t.Errorf("the probe left %q", left)
	}
}

// What must not work, first.
func TestWalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for name, script := range map[string]string{
		"write outside":           "echo x > " + w.outside + "/file",
		"create outside":          "echo x > " + w.outside + "/new",
		"delete outside":          "rm -f " + w.outside + "/file",
		"truncate outside":        "truncate -s 0 " + w.outside + "/file",
		"chmod outside":           "chmod 777 " + w.outside + "/file",
		"touch outside":           "touch -d yesterday " + w.outside + "/file",
		"link in from outside":    "ln " + w.outside + "/file here",
		"through a link":          "ln -s " + w.outside + " l && echo x > l/file",
		"move out":                "echo x > mine && mv mine " + w.outside + "/",
		"write to the system":     "echo x > /etc/zeph-test",
		"write to the kernel":     "echo x > /proc/sys/kernel/domainname",
		"read a secret file":      "cat " + w.secret,
		"read a secret folder":    "cat " + w.secretDir + "/id",
		"list a secret folder":    "ls " + w.secretDir,
		"read the state":          "cat " + w.state + "/audit",
		"write the state":         "echo x > " + w.state + "/audit",
		"lift the mask":           "umount " + w.secretDir,
		"a hook":                  "echo x > .git/hooks/pre-commit",
		"carry .git away":         "mv .git git2",
		"delete the hooks":        "rm -rf .git/hooks",
		"the anchor's memory":     "cat /proc/1/environ",
		"the anchor's files":      "readlink /proc/1/fd/3",
		"the server":              "kill -0 " + strconv.Itoa(os.Getpid()),
		"a new namespace":         "unshare -U true",
		"a mount":                 "mount -t tmpfs t /tmp",
		"chroot":                  "chroot / true",
		"the host's sockets":      "ls /run/* && false",
		"a device node":           "mknod d c 1 3",
		"the disk":                "ls /dev/*da /dev/mem",
		"a setuid program":        "su -c true",
		"the host's shared mem":   "ls /dev/shm/* /dev/mqueue/*",
		"a connection":            "exec 3<>/dev/tcp/192.0.2.1/80",
		"anything on standard in": "read -t 5 line",
	} {
		if testLevel() == LevelShared && slices.Contains([]string{
			"chmod outside", "touch outside", "a hook", "carry .git away", "delete the hooks",
		}, name) {
			continue // what no mount holds: see TestGaps and TestUndone
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := w.run(t, script); out.ExitCode == 0 || strings.Contains(out.Combined.Text(), "canary") {
				t.Errorf("%s worked:\n%s", script, out.Combined.Text())
			}
		})
	}
	t.Cleanup(func() {
		for f, want := range map[string]string{w.outside + "/file": "canary\n", w.secret: "canary\n", w.state + "/audit": "canary\n"} {
			if got, err := os.ReadFile(f); err != nil || string(got) != want {
				t.Errorf("%s holds %q: %v", f, got, err)
			}
		}
	})
}

// What has to work.
func TestWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for name, script := range map[string]string{
		"write":                "echo x > f && mkdir -p d/e && mv f d/e/ && ln d/e/f g && rm -r d",
		"private tmp":          "cd ${TMPDIR:-/tmp} && echo x > f && test -f $(mktemp) && cat <<< x",
		"shared memory":        "echo x > /dev/shm/f",
		"devices":              "head -c 10 /dev/urandom > /dev/null && : > /dev/full || : ; head -c1 /dev/zero >/dev/null",
		"substitution":         "diff <(echo a) <(echo a) && test \"$(cat <<< x)\" = x",
		"the cache":            "echo x > " + w.sb.CacheDir() + "/f",
		"a program it made":    "cp /bin/true prog && ./prog && cd ${TMPDIR:-/tmp} && cp /bin/true prog && ./prog",
		"a named pipe":         "mkfifo p && (echo x > p &) && read l < p && test $l = x",
		"git":                  "cd .. && mkdir -p root/r && cd root/r && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
		"the system":           "ls /etc/passwd /usr/bin/env /proc/self/status",
		"fd links":             "echo x | cat /dev/stdin && echo y > /dev/stderr",
		"signals among itself": "sleep 60 & kill $! && ! wait $!",
	} {
		if testLevel() == LevelShared && name == "shared memory" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := w.command(script)
			cmd.Dir = filepath.Join(w.root, strconv.Itoa(len(script))+name[:1])
			if err := os.Mkdir(cmd.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if name == "git" {
				cmd.Dir = w.root
			}
			if out := w.runCommand(t, cmd); out.ExitCode != 0 {
				t.Errorf("%s: exit %d\n%s", script, out.ExitCode, out.Combined.Text())
			}
		})
	}
}

// The server's file tools and the commands see one /tmp.
func TestScratchIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	if err := os.WriteFile(filepath.Join(w.scratch, "in"), []byte("from outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.run(t, "cd ${TMPDIR:-/tmp}; cat in; echo from inside > out"); out.Combined.Text() != "from outside" {
		t.Errorf("%q", out.Combined.Text())
	}
	if b, err := os.ReadFile(filepath.Join(w.scratch, "out")); err != nil || string(b) != "from inside\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// A live child is looked at from outside: what it may do, what it holds.
func TestPosture(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command("ls -l /proc/self/fd; cat /proc/self/limits; env; sed -n 's/^//p' /proc/self/status; cut -d' ' -f6,7 /proc/self/stat; echo pid $$; cat /proc/self/oom_score_adj")
	out := w.runCommand(t, cmd)
	text := out.Combined.Text()
	bound, processes := "CapBnd:\t0000000000000000", "512 "
	if testLevel() == LevelShared {
		processes = "" // of this user, whatever else runs
		if os.Getuid() != 0 {
			bound = "CapBnd:" // not to be emptied without a namespace
		}
	}
	for _, want := range []string{
		"NoNewPrivs:\t1", "Seccomp:\t2",
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		bound, "CapAmb:\t0000000000000000",
		"0 -> /dev/null", "1 -> pipe:", "2 -> pipe:", "3 -> /proc/",
		"HOME=", "PATH=/usr/local/bin:/usr/bin:/bin", "\n500\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, never := range []string{"4 -> ", "socket:", "GOMAXPROCS", "anon_inode"} {
		if strings.Contains(text, never) {
			t.Errorf("%q in\n%s", never, text)
		}
	}
	for what, want := range map[string]string{"Max core file size": "1 ", "Max open files": "4096 ", "Max processes": processes} {
		i := strings.Index(text, what)
		if i < 0 || !strings.HasPrefix(strings.TrimSpace(text[i+len(what):]), want) {
			t.Errorf("%s is not %s", what, want)
		}
	}
	if out.Level != testLevel() {
		t.Errorf("level %d", out.Level)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	out := w.run(t, "echo out; echo err >&2; exit 3")
	if out.Stdout.Text() != "out\n" || out.Stderr.Text() != "err\n" || out.Combined.Text() != "out\nerr\n" || out.ExitCode != 3 {
		t.Errorf("%+v", out)
	}
	if out := w.run(t, ":"); out.Combined.Total != 0 || out.ExitCode != 0 || out.Signal != "" {
		t.Errorf("%+v", out)
	}
	if out := w.run(t, "kill -KILL $$"); out.ExitCode != 137 || out.Signal != "SIGKILL" || out.TimedOut || out.OutOfMemory {
		t.Errorf("%+v", out)
	}
	if out := w.run(t, "printf 'a\\377b'"); out.Stdout.Text() != "a�b" || out.Stdout.InvalidUTF8 != 1 {
		t.Errorf("%+v", out)
	}
	// What a command still writes when it has ended is not lost.
	if out := w.run(t, "exec > >(sleep 0.01; cat) 2>&1; echo late"); out.Combined.Text() != "late\n" || out.ExitCode != 0 {
		t.Errorf("%+v", out)
	}
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for name, change := range map[string]func(*Command){
		"no such program":  func(c *Command) { c.Argv = []string{"no-such-program"} },
		"no such folder":   func(c *Command) { c.Dir = w.root + "/none" },
		"a file as folder": func(c *Command) { c.Dir = w.outside + "/file" },
		"not executable":   func(c *Command) { c.Argv = []string{w.outside + "/file"} },
		"too long":         func(c *Command) { c.Env = []string{"A=" + strings.Repeat("x", 200<<10)} },
	} {
		cmd := w.command("true")
		change(&cmd)
		_, err := w.sb.Run(t.Context(), cmd)
		if _, ok := errors.AsType[*StartError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*Command){
		"no program":         func(c *Command) { c.Argv = nil },
		"a relative folder":  func(c *Command) { c.Dir = "x" },
		"a NUL":              func(c *Command) { c.Argv = []string{"echo", "a\x00b"} },
		"a relative scratch": func(c *Command) { c.Scratch = "x" },
		"everything":         func(c *Command) { c.ExtraWrite = []string{"/"} },
	} {
		cmd := w.command("true")
		change(&cmd)
		if _, err := w.sb.Run(t.Context(), cmd); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestExtraWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command("echo y > " + w.outside + "/file")
	if out := w.runCommand(t, cmd); out.ExitCode == 0 {
		t.Error("it was writable before")
	}
	cmd.ExtraWrite = []string{w.outside}
	if out := w.runCommand(t, cmd); out.ExitCode != 0 {
		t.Error(out.Combined.Text())
	}
	cmd.ExtraWrite = nil
	if out := w.runCommand(t, cmd); out.ExitCode == 0 {
		t.Error("it is writable after")
	}
	link := filepath.Join(w.root, "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraWrite = []string{link}
	if _, err := w.sb.Run(t.Context(), cmd); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a link was followed: %v", err)
	}
}

// A folder that was exchanged is not the folder the view was made of.
func TestExchangedRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	w.run(t, "echo one > f")
	if err := errors.Join(os.Rename(w.root, w.root+".old"), os.Mkdir(w.root, 0o700)); err != nil {
		t.Fatal(err)
	}
	w.run(t, "echo two > g")
	if _, err := os.Stat(w.root + "/g"); err != nil {
		t.Error(err)
	}
}

// Whoever writes a secret anew, as programs do, by renaming a file over it,
// takes the mask on the old one away: the next command gets a new view. So it
// does when a protected folder was exchanged, or a secret has come to be.
func TestExchangedSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Policy) {
		secrets := append(slices.Clone(p.Secrets), filepath.Join(filepath.Dir(p.Secrets[0]), ".npmrc"))
		p.LookSecrets = func() []string {
			return slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { _, err := os.Lstat(s); return err != nil })
		}
	})
	w.need(t)
	home := filepath.Dir(w.secret)
	w.run(t, "true")
	for name, change := range map[string]func() error{
		"a file": func() error {
			return errors.Join(os.WriteFile(home+"/new", []byte("canary"), 0o600), os.Rename(home+"/new", w.secret))
		},
		"a folder": func() error {
			return errors.Join(os.Rename(w.secretDir, w.secretDir+".old"), os.Mkdir(w.secretDir, 0o700),
				os.WriteFile(w.secretDir+"/id", []byte("canary"), 0o600), os.RemoveAll(w.secretDir+".old"))
		},
		"a new file": func() error { return os.WriteFile(home+"/.npmrc", []byte("canary"), 0o600) },
		"hooks": func() error {
			return errors.Join(os.Rename(w.hooks, w.hooks+".old"), os.Mkdir(w.hooks, 0o700), os.RemoveAll(w.hooks+".old"))
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery) // it is not looked for more often
		out := w.run(t, "cat ~/.netrc ~/.ssh/id ~/.npmrc; touch .git/hooks/pre-commit && echo hooked")
		if text := out.Stdout.Text(); strings.Contains(text, "canary") || strings.Contains(text, "hooked") && len(out.Restored) == 0 {
			t.Errorf("%s: %s", name, out.Combined.Text())
		}
	}
}

const tree = `trap '' TERM; echo started
(trap '' TERM; exec sleep 1001) &
setsid bash -c "trap '' TERM; sleep 1002" &
setsid nohup sleep 1003 >/dev/null 2>&1 </dev/null &
sleep 1004; sleep 1005`

// sleepers counts processes of this test on the host.
func sleepers(tb testing.TB, mark string) int {
	tb.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			n++
		}
	}
	return n
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command(tree)
	mark := "MARK=timeout-" + w.root
	cmd.Env = append(cmd.Env, mark)
	cmd.Timeout, cmd.Grace = 300*time.Millisecond, 200*time.Millisecond
	began := time.Now()
	out := w.runCommand(t, cmd)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if !out.TimedOut || out.Cancelled || out.Signal != "SIGKILL" || out.Stdout.Text() != "started\n" || out.Killed == 0 {
		t.Errorf("%+v", out)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	// The session goes on.
	if out := w.run(t, "echo next"); out.Combined.Text() != "next\n" {
		t.Errorf("%+v", out)
	}
}

// A command that ends when it is asked is not forced, and may say goodbye.
func TestTimeoutAsksFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command("trap 'echo bye; exit 7' TERM; sleep 1006 & wait")
	cmd.Timeout = 200 * time.Millisecond
	if out := w.runCommand(t, cmd); !out.TimedOut || out.Stdout.Text() != "bye\n" || out.ExitCode != 7 {
		t.Errorf("%+v", out)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command(tree)
	mark := "MARK=cancel-" + w.root
	cmd.Env, cmd.Grace = append(cmd.Env, mark), 200*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd.Progress = func(line string, _ int64) {
		if line == "started" {
			cancel()
		}
	}
	out, err := w.sb.Run(ctx, cmd)
	if err != nil || !out.Cancelled || out.TimedOut || out.Survivors != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := w.sb.Run(ctx, cmd); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call started something: %v", err)
	}
}

// However early it is cancelled, a command ends, and soon.
func TestCancelEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	w.run(t, "true")
	mark := "MARK=early-" + w.root
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
		cmd := w.command("sleep 1014")
		cmd.Env = append(cmd.Env, mark)
		began := time.Now()
		out, err := w.sb.Run(ctx, cmd)
		cancel()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%d: took %v", i, took)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || err == nil && !out.Cancelled {
			t.Errorf("%d: %+v, %v", i, out, err)
		}
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// What a command leaves behind goes with it, and holds nobody up.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command("sleep 1007 & setsid sleep 1008 & disown -a; echo done")
	mark := "MARK=leftover-" + w.root
	cmd.Env = append(cmd.Env, mark)
	began := time.Now()
	out := w.runCommand(t, cmd)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if out.ExitCode != 0 || out.Stdout.Text() != "done\n" || out.Killed != 2 {
		t.Errorf("%+v", out)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// One command's end does not touch another's processes.
func TestCommandsAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	long := make(chan Outcome)
	go func() { long <- w.run(t, "echo $$ > pid; sleep 0.5 & wait; echo still here") }()
	for range 20 {
		w.run(t, "sleep 1009 & true")
	}
	if out := <-long; out.Stdout.Text() != "still here\n" || out.ExitCode != 0 {
		t.Errorf("%+v", out)
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			cmd := w.command(fmt.Sprintf("echo %d; sleep 0.05; echo %d >&2", i, i))
			cmd.Session = "s" + strconv.Itoa(i%4)
			out, err := w.sb.Run(t.Context(), cmd)
			if want := strconv.Itoa(i) + "\n"; err != nil || out.Stdout.Text() != want || out.Stderr.Text() != want {
				t.Errorf("%d: %v %+v", i, err, out)
			}
		})
	}
	all.Wait()
	if err := w.sb.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.sb.Run(t.Context(), w.command("true")); err == nil {
		t.Error("a closed sandbox ran a command")
	}
}

func openFiles(tb testing.TB) int {
	tb.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	return len(names)
}

// Not parallel: it counts what the process holds.
// Runs that were timed out give everything back (PR-24 of the reports).
func TestNothingLeaks(t *testing.T) {
	w := newWorld(t, nil)
	w.need(t)
	w.run(t, "true")
	files, routines := openFiles(t), runtime.NumGoroutine()
	for i := range 60 {
		cmd := w.command("sleep 1010 & sleep 1011")
		cmd.Timeout, cmd.Grace = 10*time.Millisecond, 10*time.Millisecond
		if i%2 == 0 {
			cmd = w.command("echo x")
		}
		w.runCommand(t, cmd)
	}
	// A session whose view is out of date is ended beside the next command.
	until := time.Now().Add(10 * time.Second)
	for openFiles(t) > files || runtime.NumGoroutine() > routines+2 {
		if time.Now().After(until) {
			t.Fatalf("%d open files, %d before; %d goroutines, %d before", openFiles(t), files, runtime.NumGoroutine(), routines)
		}
		runtime.Gosched()
	}
}

// Not parallel: it measures memory and time.
func TestFlood(t *testing.T) {
	w := newWorld(t, nil)
	w.need(t)
	w.run(t, "true")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	out := w.run(t, "head -c 100000000 /dev/zero | tr '\\0' x; echo end")
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if out.Stdout.Total != 100000004 || !out.Stdout.Truncated || !bytes.HasSuffix(out.Stdout.Tail, []byte("xend\n")) {
		t.Errorf("total %d, truncated %v", out.Stdout.Total, out.Stdout.Truncated)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
		t.Errorf("allocated %d bytes", grown)
	}
	t.Logf("100 MB took %v", took)
	// Endless output does not keep the clock from being looked at.
	cmd := w.command("yes")
	cmd.Timeout = 200 * time.Millisecond
	began = time.Now()
	if out := w.runCommand(t, cmd); !out.TimedOut || time.Since(began) > 3*time.Second {
		t.Errorf("%v: %+v", time.Since(began), out.Signal)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	mark := "MARK=close-" + w.root
	began := make(chan struct{})
	failed := make(chan error)
	var once sync.Once
	go func() {
		cmd := w.command(tree)
		cmd.Env = append(cmd.Env, mark)
		cmd.Progress = func(string, int64) { once.Do(func() { close(began) }) }
		_, err := w.sb.Run(context.WithoutCancel(t.Context()), cmd)
		failed <- err
	}()
	<-began
	if sleepers(t, mark) == 0 {
		t.Error("nothing runs")
	}
	if err := w.sb.Close(); err != nil {
		t.Error(err)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if err := <-failed; err == nil {
		t.Error("the command is said to have ended well")
	}
}

// A session that is given back while a command runs in it takes no new ones,
// lets that command end, and is still ended by Close.
func TestEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	mark := "MARK=end-" + w.root
	began := make(chan struct{})
	done := make(chan error)
	var once sync.Once
	go func() {
		cmd := w.command("echo started; sleep 1013")
		cmd.Env = append(cmd.Env, mark)
		cmd.Progress = func(string, int64) { once.Do(func() { close(began) }) }
		_, err := w.sb.Run(context.WithoutCancel(t.Context()), cmd)
		done <- err
	}()
	<-began
	w.sb.End("s")
	if out := w.run(t, "ls /dev/shm 2>/dev/null; echo other"); out.Combined.Text() != "other\n" {
		t.Errorf("%+v", out)
	}
	if sleepers(t, mark) == 0 {
		t.Error("the running command was ended")
	}
	if err := w.sb.Close(); err != nil {
		t.Error(err)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if err := <-done; !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// TestServer is not a test: it is the server that TestServerKilled kills.
func TestServer(t *testing.T) {
	if os.Getenv("ZEPH_TEST_SERVER") == "" {
		t.Skip("only runs when TestServerKilled starts it")
	}
	w := newWorld(t, func(c *Config, _ *Policy) { _ = c.Mode.UnmarshalText([]byte(os.Getenv("ZEPH_TEST_SERVER"))) })
	cmd := w.command(tree)
	cmd.Env = append(cmd.Env, os.Getenv("ZEPH_TEST_MARK"))
	cmd.Progress = func(line string, _ int64) { fmt.Println("child says", line) }
	_, err := w.sb.Run(t.Context(), cmd)
	t.Error(err)
}

// TestInside is not a test: it is what TestRefused runs where no namespace can
// be made.
func TestInside(t *testing.T) {
	if os.Getenv("ZEPH_TEST_INSIDE") == "" {
		t.Skip("only runs when TestRefused starts it")
	}
	w := newWorld(t, nil)
	r := w.sb.Probe(t.Context())
	u, ok := errors.AsType[*UnavailableError](r.Err)
	if !ok || r.Level != LevelNone || u.Step != "make namespaces" || !errors.Is(u, syscall.EPERM) || r.Fix == "" || !slices.Equal(r.Missing, []string{u.Step}) {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(r.Fix, "tools.sandbox.min_level = 2") || u.Fix != r.Fix {
		t.Errorf("nobody is told what would work: %q", r.Fix)
	}
	if out, err := w.sb.Run(t.Context(), w.command("touch ran")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := os.Stat(w.root + "/ran"); err == nil {
		t.Error("a command ran without walls")
	}
	// It is another matter when the operator takes less.
	w = newWorld(t, func(c *Config, _ *Policy) { c.MinLevel = LevelShared })
	r = w.sb.Probe(t.Context())
	if r.Level != LevelShared || r.Err != nil || !slices.Equal(r.Missing, gaps()) || !strings.Contains(r.Fix, "make namespaces") {
		t.Errorf("%+v", r)
	}
	if out := w.run(t, "echo in; cat "+w.secret); out.Level != LevelShared || out.Stdout.Text() != "in\n" || out.ExitCode == 0 {
		t.Errorf("%+v", out)
	}
}

// Where the walls cannot be built nothing runs, and a person is told why (SB-10,
// SB-19, SB-20).
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(w.root, "self")
	if err := os.WriteFile(copied, self, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := w.command("")
	cmd.Argv = []string{copied, "-test.run=^TestInside$", "-test.v"}
	cmd.Env = append(cmd.Env, "ZEPH_TEST_INSIDE=1", "ZEPH_TEST_DIR="+w.root)
	if out := w.runCommand(t, cmd); out.ExitCode != 0 || !strings.Contains(out.Combined.Text(), "--- PASS: TestInside") {
		t.Error(out.Combined.Text())
	}
}

func TestServerKilled(t *testing.T) {
	t.Parallel()
	newWorld(t, nil).need(t)
	for _, mode := range []string{"strict", "off"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			mark := "MARK=killed-" + mode + t.TempDir()
			server := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServer$")
			server.Env = append(os.Environ(), "ZEPH_TEST_SERVER="+mode, "ZEPH_TEST_MARK="+mark, "ZEPH_TEST_DIR="+emptyFolder(t))
			said, err := server.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewScanner(said)
			for r.Scan() && !strings.Contains(r.Text(), "child says started") {
			}
			if sleepers(t, mark) < 3 {
				t.Error("nothing runs")
			}
			if err := server.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, said)
			_ = server.Wait()
			until := time.Now().Add(5 * time.Second)
			for sleepers(t, mark) != 0 {
				if time.Now().After(until) {
					t.Fatalf("%d processes are left", sleepers(t, mark))
				}
				runtime.Gosched()
			}
			// The next one removes the control groups it could not.
			newWorld(t, nil).run(t, "true")
			for _, dir := range ownGroups("") {
				if left, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%s*-%d-*", groupPrefix, server.Process.Pid))); len(left) != 0 {
					t.Errorf("%q is left", left)
				}
			}
		})
	}
}

// Without walls everything else still holds: nothing survives, output is
// bounded, and the result says that there were none.
func TestModeOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.Mode = ModeOff })
	if r := w.sb.Probe(t.Context()); r.Level != LevelNone || r.Err != nil || r.Mode != "off" || r.Fix == "" {
		t.Errorf("%+v", r)
	}
	if out := w.run(t, "cat "+w.secret); out.Combined.Text() != "canary\n" || out.Level != LevelNone {
		t.Errorf("%+v", out)
	}
	cmd := w.command(tree)
	mark := "MARK=off-" + w.root
	cmd.Env = append(cmd.Env, mark)
	cmd.Timeout, cmd.Grace = 200*time.Millisecond, 100*time.Millisecond
	if out := w.runCommand(t, cmd); !out.TimedOut {
		t.Errorf("%+v", out)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// An anchor that is gone is noticed and replaced; one that cannot be made is
// an error that says so, never a command without walls.
func TestAnchorGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	w.run(t, "true")
	for _, ses := range w.sb.sessions {
		if err := syscall.Kill(ses.anchor.pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-ses.anchor.done
	}
	if out := w.run(t, "echo again"); out.Combined.Text() != "again\n" {
		t.Errorf("%+v", out)
	}
	if err := os.RemoveAll(w.root); err != nil {
		t.Fatal(err)
	}
	cmd := w.command("echo loose")
	cmd.Dir = "/"
	if out, err := w.sb.Run(t.Context(), cmd); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestSessionsAreApartAndBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.MaxSessions = 2 })
	w.need(t)
	for _, s := range []string{"a", "b", "c", "a"} {
		cmd := w.command("ls /dev/shm; echo > /dev/shm/" + s)
		cmd.Session = s
		if out := w.runCommand(t, cmd); out.Combined.Text() != "" {
			t.Errorf("%s sees %q", s, out.Combined.Text())
		}
	}
	w.sb.mu.Lock()
	n := len(w.sb.sessions)
	w.sb.mu.Unlock()
	if n != 2 {
		t.Errorf("%d sessions", n)
	}
}

// Nothing inside can end the first process.
func TestAnchorIsDeaf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	w.run(t, "for s in $(seq 1 64); do kill -$s "+anchorPID()+"; done 2>/dev/null; true")
	if n := len(w.sb.sessions); n != 1 {
		t.Fatalf("%d sessions", n)
	}
	for _, ses := range w.sb.sessions {
		if ses.anchor.ended() {
			t.Error("it ended")
		}
	}
	if out := w.run(t, "trap 'echo got it' USR1; kill -USR1 $$"); out.Combined.Text() != "got it\n" {
		t.Errorf("a command cannot take signals: %+v", out)
	}
}

// A command cannot take the anchor's limits away, which every later command
// would inherit. It may still lower its own, and its limit on processes is
// final.
func TestLimitsAreOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for _, limit := range []string{"nofile", "fsize", "nproc", "cpu", "as", "data", "stack"} {
		if out := w.run(t, "prlimit --pid "+anchorPID()+" --"+limit+"=1:1"); out.ExitCode == 0 || strings.Contains(out.Stderr.Text(), "not found") {
			t.Errorf("%s of the first process: %+v", limit, out)
		}
	}
	if out := w.run(t, "prlimit --nofile=100:100 bash -c 'ulimit -n'; prlimit --pid $$ --nofile"); !strings.HasPrefix(out.Combined.Text(), "100\n") || out.ExitCode != 0 {
		t.Errorf("its own: %+v", out)
	}
	if testLevel() == LevelShared {
		return // the limit on processes is one of the user's
	}
	// The limit was made final a moment after the start.
	out := w.run(t, "until test \"$(ulimit -Hu)\" = 512; do sleep 0.01; done; ulimit -Su; ulimit -u 513")
	if out.Stdout.Text() != "512\n" || out.ExitCode == 0 {
		t.Errorf("processes: %+v", out)
	}
}

// A session without commands gives its processes back, and gets new ones.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.IdleTimeout = 20 * time.Millisecond })
	w.need(t)
	w.run(t, "true")
	w.sb.mu.Lock()
	var ended <-chan struct{}
	for _, ses := range w.sb.sessions {
		ended = ses.anchor.done
	}
	w.sb.mu.Unlock()
	if ended != nil {
		<-ended
	}
	if out := w.run(t, "sleep 0.06; echo on"); out.Combined.Text() != "on\n" {
		t.Errorf("%+v", out)
	}
}

// A command that makes processes as fast as it can is ended all the same.
func TestForkRacer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command("f() { setsid bash -c 'sleep 0.01' & }; while ((SECONDS < 60)); do f; done")
	cmd.Timeout, cmd.Grace = 200*time.Millisecond, 50*time.Millisecond
	if out := w.runCommand(t, cmd); !out.TimedOut {
		t.Errorf("%+v", out)
	}
}

func TestUnixSocketsOfTheOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.UnixSockets = UnixSocketsAll })
	w.need(t)
	if r := w.sb.Probe(t.Context()); slices.Contains(r.Held, "unix_socket") {
		t.Errorf("%+v", r)
	}
}

// Git may change its configuration, but not so that it would run something the
// next time somebody uses it outside.
func TestGitConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Policy) {
		root := p.Roots[0]
		p.LookReadOnly = func() []string {
			found, _ := filepath.Glob(root + "/.git/[ch]o*")
			return append(found, root+"/sub/.git/config")
		}
	})
	w.need(t)
	config := filepath.Join(w.root, ".git", "config")
	if out := w.run(t, "git init -q --template= . && git config user.name me && git remote add origin https://example.com/x"); out.ExitCode != 0 || out.Restored != nil {
		t.Fatalf("%s %q", out.Combined.Text(), out.Restored)
	}
	good, err := os.ReadFile(config)
	if err != nil || !bytes.Contains(good, []byte("example.com")) {
		t.Fatalf("%s %v", good, err)
	}
	for _, script := range []string{
		"git config core.fsmonitor /tmp/evil",
		"git config remote.origin.uploadpack evil",
		"git config remote.origin.url 'ext::evil'",
		"git config alias.st '!evil'",
		"echo '[include] path = evil' >> .git/config",
		"echo garbage > .git/config",
		"mkfifo p; mv p .git/config",
		"ln -sf /etc/passwd .git/config",
		"head -c 2000000 /dev/zero > .git/config",
	} {
		out := w.run(t, script)
		if len(out.Restored) != 1 || !strings.Contains(out.Restored[0], "put back") {
			t.Errorf("%s: %q %s", script, out.Restored, out.Combined.Text())
		}
		if got, err := os.ReadFile(config); err != nil || !bytes.Equal(got, good) {
			t.Errorf("%s left %s (%v)", script, got, err)
		}
	}
	if out := w.run(t, "mv .git/hooks x || mv .git y"); out.ExitCode == 0 && len(out.Restored) == 0 {
		t.Error("the folder could be exchanged")
	}
	if out := w.run(t, "git init -q sub && git -C sub config core.sshCommand evil"); len(out.Restored) != 1 || !strings.Contains(out.Restored[0], "set aside") {
		t.Errorf("%q", out.Restored)
	}
	if _, err := os.Stat(w.root + "/sub/.git/config"); err == nil {
		t.Error("a new harmful configuration is in force")
	}
}

// What stands before the first command, which comes after the probe, is not
// for us to judge.
func TestProbeLeavesTheWorkspaceAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Policy) {
		root := p.Roots[0]
		p.LookReadOnly = func() []string {
			return present(root, ".git/hooks", ".git/config", ".git/commondir", ".envrc", ".vscode")
		}
	})
	w.need(t)
	mine := "[alias]\n\tst = !status\n"
	for name, text := range map[string]string{
		".git/config": mine, ".git/hooks/pre-commit": "x", ".git/commondir": "elsewhere", ".envrc": "x", ".vscode/tasks.json": "{}",
	} {
		p := filepath.Join(w.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Default()
	sb, err := New(cfg, w.sb.policy, slog.New(slog.DiscardHandler)) // not probed yet
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
	out, err := sb.Run(t.Context(), w.command("cat .git/config; ls -a . .git .git/hooks .vscode"))
	if err != nil || !strings.HasPrefix(out.Stdout.Text(), mine) || strings.Contains(out.Stdout.Text(), quarantine) || out.Restored != nil {
		t.Errorf("%v %q %s", err, out.Restored, out.Combined.Text())
	}
}

// present are those of some names below root that exist. A .git counts only
// where it is no folder.
func present(root string, names ...string) []string {
	var out []string
	for _, n := range names {
		if info, err := os.Lstat(filepath.Join(root, n)); err == nil && (filepath.Base(n) != ".git" || !info.IsDir()) {
			out = append(out, filepath.Join(root, n))
		}
	}
	return out
}

// Names that would have something run outside later and that no mount can
// hold, because they are new, or links, or git rewrites them.
func TestSetAside(t *testing.T) {
	t.Parallel()
	names := []string{
		".git", ".envrc", ".vscode", ".husky", ".mcp.json", ".git/hooks", ".git/config", ".git/commondir",
		".git/worktrees/a/commondir", ".git/worktrees/a/config.worktree", ".git/modules/sub/config", "sub/.git", "sub/.git/config", "sub/.git/hooks",
	}
	for _, tt := range []struct{ name, before, script, says, check string }{
		{"a new file", "true", "echo x > .envrc", "set aside", "test ! -e .envrc -a -e .envrc.zeph-quarantine"},
		{"a second one", "echo x > .mcp.json.zeph-quarantine", "echo y > .mcp.json", "set aside", "test ! -e .mcp.json -a -e .mcp.json.zeph-quarantine-1"},
		{"a new folder", "true", "mkdir .vscode; echo x > .vscode/tasks.json", "set aside", "test ! -e .vscode"},
		{"a new link", "true", "mkdir evil; ln -s evil .husky", "set aside", "test ! -L .husky"},
		{"a new hook", "mkdir .git", "mkdir .git/hooks; echo x > .git/hooks/pre-commit; echo > .git/hooks/a.sample", "set aside", "test ! -e .git/hooks/pre-commit -a -e .git/hooks/a.sample"},
		{"hooks elsewhere", "mkdir .git", "mkdir evil; ln -s ../evil .git/hooks", "set aside", "test ! -L .git/hooks"},
		{"a configuration elsewhere", "git init -q .", "mkdir evil; echo $PWD/evil > .git/commondir", "set aside", "test ! -e .git/commondir"},
		{"a link exchanged", "mkdir mine evil; ln -s mine .husky", "ln -sfn evil .husky", "put back", "test $(readlink .husky) = mine"},
		{"a link replaced", "mkdir mine; ln -s mine .vscode", "rm .vscode; mkdir .vscode; echo x > .vscode/tasks.json", "put back", "test $(readlink .vscode) = mine"},
		{"a link deleted", "mkdir mine; ln -s mine .vscode", "rm .vscode", "put back", "test $(readlink .vscode) = mine"},
		{"the repository of a worktree", "echo gitdir: /real > .git", "echo gitdir: evil > .git", "put back", "grep -q /real .git"},
		{"a repository in its place", "echo gitdir: /real > .git", "rm .git; git init -q .", "put back", "grep -q /real .git"},
		{"a worktree's configuration", "mkdir -p .git/worktrees/a", "echo '[core] fsmonitor = x' > .git/worktrees/a/config.worktree", "set aside", "test ! -e .git/worktrees/a/config.worktree"},
		{"a worktree led astray", "mkdir -p .git/worktrees/a; echo ../.. > .git/worktrees/a/commondir", "echo /evil > .git/worktrees/a/commondir", "put back", "grep -qx ../.. .git/worktrees/a/commondir"},
		{"a repository within", "true", "mkdir -p sub/.git; printf '[core]\nfsmonitor = x\n' > sub/.git/config", "set aside", "test ! -e sub/.git/config"},
		{"a submodule led astray", "mkdir -p sub .git/modules/sub; echo gitdir: ../.git/modules/sub > sub/.git", "echo gitdir: evil > sub/.git", "put back", "grep -q modules sub/.git"},
		{"a submodule replaced", "mkdir -p sub .git/modules/sub; echo gitdir: ../.git/modules/sub > sub/.git", "mv sub x; mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/pre-commit", "put back", "grep -q modules sub/.git"},
		{"a submodule's folder elsewhere", "mkdir -p .git/modules", "mkdir evil; echo '[core] pager = x' > evil/config; ln -s ../../evil .git/modules/sub", "set aside", "test ! -e .git/modules/sub"},
		{"a worktree's folder elsewhere", "mkdir -p .git/worktrees/a; echo ../.. > .git/worktrees/a/commondir", "mkdir evil; echo /x > evil/commondir; mv .git/worktrees/a y; ln -s ../../evil .git/worktrees/a", "set aside", "test ! -e .git/worktrees/a/commondir"},
		{"a new submodule", "mkdir -p .git/modules/sub", "mkdir sub; echo gitdir: ../.git/modules/sub > sub/.git", "", "grep -q modules sub/.git"},
		{"nothing wrong", "git init -q .; git config user.name a; git config user.email a@b; git commit -q --allow-empty -m x", "git worktree add -q a && git worktree remove a && git config user.name b", "", "true"},
		{"a new repository", "true", "git init -q . && git config user.name b", "", "test -e .git/config"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var root string
			w := newWorld(t, func(_ *Config, p *Policy) {
				root = p.Roots[0]
				p.LookReadOnly = func() []string { return present(root, names...) }
			})
			w.need(t)
			prepare := exec.CommandContext(t.Context(), "bash", "-c", "rm -rf .git; "+tt.before)
			prepare.Dir = w.root
			if b, err := prepare.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			out := w.run(t, tt.script)
			if said := strings.Join(out.Restored, "\n"); (tt.says == "") != (said == "") || !strings.Contains(said, tt.says) {
				t.Errorf("said %q; %s", said, out.Combined.Text())
			}
			check := exec.CommandContext(t.Context(), "bash", "-c", tt.check)
			check.Dir = w.root
			if b, err := check.CombinedOutput(); err != nil {
				left, _ := exec.CommandContext(t.Context(), "find", w.root).CombinedOutput()
				t.Errorf("%v: %s\n%s", err, b, left)
			}
		})
	}
}

// A command that starts while another has something harmful in place must not
// have it taken for what was there before.
func TestSetAsideTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Policy) {
		root := p.Roots[0]
		p.LookReadOnly = func() []string { return present(root, ".git/config") }
	})
	w.need(t)
	w.run(t, "git init -q --template= .")
	var all sync.WaitGroup
	all.Go(func() {
		w.run(t, "git config core.fsmonitor evil; cp .git/config evil; touch started; until test -e second; do sleep 0.01; done")
	})
	all.Go(func() {
		w.run(t, "until test -e started; do sleep 0.01; done")
		w.run(t, "touch second; while grep -q evil .git/config; do sleep 0.01; done; cp evil .git/config")
	})
	all.Wait()
	if b, err := os.ReadFile(filepath.Join(w.root, ".git", "config")); err != nil || bytes.Contains(b, []byte("evil")) {
		t.Errorf("%s %v", b, err)
	}
}

// A name that becomes protected is so for the next command.
func TestProtectedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Policy) {
		root := p.Roots[0]
		p.LookReadOnly = func() []string {
			found, _ := filepath.Glob(root + "/*/.git/hooks")
			return found
		}
	})
	w.need(t)
	if out := w.run(t, "mkdir -p new/.git/hooks && echo x > new/.git/hooks/a"); out.ExitCode != 0 || len(out.Restored) != 1 {
		t.Errorf("%q %s", out.Restored, out.Combined.Text())
	}
	if out := w.run(t, "echo x > new/.git/hooks/b"); out.ExitCode == 0 && len(out.Restored) == 0 {
		t.Error("a new hook could be written")
	}
}
