package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// eatMemory takes so many MiB, step by step, and keeps them.
func eatMemory(args []string) {
	most, _ := strconv.Atoi(args[0])
	var kept [][]byte
	for range most {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
		if len(args) > 1 {
			time.Sleep(time.Millisecond)
		}
	}
	fmt.Println("has", len(kept))
	time.Sleep(time.Hour)
}

// eatFiles opens files until there are no more.
func eatFiles([]string) {
	for n := 0; ; n++ {
		if _, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0); err != nil {
			fmt.Println(n, err)
			return
		}
	}
}

// beside runs a command of the same session while another misbehaves, and
// returns a function that checks that it came to no harm.
func (w world) beside(t *testing.T) func() {
	t.Helper()
	cmd := w.command("echo up; until test -e enough; do sleep 0.1; done; echo down")
	cmd.Timeout = time.Minute
	r := w.start(t, cmd)
	w.until(t, r, "up")
	return func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.root, "enough"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := r.Wait()
		if err != nil || out.ExitCode != 0 || out.Stdout.Text() != "up\ndown\n" {
			t.Errorf("the command beside it: %v %d %s", err, out.ExitCode, out.Combined.Text())
		}
		if out := w.run(t, "echo next"); out.Combined.Text() != "next\n" {
			t.Error("the next command:", told(out))
		}
	}
}

// told is an outcome for an error message.
func told(out Outcome) string {
	return fmt.Sprintf("exit %d, timed out %v, cancelled %v, out of memory %v, %d killed, %+v\n%.1000s", out.ExitCode, out.TimedOut, out.Cancelled,
		out.OutOfMemory, out.Killed, out.Violations, out.Combined.Text())
}

// limited returns the only violation there should be, without its hint.
func limited(t *testing.T, out Outcome) Violation {
	t.Helper()
	if len(out.Violations) != 1 || out.Violations[0].Hint == "" {
		t.Fatal(told(out))
	}
	v := out.Violations[0]
	if held := v.Op == "memory" || v.Op == "processes"; held && v.By != out.Limits || !held && v.By != "" {
		t.Errorf("held by %q, not %q", v.By, out.Limits)
	}
	v.Hint, v.By = "", ""
	return v
}

// What a command's processes take together is limited, and not what one takes.
func TestMemoryBomb(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.MaxMemory = 256 << 20 })
	w.need(t)
	unharmed := w.beside(t)
	cmd := w.attacker(t, "memory", "100", "slowly")
	mark := "MARK=memory-" + w.root
	cmd.Env, cmd.Timeout = append(cmd.Env, mark), time.Minute
	cmd.Argv = []string{"bash", "-c", "for i in 1 2 3 4 5; do " + strings.Join(cmd.Argv, " ") + " & done; wait; sleep 1000"}
	out := w.runCommand(t, cmd)
	if !out.OutOfMemory || out.TimedOut || out.Cancelled || out.ExitCode != 137 {
		t.Error(told(out))
	}
	want := Violation{Kind: call.ViolationLimit, Op: "memory", Target: "256 MiB", Rule: "limit.memory", Source: call.SourceExact, Count: 1}
	if d := cmp.Diff(want, limited(t, out)); d != "" {
		t.Error(d)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	unharmed()
}

// Memory that processes share counts once.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.MaxMemory = 384 << 20 })
	w.need(t)
	out := w.run(t, "x=$(head -c 100000000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5; do (sleep 1.5; :) & done; wait; echo fine")
	if out.Stdout.Text() != "fine\n" || out.OutOfMemory || out.Violations != nil {
		t.Error(told(out))
	}
}

// Whatever holds the number of processes, a bomb is ended and hurts nobody.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	t.Run("as here", func(t *testing.T) {
		t.Parallel()
		forkBomb(t, newWorld(t, func(c *Config, _ *Policy) { c.MaxProcesses = 200 }))
	})
	t.Run("watched", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(c *Config, _ *Policy) { c.MaxProcesses = 200 })
		w.sb.groups.looked = true // no control groups
		forkBomb(t, w)
	})
}

func forkBomb(t *testing.T, w world) {
	t.Helper()
	w.need(t)
	unharmed := w.beside(t)
	// One that stops at ten times as many, should nothing else stop it.
	cmd := w.command(w.copyAttack(t) + " bomb 2000")
	mark := "MARK=bomb-" + w.root
	cmd.Env, cmd.Timeout = append(cmd.Env, mark), time.Minute
	out := w.runCommand(t, cmd)
	if out.TimedOut || out.OutOfMemory {
		t.Error(told(out))
	}
	want := Violation{Kind: call.ViolationLimit, Op: "processes", Target: "200", Rule: "limit.processes", Source: call.SourceExact, Count: 1}
	if d := cmp.Diff(want, limited(t, out)); d != "" {
		t.Error(d)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	unharmed()
}

// Many processes that come and go are no bomb.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.MaxProcesses = 200 })
	w.need(t)
	if out := w.run(t, "for i in $(seq 120); do sleep 1.5 & done; wait; echo fine"); out.Combined.Text() != "fine\n" || out.Violations != nil {
		t.Error(told(out))
	}
}

func TestOtherLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) {
		c.MaxFileSize, c.MaxOutputSize, c.MaxOpenFiles = 1<<20, 8<<20, 100
	})
	w.need(t)
	unharmed := w.beside(t)
	out := w.attack(t, "files")
	n, rest, _ := strings.Cut(out.Stdout.Text(), " ")
	if had, err := strconv.Atoi(n); rest != "too many open files\n" || err != nil || had > 100 {
		t.Errorf("%s", out.Combined.Text())
	}
	file := Violation{Kind: call.ViolationLimit, Op: "bytes in one file", Target: "1 MiB", Rule: "limit.file_size", Source: call.SourceExact, Count: 1}
	cmd := w.command("")
	cmd.Argv = []string{"dd", "if=/dev/zero", "of=big", "bs=64K", "count=100"}
	if d := cmp.Diff(file, limited(t, w.runCommand(t, cmd))); d != "" {
		t.Error(d)
	}
	file.Source = call.SourceInferred
	if d := cmp.Diff(file, limited(t, w.run(t, "dd if=/dev/zero of=big bs=64K count=100; exit $?"))); d != "" {
		t.Error(d)
	}
	if info, err := os.Stat(w.root + "/big"); err != nil || info.Size() > 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
	flood := Violation{Kind: call.ViolationLimit, Op: "output", Target: "8 MiB", Rule: "limit.output", Source: call.SourceExact, Count: 1}
	out = w.run(t, "yes; sleep 1000")
	if d := cmp.Diff(flood, limited(t, out)); d != "" || out.TimedOut || out.Cancelled || !out.Stdout.Truncated {
		t.Error(d, out.TimedOut, out.Cancelled)
	}
	unharmed()
}

// A command that takes its time lets others go first; one that is over at once
// is not slowed down.
func TestNice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	out := w.run(t, "nice; until test $(nice) = 5; do sleep 0.1; done; nice")
	if out.Stdout.Text() != "0\n5\n" {
		t.Error(told(out))
	}
}

// The limits also hold where there are no walls.
func TestLimitsWithoutWalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.Mode, c.MaxMemory, c.MaxProcesses = ModeOff, 128<<20, 200 })
	cmd := w.attacker(t, "memory", "2000")
	mark := "MARK=open-" + w.root
	cmd.Env = append(cmd.Env, mark)
	if out := w.runCommand(t, cmd); !out.OutOfMemory || limited(t, out).Rule != "limit.memory" {
		t.Error(told(out))
	}
	cmd = w.command("for i in $(seq 300); do sleep 100 & done; cat /proc/self/oom_score_adj; wait")
	cmd.Env = append(cmd.Env, mark)
	if out := w.runCommand(t, cmd); limited(t, out).Rule != "limit.processes" || out.Stdout.Text() != "500\n" && out.Stdout.Text() != "" {
		t.Error(told(out))
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 bytes", 1000: "1000 bytes", 1 << 20: "1 MiB", 3 << 29: "1.5 GiB", 4 << 30: "4 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	c := Default()
	c.MaxMemory = 1 << 62
	if got := c.memoryLimit(); got <= 0 || got >= 1<<50 {
		t.Errorf("half of the memory is %d", got)
	}
	c.MaxMemory = 64 << 20
	if got := c.memoryLimit(); got != 64<<20 {
		t.Error(got)
	}
}

// copyAttack puts the attack program into the workspace and returns its path.
func (w world) copyAttack(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(attackProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.root, "attack")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
