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
	Shared       bool   // the walls are those without namespaces
	Server       int    // the process that must not be reached
	Tmp          string // where private temporary files go
}

// Args returns the probe as the arguments of its stage.
func (p Probe) Args() []string {
	return []string{
		NameProbe, p.PIDNamespace, p.Secret, p.Outside, strconv.Itoa(p.Port), strconv.FormatBool(p.UnixSockets),
		strconv.FormatBool(p.Shared), strconv.Itoa(p.Server), p.Tmp,
	}
}

// probe tries, from inside, what must fail and what must work, and prints one
// line each: "ok NAME", or "open NAME: what happened".
func probe(args []string) {
	if len(args) != 8 {
		unix.Exit(2)
	}
	port, _ := strconv.Atoi(args[3])
	server, _ := strconv.Atoi(args[6])
	p := Probe{
		PIDNamespace: args[0], Secret: args[1], Outside: args[2], Port: port, UnixSockets: args[4] == "true",
		Shared: args[5] == "true", Server: server, Tmp: args[7],
	}
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
	list := p.both()
	if p.Shared {
		list = append(list, p.shared()...)
	} else {
		list = append(list, p.own()...)
	}
	if !p.UnixSockets {
		list = append(list, check{"unix_socket", func() string { return mustBe(socket(unix.AF_UNIX), unix.EPERM) }})
	}
	return list
}

// both are the walls of every level.
func (p Probe) both() []check {
	return []check{
		{"no_new_privs", func() string {
			if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || v != 1 {
				return "not set"
			}
			return ""
		}},
		{"capabilities", p.capabilities},
		{"secret_read", func() string { return mustFail(open(p.Secret, unix.O_RDONLY)) }},
		{"outside_write", func() string { return mustFail(open(p.Outside, unix.O_WRONLY)) }},
		{"outside_create", func() string { return mustFail(open(p.Outside+".new", unix.O_WRONLY|unix.O_CREAT)) }},
		{"landlock", func() string {
			// The path check answers before the missing capability would.
			return mustBe(unix.Mknod(p.Tmp+"/.probe-node", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))), unix.EACCES)
		}},
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
		{"private_tmp", func() string { return mustWork(p.Tmp + "/.probe") }},
	}
}

// own are the walls that namespaces make.
func (p Probe) own() []check {
	return []check{
		{"pid_namespace", p.ownPIDs},
		{"outside_chmod", func() string { return mustFail(unix.Chmod(p.Outside, 0o777)) }},
		{"network", p.network},
		{"loopback", loopbackWorks},
		{"shared_memory", func() string { return mustWork("/dev/shm/.probe") }},
	}
}

// shared are the walls that stand in their place.
func (p Probe) shared() []check {
	process := "/proc/" + strconv.Itoa(p.Server)
	supervisor := os.Getppid()
	return []check{
		{"network", func() string { return mustBe(connect(p.Port), unix.EPERM) }},
		{"listening", func() string { return mustBe(listenAnywhere(), unix.EPERM) }},
		{"datagrams", func() string { return mustBe(socketOf(unix.AF_INET, unix.SOCK_DGRAM, 0), unix.EPERM) }},
		{"fast_open", func() string { return mustBe(fastOpen(p.Port), unix.EPERM) }},
		{"multipath_tcp", func() string {
			return mustBe(socketOf(unix.AF_INET, unix.SOCK_STREAM, protoMPTCP), unix.EPROTONOSUPPORT)
		}},
		{"shared_memory", func() string {
			_, _, e := unix.RawSyscall(unix.SYS_SHMGET, 0, 4096, 0o600|unix.IPC_CREAT)
			return mustBe(e, unix.EPERM)
		}},
		{"signals", func() string { return mustBe(unix.Kill(p.Server, 0), unix.EPERM) }},
		{"supervisor_signals", func() string { return mustBe(unix.Kill(supervisor, 0), unix.EPERM) }},
		{"limits", func() string {
			var now unix.Rlimit
			if err := unix.Prlimit(p.Server, unix.RLIMIT_RTPRIO, nil, &now); err != nil {
				return mustBe(err, unix.EPERM) // not even to be looked at
			}
			return mustBe(unix.Prlimit(p.Server, unix.RLIMIT_RTPRIO, &now, nil), unix.EPERM)
		}},
		{"priority", func() string {
			now, err := unix.Getpriority(unix.PRIO_PROCESS, p.Server)
			if err != nil {
				return err.Error()
			}
			return mustBe(unix.Setpriority(unix.PRIO_PROCESS, p.Server, 20-now), unix.EPERM) // as the kernel counts
		}},
		{"server_environment", func() string { return mustFail(open(process+"/environ", unix.O_RDONLY)) }},
		{"server_memory", func() string { return mustFail(open(process+"/mem", unix.O_RDONLY)) }},
		{"supervisor_memory", func() string { return threadsClosed(supervisor) }},
	}
}

// threadsClosed tries every thread of a process, because one of the supervisor's
// is behind the same walls as this one.
func threadsClosed(pid int) string {
	list, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil || len(list) == 0 {
		return "its threads are not seen"
	}
	for _, t := range list {
		for _, f := range []string{"mem", "environ", "maps", "fd/3"} {
			if open("/proc/"+t.Name()+"/"+f, unix.O_RDONLY) == nil {
				return "its " + f + " can be read"
			}
		}
	}
	return ""
}

func connect(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // that is not what was asked about
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func fastOpen(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // that is not what was asked about
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err == nil {
		return nil
	}
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func listenAnywhere() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // that is not what was asked about
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	return unix.Listen(fd, 1)
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

func socket(family int) error { return socketOf(family, unix.SOCK_STREAM, 0) }

func socketOf(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// capabilities looks that there are none. Without a namespace of one's own an
// ordinary user cannot empty the set of those that could be gained; that none
// is, is then for no_new_privs.
func (p Probe) capabilities() string {
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
			v, err := strconv.ParseUint(s[8:], 16, 64)
			if err != nil || v != 0 && (!p.Shared || s[:6] != "CapBnd") {
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
