package sandbox

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// Hints for what the system call filter denies.
const (
	hintTrace     = "debuggers and tracers do not work in the sandbox; add logging instead"
	hintMount     = "nothing can be mounted in the sandbox"
	hintNamespace = "containers and nested sandboxes do not work in the sandbox; use the program's own option to run without one"
	hintKeys      = "the kernel's keyrings are closed to commands"
	hintUnix      = "local sockets are off here (tools.sandbox.unix_sockets); use a pipe, or TCP on 127.0.0.1"
	hintFamily    = "only IPv4, IPv6 and netlink sockets can be made in the sandbox"
	hintClosed    = "closed to commands; nothing a call says opens it"
)

// toldOf turns what the filter denied into violations. Every look-up of a
// user's name asks for a local socket first and goes on without: that one is
// told only when the output shows that something was not permitted.
func (r *Run) toldOf(denied []stage.Denial, out *Outcome) {
	for _, d := range denied {
		quiet := d.Call == unix.SYS_SOCKET && d.Detail == unix.AF_UNIX
		if quiet && !complains(out.Combined.Head) && !complains(out.Combined.Tail) {
			continue
		}
		v := Violation{
			Kind: call.ViolationSyscall, Op: stage.CallName(d.Call), Source: call.SourceExact, Count: int(d.Count),
			By: fmt.Sprintf("%s[%d]", d.Name, d.PID),
		}
		v.Target, v.Hint = explainCall(v.Op, d.Detail)
		v.Rule = "syscall." + v.Op
		r.denied.add(v)
	}
}

// complains reports whether output speaks of the error that a denied call
// returns.
func complains(b []byte) bool {
	b = bytes.ToLower(b)
	return bytes.Contains(b, []byte(saysPerm)) || bytes.Contains(b, []byte("eperm"))
}

// explainCall says what a denied system call was about and what can be done.
func explainCall(name string, detail uint32) (target, hint string) {
	switch name {
	case "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise", "perf_event_open":
		return "", hintTrace
	case "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount",
		"fspick", "mount_setattr":
		return "", hintMount
	case "setns":
		return "", hintNamespace
	case "unshare", "clone":
		return namespaces(detail), hintNamespace
	case "keyctl", "add_key", "request_key":
		return "", hintKeys
	case "socket":
		if detail == unix.AF_UNIX {
			return "AF_UNIX", hintUnix
		}
		return fmt.Sprintf("family %d", detail), hintFamily
	case "socketpair":
		return fmt.Sprintf("type %d", detail), hintUnix
	case "ioctl":
		return fmt.Sprintf("0x%x", detail), hintClosed
	}
	return "", hintClosed
}

// namespaces names the kinds of namespaces that were asked for.
func namespaces(flags uint32) string {
	var out []string
	for _, n := range []struct {
		flag uint32
		name string
	}{
		{unix.CLONE_NEWUSER, "user"},
		{unix.CLONE_NEWNS, "mount"},
		{unix.CLONE_NEWPID, "pid"},
		{unix.CLONE_NEWNET, "net"},
		{unix.CLONE_NEWIPC, "ipc"},
		{unix.CLONE_NEWUTS, "uts"},
		{unix.CLONE_NEWCGROUP, "cgroup"},
	} {
		if flags&n.flag != 0 {
			out = append(out, n.name)
		}
	}
	return strings.Join(out, ",")
}
