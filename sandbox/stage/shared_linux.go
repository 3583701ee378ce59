package stage

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What follows is for an anchor whose walls need no namespaces. It stays in the
// host's and is not the first process of anything, so three things are done
// differently. Landlock alone decides on files, and on signals where it can.
// Only one command runs at a time, so that everything below the anchor is that
// command's. And a single thread starts them all, because the commands share its
// Landlock domain: with a signal to all processes, which reaches those of the
// domain and no others, that thread ends them in one step, however fast they
// multiply.

// scopesSignals is the first Landlock ABI that keeps signals within a domain.
// Below it the broker decides on each signal.
const scopesSignals = 6

// prepareShared builds the walls.
func (a *anchor) prepareShared() (uint32, error) {
	a.gone = a.killDescendants
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, at("adopt orphans", err)
	}
	if err := a.openNull(); err != nil {
		return 0, err
	}
	abi, err := a.landlock()
	if err != nil {
		return abi, err
	}
	a.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return abi, at("make a signal", err)
	}
	a.struck = make(chan struct{}, 1)
	// The kernel takes one listener for a line of processes, and the commands'
	// own filter needs it, which refuses all that this one would have to.
	filter := supervisorFilter()
	if filter == nil {
		return abi, at("build system call filter", unix.ENOSYS)
	}
	deafen()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return abi, at("become opaque", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return abi, at("set no_new_privs", err)
	}
	return abi, at("filter system calls", installFilter(filter, unix.SECCOMP_FILTER_FLAG_TSYNC))
}

// restrictShared takes from the calling thread, and from all it starts, the
// ways back.
func (a *anchor) restrictShared() (step string, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "set no_new_privs", err
	}
	if err := restrictSelf(a.rules); err != nil {
		return "restrict file access", err
	}
	if a.scoped && unix.Getppid() > 1 && unix.Kill(unix.Getppid(), 0) == nil {
		return "restrict signals", unix.EOPNOTSUPP // it would not be ours alone that a signal to all ended
	}
	if err := forsakeCapabilities(); err != nil {
		return "drop capabilities", err
	}
	a.starter = unix.Gettid()
	return "filter system calls", a.filterCommands()
}

// filterCommands puts the calling thread under the filter of its commands, and
// has what that leaves open decided on. Where somebody outside listens already
// everything that is left open is refused.
func (a *anchor) filterCommands() error {
	filter := func(ask uint32) []unix.SockFilter {
		return commandFilter(a.setup, ask, a.scoped, os.Getpid(), unix.Gettid())
	}
	return a.mediate(filter(retListener), filter(retPerm))
}

// mediate puts the calling thread under a filter whose open questions are
// decided on, or under the other where somebody outside listens already.
func (a *anchor) mediate(ask, deaf []unix.SockFilter) error {
	l, err := installListener(ask, 0)
	if errors.Is(err, unix.EBUSY) {
		return installFilter(deaf, 0)
	}
	if err != nil {
		return err
	}
	for range mediators {
		go l.serve(func(n notice) answer { return a.decide(l, n) })
	}
	return nil
}

// filterPrivate puts the calling thread under a filter that has connections
// decided on. Where somebody outside listens already, its commands have no local
// sockets.
func (a *anchor) filterPrivate() error {
	if !a.setup.Private {
		return nil
	}
	less := *a.setup
	less.UnixSockets, less.Private = false, false
	return a.mediate(privateFilter(a.setup, retListener), seccompFilter(&less, retPerm))
}

// forsakeCapabilities leaves the calling thread, and what it starts, without
// any capability. Where it may, it also bars the ways to get one; no_new_privs
// does so already.
func forsakeCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for cp := range uintptr(64) {
		if unix.Prctl(unix.PR_CAPBSET_DROP, cp, 0, 0, 0) != nil {
			break
		}
	}
	_ = unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&hdr, &none[0])
}

// attend waits for the next message, and meanwhile ends what runs when that is
// asked for.
func (a *anchor) attend() {
	if !a.setup.Shared {
		return
	}
	for {
		fds := []unix.PollFd{{Fd: ControlFD, Events: unix.POLLIN}, {Fd: int32(a.wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			unix.Exit(1)
		}
		if fds[1].Revents != 0 {
			var b [8]byte
			_, _ = unix.Read(a.wake, b[:])
			a.strike(a.condemned.Load())
			select {
			case a.struck <- struct{}{}:
			default:
			}
		}
		if fds[0].Revents != 0 {
			return
		}
	}
}

// strikeLimit is how long the thread that can end everything at once is waited
// for: it may be about to start a program from a file that does not answer.
const strikeLimit = 50 * time.Millisecond

// everything stands for whatever runs, where one command would be named.
const everything = 0

// strike ends every process of the starting thread's Landlock domain, which is
// everything it started, if that is still the command it is to be about. Only
// that thread can; others ask it and wait.
func (a *anchor) strike(id uint64) {
	switch {
	case !a.setup.Shared || !a.scoped:
		return
	case unix.Gettid() == a.starter:
		if id == everything || id == a.serving {
			_ = unix.Kill(-1, unix.SIGKILL)
		}
		return
	}
	a.condemned.Store(id)
	select {
	case <-a.struck: // an answer nobody waited for
	default:
	}
	if _, err := unix.Write(a.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return
	}
	select {
	case <-a.struck:
	case <-time.After(strikeLimit):
	}
}

// alone reports whether the anchor has no child at all, and so nothing below
// it: what loses its parent becomes its child.
func alone() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	return errors.Is(err, syscall.ECHILD)
}
