package stage

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mediators is how many calls are decided on at once; a connection may take a
// while.
const mediators = 4

// decide carries out the calls of commands that may be, on what it has copied
// and looked at, and denies the others.
func (a *anchor) decide(l listener, n notice) answer {
	if n.isBirth() {
		return a.bear(n)
	}
	err := error(unix.EPERM)
	switch n.call {
	case unix.SYS_CONNECT:
		err = a.connect(l, n)
	case unix.SYS_LISTEN:
		err = a.listenLocal(l, n)
	case unix.SYS_KILL:
		err = signal(l, n)
	case unix.SYS_TKILL, unix.SYS_TGKILL:
		err = signalThread(l, n)
	}
	if errors.Is(err, unix.EPERM) {
		return a.deny(n)
	}
	return answer{errno: syscall.Errno(errnoOf(err))}
}

// borrow takes a copy of a descriptor out of the calling process.
func borrow(l listener, n notice) (int, error) {
	pid := processOf(n.pid)
	if pid <= 0 {
		return -1, unix.EPERM
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, unix.EPERM
	}
	defer unix.Close(pidfd) //nolint:errcheck // nothing was written through it
	if !l.waits(n) {
		return -1, unix.EPERM
	}
	fd, err := unix.PidfdGetfd(pidfd, int(int32(n.args[0])), 0)
	if errors.Is(err, unix.EBADF) {
		return -1, err
	}
	if err != nil {
		return -1, unix.EPERM
	}
	return fd, nil
}

// connect makes the connections that are allowed: TCP to a port of the host's
// loopback that was named in the setup, and local sockets by path where those
// are allowed.
func (a *anchor) connect(l listener, n notice) error {
	raw := make([]byte, min(n.args[2], 128))
	if len(raw) < 2 {
		return unix.EINVAL
	}
	got, err := unix.ProcessVMReadv(n.pid, []unix.Iovec{{Base: &raw[0], Len: uint64(len(raw))}},
		[]unix.RemoteIovec{{Base: uintptr(n.args[1]), Len: len(raw)}}, 0)
	if err != nil || got != len(raw) || !l.waits(n) {
		return unix.EPERM
	}
	fd, err := borrow(l, n)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // the caller has it too
	return a.connectBy(fd, raw, n)
}

// connectBy makes a connection by the kind of socket it is for.
func (a *anchor) connectBy(fd int, raw []byte, n notice) error {
	family := int(raw[0]) | int(raw[1])<<8
	local, own := option(fd, unix.SO_DOMAIN) == unix.AF_UNIX, !a.setup.Shared && !a.setup.HostNetwork
	switch {
	case !local && !a.setup.Shared, local && own && abstract(raw): // nobody but the session's network is there
		return connectTo(fd, raw)
	case option(fd, unix.SO_TYPE) != unix.SOCK_STREAM || option(fd, unix.SO_DOMAIN) != family:
	case family == unix.AF_INET && option(fd, unix.SO_PROTOCOL) == unix.IPPROTO_TCP:
		return a.connectLoopback(fd, raw[2:])
	case local && a.setup.UnixSockets && len(raw) > 2 && !abstract(raw):
		return a.connectLocal(fd, unix.ByteSliceToString(raw[2:]), n)
	}
	return unix.EPERM
}

// abstract reports whether an address is a name outside the file system.
func abstract(raw []byte) bool { return len(raw) > 2 && raw[2] == 0 }

// connectTo connects to an address as it was copied.
func connectTo(fd int, raw []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw))) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return errno
	}
	return nil
}

// connectLoopback connects to a port that was named in the setup. The address
// is that of version 4, without its family.
func (a *anchor) connectLoopback(fd int, raw []byte) error {
	if len(raw) < 6 || [4]byte(raw[2:6]) != [4]byte{127, 0, 0, 1} {
		return unix.EPERM
	}
	port := uint32(raw[0])<<8 | uint32(raw[1])
	if !slices.Contains(a.setup.Reach, port) {
		return unix.EPERM
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
}

func option(fd, which int) int {
	v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, which)
	if err != nil {
		return -1
	}
	return v
}

// connectLocal connects to the socket of a path as the calling process means
// it. It holds on to it, so that what is connected to is what was looked at: a
// socket where the process may read, or write when sockets are private.
func (a *anchor) connectLocal(fd int, path string, n notice) error {
	if path[0] != '/' {
		path = "/proc/" + strconv.Itoa(n.pid) + "/cwd/" + path
	}
	held, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(held) //nolint:errcheck // nothing was written through it
	link := "/proc/self/fd/" + strconv.Itoa(held)
	where, err := os.Readlink(link)
	switch {
	case err == nil && a.readable(where):
		return unix.Connect(fd, &unix.SockaddrUnix{Name: link})
	case a.setup.Private:
		return unix.EPERM
	}
	return unix.EACCES
}

// readable reports whether a real path lies where commands may read; where they
// may write, if sockets are private.
func (a *anchor) readable(path string) bool {
	return slices.ContainsFunc(a.setup.Mounts, func(m Mount) bool {
		open := m.Op != OpList
		if a.setup.Private {
			open = m.Op == OpWrite || m.Op == OpTmpfs
		}
		return open && (path == m.Path || len(path) > len(m.Path) && path[:len(m.Path)] == m.Path && path[len(m.Path)] == '/')
	})
}

// listenLocal makes a local socket listen, where those are allowed; a listener
// of any other kind could be reached from the host.
func (a *anchor) listenLocal(l listener, n notice) error {
	if !a.setup.UnixSockets {
		return unix.EPERM
	}
	fd, err := borrow(l, n)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // the caller has it too
	if option(fd, unix.SO_DOMAIN) != unix.AF_UNIX {
		return unix.EPERM
	}
	return unix.Listen(fd, int(int32(n.args[1])))
}

// signal sends a signal for a command, to what is below this anchor only. It is
// asked where Landlock does not see to that.
func signal(l listener, n notice) error {
	to, sig := int(int32(n.args[0])), unix.Signal(int32(n.args[1]))
	targets := []int{to}
	if to <= 0 {
		group := -to
		if to == 0 {
			group, _ = unix.Getpgid(n.pid)
		}
		targets = slices.DeleteFunc(processes(), func(pid int) bool {
			g, err := unix.Getpgid(pid)
			return err != nil || g != group
		})
	}
	if to == -1 || !l.waits(n) {
		return unix.EPERM
	}
	ours := descendants(os.Getpid())
	for _, pid := range targets {
		if !slices.Contains(ours, pid) {
			return unix.EPERM
		}
	}
	last := error(unix.ESRCH)
	for _, pid := range targets {
		last = signalDescendant(pid, sig)
	}
	return last
}

// signalDescendant makes sure that a process is still below this anchor once it
// is held.
func signalDescendant(pid int, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	if !slices.Contains(descendants(os.Getpid()), pid) {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// signalThread sends a signal for a command to a thread of its own process,
// which is there as long as the caller waits.
func signalThread(l listener, n notice) error {
	own := processOf(n.pid)
	thread, sig := int(int32(n.args[0])), unix.Signal(int32(n.args[1]))
	if n.call == unix.SYS_TGKILL {
		if int(int32(n.args[0])) != own {
			return unix.EPERM
		}
		thread, sig = int(int32(n.args[1])), unix.Signal(int32(n.args[2]))
	}
	if own == 0 || processOf(thread) != own || !l.waits(n) {
		return unix.EPERM
	}
	return unix.Tgkill(own, thread, sig)
}

// processOf returns the process that a thread belongs to, 0 when it is gone.
func processOf(thread int) int {
	pid, _ := strconv.Atoi(status(thread, "Tgid")[0])
	return pid
}
