package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// procList is the list of processes as this system tells it.
func procList() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []process
	for _, d := range dirs {
		b, err := os.ReadFile(filepath.Join(d, "stat"))
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) < 20 || f[0] == "Z" {
			continue
		}
		p := process{}
		p.pid, _ = strconv.Atoi(filepath.Base(d))
		p.parent, _ = strconv.Atoi(f[1])
		p.group, _ = strconv.Atoi(f[2])
		p.began, _ = strconv.ParseInt(f[19], 10, 64)
		out = append(out, p)
	}
	return out
}

func procEnviron(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	return string(b)
}

func newDirect(t *testing.T) *direct {
	t.Helper()
	d := &direct{list: procList, marked: procEnviron, openFiles: 256, fileSize: 1 << 20, most: 64, running: map[uint64]*kin{}}
	t.Cleanup(d.close)
	return d
}

// begin starts a command, and returns what it prints and where its end is told.
func (d *direct) begin(t *testing.T, argv ...string) (*stage.Start, <-chan string, <-chan *stage.Exit) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	m := &stage.Start{Argv: argv, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}
	ended, err := d.run(m, int(w.Fd()), int(w.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		_ = r.Close()
		said <- string(b)
	}()
	return m, said, ended
}

// nap is a time to sleep that no other process on the machine sleeps: these
// tests may run several times at once.
func nap(n int) string { return fmt.Sprintf("86399.%d%d", n, os.Getpid()) }

// alive lists the processes whose arguments hold a word.
func alive(word string) []string {
	var out []string
	for _, p := range procList() {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if strings.Contains(string(b), word) {
			out = append(out, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}

func TestDirectRuns(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	_, said, ended := d.begin(t, "sh", "-c", `echo "$0 $# $1"; echo err >&2; ulimit -n; ulimit -f; ulimit -c; read x; echo "in $?"; kill -9 0`, "name", `a "b" $c`)
	end := <-ended
	if ws := syscall.WaitStatus(end.Status); !ws.Signaled() || ws.Signal() != syscall.SIGKILL || end.Survivors != 0 {
		t.Errorf("it ended with %+v", end)
	}
	got := <-said
	for _, want := range []string{"name 1 a \"b\" $c\n", "err\n", "256\n2048\n0\n", "in 1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("it printed %q, without %q", got, want)
		}
	}
	for _, c := range []struct{ name, dir, step string }{
		{"no-such-program", "/", "run no-such-program"},
		{"/etc/passwd", "/", "run /etc/passwd"},
		{"/etc", "/", "run /etc"},
		{"sh", "/no/such/folder", "enter /no/such/folder"},
		{"sh", "/etc/passwd", "enter /etc/passwd"},
	} {
		ch, err := d.run(&stage.Start{Argv: []string{c.name}, Dir: c.dir, Env: []string{"PATH=/usr/bin:/bin"}}, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if end := <-ch; end.Step != c.step || end.Errno == 0 {
			t.Errorf("%s in %s: it ended with %+v, not at %q", c.name, c.dir, end, c.step)
		}
	}
}

// What stays in a family, a group or a session, or carries the mark, is ended
// with the command.
func TestDirectLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	word := nap(1)
	_, said, ended := d.begin(t, "bash", "-c", strings.ReplaceAll(`sleep NAP & (sleep NAP &) ; setsid sleep NAP &
		setsid bash -c '(setsid sleep NAP &)' ; trap "" TERM; (trap "" TERM; sleep NAP) & echo started`, "NAP", word))
	end := <-ended
	if left := alive(word); len(left) > 0 || end.Survivors != 0 || end.Killed < 5 || syscall.WaitStatus(end.Status).ExitStatus() != 0 {
		t.Errorf("it ended with %+v, and left %q", end, left)
	}
	if got := <-said; got != "started\n" {
		t.Errorf("it printed %q", got)
	}
}

func TestDirectStops(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	m, said, ended := d.begin(t, "bash", "-c", strings.ReplaceAll(`trap "echo asked; exit 7" TERM; sleep NAP & wait`, "NAP", nap(2)))
	waitForProcess(t, nap(2))
	d.stop(m.ID, time.Minute)
	if end := <-ended; syscall.WaitStatus(end.Status).ExitStatus() != 7 || <-said != "asked\n" || len(alive(nap(2))) > 0 {
		t.Errorf("asked to stop it ended with %+v", end)
	}
	m, _, ended = d.begin(t, "bash", "-c", strings.ReplaceAll(`trap "" TERM; while :; do sleep NAP; done`, "NAP", nap(3)))
	waitForProcess(t, nap(3))
	d.stop(m.ID, 50*time.Millisecond)
	if end := <-ended; !syscall.WaitStatus(end.Status).Signaled() || len(alive(nap(3))) > 0 {
		t.Errorf("forced to stop it ended with %+v", end)
	}
	_, _, ended = d.begin(t, "sleep", nap(4))
	d.close()
	if end := <-ended; !syscall.WaitStatus(end.Status).Signaled() || len(alive(nap(4))) > 0 {
		t.Errorf("closed it ended with %+v", end)
	}
	if _, err := d.run(&stage.Start{Argv: []string{"true"}, Dir: "/"}, 1, 2); err == nil {
		t.Error("it runs a command although it is closed")
	}
}

// A server that is killed closes its end of the alarm.
func TestDirectEndsWithTheServer(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	m, _, ended := d.begin(t, "bash", "-c", strings.ReplaceAll(`trap "" TERM HUP; (trap "" TERM; sleep NAP) & while :; do sleep NAP; done`, "NAP", nap(5)))
	waitForProcess(t, nap(5))
	d.mu.Lock()
	k := d.running[m.ID]
	d.mu.Unlock()
	if err := k.alarm.Close(); err != nil {
		t.Fatal(err)
	}
	if end := <-ended; !syscall.WaitStatus(end.Status).Signaled() || len(alive(nap(5))) > 0 {
		t.Errorf("it ended with %+v", end)
	}
}

func TestDirectCounts(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	d.most = 8
	_, _, ended := d.begin(t, "bash", "-c", strings.ReplaceAll(`for i in {1..20}; do sleep NAP & done; wait`, "NAP", nap(6)))
	if end := <-ended; end.Over != stage.OverProcesses || len(alive(nap(6))) > 0 {
		t.Errorf("it ended with %+v", end)
	}
}

// waitForProcess waits until a process with a word in its arguments runs.
func waitForProcess(t *testing.T, word string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, c := range alive(word) {
			if strings.HasPrefix(c, "sleep ") {
				return
			}
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not start")
		}
	}
}

func TestKinAreKnownByWhenTheyBegan(t *testing.T) {
	t.Parallel()
	k := &kin{root: 10, known: map[int]int64{}, groups: map[int]bool{10: true}}
	pids := func(ps []process) []int {
		var out []int
		for _, p := range ps {
			out = append(out, p.pid)
		}
		return out
	}
	steps := []struct {
		name string
		list []process
		want []int
	}{
		{"the command alone", []process{{1, 0, 1, 1}, {10, 9, 10, 100}}, nil},
		{"a child, its child in a session of its own, and a stranger", []process{{10, 9, 10, 100}, {12, 11, 12, 102}, {11, 10, 10, 101}, {20, 1, 20, 50}}, []int{12, 11}},
		{"the child has gone, its child stays and has a child", []process{{10, 9, 10, 100}, {12, 1, 12, 102}, {13, 12, 12, 103}}, []int{12, 13}},
		{"the leader has gone, its group stays", []process{{10, 9, 10, 100}, {13, 1, 12, 103}, {14, 1, 12, 104}}, []int{13, 14}},
		{"somebody else got the leader's number", []process{{10, 9, 10, 100}, {12, 1, 12, 900}, {15, 12, 12, 901}, {13, 1, 99, 103}}, []int{13}},
		{"somebody else got the command's number", []process{{10, 1, 10, 950}, {16, 10, 16, 951}}, nil},
	}
	for _, s := range steps {
		if diff := cmp.Diff(s.want, pids(k.look(s.list))); diff != "" {
			t.Errorf("%s: %s", s.name, diff)
		}
	}
}

// The script that macOS is probed with tells walls from none: on this system
// both can be had.
func TestSeatbeltProbeTellsWallsFromNone(t *testing.T) {
	t.Parallel()
	dir, err := seatbeltBait(emptyFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(_ *Config, p *Policy) {
		p.Secrets = append(p.Secrets, filepath.Join(dir, "secret"), filepath.Join(dir, "closed"))
	})
	w.need(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	argv := seatbeltProbe(dir, port)
	said := func(walls bool) string {
		if !walls {
			_, out, ended := newDirect(t).begin(t, argv...)
			<-ended
			return <-out
		}
		out, err := w.sb.Run(t.Context(), Command{
			Argv: argv, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, MaxOutput: 1 << 16, ExtraWrite: []string{filepath.Join(dir, "tmp")},
			Terms: w.sb.cfg.Terms(Workspace, nil),
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(out.Stdout.Head)
	}
	without, err := judgeSeatbelt(said(false), "", false)
	if err != nil || len(without.Missing) == 0 || len(without.Held) != 0 {
		t.Errorf("without walls: %v %+v", err, without)
	}
	if _, err := judgeSeatbelt(said(false), "", true); err == nil {
		t.Error("no walls at all are taken for walls")
	}
	if testLevel() == LevelShared { // whose known gap the probe has to find
		r, err := judgeSeatbelt(said(true), "count", true)
		if diff := cmp.Diff([]string{"change a mode outside"}, r.Missing); err == nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		return
	}
	with, err := judgeSeatbelt(said(true), "count", true)
	if err != nil || with.Level != LevelSeatbelt || len(with.Held) != len(without.Missing) || !strings.HasPrefix(with.Missing[0], "untested") {
		t.Errorf("with walls: %v %+v", err, with)
	}
	for name, text := range map[string]string{
		"nothing": "", "half": "ok read a secret\nworks\n", "no write": strings.ReplaceAll(said(true), "works\n", ""),
	} {
		if r, err := judgeSeatbelt(text, "", true); err == nil {
			t.Errorf("%s: taken for walls: %+v", name, r)
		}
	}
}
