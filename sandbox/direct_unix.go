//go:build linux || darwin

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

const (
	kinEvery  = 100 * time.Millisecond // between looks at what a command has started
	sweepFor  = 500 * time.Millisecond // for everything that was killed to be gone
	sweepWait = 5 * time.Millisecond
)

// direct starts commands from the server itself, where there is no anchor that
// could. It keeps track of what they start by the list of processes, so what
// leaves its parent, its group and its session between two looks is found only
// by the mark in its environment.
type direct struct {
	before    []string         // program and arguments that come before each command
	list      func() []process // every process of this user
	marked    func(pid int) string
	openFiles uint64
	fileSize  uint64
	most      int // processes of one command

	mu      sync.Mutex
	next    uint64
	running map[uint64]*kin
	closed  bool
	all     sync.WaitGroup
}

// process is one of the list. When it began tells it from another of its
// number.
type process struct {
	pid, parent, group int
	began              int64
}

// kin is a command and all it has started.
type kin struct {
	proc  *os.Process
	began time.Time
	mark  string
	alarm *os.File // closed when the command is over, by whatever end of the server
	stop  chan time.Duration

	root   int
	first  int64 // when the root began, as the list counts
	known  map[int]int64
	groups map[int]bool
	over   byte
}

// directScript limits the command and leaves somebody behind who kills its group
// once the other end of descriptor 3 is closed, which even kill -9 of the
// server does. That one has left the command's family, so that nothing waits for
// it. The list is: open files, bytes of a file in half KiB, the command.
const directScript = `ulimit -c 0; ulimit -n "$1" 2>/dev/null; ulimit -f "$2" 2>/dev/null; shift 2
((read -r _; kill -9 0) <&3 >/dev/null 2>&1 &)
exec 3<&-; exec "$@"`

// run starts a command; its end is told on the channel.
func (d *direct) run(m *stage.Start, fds ...int) (<-chan *stage.Exit, error) {
	ch := make(chan *stage.Exit, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errRetired
	}
	d.next++
	m.ID = d.next
	if step, err := findProgram(m.Argv[0], m.Dir, m.Env); err != nil {
		ch <- &stage.Exit{ID: m.ID, Step: step, Errno: uint32(errno(err))}
		return ch, nil
	}
	k, err := d.start(m, fds)
	if err != nil {
		ch <- &stage.Exit{ID: m.ID, Step: "run " + m.Argv[0], Errno: uint32(errno(err))}
		return ch, nil
	}
	d.running[m.ID] = k
	d.all.Go(func() {
		end := d.attend(k)
		end.ID = m.ID
		d.mu.Lock()
		delete(d.running, m.ID)
		d.mu.Unlock()
		ch <- end
	})
	return ch, nil
}

func (d *direct) start(m *stage.Start, fds []int) (*kin, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	files := []*os.File{null}
	defer func() { closeAllFiles(files) }()
	for _, fd := range fds[:2] {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, os.NewFile(uintptr(dup), "output"))
	}
	heard, alarm, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files = append(files, heard)
	k := &kin{
		began: time.Now(), mark: fmt.Sprintf("ZEPH_RUN=%d-%d-%d", os.Getpid(), time.Now().UnixNano(), m.ID), alarm: alarm,
		stop: make(chan time.Duration, 1), known: map[int]int64{}, groups: map[int]bool{},
	}
	argv := append(slices.Clip(d.before), "/bin/sh", "-c", directScript, "sh",
		fmt.Sprint(d.openFiles), fmt.Sprint(d.fileSize/512))
	k.proc, err = os.StartProcess(argv[0], append(argv, m.Argv...), &os.ProcAttr{
		Dir: m.Dir, Env: append(slices.Clip(m.Env), k.mark), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(err, alarm.Close())
	}
	k.root = k.proc.Pid
	k.groups[k.root] = true
	return k, nil
}

// attend brings a command to its end, and ends everything it started.
func (d *direct) attend(k *kin) *stage.Exit {
	ended := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := k.proc.Wait()
		ended <- state
	}()
	look := time.NewTicker(kinEvery)
	defer look.Stop()
	var force <-chan time.Time
	end := &stage.Exit{Status: uint32(syscall.SIGKILL)}
	for {
		select {
		case state := <-ended:
			if ws, ok := state.Sys().(syscall.WaitStatus); ok {
				end.Status = uint32(ws)
			}
			killed, left := d.sweep(k)
			end.Killed, end.Survivors, end.Over = uint32(killed), uint32(left), k.over
			return end
		case <-look.C:
			if alive := k.look(d.list()); d.most > 0 && len(alive) > d.most {
				k.over = stage.OverProcesses
				k.signal(alive, syscall.SIGKILL)
			}
		case grace := <-k.stop:
			if grace > 0 {
				k.signal(k.look(d.list()), syscall.SIGTERM)
			}
			force = time.After(grace)
		case <-force:
			k.signal(k.look(d.list()), syscall.SIGKILL)
		}
	}
}

// sweep ends what a command left behind, and says how much that was and how
// much could not be ended.
func (d *direct) sweep(k *kin) (killed, left int) {
	alive := k.find(d.list(), d.marked)
	killed = max(0, len(alive)-1) // not counting who waits for the alarm
	_ = k.alarm.Close()
	// One that was just making another when it was ended may have left that in a
	// session of its own, so nobody is left only when two looks in a row say so.
	none := 0
	for until := time.Now().Add(sweepFor); none < 2 && time.Now().Before(until); alive = k.find(d.list(), d.marked) {
		if none++; len(alive) > 0 {
			none = 0
		}
		k.signal(alive, syscall.SIGKILL)
		time.Sleep(sweepWait)
	}
	return killed, len(alive)
}

// look adds to the family whoever joined it, and returns who of it lives, the
// command itself left out.
func (k *kin) look(all []process) []process {
	now := make(map[int]process, len(all))
	for _, p := range all {
		now[p.pid] = p
		if p.pid != k.root && k.groups[p.pid] && k.known[p.pid] != p.began {
			delete(k.groups, p.pid) // somebody else has the number
		}
	}
	if p, ok := now[k.root]; ok && k.first == 0 {
		k.first = p.began
	}
	for k.grow(all, now) {
	}
	var alive []process
	for _, p := range all {
		if k.has(p) {
			alive = append(alive, p)
		}
	}
	return alive
}

// grow adds those whose parent or group is of the family, and reports whether
// there were any.
func (k *kin) grow(all []process, now map[int]process) (grown bool) {
	for _, p := range all {
		parent, known := now[p.parent]
		child := known && (k.is(parent) || k.has(parent))
		if !k.is(p) && !k.has(p) && (child || k.groups[p.group] && p.group != p.pid) {
			k.join(p)
			grown = true
		}
	}
	return grown
}

// is reports whether a process is the command.
func (k *kin) is(p process) bool { return p.pid == k.root && p.began == k.first }

// has reports whether a process is known as one that the command started.
func (k *kin) has(p process) bool {
	began, known := k.known[p.pid]
	return known && began == p.began
}

func (k *kin) join(p process) {
	k.known[p.pid] = p.began
	if p.group == p.pid {
		k.groups[p.pid] = true
	}
}

// find is look, and takes in too whoever carries the command's mark.
func (k *kin) find(all []process, marked func(pid int) string) []process {
	k.look(all)
	for _, p := range all {
		if !k.has(p) && !k.is(p) && p.began >= k.first && strings.Contains(marked(p.pid), k.mark) {
			k.join(p)
		}
	}
	return k.look(all)
}

func (k *kin) signal(alive []process, sig syscall.Signal) {
	_ = k.proc.Signal(sig) // knows whether it was waited for
	for _, p := range alive {
		_ = syscall.Kill(p.pid, sig)
	}
}

// stop asks a command and all it started to end, and forces it after a grace.
func (d *direct) stop(id uint64, grace time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.running[id]; k != nil {
		select {
		case k.stop <- grace:
		default: // asked already
		}
	}
}

// close ends every command and waits for them to be gone.
func (d *direct) close() {
	d.mu.Lock()
	d.closed = true
	for _, k := range d.running {
		select {
		case k.stop <- 0:
		default:
		}
	}
	d.mu.Unlock()
	d.wait()
}

func (d *direct) wait() { d.all.Wait() }

// findProgram makes sure that a program can be started where a command wants
// it, and says what could not be done.
func findProgram(name, dir string, env []string) (step string, err error) {
	if info, err := os.Stat(dir); err != nil {
		return "enter " + dir, err
	} else if !info.IsDir() {
		return "enter " + dir, syscall.ENOTDIR
	}
	places := []string{""}
	if !strings.Contains(name, "/") {
		places = []string{"/usr/bin", "/bin"}
		for _, e := range env {
			if list, ok := strings.CutPrefix(e, "PATH="); ok {
				places = filepath.SplitList(list)
			}
		}
	}
	err = syscall.ENOENT
	for _, p := range places {
		file := filepath.Join(p, name)
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		info, serr := os.Stat(file)
		switch {
		case serr != nil:
		case info.IsDir() || info.Mode().Perm()&0o111 == 0:
			err = syscall.EACCES
		default:
			return "", nil
		}
	}
	return "run " + name, err
}

// errno is the system's number for an error.
func errno(err error) syscall.Errno {
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		return n
	}
	return syscall.EIO
}

func closeAllFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
