package stage

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ask carries a filter out for one system call, as the kernel does.
func ask(tb testing.TB, f []unix.SockFilter, arch uint32, number uint64, args ...uint64) uint32 {
	tb.Helper()
	data := map[uint32]uint32{offNumber: uint32(number), offArch: arch}
	for i, a := range args {
		data[uint32(offArg0+8*i)], data[uint32(offArg0+8*i+4)] = uint32(a), uint32(a>>32)
	}
	var word uint32
	for at := 0; at < len(f); at++ {
		in := f[at]
		jump := func(yes bool) {
			if yes {
				at += int(in.Jt)
				return
			}
			at += int(in.Jf)
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			word = data[in.K]
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			word &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(word == in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(word > in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(word >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(word&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			tb.Fatalf("instruction %d: code %#x is not known", at, in.Code)
		}
	}
	tb.Fatal("the filter ends without an answer")
	return 0
}

// The filter is a pure decision: what each call is answered, whatever the
// kernel below would say.
func TestFilter(t *testing.T) {
	t.Parallel()
	const high = 0xdead << 32
	here := auditArch()
	if here == 0 {
		t.Skip("no filter for this kind of processor")
	}
	none, all := seccompFilter(&Setup{}, retPerm), seccompFilter(&Setup{UnixSockets: true}, retPerm)
	told := seccompFilter(&Setup{}, retListener)
	for _, tt := range []struct {
		name      string
		arch      uint32
		number    uint64
		args      []uint64
		want, all uint32
	}{
		{"read", here, unix.SYS_READ, nil, retAllow, retAllow},
		{"another processor's call", here ^ 0x40000000, unix.SYS_READ, nil, retKill, retKill},
		{"x32", here, 0x40000000 | unix.SYS_READ, nil, retNoSys, retNoSys},
		{"the newest known", here, newestCall, nil, retAllow, retAllow},
		{"one newer", here, newestCall + 1, nil, retNoSys, retNoSys},
		{"the largest number", here, 0xffffffff, nil, retNoSys, retNoSys},
		{"the first in the list", here, uint64(denied()[0].number), nil, retPerm, retPerm},
		{"the last in the list", here, uint64(denied()[len(denied())-1].number), nil, retPerm, retPerm},
		{"clone3", here, unix.SYS_CLONE3, nil, retNoSys, retNoSys},
		{"io_uring_register", here, unix.SYS_IO_URING_REGISTER, nil, retNoSys, retNoSys},
		{"fork", here, unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retAllow, retAllow},
		{"a thread", here, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, retAllow, retAllow},
		{"clone with a user namespace", here, unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, retPerm, retPerm},
		{"clone with high bits", here, unix.SYS_CLONE, []uint64{high | unix.CLONE_NEWNET}, retPerm, retPerm},
		{"unshare of nothing", here, unix.SYS_UNSHARE, []uint64{0}, retPerm, retPerm},
		{"unshare of a time namespace", here, unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWTIME}, retPerm, retPerm},
		{"unshare of two", here, unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUTS | unix.CLONE_NEWUSER}, retPerm, retPerm},
		{"the anchor's mark", here, unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUTS}, retAllow, retAllow},
		{"a window's size", here, unix.SYS_IOCTL, []uint64{1, unix.TIOCGWINSZ}, retAllow, retAllow},
		{"TIOCSTI", here, unix.SYS_IOCTL, []uint64{1, unix.TIOCSTI}, retPerm, retPerm},
		{"TIOCSTI with high bits", here, unix.SYS_IOCTL, []uint64{1, high | unix.TIOCSTI}, retPerm, retPerm},
		{"TIOCLINUX with high bits", here, unix.SYS_IOCTL, []uint64{1, high | tiocLinux}, retPerm, retPerm},
		{"the usual personality", here, unix.SYS_PERSONALITY, []uint64{0}, retAllow, retAllow},
		{"asking for the personality", here, unix.SYS_PERSONALITY, []uint64{0xffffffff}, retAllow, retAllow},
		{"a debugger's personality", here, unix.SYS_PERSONALITY, []uint64{addrNoRandomize}, retAllow, retAllow},
		{"everything executable", here, unix.SYS_PERSONALITY, []uint64{0x0400000}, retPerm, retPerm},
		{"TCP", here, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, 0}, retAllow, retAllow},
		{"TCP 6", here, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, retAllow, retAllow},
		{"interfaces", here, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, retAllow, retAllow},
		{"multipath TCP", here, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, high | protoMPTCP}, retProto, retProto},
		{"a unix socket", here, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, retPerm, retAllow},
		{"a unix socket with high bits", here, unix.SYS_SOCKET, []uint64{high | unix.AF_UNIX, unix.SOCK_STREAM, 0}, retPerm, retAllow},
		{"vsock", here, unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, retPerm, retPerm},
		{"packets", here, unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, retPerm, retPerm},
		{"a family with high bits", here, unix.SYS_SOCKET, []uint64{high | unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, retPerm, retPerm},
		{"a pair", here, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}, retAllow, retAllow},
		{"a pair of datagrams", here, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, retPerm, retAllow},
		{"a raw pair", here, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, high | unix.SOCK_RAW}, retPerm, retAllow},
	} {
		if got := ask(t, none, tt.arch, tt.number, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
		// With a listener just what is not permitted goes to it.
		want := tt.want
		if want == retPerm {
			want = retListener
		}
		if got := ask(t, told, tt.arch, tt.number, tt.args...); got != want {
			t.Errorf("%s, told: %#x, want %#x", tt.name, got, want)
		}
		if got := ask(t, all, tt.arch, tt.number, tt.args...); got != tt.all {
			t.Errorf("%s, with unix sockets: %#x, want %#x", tt.name, got, tt.all)
		}
	}
	for _, number := range numbers(denied()) {
		if got := ask(t, all, here, uint64(number)); got != retPerm {
			t.Errorf("call %d: %#x", number, got)
		}
	}
}

// What a profile adds is what its name says, and no more.
func TestFilterOfProfiles(t *testing.T) {
	t.Parallel()
	here := auditArch()
	if here == 0 {
		t.Skip("no filter for this kind of processor")
	}
	traced := seccompFilter(&Setup{Trace: true}, retPerm)
	for _, c := range append(denied(), brokers()...) {
		want := retPerm
		if c.name == "ptrace" || strings.HasPrefix(c.name, "process_vm_") {
			want = retAllow
		}
		if got := ask(t, traced, here, uint64(c.number)); got != want {
			t.Errorf("traced, %s: %#x, want %#x", c.name, got, want)
		}
		if got := ask(t, commandFilter(&Setup{Trace: true, Shared: true}, retPerm, true, 2, 3), here, uint64(c.number)); got != retPerm {
			t.Errorf("traced where processes are shared, %s: %#x", c.name, got)
		}
	}
	private := privateFilter(&Setup{UnixSockets: true, Private: true}, retListener)
	for _, tt := range []struct {
		name   string
		number uint64
		args   []uint64
		want   uint32
	}{
		{"a connection", unix.SYS_CONNECT, []uint64{3}, retListener},
		{"a unix socket", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, retAllow},
		{"for datagrams", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, retListener},
		{"for packets", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, retListener},
		{"raw", unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_UNIX, 1<<32 | unix.SOCK_RAW}, retListener},
		{"UDP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM}, retAllow},
		{"multipath TCP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, protoMPTCP}, retProto},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, retListener},
		{"a pair of datagrams", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, retListener},
		{"ptrace", unix.SYS_PTRACE, nil, retListener},
		{"taking files", unix.SYS_PIDFD_GETFD, nil, retListener},
	} {
		if got := ask(t, private, here, tt.number, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

// A command may lower its own limits, look at all, and change nobody else's.
func TestLimitsFilter(t *testing.T) {
	t.Parallel()
	f := limitsFilter()
	for _, tt := range []struct {
		name   string
		number uint64
		args   []uint64
		want   uint32
	}{
		{"its own", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0x7fff00000000}, retAllow},
		{"a look at another", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0}, retAllow},
		{"another", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0x1000}, retPerm},
		{"another, from high memory", unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0x7fff00000000}, retPerm},
		{"its own by number", unix.SYS_PRLIMIT64, []uint64{1 << 32, unix.RLIMIT_NOFILE, 0x1000}, retAllow},
		{"another call", unix.SYS_READ, []uint64{1, 2, 3}, retAllow},
		{"core files", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 0x1000}, retDone},
		{"core files, from high memory", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 0x7fff00000000}, retDone},
		{"a look at core files", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 0}, retAllow},
		{"another's core files", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_CORE, 0}, retAllow},
		{"core files, the old way", unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_CORE, 0x1000}, retDone},
		{"open files, the old way", unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_NOFILE, 0x1000}, retAllow},
	} {
		if got := ask(t, f, auditArch(), tt.number, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

// The filter of commands without namespaces: what other walls keep out by those.
func TestCommandFilter(t *testing.T) {
	t.Parallel()
	const anchor, thread, high = 500, 507, 0xdead << 32
	scoped := commandFilter(&Setup{Shared: true}, retListener, true, anchor, thread)
	bare := commandFilter(&Setup{Shared: true, UnixSockets: true}, retListener, false, anchor, thread)
	for _, tt := range []struct {
		name         string
		number       uint64
		args         []uint64
		scoped, bare uint32
	}{
		{"read", unix.SYS_READ, nil, retAllow, retAllow},
		{"an old kernel's call", unix.SYS_PTRACE, nil, retListener, retListener},
		{"the broker's call", unix.SYS_PIDFD_GETFD, nil, retListener, retListener},
		{"TCP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, retAllow, retAllow},
		{"TCP by name", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, retAllow, retAllow},
		{"UDP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, retListener, retListener},
		{"raw IP", unix.SYS_SOCKET, []uint64{unix.AF_INET, high | unix.SOCK_RAW, 1}, retListener, retListener},
		{"SCTP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, retProto, retProto},
		{"SCTP in order", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_SEQPACKET, 0}, retListener, retListener},
		{"multipath TCP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, high | protoMPTCP}, retProto, retProto},
		{"netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, retListener, retListener},
		{"a unix socket", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, retListener, retAllow},
		{"unix datagrams", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, retListener, retListener},
		{"a pair of datagrams", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, retListener, retListener},
		{"connect", unix.SYS_CONNECT, nil, retListener, retListener},
		{"listen", unix.SYS_LISTEN, nil, retListener, retListener},
		{"send", unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, retAllow, retAllow},
		{"send and connect", unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, retPerm, retPerm},
		{"the same by message", unix.SYS_SENDMSG, []uint64{3, 0, high | unix.MSG_FASTOPEN}, retPerm, retPerm},
		{"the same by messages", unix.SYS_SENDMMSG, []uint64{3, 0, 1, unix.MSG_FASTOPEN}, retPerm, retPerm},
		{"no delay", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, retAllow, retAllow},
		{"connect late", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, retPerm, retPerm},
		{"that number elsewhere", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.TCP_FASTOPEN_CONNECT}, retAllow, retAllow},
		{"another's limit", unix.SYS_PRLIMIT64, []uint64{7, 1, 0x1000}, retPerm, retPerm},
		{"its own limit", unix.SYS_PRLIMIT64, []uint64{0, 1, 0x1000}, retAllow, retAllow},
		{"its own priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0, 5}, retAllow, retAllow},
		{"another's priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 7, 5}, retPerm, retPerm},
		{"the user's priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0, 5}, retPerm, retPerm},
		{"the user's input and output", unix.SYS_IOPRIO_SET, []uint64{3, 0, 0}, retPerm, retPerm},
		{"its own processors", unix.SYS_SCHED_SETAFFINITY, []uint64{0}, retAllow, retAllow},
		{"another's processors", unix.SYS_SCHED_SETAFFINITY, []uint64{7}, retPerm, retPerm},
		{"shared memory", unix.SYS_SHMGET, nil, retPerm, retPerm},
		{"a signal", unix.SYS_KILL, []uint64{7, 9}, retAllow, retListener},
		{"a signal to the anchor", unix.SYS_KILL, []uint64{anchor, 9}, retPerm, retListener},
		{"a signal to its thread", unix.SYS_TKILL, []uint64{high | thread, 9}, retPerm, retListener},
		{"a signal to its thread by both", unix.SYS_TGKILL, []uint64{anchor, thread, 9}, retPerm, retListener},
		{"a queued signal", unix.SYS_RT_SIGQUEUEINFO, []uint64{7, 9}, retAllow, retPerm},
		{"a signal by descriptor", unix.SYS_PIDFD_SEND_SIGNAL, nil, retNoSys, retNoSys},
		{"a descriptor's signal", unix.SYS_FCNTL, []uint64{3, unix.F_SETSIG, 9}, retPerm, retPerm},
		{"a descriptor's owner", unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN, 7}, retAllow, retPerm},
		{"a descriptor's flags", unix.SYS_FCNTL, []uint64{3, unix.F_SETFL, unix.O_NONBLOCK}, retAllow, retAllow},
		{"a descriptor's owner by ioctl", unix.SYS_IOCTL, []uint64{3, fioSetOwn}, retListener, retListener},
		{"typing", unix.SYS_IOCTL, []uint64{3, high | unix.TIOCSTI}, retListener, retListener},
		{"a new process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retListener, retListener},
		{"a new thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, retListener, retListener},
		{"a process in a namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, retListener, retListener},
		{"any new namespace", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUTS}, retListener, retListener},
	} {
		if got := ask(t, scoped, auditArch(), tt.number, tt.args...); got != tt.scoped {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.scoped)
		}
		if got := ask(t, bare, auditArch(), tt.number, tt.args...); got != tt.bare {
			t.Errorf("%s, where Landlock leaves signals alone: %#x, want %#x", tt.name, got, tt.bare)
		}
	}
}
