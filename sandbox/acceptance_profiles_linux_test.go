package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What each profile holds and gives, at level 3: rows of the acceptance table
// with a cell for each profile, in the order of columns.
func profileColumns() []Profile { return []Profile{ReadOnly, Workspace, Net, Debug} }

type profileCase struct {
	name, attack string
	want         [4]string
}

func profileCases() []profileCase {
	same := func(want string) [4]string { return [4]string{want, want, want, want} }
	inside := [4]string{"EROFS", worked, worked, worked}
	sockets := [4]string{"EPERM", "EPERM", worked, worked}
	traces := [4]string{"EPERM", "EPERM", "EPERM", worked}
	// Whoever may trace is told by what cannot be seen, or by the anchor's secrecy.
	hidden := [4]string{"EPERM", "EPERM", "EPERM", "ESRCH"}
	return []profileCase{
		{"a write outside", "write OUT/file", same("EROFS")},
		{"a file outside deleted", "unlink OUT/file", same("EROFS")},
		{"a move out", "rename HERE/file OUT/new", [4]string{"EXDEV EROFS", "EXDEV", "EXDEV", "EXDEV"}},
		{"a mode outside", "chmod OUT/file", same("EROFS")},
		{"a write in the workspace", "write HERE/file", inside},
		{"a new file in the workspace", "create HERE/new", inside},
		{"a file of the workspace deleted", "unlink HERE/file", inside},
		{"a mode in the workspace", "chmod HERE/file", inside},
		{"a time in the workspace", "utimes HERE/file", inside},
		{"a new file in /tmp", "create /tmp/NEW", same(worked)},
		{"a hook", "create HOOKS/pre-push", same("EROFS")},
		{".git moved away", "rename GIT HERE/new", [4]string{"EBUSY EROFS EXDEV", "EBUSY", "EBUSY", "EBUSY"}},
		{"a secret", "read SECRET", same("EACCES")},
		{"the server's state", "read STATE/audit", same("EACCES ENOENT")},
		{"TCP to the host", "tcp 127.0.0.1 TCP", same("ECONNREFUSED")},
		{"TCP to the host without connect", "tfo 127.0.0.1 TCP", same("ECONNREFUSED")},
		{"UDP to the host", "udp 127.0.0.1 UDP", same("ECONNREFUSED")},
		{"TCP to elsewhere", "tcp 192.0.2.1 443", same("ENETUNREACH")},
		{"UDP to elsewhere", "udp 192.0.2.1 53", same("ENETUNREACH")},
		{"the metadata service", "tcp 169.254.169.254 80", same("ENETUNREACH")},
		{"raw packets", "packet", same("EPERM")},
		{"a server and its client", "loopback", same(worked)},
		{"a unix socket outside", "unix OUT/socket", same("EPERM")},
		{"one outside by a link inside", "unix HERE/out/socket", same("EPERM")},
		{"one outside by the process's own folder", "unix /proc/self/root/OUT/socket", same("EPERM")},
		{"the host's abstract one", "abstract ABSTRACT", [4]string{"EPERM", "EPERM", "ECONNREFUSED", "ECONNREFUSED"}},
		{"a unix socket of its own", "unix-serve HERE/mine", sockets},
		{"one of its own in /tmp", "unix-serve /tmp/NEW", sockets},
		{"one of its own, named as another meanwhile", "unix-race HERE/mine OUT/socket", sockets},
		{"datagrams to a unix socket", "family 1 2", same("EPERM")},
		{"raw unix sockets", "family 1 3", same("EPERM")},
		{"packets to a unix socket", "family 1 5", same("EPERM")},
		{"a datagram pair sent elsewhere", "pair-datagram OUT/datagram", same("EPERM")},
		{"a stream pair led elsewhere", "pair-stream OUT/socket", same("EISCONN EINVAL EPERM")},
		{"vsock", "family 40 1", same("EPERM")},
		{"its own child traced", "ptrace-child", traces},
		{"the anchor traced", "ptrace ANCHOR", same("EPERM")},
		{"the anchor's memory read", "vm-read ANCHOR", same("EPERM")},
		{"the anchor's memory written", "vm-write ANCHOR", same("EPERM")},
		{"the anchor's files taken", "pidfd-getfd ANCHOR", same("EPERM")},
		{"the server traced", "ptrace SERVER", hidden},
		{"the server's memory read", "vm-read SERVER", hidden},
		{"another session traced", "ptrace OTHER", hidden},
		{"another session's memory written", "vm-write OTHER", hidden},
		{"a process of the host traced", "ptrace VICTIM", hidden},
		{"the anchor's environment", "read /proc/ANCHOR/environ", same("EACCES EPERM ENOENT")},
		{"the anchor killed", "kill ANCHOR", same(worked)}, // and it lives
		{"a user namespace", "unshare 0x10000000", same("EPERM")},
		{"a mount", "mount HERE", same("EPERM")},
		{"io_uring", "io-uring", same("ENOSYS")},
		{"bpf", "bpf", same("EPERM")},
		{"a 32-bit call", "int80", same("SIGSYS")},
	}
}

func TestAcceptanceOfProfiles(t *testing.T) {
	t.Parallel()
	program := attackProgram(t)
	for i, p := range profileColumns() {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			b := newBattlefield(t, program, column{name: p.String(), level: LevelFull, choose: func(c *Config) { c.Profile = p }}, nil)
			if b.sb.base.Network == NetworkProxy {
				b.network = Network{Mode: NetworkProxy, Rules: "example.com", Ports: []int{80, 443}, Open: func() (Gateway, error) { return &gate{}, nil }}
			}
			for n, c := range profileCases() {
				t.Run(c.name, func(t *testing.T) {
					c.attack = strings.ReplaceAll(c.attack, "NEW", fmt.Sprintf("new-%d", n))
					b.try(t, fmt.Sprintf("p-%d", n), row{c.name, c.attack, cells{}}, c.want[i])
				})
			}
			b.check(t)
		})
	}
}

// The table of attacks has a column for every profile there is.
func TestAcceptanceKnowsEveryProfile(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range profileColumns() {
		names = append(names, p.String())
	}
	if !slices.Equal(names, ProfileNames()) {
		t.Errorf("%v, want %v", names, ProfileNames())
	}
}
