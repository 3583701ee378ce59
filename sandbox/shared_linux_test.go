package sandbox

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAtLevel2 runs the tests of this package again, with the walls that need
// no namespaces. Left out are those that are about namespaces, and those that do
// not depend on walls: about output, and about other systems.
func TestAtLevel2(t *testing.T) {
	if testLevel() != LevelFull {
		t.Skip("this is that run")
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.timeout=5m", "-test.skip="+
		"^(TestAtLevel2|TestDirect.*|TestSeatbelt.*|TestKin.*|TestInside|TestServer|TestRefused|TestAcceptance.*|TestSessionsAreApartAndBounded|TestGigabyte|TestFlood|TestConfig|TestPlan|TestGateway|TestExpose|TestInferredIsTold|TestGroupsAreUsedAgain)$")
	again.Env = append(os.Environ(), "ZEPH_TEST_LEVEL=2")
	if b, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}

// sharedWorld is a world whose walls need no namespaces.
func sharedWorld(t *testing.T, change func(*Config, *Policy)) world {
	t.Helper()
	w := newWorld(t, change)
	w.sb.only = LevelShared
	w.need(t)
	return w
}

// Everything that is opened is opened by name: what is secret never is, in the
// workspace either, and what comes to be beside it is from the next command on.
func TestSecretInWorkspace(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t, func(_ *Config, p *Policy) {
		p.Secrets = append(p.Secrets, p.Roots[0]+"/conf/.env", p.Roots[0]+"/keys")
	})
	for name, text := range map[string]string{"conf/.env": "canary", "conf/plain": "plain", "keys/id": "canary", "src/main": "plain"} {
		p := filepath.Join(w.root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := w.run(t, "cat conf/plain src/main; ls; cat conf/.env keys/id"); strings.Contains(out.Combined.Text(), "canary") || !strings.HasPrefix(out.Stdout.Text(), "plainplain") {
		t.Error(out.Combined.Text())
	}
	if out := w.run(t, "mv conf/.env src/x; ln conf/.env src/y; mv keys src/z; mkdir n && mv conf n/; cat src/* n/conf/.env src/z/id"); strings.Contains(out.Combined.Text(), "canary") {
		t.Error(out.Combined.Text())
	}
	if out := w.run(t, "mv conf moved || mv conf/.env conf/e || ln conf/.env conf/e || ln -s .env e || mkdir new || rm -r keys"); out.ExitCode == 0 {
		t.Error("a name beside a secret could be changed")
	}
	if out := w.run(t, "echo new > conf/plain; echo new > src/main; mkdir -p src/deep/er && echo new > src/deep/er/new && cat conf/plain src/main src/deep/er/new"); out.Stdout.Text() != "new\nnew\nnew\n" {
		t.Error(out.Combined.Text())
	}
	// What a person makes there is open to the next command.
	if err := os.WriteFile(w.root+"/made", []byte("made"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.run(t, "cat made"); out.Stdout.Text() != "made" {
		t.Error(out.Combined.Text())
	}
}

// What level 2 does not prevent is undone when the command has ended, and told.
func TestUndone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, says, check string }{
		{"a hook changed", "echo evil >> .git/hooks/pre-commit", "put back", "grep -qx mine .git/hooks/pre-commit"},
		{"a hook opened", "chmod 777 .git/hooks/pre-commit", "put back", "test $(stat -c %a .git/hooks/pre-commit) = 700"},
		{"a hook deleted", "rm .git/hooks/pre-commit", "put back", "grep -qx mine .git/hooks/pre-commit && test -x .git/hooks/pre-commit"},
		{"a new hook", "echo evil > .git/hooks/pre-push", "set aside", "test ! -e .git/hooks/pre-push -a -e .git/hooks/pre-push.zeph-quarantine"},
		{"a folder of them", "mkdir -p .git/hooks/a/b; echo x > .git/hooks/a/b/c", "set aside", "test ! -e .git/hooks/a"},
		{"too many to look at", "for i in {1..5000}; do : > .git/hooks/a$i; done; echo evil > .git/hooks/update; echo evil >> .git/hooks/pre-commit", "all of it was set aside", "grep -qx mine .git/hooks/pre-commit && test $(ls .git/hooks | wc -l) = 2 && grep -qx deep .git/hooks/d/x"},
		{"a link in place of a hook", "ln -sf /bin/true .git/hooks/pre-commit", "put back", "test ! -L .git/hooks/pre-commit && grep -qx mine .git/hooks/pre-commit"},
		{"a folder in place of a hook", "rm .git/hooks/pre-commit; mkdir .git/hooks/pre-commit", "put back", "grep -qx mine .git/hooks/pre-commit"},
		{"a pipe in place of a hook", "rm .git/hooks/pre-commit; mkfifo .git/hooks/pre-commit", "put back", "grep -qx mine .git/hooks/pre-commit"},
		{"all hooks deleted", "rm -r .git/hooks", "put back", "grep -qx mine .git/hooks/pre-commit && grep -qx deep .git/hooks/d/x"},
		{"all hooks exchanged", "mv .git/hooks h; mkdir .git/hooks; echo evil > .git/hooks/pre-commit", "put back", "grep -qx mine .git/hooks/pre-commit && test -e .git/hooks/d/x"},
		{"hooks led elsewhere", "mkdir evil; echo evil > evil/pre-commit; rm -r .git/hooks; ln -s ../evil .git/hooks", "put back", "test ! -L .git/hooks && grep -qx mine .git/hooks/pre-commit"},
		{".git rebuilt", "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit", "put back", "grep -qx mine .git/hooks/pre-commit"},
		{".git gone", "mv .git old", "removed together", "test -e old/hooks/pre-commit"},
		{"a file changed", "echo evil > .envrc", "put back", "grep -qx mine .envrc"},
		{"the time of a file", "touch -d yesterday .envrc .git/hooks/*; cat .envrc > x; cp x .envrc", "", "grep -qx mine .envrc"},
		{"the same again", "cp .git/hooks/pre-commit x; rm .git/hooks/pre-commit; cp -p x .git/hooks/pre-commit", "", "grep -qx mine .git/hooks/pre-commit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := sharedWorld(t, func(_ *Config, p *Policy) { p.ReadOnly = append(p.ReadOnly, p.Roots[0]+"/.envrc") })
			host := func(script string) error {
				c := exec.CommandContext(t.Context(), "bash", "-c", script)
				c.Dir = w.root
				if b, err := c.CombinedOutput(); err != nil {
					return fmt.Errorf("%s: %w: %s", script, err, b)
				}
				return nil
			}
			if err := host("echo mine > .envrc; echo mine > .git/hooks/pre-commit; chmod 700 .git/hooks/pre-commit; mkdir .git/hooks/d; echo deep > .git/hooks/d/x"); err != nil {
				t.Fatal(err)
			}
			for range 2 { // and once more, after it was put back
				out := w.run(t, tt.script)
				said := strings.Join(out.Restored, "\n")
				if (tt.says == "") != (said == "") || !strings.Contains(said, tt.says) {
					t.Errorf("said %q; %s", said, out.Combined.Text())
				}
				if err := host(tt.check); err != nil {
					t.Error(err)
				}
				if tt.says != "put back" {
					return
				}
				if err := host("rm -rf old h evil"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A command that multiplies as fast as it can, with every process leaving at
// once, is ended in one step.
func TestComet(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t, nil)
	w.copyAttack(t)
	mark := "MARK=comet-" + w.root
	cmd := w.command("./attack comet & ./attack comet & ./attack headless & sleep 0.2; echo out")
	cmd.Env = append(cmd.Env, mark)
	out := w.runCommand(t, cmd)
	if out.Stdout.Text() != "out\n" || out.Killed == 0 {
		t.Errorf("%+v", out)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if out := w.run(t, "echo next"); out.Combined.Text() != "next\n" {
		t.Errorf("%+v", out)
	}
}

// The commands' domain holds one thread of the anchor. Nothing they do ends it.
func TestAnchorsThread(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t, nil)
	w.copyAttack(t)
	script := "for t in $(ls /proc/$PPID/task); do for a in kill pidfd-kill tkill tgkill queue folder-kill owner-kill; do ./attack $a $t $PPID; done; done"
	out := w.run(t, script)
	if text := out.Stdout.Text(); strings.Contains(text, "worked") || strings.Count(text, "\n") < 7*4 {
		t.Error(text)
	}
	for _, ses := range w.sb.sessions {
		if ses.anchor.ended() {
			t.Error("the anchor ended")
		}
	}
}

// Where Landlock does not keep signals within, and knows nothing of the network,
// the rest does it.
func TestOldLandlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.sb.only, w.sb.maxABI = LevelShared, 3
	w.need(t)
	if r := w.sb.Probe(t.Context()); r.LandlockABI != 3 || len(r.Held) < 20 {
		t.Errorf("%+v", r)
	}
	w.copyAttack(t)
	for _, script := range []string{
		"sleep 1040 & kill $! && ! wait $!", "set -m; sleep 1041 | sleep 1042 & kill -TERM -- -$! && ! wait $!",
		"timeout -s KILL 0.05 sleep 1043; test $? = 137", "trap 'exit 0' USR1; kill -USR1 $$; exit 1", "bash -c 'kill -ABRT $$'; test $? = 134", "kill -0 0",
	} {
		if out := w.run(t, script); out.ExitCode != 0 {
			t.Errorf("%s: %d %s", script, out.ExitCode, out.Combined.Text())
		}
	}
	me := fmt.Sprint(os.Getpid())
	for _, script := range []string{
		"kill -0 " + me, "kill -0 $PPID", "kill -0 -1", "kill -0 -- -" + fmt.Sprint(unix.Getpgrp()),
		"for a in kill pidfd-kill tkill queue folder-kill owner-kill; do ./attack $a " + me + "; done | grep worked", "./attack tgkill $PPID $PPID | grep worked",
		"./attack tcp 127.0.0.1 9 | grep -v EPERM", "./attack loopback | grep worked",
	} {
		if out := w.run(t, script); out.ExitCode == 0 {
			t.Errorf("%s worked: %s", script, out.Combined.Text())
		}
	}
	mark := "MARK=old-" + w.root
	cmd := w.command(tree)
	cmd.Env, cmd.Timeout, cmd.Grace = append(cmd.Env, mark), 300*time.Millisecond, 100*time.Millisecond
	if out := w.runCommand(t, cmd); !out.TimedOut {
		t.Errorf("%+v", out)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// The broker connects to what was named, and to nothing else.
func TestReach(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	w := sharedWorld(t, nil)
	w.sb.reach = []uint32{uint32(a.Port)}
	try := func(host string, port int) string {
		out := w.run(t, fmt.Sprintf("exec 3<>/dev/tcp/%s/%d && cat <&3", host, port))
		return out.Combined.Text()
	}
	if got := try("127.0.0.1", a.Port); got != "hello" {
		t.Errorf("the named port: %q", got)
	}
	for _, to := range []struct {
		host string
		port int
	}{{"127.0.0.2", a.Port}, {"127.0.0.1", a.Port + 1}, {"::1", a.Port}, {"::ffff:127.0.0.1", a.Port}, {"192.0.2.1", a.Port}} {
		if got := try(to.host, to.port); !strings.Contains(got, "not permitted") && !strings.Contains(got, "ermission denied") {
			t.Errorf("%v: %q", to, got)
		}
	}
}

// With local sockets allowed, those that lie where a command may read are
// reached, by any path, and no others.
func TestLocalSockets(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t, func(c *Config, _ *Policy) { c.UnixSockets = UnixSocketsAll })
	for _, p := range []string{w.root + "/socket", w.secretDir + "/socket"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
	}
	w.copyAttack(t)
	if err := os.Symlink(w.secretDir+"/socket", w.root+"/led"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ attack, want string }{
		{"unix " + w.root + "/socket", worked},
		{"unix socket", worked},
		{"unix-serve mine", worked},
		{"unix " + w.secretDir + "/socket", "EACCES"},
		{"unix led", "EACCES"},
		{"abstract zeph-none", "EPERM"},
		{"pair-datagram socket", "EPERM"},
	} {
		if out := w.run(t, "./attack "+tt.attack); strings.TrimSpace(out.Stdout.Text()) != tt.want {
			t.Errorf("%s: %s", tt.attack, out.Combined.Text())
		}
	}
}

// When the anchor itself is killed, the program it started goes with it.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t, nil)
	mark := "MARK=orphan-" + w.root
	cmd := w.command("echo up; exec sleep 1030")
	cmd.Env = append(cmd.Env, mark)
	r := w.start(t, cmd)
	w.until(t, r, "up")
	if err := unix.Kill(r.ses.anchor.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(); err == nil {
		t.Error("its end is said to be known")
	}
	until := time.Now().Add(5 * time.Second)
	for sleepers(t, mark) != 0 {
		if time.Now().After(until) {
			t.Fatal("it is left")
		}
	}
}

// Without a folder of the session's own, temporary files still go somewhere
// private, which goes with the session.
func TestOwnTmp(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t, nil)
	cmd := w.command("echo $TMPDIR; echo x > $(mktemp) && cat <<< y")
	cmd.Scratch = ""
	cmd.Env = append(cmd.Env, "TMPDIR=/tmp")
	out := w.runCommand(t, cmd)
	dir, rest, _ := bytes.Cut(out.Stdout.Head, []byte("\n"))
	if out.ExitCode != 0 || string(rest) != "y\n" || !strings.HasPrefix(string(dir), w.state+"/tmp-") {
		t.Fatal(out.Combined.Text())
	}
	if err := w.sb.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(string(dir)); err == nil {
		t.Error("it is left")
	}
}
