package stage

import (
	"runtime"
	"slices"
	"strconv"
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
	offArg3   = 40
)

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retPerm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retDone  = unix.SECCOMP_RET_ERRNO // said to have been done, and not done
	retProto = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)

	retListener = unix.SECCOMP_RET_USER_NOTIF // which refuses, and tells of it
)

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	addrNoRandomize = 0x0040000
	protoMPTCP      = 262
	tiocLinux       = 0x541c
	fioSetOwn       = 0x8901
	// newestCall is the last system call that was looked at for this filter.
	// What comes later may do what is refused here in another way; programs are
	// told that the kernel does not know it.
	newestCall = unix.SYS_RSEQ_SLICE_YIELD
)

// denied are the system calls neither the anchor, once it stands, nor anything
// inside needs, and an attacker would.
func denied() []sysCall {
	return append(deniedHere(), []sysCall{
		{unix.SYS_PTRACE, "ptrace"},
		{unix.SYS_PROCESS_VM_WRITEV, "process_vm_writev"},
		{unix.SYS_KCMP, "kcmp"},
		{unix.SYS_PROCESS_MADVISE, "process_madvise"},
		{unix.SYS_MOUNT, "mount"},
		{unix.SYS_UMOUNT2, "umount2"},
		{unix.SYS_PIVOT_ROOT, "pivot_root"},
		{unix.SYS_CHROOT, "chroot"},
		{unix.SYS_MOVE_MOUNT, "move_mount"},
		{unix.SYS_OPEN_TREE, "open_tree"},
		{unix.SYS_FSOPEN, "fsopen"},
		{unix.SYS_FSCONFIG, "fsconfig"},
		{unix.SYS_FSMOUNT, "fsmount"},
		{unix.SYS_FSPICK, "fspick"},
		{unix.SYS_MOUNT_SETATTR, "mount_setattr"},
		{unix.SYS_OPEN_TREE_ATTR, "open_tree_attr"},
		{unix.SYS_SETNS, "setns"},
		{unix.SYS_BPF, "bpf"},
		{unix.SYS_PERF_EVENT_OPEN, "perf_event_open"},
		{unix.SYS_USERFAULTFD, "userfaultfd"},
		{unix.SYS_FANOTIFY_INIT, "fanotify_init"},
		{unix.SYS_KEYCTL, "keyctl"},
		{unix.SYS_ADD_KEY, "add_key"},
		{unix.SYS_REQUEST_KEY, "request_key"},
		{unix.SYS_KEXEC_LOAD, "kexec_load"},
		{unix.SYS_KEXEC_FILE_LOAD, "kexec_file_load"},
		{unix.SYS_INIT_MODULE, "init_module"},
		{unix.SYS_FINIT_MODULE, "finit_module"},
		{unix.SYS_DELETE_MODULE, "delete_module"},
		{unix.SYS_REBOOT, "reboot"},
		{unix.SYS_SWAPON, "swapon"},
		{unix.SYS_SWAPOFF, "swapoff"},
		{unix.SYS_ACCT, "acct"},
		{unix.SYS_QUOTACTL, "quotactl"},
		{unix.SYS_QUOTACTL_FD, "quotactl_fd"},
		{unix.SYS_SYSLOG, "syslog"},
		{unix.SYS_SETTIMEOFDAY, "settimeofday"},
		{unix.SYS_CLOCK_SETTIME, "clock_settime"},
		{unix.SYS_SETHOSTNAME, "sethostname"},
		{unix.SYS_SETDOMAINNAME, "setdomainname"},
		{unix.SYS_VHANGUP, "vhangup"},
		{unix.SYS_NAME_TO_HANDLE_AT, "name_to_handle_at"},
		{unix.SYS_OPEN_BY_HANDLE_AT, "open_by_handle_at"},
		{unix.SYS_MIGRATE_PAGES, "migrate_pages"},
		{unix.SYS_MOVE_PAGES, "move_pages"},
		{unix.SYS_LOOKUP_DCOOKIE, "lookup_dcookie"},
	}...)
}

// sysCall is a system call by number and by name.
type sysCall struct {
	number uint32
	name   string
}

func numbers(calls []sysCall) []uint32 {
	out := make([]uint32, len(calls))
	for i, c := range calls {
		out[i] = c.number
	}
	return out
}

// CallName returns the name of a system call that a command can be denied.
func CallName(number uint32) string {
	for _, c := range slices.Concat(denied(), brokers(), mediated(), []sysCall{
		{unix.SYS_UNSHARE, "unshare"},
		{unix.SYS_CLONE, "clone"},
		{unix.SYS_IOCTL, "ioctl"},
		{unix.SYS_PERSONALITY, "personality"},
		{unix.SYS_SOCKET, "socket"},
		{unix.SYS_SOCKETPAIR, "socketpair"},
	}) {
		if c.number == number {
			return c.name
		}
	}
	return "system call " + strconv.FormatUint(uint64(number), 10)
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
// its own for each command would cost a tenth of starting one. What is not
// permitted is answered with deny: [retPerm], or [retListener] to have it told.
func seccompFilter(s *Setup, deny uint32) []unix.SockFilter {
	if auditArch() == 0 {
		return nil
	}
	var p program
	p.head()
	p.session(s, deny)
	p.ret(retAllow)
	return p
}

// head refuses what no rule could judge. It leaves the number of the call
// loaded, as every rule does that does not answer.
func (p *program) head() {
	p.load(offArch)
	p.jump(unix.BPF_JEQ, auditArch(), 1, 0)
	p.ret(retKill) // a 32-bit call on a 64-bit kernel would be judged by the wrong numbers
	p.load(offNumber)
	p.jump(unix.BPF_JGT, newestCall, 0, 1)
	p.ret(retNoSys) // x32, and what a kernel newer than this program brings
	p.list(absent(), retNoSys)
}

// session adds the rules of every session.
func (p *program) session(s *Setup, deny uint32) {
	no := denied()
	if s.Shared {
		p.list([]uint32{unix.SYS_UNSHARE}, deny)
	} else {
		no = append(no, brokers()...)
	}
	if s.Trace && !s.Shared { // the namespace, and the anchor's own secrecy, say whom
		no = slices.DeleteFunc(no, func(c sysCall) bool {
			return c.number == unix.SYS_PTRACE || c.number == unix.SYS_PROCESS_VM_READV || c.number == unix.SYS_PROCESS_VM_WRITEV
		})
	}
	p.list(numbers(no), deny)
	p.on(unix.SYS_UNSHARE, func(q *program) {
		// The anchor makes a UTS namespace for each command, to tell them apart.
		// A command has no capability left, so that the kernel refuses it that
		// one too, and everything else is refused here.
		q.load(offArg0)
		q.list([]uint32{unix.CLONE_NEWUTS}, retAllow)
		q.ret(deny)
	})
	p.on(unix.SYS_CLONE, func(q *program) {
		q.load(offArg0)
		q.jump(unix.BPF_JSET, newNamespaces, 0, 1)
		q.ret(deny)
	})
	p.on(unix.SYS_IOCTL, func(q *program) {
		q.load(offArg1)
		q.list([]uint32{unix.TIOCSTI, tiocLinux}, deny)
		if s.Shared { // whom a descriptor signals, which is none of a command's
			q.list([]uint32{fioSetOwn, unix.SIOCSPGRP}, deny)
		}
	})
	p.on(unix.SYS_PERSONALITY, func(q *program) {
		q.load(offArg0)
		q.list([]uint32{0, 0xffffffff, addrNoRandomize}, retAllow)
		q.ret(deny)
	})
	p.on(unix.SYS_SOCKET, func(q *program) { socketRule(q, s, deny) })
	if !s.UnixSockets || s.Private || s.Shared {
		p.on(unix.SYS_SOCKETPAIR, func(q *program) {
			// A datagram pair could be pointed at any socket's path.
			q.load(offArg1)
			q.and(0xf)
			q.list([]uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}, retAllow)
			q.ret(deny)
		})
	}
}

func socketRule(q *program, s *Setup, deny uint32) {
	families := []uint32{unix.AF_INET, unix.AF_INET6}
	if s.UnixSockets {
		families = append(families, unix.AF_UNIX)
	}
	if s.Shared {
		// Only what reaches somebody by connect, and by nothing else.
		q.load(offArg1)
		q.and(0xf)
		q.jump(unix.BPF_JEQ, unix.SOCK_STREAM, 1, 0)
		q.ret(deny)
		q.load(offArg2)
		q.jump(unix.BPF_JEQ, 0, 2, 0)
		q.jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0)
		q.ret(retProto)
	} else {
		families = append(families, unix.AF_NETLINK)
		q.load(offArg2)
		q.jump(unix.BPF_JEQ, protoMPTCP, 0, 1)
		q.ret(retProto)
	}
	if s.Private {
		// Others name whom they send to in more calls than can be decided on.
		q.load(offArg0)
		q.jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 4)
		q.load(offArg1)
		q.and(0xf)
		q.jump(unix.BPF_JEQ, unix.SOCK_STREAM, 1, 0)
		q.ret(deny)
	}
	q.load(offArg0)
	q.list(families, retAllow)
	q.ret(deny)
}

// limitsFilter refuses to change the limits of another process. The user of the
// anchor and of its commands is the same, so the kernel would let a command take
// the anchor's files and threads away, and with them every later command's. It
// is for the threads that start commands only: the anchor does it itself.
//
// The limit on core files stays at one byte, which alone keeps the kernel from
// handing a crash to a helper of the host that runs as root: at none it would. A
// program that asks for none, as those that hold keys do, is told it has it.
func limitsFilter() []unix.SockFilter {
	var p program
	p.load(offNumber)
	p.ownLimits()
	p.ret(retAllow)
	return p
}

// ownLimits is the rule of [limitsFilter].
func (p *program) ownLimits() {
	p.on(unix.SYS_SETRLIMIT, func(q *program) {
		q.load(offArg0)
		q.list([]uint32{unix.RLIMIT_CORE}, retDone)
	})
	p.on(unix.SYS_PRLIMIT64, func(q *program) {
		q.load(offArg1)
		q.jump(unix.BPF_JEQ, unix.RLIMIT_CORE, 0, 5)
		q.load(offArg2)
		q.jump(unix.BPF_JEQ, 0, 0, 2)
		q.load(offArg2Hi)
		q.jump(unix.BPF_JEQ, 0, 1, 0)
		q.ret(retDone)
		q.load(offArg0)
		q.list([]uint32{0}, retAllow)
		q.load(offArg2)
		q.jump(unix.BPF_JEQ, 0, 1, 0)
		q.ret(retPerm)
		q.load(offArg2Hi)
		q.list([]uint32{0}, retAllow)
		q.ret(retPerm)
	})
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
	thread, err := setFilter(f, flags)
	if err == nil && thread != 0 { // the one that could not follow
		return unix.EAGAIN
	}
	return err
}

// setFilter installs a filter and returns what the kernel does.
func setFilter(f []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the kernel reads it
	runtime.KeepAlive(f)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}
