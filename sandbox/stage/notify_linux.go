package stage

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notice is one system call that a filter left to its listener. Whoever made
// it waits for the answer.
type notice struct {
	id   uint64
	pid  int // its thread, as seen from here
	call uint32
	args [6]uint64
}

// parseNotice reads what the kernel says about a call. A newer kernel may say
// more at the end.
func parseNotice(b []byte) (notice, bool) {
	r := reader{b: b}
	n := notice{id: r.u64(), pid: int(int32(r.u32()))}
	r.u32() // flags
	n.call = r.u32()
	r.u32() // the filter has looked at the architecture
	r.u64() // where the program was
	for i := range n.args {
		n.args[i] = r.u64()
	}
	return n, !r.bad && n.pid >= 0
}

// answer is what a call that a listener took returns: a value, or an error
// number. Only a call that makes a process, whose arguments are numbers, can be
// left to the kernel: of any other the program can by then have exchanged what
// its arguments point to.
type answer struct {
	value  int64
	errno  syscall.Errno
	goesOn bool // the kernel carries it out
}

// encode returns the answer as the kernel reads it.
func (a answer) encode(id uint64) []byte {
	w := writer{}
	w.u64(id)
	if a.errno != 0 || a.goesOn {
		a.value = 0
	}
	w.u64(uint64(a.value))
	w.u32(uint32(-int32(a.errno)))
	var flags uint32
	if a.goesOn {
		flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	w.u32(flags)
	return w.b
}

// listener is the descriptor through which the calls of a filter arrive. While
// it is open they wait; once it is closed they fail with ENOSYS.
type listener int

// serve has judge answer every call, one after another, for as long as the
// filter is in use. When it returns the listener is closed.
func (l listener) serve(judge func(notice) answer) {
	defer unix.Close(int(l)) //nolint:errcheck // nothing was written through it
	var sizes struct{ notice, answer, data uint16 }
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0,
		uintptr(unsafe.Pointer(&sizes))) //nolint:gosec // the kernel writes it
	if errno != 0 {
		return
	}
	buf := make([]byte, max(80, int(sizes.notice)))
	for {
		clear(buf) // the kernel insists
		switch err := l.control(unix.SECCOMP_IOCTL_NOTIF_RECV, buf); {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT): // it was ended meanwhile
			continue
		case err != nil:
			return
		}
		n, ok := parseNotice(buf)
		if !ok {
			return
		}
		out := append(judge(n).encode(n.id), make([]byte, max(0, int(sizes.answer)-24))...)
		for errors.Is(l.control(unix.SECCOMP_IOCTL_NOTIF_SEND, out), unix.EINTR) {
			continue
		}
	}
}

// waits reports whether the call still waits for its answer: what is read of
// its process before is of that process, not of another that got its number.
func (l listener) waits(n notice) bool {
	w := writer{}
	w.u64(n.id)
	return l.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, w.b) == nil
}

func (l listener) control(what uint, b []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l), uintptr(what),
		uintptr(unsafe.Pointer(&b[0]))) //nolint:gosec // the kernel reads and writes it
	runtime.KeepAlive(b)
	if errno != 0 {
		return errno
	}
	return nil
}

// installListener puts the calling thread, or with
// [unix.SECCOMP_FILTER_FLAG_TSYNC] every thread, and all it starts, under a
// filter, and returns where the calls arrive that it answers with
// [retListener].
func installListener(f []unix.SockFilter, flags uintptr) (listener, error) {
	if flags&unix.SECCOMP_FILTER_FLAG_TSYNC != 0 {
		flags |= unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH // the result is the descriptor
	}
	flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, err := setFilter(f, flags)
	return listener(fd), err
}

// filter puts the anchor, and so all it starts, under the session's filter. The
// kernel takes one listener for a line of processes: where somebody outside
// listens already, calls are denied without a report.
func (a *anchor) filter() error {
	if a.setup.Private {
		// The commands' own filter needs the listener, and refuses all that this
		// one would.
		return at("filter system calls", installFilter(supervisorFilter(), unix.SECCOMP_FILTER_FLAG_TSYNC))
	}
	f := seccompFilter(a.setup, retListener)
	if f == nil {
		return at("build system call filter", unix.ENOSYS)
	}
	l, err := installListener(f, unix.SECCOMP_FILTER_FLAG_TSYNC)
	if errors.Is(err, unix.EBUSY) {
		err = installFilter(seccompFilter(a.setup, retPerm), unix.SECCOMP_FILTER_FLAG_TSYNC)
		return at("filter system calls", err)
	}
	if err == nil {
		go l.serve(a.deny)
	}
	return at("filter system calls", err)
}

// maxDenials is how many different denials of one command are told of.
const maxDenials = 20

// deny answers that a call is not permitted, and notes whose it was.
func (a *anchor) deny(n notice) answer {
	d := Denial{Call: n.call, Detail: detail(n), PID: uint32(n.pid), Count: 1}
	if b, err := os.ReadFile("/proc/" + strconv.Itoa(n.pid) + "/comm"); err == nil {
		d.Name = commName(b)
	}
	if c := a.ownerOf(n.pid); c != nil {
		c.note(d)
	}
	return answer{errno: unix.EPERM}
}

// ownerOf returns the command that a process is of, nil when that is not known.
func (a *anchor) ownerOf(pid int) *command {
	if a.setup.Shared {
		return a.current.Load() // one at a time
	}
	tag := tagOf(pid)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.byID {
		if c.tagInode == tag || tag == 0 && len(a.byID) == 1 {
			return c
		}
	}
	return nil
}

// note counts a denial.
func (c *command) note(d Denial) {
	c.told.Lock()
	defer c.told.Unlock()
	for i := range c.denied {
		if old := &c.denied[i]; old.Call == d.Call && old.Detail == d.Detail {
			if old.Count++; old.Count == 0 {
				old.Count--
			}
			return
		}
	}
	if len(c.denied) < maxDenials {
		c.denied = append(c.denied, d)
	}
}

// detail is the argument that says what a call was about, 0 for most. Only
// values that mean something are told apart, so that a command cannot hide one
// denial behind many.
func detail(n notice) uint32 {
	switch n.call {
	case unix.SYS_SOCKET:
		return uint32(min(n.args[0]&0xffffffff, 63)) // the family
	case unix.SYS_SOCKETPAIR:
		return uint32(n.args[1] & 0xf) // the type
	case unix.SYS_IOCTL:
		return uint32(n.args[1])
	case unix.SYS_CLONE, unix.SYS_UNSHARE:
		return uint32(n.args[0]) & newNamespaces
	}
	return 0
}

// tagOf returns the namespace a process was born in, 0 when that cannot be
// seen.
func tagOf(pid int) uint64 {
	buf := make([]byte, 64)
	n, err := unix.Readlink("/proc/"+strconv.Itoa(pid)+"/ns/uts", buf)
	if err != nil || n < len("uts:[]") || string(buf[:5]) != "uts:[" {
		return 0
	}
	v, err := strconv.ParseUint(string(buf[5:n-1]), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// commName is the name a process goes by, which it chose itself.
func commName(b []byte) string {
	for i, c := range b {
		if c == 0 || c == '\n' && i == len(b)-1 || i == 64 {
			return string(b[:i])
		}
	}
	return string(b)
}
