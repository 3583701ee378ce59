package stage

import "golang.org/x/sys/unix"

// brokers are the system calls that the broker of shared walls needs, and
// nobody else.
func brokers() []sysCall {
	return []sysCall{{unix.SYS_PROCESS_VM_READV, "process_vm_readv"}, {unix.SYS_PIDFD_GETFD, "pidfd_getfd"}}
}

// mediated are those that it may decide on.
func mediated() []sysCall {
	return []sysCall{
		{unix.SYS_CONNECT, "connect"}, {unix.SYS_LISTEN, "listen"}, {unix.SYS_KILL, "kill"}, {unix.SYS_TKILL, "tkill"}, {unix.SYS_TGKILL, "tgkill"},
	}
}

// supervisorFilter is for an anchor whose commands have a filter of their own.
func supervisorFilter() []unix.SockFilter {
	if auditArch() == 0 {
		return nil
	}
	var p program
	p.head()
	p.ret(retAllow)
	return p
}

// commandFilter adds, for the commands of shared walls, what other walls keep
// out by namespaces. anchor and thread are the numbers of the anchor and of its
// starting thread, which is in the commands' Landlock domain and would take
// their signals. What the broker decides on is answered with ask: [retListener],
// or [retPerm] where there is none.
func commandFilter(s *Setup, ask uint32, scoped bool, anchor, thread int) []unix.SockFilter {
	var p program
	p.head()
	p.list(numbers(brokers()), ask)
	p.list(hostIPC(), retPerm)
	// A descriptor of a process cannot be seen from here. Programs signal by
	// number instead.
	p.list([]uint32{unix.SYS_PIDFD_SEND_SIGNAL}, retNoSys)
	p.list([]uint32{unix.SYS_CONNECT, unix.SYS_LISTEN}, ask)
	if ask == retListener {
		p.list(births(), ask) // without a listener nobody counts them
	}
	for _, c := range []struct{ call, flags uint32 }{
		{unix.SYS_SENDTO, offArg3}, {unix.SYS_SENDMSG, offArg2}, {unix.SYS_SENDMMSG, offArg3},
	} {
		p.on(c.call, func(q *program) {
			q.load(c.flags)
			q.jump(unix.BPF_JSET, unix.MSG_FASTOPEN, 0, 1)
			q.ret(retPerm)
		})
	}
	p.on(unix.SYS_SETSOCKOPT, func(q *program) {
		q.load(offArg1)
		q.jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 0, 3)
		q.load(offArg2)
		q.jump(unix.BPF_JEQ, unix.TCP_FASTOPEN_CONNECT, 0, 1)
		q.ret(retPerm)
	})
	p.ownLimits()
	p.ownPriority()
	p.ownSignals(ask, scoped, uint32(anchor), uint32(thread))
	p.session(s, ask)
	p.ret(retAllow)
	return p
}

// privateFilter is for commands in namespaces whose local sockets are private:
// who connects to what is decided on.
func privateFilter(s *Setup, ask uint32) []unix.SockFilter {
	var p program
	p.head()
	p.list([]uint32{unix.SYS_CONNECT}, ask)
	p.session(s, ask)
	p.ret(retAllow)
	return p
}

// hostIPC are the ways to memory and messages of the host's other processes.
func hostIPC() []uint32 {
	return []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	}
}

// ownPriority keeps a command from slowing other processes down.
func (p *program) ownPriority() {
	for _, c := range []struct{ call, user uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_USER}, {unix.SYS_IOPRIO_SET, 3}} {
		p.on(c.call, func(q *program) {
			q.load(offArg0)
			q.list([]uint32{c.user}, retPerm)
			q.load(offArg1)
			q.list([]uint32{0}, retAllow)
			q.ret(retPerm)
		})
	}
	for _, call := range []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		p.on(call, func(q *program) {
			q.load(offArg0)
			q.list([]uint32{0}, retAllow)
			q.ret(retPerm)
		})
	}
}

// ownSignals keeps signals within, with what Landlock does not do: all of it
// where it does nothing, else for the one thread that it counts as one of the
// commands.
func (p *program) ownSignals(ask uint32, scoped bool, anchor, thread uint32) {
	calls := []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO}
	if !scoped {
		p.list(calls[:3], ask)
		p.list(calls[3:], retPerm)
	} else {
		for _, call := range calls {
			p.on(call, func(q *program) {
				q.load(offArg0)
				q.list([]uint32{anchor, thread}, retPerm)
			})
		}
	}
	// A signal that is sent when a descriptor is ready goes to whom the
	// descriptor is given to.
	p.on(unix.SYS_FCNTL, func(q *program) {
		q.load(offArg1)
		q.list([]uint32{unix.F_SETSIG, unix.F_SETOWN_EX}, retPerm)
		if !scoped {
			q.list([]uint32{unix.F_SETOWN}, retPerm)
		}
	})
}
