package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain looks for processes that a test left behind: an anchor is a child of
// this process, and nothing it started outlives it.
func TestMain(m *testing.M) {
	code := m.Run()
	if attackDir != "" {
		_ = os.RemoveAll(attackDir)
	}
	if os.Getenv("ZEPH_TEST_SERVER") == "" && os.Getenv("ZEPH_TEST_INSIDE") == "" {
		if left := leftBehind(); left != "" && code == 0 {
			fmt.Fprintln(os.Stderr, "processes are left behind:", left)
			code = 1
		}
	}
	os.Exit(code)
}

// leftBehind waits for every child to have ended and names those that do not.
func leftBehind() string {
	until := time.Now().Add(5 * time.Second)
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, syscall.ECHILD) {
			return ""
		}
		if time.Now().After(until) {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
			return "pids " + string(b)
		}
		runtime.Gosched()
	}
}

func (w world) start(tb testing.TB, cmd Command) *Run {
	tb.Helper()
	r, err := w.sb.Start(tb.Context(), cmd)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// until waits for a line of output.
func (w world) until(tb testing.TB, r *Run, line string) {
	tb.Helper()
	for {
		if last, _ := r.Last(); last == line {
			return
		}
		select {
		case <-r.Done():
			out, err := r.Wait()
			tb.Fatalf("it ended before it said %q: %+v, %v", line, out, err)
		default:
			runtime.Gosched()
		}
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	cmd := w.command("echo one; read x < go; echo two >&2; exit 3")
	if err := syscall.Mkfifo(w.root+"/go", 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.start(t, cmd)
	w.until(t, r, "one")
	if s := r.Snapshot(); s.Combined.Text() != "one\n" || s.Level != testLevel() || s.Duration <= 0 {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(w.root+"/go", []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := r.Wait()
	if err != nil || out.ExitCode != 3 || out.Stdout.Text() != "one\n" || out.Stderr.Text() != "two\n" || out.Cancelled {
		t.Errorf("%+v, %v", out, err)
	}
	r.Stop()
	if again, err := r.Wait(); err != nil || again.Cancelled {
		t.Errorf("%+v, %v", again, err)
	}
	if r.Limit() != cmd.Timeout {
		t.Error(r.Limit())
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	r := w.start(t, w.command("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"))
	w.until(t, r, "ready")
	var all sync.WaitGroup
	for range 4 {
		all.Go(r.Stop)
	}
	all.Wait()
	out, err := r.Wait()
	if err != nil || !out.Cancelled || out.TimedOut || out.ExitCode != 7 || out.Stdout.Text() != "ready\nbye\n" || out.Survivors != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// The start's context does not end the command, and what cannot be started is
// told at the end.
func TestStartedIsOnItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	var r *Run
	t.Run("start", func(t *testing.T) { r = w.start(t, w.command("echo up; sleep 1020")) })
	w.until(t, r, "up")
	r.Stop()
	if out, err := r.Wait(); err != nil || !out.Cancelled || out.Signal != "SIGTERM" {
		t.Errorf("%+v, %v", out, err)
	}
	cmd := w.command("true")
	cmd.Dir = w.root + "/none"
	_, err := w.start(t, cmd).Wait()
	if _, ok := errors.AsType[*StartError](err); !ok {
		t.Error(err)
	}
}

// What a command writes into git's configuration does not stand until it ends.
func TestRecheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Policy) { p.ReadOnly = append(p.ReadOnly, p.Roots[0]+"/.git/config") })
	w.sb.recheck = 5 * time.Millisecond
	w.need(t)
	r := w.start(t, w.command("git init -q --template= . && git config alias.st '!evil' && while grep -q evil .git/config; do sleep 0.01; done; echo gone"))
	out, err := r.Wait()
	if err != nil || out.TimedOut || !strings.Contains(out.Stdout.Text(), "gone") || len(out.Restored) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	w.sb.oom = oomCounter{path: w.outside + "/events"}
	w.sb.groups.close()
	w.sb.groups.looked = true // without groups of our own the server's count is all there is
	count := func(text string) {
		t.Helper()
		if err := os.WriteFile(w.sb.oom.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	count("oom_kill 0\n")
	if out := w.run(t, "kill -KILL $$"); out.OutOfMemory || out.Signal != "SIGKILL" {
		t.Errorf("%+v", out)
	}
	count("oom_kill 1\n")
	if out := w.run(t, "echo fine"); out.OutOfMemory {
		t.Errorf("%+v", out)
	}
	if out := w.run(t, "kill -KILL $$"); !out.OutOfMemory {
		t.Errorf("%+v", out)
	}
	if out := w.run(t, "exit 1"); out.OutOfMemory {
		t.Errorf("%+v", out)
	}
}

// Not parallel: it measures memory.
func TestGigabyte(t *testing.T) {
	const quota, size = 256 << 20, 1_000_000_000
	w := newWorld(t, nil)
	w.need(t)
	w.run(t, "true")
	for _, keep := range []bool{false, true} {
		cmd := w.command("head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo end")
		cmd.Spool, cmd.Timeout = keep, 2*time.Minute
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := w.start(t, cmd)
		out, err := r.Wait()
		if err != nil || out.Stdout.Total != size+5 || !out.Stdout.Truncated || !strings.HasSuffix(out.Stdout.Text(), "x\nend\n") {
			t.Fatalf("total %d, %v", out.Stdout.Total, err)
		}
		p, err := r.Output(quota-10, 100)
		if want := map[bool]string{true: "xxxxxxxxxx"}[keep]; err != nil || keep && p.Text != want || !keep && p.Skipped < 500_000_000 {
			t.Errorf("%+v, %v", p, err)
		}
		p, err = r.Output(quota, 10)
		if err != nil || p.Text != "xxxxxxxxxx" || p.Skipped < 500_000_000 {
			t.Errorf("%+v, %v", p, err)
		}
		r.Discard()
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
			t.Errorf("allocated %d bytes", grown)
		}
		t.Logf("1 GB, kept %v: %v, %d bytes allocated, %d MiB at most from the system", keep, out.Duration, after.TotalAlloc-before.TotalAlloc, after.Sys>>20)
	}
}

// BenchmarkConcurrent runs 64 commands of a second at once.
func BenchmarkConcurrent(b *testing.B) {
	w := newWorld(b, nil)
	w.need(b)
	for b.Loop() {
		began := time.Now()
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				cmd := w.command("sleep 1")
				cmd.Session = fmt.Sprint("s", i%8)
				if out, err := w.sb.Run(b.Context(), cmd); err != nil || out.ExitCode != 0 {
					b.Errorf("%+v, %v", out, err)
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms")
	}
}

// BenchmarkFlood measures what long output costs.
func BenchmarkFlood(b *testing.B) {
	w := newWorld(b, nil)
	w.need(b)
	for _, size := range []int64{100_000_000, 1_000_000_000} {
		for _, keep := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dMB/kept=%v", size/1_000_000, keep), func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					cmd := w.command(fmt.Sprintf("head -c %d /dev/zero", size))
					cmd.Spool, cmd.Timeout = keep, 2*time.Minute
					r := w.start(b, cmd)
					if out, err := r.Wait(); err != nil || out.Stdout.Total != size {
						b.Fatal(out.Stdout.Total, err)
					}
					r.Discard()
				}
			})
		}
	}
}
