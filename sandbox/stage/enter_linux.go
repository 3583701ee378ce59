package stage

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// init runs the stage this process was started as, if any, and does not
// return then. It has to be an init: a stage must act before main and before
// the other packages of the binary have woken up.
func init() { //nolint:gochecknoinits // a stage replaces main
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case NameLaunch:
		mode := ""
		if len(os.Args) > 1 {
			mode = os.Args[1]
		}
		launch(mode)
	case NameAnchor:
		serve()
	case NameProbe:
		probe(os.Args[1:])
	default:
		return
	}
	unix.Exit(0)
}

// launch starts the anchor as a child of this process's own parent and ends.
// It exists so that the namespaces are made from a process with little memory:
// the kernel copies the page tables of whoever makes a user namespace.
func launch(mode string) {
	c := conn{fd: ControlFD}
	// Nothing else the server or its parents had open goes further.
	if err := unix.CloseRange(ControlFD+1, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		c.fail("close inherited files", err)
		unix.Exit(1)
	}
	attr := &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=2"},
		Files: []uintptr{0, 1, 2, ControlFD},
		Sys:   &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_PARENT},
	}
	if mode == ModeShared {
		attr.Env = []string{"GOMAXPROCS=4", "GOGC=off"} // see births
	}
	// The anchor and what it runs are the first to go when memory is short.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	if mode != ModeOpen && mode != ModeShared {
		uid, gid := os.Getuid(), os.Getgid()
		attr.Sys.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		if mode != ModeHostNetwork {
			attr.Sys.Cloneflags |= unix.CLONE_NEWNET
		}
		attr.Sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.Sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.Sys.AmbientCaps = []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE, unix.CAP_KILL,
		}
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{NameAnchor}, attr)
	if err != nil {
		c.fail("make namespaces", err)
		unix.Exit(1)
	}
	c.send(&Launched{PID: uint32(pid)})
}

// errnoOf returns the error number in err, EIO when there is none.
func errnoOf(err error) uint32 {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return uint32(e)
	}
	return uint32(syscall.EIO)
}
