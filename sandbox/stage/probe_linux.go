package stage

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Probe is what the probing stage is told through its arguments.
type Probe struct {
	PIDNamespace string // the server's
	Secret       string // a file that must not be readable
	Outside      string // a file, in a folder, that must not be writable
	Port         int    // a listener on the host's loopback that must not be reachable
	UnixSockets  bool
}

// Args returns the probe as the arguments of its stage.
func (p Probe) Args() []string {
	return []string{
		NameProbe, p.PIDNamespace, p.Secret, p.Outside, strconv.Itoa(p.Port), strconv.FormatBool(p.UnixSockets),
	}
}

// probe tries, from inside, what must fail and what must work, and prints one
// line each: "ok NAME", or "open NAME: what happened".
func probe(args []string) {
	if len(args) != 5 {
		unix.Exit(2)
	}
	port, _ := strconv.Atoi(args[3])
	p := Probe{PIDNamespace: args[0], Secret: args[1], Outside: args[2], Port: port, UnixSockets: args[4] == "true"}
	out := os.NewFile(1, "stdout")
	for _, c := range p.checks() {
		line := "ok " + c.name
		if what := c.try(); what != "" {
			line = "open " + c.name + ": " + what
		}
		_, _ = out.WriteString(line + "\n")
	}
}

type check struct {
	name string
	try  func() string // "" = the wall stands
}

func (p Probe) checks() []check {
	list := []check{
		{"no_new_privs", func() string {
			if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || v != 1 {
				return "not set"
			}
			return ""
		}},
		{"capabilities", capabilities},
		{"pid_namespace", p.ownPIDs},
		{"secret_read", func() string { return mustFail(open(p.Secret, unix.O_RDONLY)) }},
		{"outside_write", func() string { return mustFail(open(p.Outside, unix.O_WRONLY)) }},
		{"outside_create", func() string { return mustFail(open(p.Outside+".new", unix.O_WRONLY|unix.O_CREAT)) }},
		{"outside_chmod", func() string { return mustFail(unix.Chmod(p.Outside, 0o777)) }},
		{"landlock", func() string {
			// The path check answers before the missing capability would.
			return mustBe(unix.Mknod("/tmp/.probe-node", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))), unix.EACCES)
		}},
		{"network", p.network},
		{"loopback", loopbackWorks},
		{"namespaces", func() string {
			_, _, e := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
			return mustBe(e, unix.EPERM)
		}},
		{"mount", func() string { return mustBe(unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""), unix.EPERM) }},
		{"ptrace", func() string {
			_, _, e := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
			return mustBe(e, unix.EPERM)
		}},
		{"io_uring", func() string {
			_, _, e := unix.RawSyscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
			return mustBe(e, unix.ENOSYS)
		}},
		{"terminal_injection", func() string {
			// The high half of the number is ignored by the kernel.
			_, _, e := unix.RawSyscall(unix.SYS_IOCTL, 0, uintptr(1)<<32|unix.TIOCSTI,
				uintptr(unsafe.Pointer(new(byte)))) //nolint:gosec // the kernel reads it
			return mustBe(e, unix.EPERM)
		}},
		{"vsock", func() string { return mustBe(socket(unix.AF_VSOCK), unix.EPERM) }},
		{"private_tmp", func() string { return mustWork("/tmp/.probe") }},
		{"shared_memory", func() string { return mustWork("/dev/shm/.probe") }},
	}
	if !p.UnixSockets {
		list = append(list, check{"unix_socket", func() string { return mustBe(socket(unix.AF_UNIX), unix.EPERM) }})
	}
	return list
}

func mustFail(err error) string {
	if err == nil {
		return "it worked"
	}
	return ""
}

func mustBe(err error, want syscall.Errno) string {
	e := syscall.Errno(errnoOf(err))
	if e == want {
		return ""
	}
	if e == 0 {
		return "it worked"
	}
	return e.Error()
}

func mustWork(path string) string {
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		return err.Error()
	}
	_ = os.Remove(path)
	return ""
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func socket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func capabilities() string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	seen := 0
	for len(b) > 0 {
		line := b
		b = nil
		for i, c := range line {
			if c == '\n' {
				line, b = line[:i], line[i+1:]
				break
			}
		}
		s := string(line)
		switch {
		case len(s) > 8 && s[:3] == "Cap":
			seen++
			if v, err := strconv.ParseUint(s[8:], 16, 64); err != nil || v != 0 {
				return s
			}
		case len(s) > 9 && s[:8] == "Seccomp:":
			seen++
			if s[9:] != "2" {
				return s
			}
		}
	}
	if seen != 6 {
		return "status not understood"
	}
	return ""
}

func (p Probe) ownPIDs() string {
	buf := make([]byte, 64)
	n, err := unix.Readlink("/proc/self/ns/pid", buf)
	if err != nil {
		return err.Error()
	}
	if string(buf[:n]) == p.PIDNamespace {
		return "the server's"
	}
	return mustFail(open("/proc/1/environ", unix.O_RDONLY))
}

// network tries the host's loopback and an address that is routed nowhere.
func (p Probe) network() string {
	for _, to := range []*unix.SockaddrInet4{
		{Port: p.Port, Addr: [4]byte{127, 0, 0, 1}},
		{Port: 9, Addr: [4]byte{192, 0, 2, 1}},
	} {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			if kind == unix.SOCK_DGRAM && to.Addr[0] == 127 {
				continue // connecting it sends nothing
			}
			fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err.Error()
			}
			// Inside the walls both are refused at once.
			_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
			err = unix.Connect(fd, to)
			_ = unix.Close(fd)
			if err != unix.ECONNREFUSED && err != unix.ENETUNREACH {
				return "not refused"
			}
		}
	}
	return ""
}

func loopbackWorks() string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err.Error()
	}
	if err := unix.Listen(fd, 1); err != nil {
		return err.Error()
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return err.Error()
	}
	to, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(to) //nolint:errcheck // nothing was written through it
	if err := unix.Connect(to, at); err != nil {
		return err.Error()
	}
	return ""
}
