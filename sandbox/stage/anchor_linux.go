package stage

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	leftoverBusy  = 500 * time.Millisecond // as long as one of them has something to do: the machine may be busy
	leftoverGrace = 100 * time.Millisecond // for what a command that ended left behind, such as a tee writing its last line
	sweepLimit    = 500 * time.Millisecond // for processes to be gone after they were killed
)

// anchor is the first process of a session. Its main thread is never
// restricted; commands are started from a few threads that are, and that serve
// for nothing else.
type anchor struct {
	conn
	setup *Setup
	rules int     // Landlock ruleset
	made  []int   // sockets to be handed out
	bound uintptr // capabilities each thread has to take out of its bounding set itself
	null  int     // /dev/null, every command's input

	mu    sync.Mutex // also held while a process is made, so that none is reaped unknown
	byPID map[int]*command
	byID  map[uint64]*command
	born  chan struct{} // something to reap may exist

	guarding bool // below the lock
	spare    sync.Once

	harden chan int // processes whose limit on processes has to be made final

	// Of walls without namespaces.
	scoped  bool          // Landlock keeps signals within
	starter int           // the starting thread
	wake    int           // descriptor that asks it to end what it serves
	struck  chan struct{} // it has
	serving uint64        // the command it started last; its own

	condemned atomic.Uint64           // the command that is to end
	current   atomic.Pointer[command] // the one that was started last
	nursery   nursery
}

// command is one running command.
type command struct {
	id       uint64
	pid      int
	tag      int    // descriptor of the UTS namespace only its processes are in; -1 without walls
	tagInode uint64 // what the namespace is recognised by; unique while tag is open
	force    time.Time
	stopping bool
	killed   uint32
	over     byte // what it took too much of
	grouped  bool // it has control groups of its own

	told   sync.Mutex // nothing is waited for under it
	denied []Denial

	// Of the guard alone.
	began time.Time
	soft  bool          // others go first
	full  time.Duration // how long there were as many processes as there may be
	weigh time.Time     // when its memory may be looked at closely again
}

// serve is the life of an anchor. It ends when the control socket does, and
// the kernel ends everything in its namespaces with it.
func serve() {
	a := &anchor{
		conn:  conn{fd: ControlFD},
		byPID: map[int]*command{}, byID: map[uint64]*command{},
		born: make(chan struct{}, 1), harden: make(chan int, 2*startingThreads),
	}
	buf, oob := make([]byte, MaxFrame), make([]byte, unix.CmsgSpace(8*4))
	first, _ := a.recv(buf, oob)
	setup, ok := first.(*Setup)
	if !ok {
		unix.Exit(1)
	}
	a.setup = setup
	abi, err := a.prepare()
	if err != nil {
		step := "set up"
		if s, ok := errors.AsType[*stepError](err); ok {
			step = s.step
		}
		a.fail(step, err)
		unix.Exit(1)
	}
	go a.reap()
	go a.hardenLimits()
	a.handOut(&Ready{LandlockABI: abi}, a.made)
	threads := startingThreads
	if setup.Shared {
		threads = 1
	}
	for range threads {
		go a.standBy()
	}
	select {} // the main thread stays as it is; everything happens on others
}

// prepare builds the walls. Any failure is final.
func (a *anchor) prepare() (uint32, error) {
	// A command gets three files and no more.
	if err := unix.CloseRange(ControlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 0, at("close inherited files", err)
	}
	if err := a.limit(); err != nil {
		return 0, err
	}
	if a.setup.Shared {
		return a.prepareShared()
	}
	if a.setup.Open {
		a.gone = a.killDescendants
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return 0, at("adopt orphans", err)
		}
		return 0, a.openNull()
	}
	if err := a.network(); err != nil {
		return 0, err
	}
	b := builder{setup: a.setup}
	if err := b.build(); err != nil {
		return 0, err
	}
	if err := a.openNull(); err != nil {
		return 0, err
	}
	abi, err := a.landlock()
	if err != nil {
		return 0, err
	}
	if err := a.boundCapabilities(); err != nil {
		return abi, at("bound capabilities", err)
	}
	deafen()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return abi, at("become opaque", err)
	}
	return abi, a.filter()
}

func (a *anchor) openNull() (err error) {
	a.null, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return at("open /dev/null", err)
}

// limit sets what every command inherits.
func (a *anchor) limit() error {
	for _, l := range []struct {
		what  string
		which int
		max   uint64
	}{
		{"limit core files", unix.RLIMIT_CORE, 1}, // see limitsFilter
		{"limit open files", unix.RLIMIT_NOFILE, a.setup.NoFile},
		{"limit file size", unix.RLIMIT_FSIZE, a.setup.FileSize},
	} {
		if l.max == 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.which, &now); err != nil {
			return at(l.what, err)
		}
		v := min(l.max, now.Max)
		// Through syscall, so that the runtime does not restore its own idea of
		// NOFILE in a child.
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: v, Max: v}); err != nil {
			return at(l.what, err)
		}
	}
	return nil
}

// job is a command to be started.
type job struct {
	c     *command
	start *Start
	fds   []int
}

// startingThreads is how many commands can be in the middle of being started.
const startingThreads = 4

// standBy restricts its thread for good and starts commands from it, taking
// them from the control socket itself: handing each to another thread, or
// restricting one for each, would cost as much as starting it.
func (a *anchor) standBy() {
	runtime.LockOSThread()
	step, err := a.restrict()
	buf, oob := make([]byte, MaxFrame), make([]byte, unix.CmsgSpace(8*4))
	for {
		t := tag{fd: -1}
		if err == nil && !a.setup.Open && !a.setup.Shared {
			if t, err = newTag(); err != nil {
				step = "tag"
			}
		}
		a.takeStart(buf, oob, t, step, err)
	}
}

// takeStart takes messages up to the next command and starts that one.
func (a *anchor) takeStart(buf, oob []byte, t tag, step string, unfit error) {
	for {
		a.attend()
		m, fds := a.recv(buf, oob)
		switch m := m.(type) {
		case *Start:
			if len(fds) != 2 && len(fds) != 6 {
				unix.Exit(1)
			}
			j := job{c: &command{id: m.ID, tag: -1}, start: m, fds: fds}
			a.mu.Lock()
			a.byID[m.ID] = j.c // known from now on, so that it can be stopped
			a.mu.Unlock()
			if a.setup.Shared {
				a.serving = m.ID
			}
			a.begin(j, t, step, unfit)
			return
		case *Stop:
			go a.stop(m) // on a thread that is not held up
		case *Connect:
			a.newSocket(m)
		default:
			unix.Exit(1)
		}
	}
}

// begin starts one command from the calling thread.
func (a *anchor) begin(j job, t tag, step string, err error) {
	if err == nil {
		step, err = a.spawn(j, t)
	}
	for _, fd := range j.fds {
		_ = unix.Close(fd)
	}
	if err != nil {
		a.mu.Lock()
		delete(a.byID, j.c.id)
		a.mu.Unlock()
		if t.fd >= 0 {
			_ = unix.Close(t.fd)
		}
		a.send(&Exit{ID: j.c.id, Step: step, Errno: errnoOf(err)})
		return
	}
	select {
	case a.born <- struct{}{}:
	default:
	}
}

func (a *anchor) spawn(j job, t tag) (string, error) {
	m, c := j.start, j.c
	var err error
	if st, err := os.Stat(m.Dir); err != nil {
		return "enter " + m.Dir, err
	} else if !st.IsDir() {
		return "enter " + m.Dir, unix.ENOTDIR
	}
	path := "/proc/self/exe"
	if !m.Self {
		if len(m.Argv) == 0 {
			return "run", unix.EINVAL
		}
		if path, err = find(m.Argv[0], m.Env, m.Dir); err != nil {
			return "run " + m.Argv[0], err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(j.fds) == 6 {
		// What it starts is born where the thread is.
		if err := move(j.fds[2:4]); err != nil {
			return "join control groups", err
		}
		defer func() {
			if move(j.fds[4:]) != nil {
				unix.Exit(1) // the next command would be in this one's
			}
		}()
	}
	c.tag, c.tagInode, c.grouped = t.fd, t.inode, len(j.fds) == 6
	a.current.Store(c)
	lift := a.limitProcesses()
	sys := &syscall.SysProcAttr{Setsid: true}
	if a.setup.Shared {
		sys.Pdeathsig = unix.SIGKILL // this thread lives as long as the anchor
	}
	pid, err := syscall.ForkExec(path, m.Argv, &syscall.ProcAttr{
		Dir: m.Dir, Env: m.Env,
		Files: []uintptr{uintptr(a.null), uintptr(j.fds[0]), uintptr(j.fds[1])},
		Sys:   sys,
	})
	lift(pid)
	if err != nil {
		return "run " + path, err
	}
	c.pid, c.began = pid, time.Now()
	a.byPID[pid] = c
	if !a.guarding {
		a.guarding = true
		go a.guard()
	}
	if c.stopping {
		go a.terminate(c) // it was asked for before there was anything to stop
	}
	return "", nil
}

// move puts the calling thread into the control groups of which these are the
// lists of threads.
func move(tasks []int) error {
	for _, fd := range tasks {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return err
		}
	}
	return nil
}

// limitProcesses makes the next process be born with its limit on processes.
// The anchor itself must not keep it: it needs threads when a command has used
// them all up. The returned function ends that, and has the limit made final.
func (a *anchor) limitProcesses() func(pid int) {
	n := a.setup.Processes
	var own unix.Rlimit
	if n == 0 || a.setup.Open || a.setup.Shared || unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &own) != nil {
		return func(int) {}
	}
	n = min(n, own.Max)
	_ = unix.Prlimit(0, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: own.Max}, nil)
	return func(pid int) {
		_ = unix.Prlimit(0, unix.RLIMIT_NPROC, &own, nil)
		if pid > 0 {
			a.harden <- pid
		}
	}
}

// hardenLimits makes the limit on processes final. The thread that starts a
// command cannot: like the command, it may not touch another process's limits.
func (a *anchor) hardenLimits() {
	n := a.setup.Processes
	for pid := range a.harden {
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n}, nil)
	}
}

// tag is the UTS namespace that the processes of one command are born in, and
// by which they are recognised.
type tag struct {
	fd    int // -1 without walls
	inode uint64
}

// newTag puts the calling thread into a namespace of its own.
func newTag() (tag, error) {
	if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
		return tag{fd: -1}, err
	}
	fd, err := unix.Open("/proc/thread-self/ns/uts", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return tag{fd: -1}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return tag{fd: -1}, err
	}
	return tag{fd: fd, inode: st.Ino}, nil
}

// restrict takes from the calling thread, and from all it starts, the ways
// back.
func (a *anchor) restrict() (step string, err error) {
	if a.setup.Open {
		return "", nil
	}
	if a.setup.Shared {
		return a.restrictShared()
	}
	for _, s := range []struct {
		step string
		do   func() error
	}{
		{"set no_new_privs", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"restrict file access", func() error { return restrictSelf(a.rules) }},
		{"drop capabilities", a.dropCapabilities},
		{"protect limits", func() error { return installFilter(limitsFilter(), 0) }},
		{"filter system calls", a.filterPrivate},
	} {
		if err := s.do(); err != nil {
			return s.step, err
		}
	}
	return "", nil
}

// boundCapabilities takes every capability out of the bounding set of every
// thread there is, and so of those to come: the anchor keeps what it has, and
// nothing it starts can gain any. Doing it for each command would cost a copy
// of the credentials a capability. Where the C library owns the threads, as
// under the race detector, each thread has to do it.
func (a *anchor) boundCapabilities() error {
	var last uintptr
	for last < 64 {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, last, 0, 0, 0); err != nil {
			break
		}
		last++
	}
	for cp := range last {
		_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, cp, 0, 0, 0, 0)
		if errno == syscall.ENOTSUP {
			a.bound = last
			return nil
		}
		if errno != 0 {
			return errno
		}
	}
	return nil
}

// Secure bits, from linux/securebits.h: being root gives no capabilities, and
// none can be kept or made ambient; each is locked.
const secureBits = 1<<0 | 1<<1 | 1<<5 | 1<<6 | 1<<7

// dropCapabilities makes the calling thread start programs without any
// capability. It keeps its own, for the next namespace; a program has none from
// its first instruction on, because there is nothing left it could get one
// from: no bounding set, none inheritable or ambient, no privilege of root, and
// no_new_privs.
func (a *anchor) dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for cp := range a.bound {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, cp, 0, 0, 0); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0); err != nil {
		return err
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&hdr, &caps[0]); err != nil {
		return err
	}
	for i := range caps {
		caps[i].Inheritable = 0
	}
	return unix.Capset(&hdr, &caps[0])
}

// find resolves a program name the way a shell would, with the command's own
// PATH.
func find(name string, env []string, dir string) (string, error) {
	for i := range len(name) {
		if name[i] == '/' {
			return name, nil
		}
	}
	path := ""
	for _, e := range env {
		if len(e) > 5 && e[:5] == "PATH=" {
			path = e[5:]
		}
	}
	for path != "" {
		d := path
		path = ""
		for i := range len(d) {
			if d[i] == ':' {
				d, path = d[:i], d[i+1:]
				break
			}
		}
		switch {
		case d == "":
			continue
		case d[0] != '/':
			d = dir + "/" + d
		}
		p := d + "/" + name
		if st, err := os.Stat(p); err == nil && !st.IsDir() && unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	return "", unix.ENOENT
}
