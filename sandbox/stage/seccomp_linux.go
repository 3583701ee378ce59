package stage

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in the kernel's description of a system call. Arguments are 64 bits
// wide and little-endian; only the low word is looked at, because that is all
// the kernel takes of these.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg1   = 24
	offArg2   = 32
	offArg2Hi = 36
)

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retPerm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retProto = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
)

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	addrNoRandomize = 0x0040000
	protoMPTCP      = 262
	tiocLinux       = 0x541c
	// newestCall is the last system call that was looked at for this filter.
	// What comes later may do what is refused here in another way; programs are
	// told that the kernel does not know it.
	newestCall = unix.SYS_RSEQ_SLICE_YIELD
)

// denied are the system calls neither the anchor, once it stands, nor anything
// inside needs, and an attacker would.
func denied() []uint32 {
	return append(deniedHere(),
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
		unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR, unix.SYS_SETNS,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_VHANGUP, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_LOOKUP_DCOOKIE,
	)
}

// absent are the calls for which programs have another way, so that they are
// told the kernel does not know them. The flags of clone3 cannot be seen from
// here, and io_uring would do what the filter refuses.
func absent() []uint32 {
	return []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3,
	}
}

// seccompFilter assembles the filter for this machine's kind of processor, nil
// when it is not known. It is put on the anchor itself, because the kernel takes
// a while over it, and comes down to every command. A filter of
// its own for each command would cost a tenth of starting one.
func seccompFilter(unixSockets bool) []unix.SockFilter {
	arch := auditArch()
	if arch == 0 {
		return nil
	}
	var p program
	p.load(offArch)
	p.jump(unix.BPF_JEQ, arch, 1, 0)
	p.ret(retKill) // a 32-bit call on a 64-bit kernel would be judged by the wrong numbers
	p.load(offNumber)
	p.jump(unix.BPF_JGT, newestCall, 0, 1)
	p.ret(retNoSys) // x32, and what a kernel newer than this program brings
	p.list(denied(), retPerm)
	p.list(absent(), retNoSys)
	p.on(unix.SYS_UNSHARE, func(q *program) {
		// The anchor makes a UTS namespace for each command, to tell them apart.
		// A command has no capability left, so that the kernel refuses it that
		// one too, and everything else is refused here.
		q.load(offArg0)
		q.list([]uint32{unix.CLONE_NEWUTS}, retAllow)
		q.ret(retPerm)
	})
	p.on(unix.SYS_CLONE, func(q *program) {
		q.load(offArg0)
		q.jump(unix.BPF_JSET, newNamespaces, 0, 1)
		q.ret(retPerm)
	})
	p.on(unix.SYS_IOCTL, func(q *program) {
		q.load(offArg1)
		q.list([]uint32{unix.TIOCSTI, tiocLinux}, retPerm)
	})
	p.on(unix.SYS_PERSONALITY, func(q *program) {
		q.load(offArg0)
		q.list([]uint32{0, 0xffffffff, addrNoRandomize}, retAllow)
		q.ret(retPerm)
	})
	p.on(unix.SYS_SOCKET, func(q *program) { socketRule(q, unixSockets) })
	if !unixSockets {
		p.on(unix.SYS_SOCKETPAIR, func(q *program) {
			// A datagram pair could be pointed at any socket's path.
			q.load(offArg1)
			q.and(0xf)
			q.list([]uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}, retAllow)
			q.ret(retPerm)
		})
	}
	p.ret(retAllow)
	return p
}

func socketRule(q *program, unixSockets bool) {
	families := []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	if unixSockets {
		families = append(families, unix.AF_UNIX)
	}
	q.load(offArg2)
	q.jump(unix.BPF_JEQ, protoMPTCP, 0, 1)
	q.ret(retProto)
	q.load(offArg0)
	q.list(families, retAllow)
	q.ret(retPerm)
}

// limitsFilter refuses to change the limits of another process. The user of the
// anchor and of its commands is the same, so the kernel would let a command take
// the anchor's files and threads away, and with them every later command's. It
// is for the threads that start commands only: the anchor does it itself.
func limitsFilter() []unix.SockFilter {
	var p program
	p.load(offNumber)
	p.on(unix.SYS_PRLIMIT64, func(q *program) {
		q.load(offArg0)
		q.list([]uint32{0}, retAllow)
		q.load(offArg2)
		q.jump(unix.BPF_JEQ, 0, 1, 0)
		q.ret(retPerm)
		q.load(offArg2Hi)
		q.list([]uint32{0}, retAllow)
		q.ret(retPerm)
	})
	p.ret(retAllow)
	return p
}

// program is a filter being put together. Jumps are relative and short.
type program []unix.SockFilter

func (p *program) add(code uint16, jt, jf uint8, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *program) load(off uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, off) }
func (p *program) and(k uint32)    { p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0, 0, k) }
func (p *program) ret(k uint32)    { p.add(unix.BPF_RET|unix.BPF_K, 0, 0, k) }

func (p *program) jump(how uint16, k uint32, jt, jf uint8) {
	p.add(unix.BPF_JMP|how|unix.BPF_K, jt, jf, k)
}

// list answers ret when the loaded word is one of values, and goes on
// otherwise. There may be 254 of them.
func (p *program) list(values []uint32, ret uint32) {
	for i, v := range values {
		p.jump(unix.BPF_JEQ, v, uint8(len(values)-i), 0)
	}
	p.add(unix.BPF_JMP|unix.BPF_JA, 0, 0, 1)
	p.ret(ret)
}

// on runs rule for one system call; what the rule leaves open is allowed.
func (p *program) on(number uint32, rule func(*program)) {
	var q program
	rule(&q)
	q.ret(retAllow)
	p.jump(unix.BPF_JEQ, number, 0, uint8(len(q)))
	*p = append(*p, q...)
}

// installFilter puts the calling thread, or with [unix.SECCOMP_FILTER_FLAG_TSYNC]
// every thread, and all it starts, under the filter.
func installFilter(f []unix.SockFilter, flags uintptr) error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the kernel reads it
	runtime.KeepAlive(f)
	if errno != 0 {
		return errno
	}
	if thread != 0 { // the one that could not follow
		return unix.EAGAIN
	}
	return nil
}
