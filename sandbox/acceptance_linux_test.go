package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// The acceptance table: what must be refused, and what must work, at each level
// of confinement. Every row runs an attack of our own (testdata/attack) and
// holds its answer against the cell of its column. An answer is "worked", the
// name of an error, or of the signal that ended it; a cell lists those that are
// right, or is "-" where the attack is not tried.
//
// The first column has no walls. It shows that an attack is one: what is refused
// there too proves nothing about a wall.

// columns are the levels, in the order of a row's cells.
func columns() []column {
	return []column{
		{"unconfined", LevelNone, func(c *Config) { c.Mode = ModeOff }},
		{"level 3", LevelFull, func(*Config) {}},
		{"level 2", LevelShared, func(*Config) {}},
	}
}

type column struct {
	name   string
	level  int
	choose func(*Config)
}

// cells are the answers of a row, one for each column.
type cells [3]string

const (
	worked = "worked"
	gap    = "gap"    // it works, and the report of the probe says so
	undone = "undone" // it may work, and is undone and told after the command
)

type row struct {
	name   string
	attack string // its name and arguments; words in capitals stand for places
	want   cells
}

// outside are the rows on files that are none of a command's business. OUT is a
// folder outside the workspace, HERE one in it.
func outside() []row {
	const walls = "EROFS"
	changed, attribute := cells{worked, walls, "EACCES"}, cells{worked, walls, gap}
	return []row{
		{"write", "write OUT/file", changed},
		{"append", "append OUT/file", changed},
		{"create", "create OUT/new", changed},
		{"truncate", "truncate OUT/file", changed},
		{"truncate by opening", "open-truncate OUT/file", changed},
		{"unlink", "unlink OUT/file", changed},
		{"rmdir", "rmdir OUT/empty", changed},
		{"mkdir", "mkdir OUT/new", changed},
		{"mkfifo", "mkfifo OUT/new", changed},
		{"rename within", "rename OUT/file OUT/new", changed},
		{"rename in", "rename OUT/file HERE/new", cells{worked, "EXDEV", "EACCES"}},
		{"rename out", "rename HERE/file OUT/new", cells{worked, "EXDEV", "EACCES"}},
		{"exchange", "exchange HERE/file OUT/file", cells{worked, "EXDEV", "EACCES"}},
		{"hard link in", "link OUT/file HERE/new", cells{worked, "EXDEV", "EXDEV"}},
		{"hard link out", "link HERE/file OUT/new", cells{worked, "EXDEV EROFS", "EACCES"}},
		{"symbolic link", "symlink HERE/file OUT/new", changed},
		{"write through a link", "write HERE/out/file", changed},
		{"create through a link", "create HERE/out/new", changed},
		{"a nameless file given a name", "tmpfile HERE OUT/new", cells{worked, "EXDEV EROFS", "EACCES"}},
		{"write through the process's own folder", "write /proc/self/root/OUT/file", changed},
		{"open again for writing", "reopen OUT/file", changed},
		{"map for writing", "map OUT/file", cells{"EACCES", "EACCES", "EACCES"}}, // it is open for reading
		{"chmod", "chmod OUT/file", attribute},
		{"chmod, the new call", "chmod2 OUT/file", attribute},
		{"chmod by descriptor", "fchmod OUT/file", attribute},
		{"chown to itself", "chown OUT/file", attribute},
		{"utimes", "utimes OUT/file", attribute},
		{"utimes by descriptor", "futimes OUT/file", attribute},
		{"setxattr", "setxattr OUT/file", attribute},
		{"setxattr by descriptor", "fsetxattr OUT/file", attribute},
		{"inode flags", "inode-flags OUT/file", attribute},
		{"the system's files", "create /etc/zeph-evil", cells{"-", walls, "EACCES"}},
		{"the system's programs", "create /usr/bin/zeph-evil", cells{"-", walls, "EACCES"}},
		{"the kernel's switches", "write /proc/sys/kernel/core_pattern", cells{"-", walls + " EACCES", "EACCES"}},
		{"the kernel's trigger", "write /proc/sysrq-trigger", cells{"-", walls + " EACCES ENOENT", "ENOENT"}},
		{"the kernel's devices", "write /sys/power/state", cells{"-", walls + " EACCES", "EACCES"}},
		{"the control groups", "mkdir /sys/fs/cgroup/zeph-evil", cells{"-", walls, "EACCES"}},
		{"a device node", "device HERE/node", cells{"worked EPERM", "EACCES", "EACCES"}},
		{"a device node in /tmp", "device /tmp/node", cells{"-", "EACCES", "EACCES"}},
		{"a device node in /dev", "device /dev/node", cells{"-", walls, "EACCES"}},
		{"the disk", "read /dev/vda", cells{"-", "ENOENT", "EACCES"}},
		{"the kernel's memory", "read /dev/kmem", cells{"-", "ENOENT", "ENOENT"}},
		{"the kernel's log", "read /dev/kmsg", cells{"-", "ENOENT", "EACCES"}},
		{"the host's shared memory", "list /dev/shm", cells{"-", "ENOENT", "EACCES"}},
	}
}

// secrets are the rows on what must not be read.
func secrets() []row {
	return []row{
		{"a secret file", "read SECRET", cells{worked, "EACCES", "EACCES"}},
		{"a file in a secret folder", "read SECRETS/id", cells{worked, "EACCES ENOENT", "EACCES"}},
		{"a secret folder", "list SECRETS", cells{worked, "EACCES ENOENT", "EACCES"}},
		{"a secret through the process's own folder", "read /proc/self/root/SECRET", cells{worked, "EACCES", "EACCES"}},
		{"a secret through a link", "read HERE/secret", cells{worked, "EACCES", "EACCES"}},
		{"a hard link to a secret", "link SECRET HERE/new", cells{worked, "EXDEV", "EXDEV"}},
		{"a secret moved away", "rename SECRET HERE/new", cells{"-", "EXDEV", "EACCES"}},
		{"a secret folder moved away", "rename SECRETS HERE/new", cells{"-", "EXDEV", "EACCES"}},
		{"the server's state", "read STATE/audit", cells{worked, "EACCES ENOENT", "EACCES"}},
		{"the server's state seen", "stat STATE/audit", cells{worked, "EACCES ENOENT", worked}},
		{"the server's state written", "write STATE/audit", cells{worked, "EACCES ENOENT EROFS", "EACCES"}},
		{"a new file in the server's state", "create STATE/new", cells{worked, "EACCES ENOENT EROFS", "EACCES"}},
		{"a handle to a secret", "handle SECRET", cells{worked, "EPERM", "EPERM"}},
		{"a file by its number", "open-handle HERE", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"a write to a secret", "write SECRET", cells{"-", "EACCES EROFS", "EACCES"}},
		{"the mode of a secret", "chmod SECRET", cells{"-", "EROFS", gap}},
	}
}

// hooks are the rows on names that would have something run later.
func hooks() []row {
	return []row{
		{"a new hook", "create HOOKS/pre-push", cells{worked, "EROFS", undone}},
		{"a hook changed", "write HOOKS/pre-commit", cells{worked, "EROFS", undone}},
		{"a hook made executable", "chmod HOOKS/pre-commit", cells{worked, "EROFS", undone}},
		{"a hook deleted", "unlink HOOKS/pre-commit", cells{"-", "EROFS", undone}},
		{"the hooks moved away", "rename HOOKS HERE/new", cells{"-", "EBUSY EXDEV", undone}},
		{"the hooks exchanged", "exchange HOOKS HERE/folder", cells{"-", "EBUSY EXDEV", undone}},
		{"the hooks removed", "rmdir HOOKS", cells{"-", "EBUSY", undone}},
		{".git moved away", "rename GIT HERE/new", cells{"-", "EBUSY", undone}},
		{".git exchanged", "exchange GIT HERE/folder", cells{"-", "EBUSY", undone}},
		{"a hook from a hard link", "link HOOKS/pre-commit HERE/new", cells{worked, "EXDEV", worked}}, // what is written through it is undone,
		{"a file moved among the hooks", "rename HERE/file HOOKS/post-commit", cells{worked, "EXDEV", undone}},
		{"a nameless file among the hooks", "tmpfile HERE HOOKS/post-merge", cells{worked, "EXDEV EROFS", undone}},
		{"a link among the hooks", "symlink HERE/file HOOKS/post-rewrite", cells{worked, "EROFS", undone}},
		{"the workspace moved away", "rename ROOT ROOT.old", cells{"-", "EBUSY EROFS", undone}},
	}
}

// network are the rows on reaching anybody (SB-33). Addresses outside loopback are tried
// only where there is no way to them.
func network() []row {
	const none = "ENETUNREACH"
	refused := cells{worked, "ECONNREFUSED", "EPERM"}
	return []row{
		{"TCP to the host", "tcp 127.0.0.1 TCP", refused},
		{"TCP to the host, version 6", "tcp ::1 TCP6", cells{"worked ECONNREFUSED EADDRNOTAVAIL", "ECONNREFUSED EADDRNOTAVAIL", "EPERM"}},
		{"TCP to the host, mapped", "tcp ::ffff:127.0.0.1 TCP", refused},
		{"TCP without connect", "tfo 127.0.0.1 TCP", refused},
		{"TCP with a late connect", "tfo-connect 127.0.0.1 TCP", cells{worked, "ECONNREFUSED", "EPERM"}},
		{"multipath TCP to the host", "mptcp 127.0.0.1 TCP", cells{worked, "EPROTONOSUPPORT", "EPROTONOSUPPORT"}},
		{"UDP to the host", "udp 127.0.0.1 UDP", refused},
		{"UDP to the host, by sendmmsg", "udp-sendmmsg 127.0.0.1 UDP", refused},
		{"TCP to elsewhere", "tcp 192.0.2.1 443", cells{"-", none, "EPERM"}},
		{"TCP to elsewhere, version 6", "tcp 2001:db8::1 443", cells{"-", none + " EADDRNOTAVAIL", "EPERM"}},
		{"TCP to elsewhere without connect", "tfo 192.0.2.1 443", cells{"-", none, "EPERM"}},
		{"TCP to elsewhere with a late connect", "tfo-connect 192.0.2.1 443", cells{"-", none, "EPERM"}},
		{"multipath TCP to elsewhere", "mptcp 192.0.2.1 443", cells{"-", "EPROTONOSUPPORT", "EPROTONOSUPPORT"}},
		{"UDP to elsewhere", "udp 192.0.2.1 53", cells{"-", none, "EPERM"}},
		{"UDP to elsewhere, by sendmmsg", "udp-sendmmsg 192.0.2.1 53", cells{"-", none, "EPERM"}},
		{"UDP to everybody", "udp 255.255.255.255 53", cells{"-", none + " EACCES", "EPERM"}},
		{"the metadata service", "tcp 169.254.169.254 80", cells{"-", none, "EPERM"}},
		{"SCTP", "sctp 192.0.2.1 443", cells{"-", "EPROTONOSUPPORT ESOCKTNOSUPPORT " + none, "EPROTONOSUPPORT"}},
		{"raw IP", "raw 127.0.0.1 0", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"raw IP to elsewhere", "raw 192.0.2.1 0", cells{"-", "EPERM", "EPERM"}},
		{"raw packets", "packet", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"loopback taken down", "loopback-down", cells{"-", "EPERM", "EPERM"}},
		{"a new interface", "interface", cells{"-", "EPERM", "EPERM"}},
		{"a unix socket outside", "unix OUT/socket", cells{worked, "EPERM", "EPERM"}},
		{"an abstract unix socket", "abstract ABSTRACT", cells{worked, "EPERM", "EPERM"}},
		{"a unix socket of its own", "unix-serve HERE/mine", cells{worked, "EPERM", "EPERM"}},
		{"a datagram pair sent elsewhere", "pair-datagram OUT/datagram", cells{worked, "EPERM", "EPERM"}},
		{"a stream pair led elsewhere", "pair-stream OUT/socket", cells{"EISCONN EINVAL", "EISCONN EINVAL", "EPERM"}},
		{"a packet pair led elsewhere", "pair-packet OUT/socket", cells{"EISCONN EINVAL EPROTOTYPE", "EISCONN EINVAL EPROTOTYPE", "EPERM"}},
		{"a stream pair sent elsewhere", "pair-sendto OUT/datagram", cells{"EISCONN EOPNOTSUPP", "EISCONN EOPNOTSUPP", "EISCONN"}},
		{"vsock", "family 40 1", cells{"worked EAFNOSUPPORT", "EPERM", "EPERM"}},
		{"the kernel's ciphers", "family 38 5", cells{"worked EAFNOSUPPORT", "EPERM", "EPERM"}},
		{"bluetooth", "family 31 3", cells{"-", "EPERM", "EPERM"}},
		{"express data path", "family 44 3", cells{"-", "EPERM", "EPERM"}},
		{"TIPC", "family 30 1", cells{"-", "EPERM", "EPERM"}},
		{"RDS", "family 21 5", cells{"-", "EPERM", "EPERM"}},
	}
}

// processes are the rows on other processes. VICTIM is one of the host's, of
// the same user; OTHER is one of another session; ANCHOR is the first of this.
func processes() []row {
	const gone = "ESRCH"
	rows := []row{
		{"its own child traced", "ptrace-child", cells{worked, "EPERM", "EPERM"}},
		{"itself offered for tracing", "traceme", cells{worked, "EPERM", "EPERM"}},
		{"the anchor killed", "kill ANCHOR", cells{"-", worked, "EPERM"}}, // and it lives
		{"the anchor killed by descriptor", "pidfd-kill ANCHOR", cells{"-", worked, "ENOSYS"}},
		{"everything killed", "kill-all", cells{"-", "worked ESRCH", worked}},
		{"the anchor traced", "ptrace ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's memory read", "vm-read ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's memory written", "vm-write ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's files taken", "pidfd-getfd ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's memory given back", "process-madvise ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor compared", "kcmp ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's limits", "prlimit ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's time", "setpriority ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's processors", "affinity ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's scheduler", "scheduler ANCHOR", cells{"-", "EPERM", "EPERM"}},
		{"the anchor's input and output", "ioprio ANCHOR", cells{"-", "EPERM", "EPERM"}},
	}
	for _, f := range []string{"environ", "mem", "maps", "fd/3", "root/etc/passwd", "cwd", "exe", "auxv", "stack", "syscall", "io", "map_files", "pagemap"} {
		op := "read"
		if f == "cwd" || f == "map_files" {
			op = "list"
		}
		rows = append(rows, row{"the anchor's " + f, op + " /proc/ANCHOR/" + f, cells{"-", "EACCES EPERM ENOENT", "EACCES EPERM ENOENT"}})
	}
	for _, who := range []struct{ name, pid string }{{"the server", "SERVER"}, {"another session's process", "OTHER"}, {"a process of the host", "VICTIM"}} {
		with := func(what, attack, want string, shared ...string) {
			open := worked
			if who.pid != "VICTIM" {
				open = "-"
			}
			rows = append(rows, row{who.name + " " + what, attack + " " + who.pid, cells{open, want, strings.Join(append(shared, "EPERM"), " ")}})
		}
		with("seen", "exists", gone)
		with("held", "pidfd", gone, worked) // which is good for nothing
		with("traced", "ptrace", "EPERM")
		with("read", "vm-read", "EPERM")
		with("written", "vm-write", "EPERM")
		with("limited", "prlimit", "EPERM ESRCH")
		with("slowed", "setpriority", gone+" EPERM")
		with("bound to a processor", "affinity", gone+" EPERM")
		with("put last", "scheduler", gone+" EPERM")
		with("put last for the disk", "ioprio", gone+" EPERM")
		with("compared", "kcmp", "EPERM")
		with("killed", "kill", gone)
		with("killed by descriptor", "pidfd-kill", gone, "ENOSYS")
		for _, f := range []string{"environ", "mem", "maps", "fd/0", "cmdline", "status", "root/etc/passwd"} {
			shared := "EACCES EPERM"
			if f == "cmdline" || f == "status" {
				shared = gap
			}
			rows = append(rows, row{who.name + "'s " + f, "read /proc/" + who.pid + "/" + f, cells{"-", "ENOENT", shared}})
		}
	}
	return rows
}

// rights are the rows on gaining any.
func rights() []row {
	denied := cells{"-", "EPERM", "EPERM"}
	return []row{
		{"another user", "setuid", cells{"worked EPERM", "EPERM EINVAL", "EPERM"}},
		{"another group", "setgroups", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"capabilities", "capset", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"an ambient capability", "ambient", denied},
		{"secure bits", "securebits", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"new privileges", "new-privs", cells{worked, "EPERM", "EPERM"}},
		{"a setuid program", "setuid-program SETUID", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"a higher limit", "raise-limit", denied},
		{"out of memory last", "write /proc/self/oom_score_adj", cells{"-", "EROFS", "EACCES"}},
		{"a mount", "mount HERE", denied},
		{"a mount of processes", "mount-proc HERE", denied},
		{"a bind mount", "bind OUT HERE", denied},
		{"/ writable", "remount /", denied},
		{"the mask lifted", "umount SECRETS", denied},
		{"the hooks' mount lifted", "umount HOOKS", denied},
		{"the workspace's mount lifted", "umount ROOT", denied},
		{"chroot", "chroot HERE", denied},
		{"pivot_root", "pivot HERE", denied},
		{"a mount, the new way", "fsopen", denied},
		{"a mount changed, the new way", "fspick /", denied},
		{"a copy of a mount", "open-tree /", denied},
		{"a copy of a mount with attributes", "open-tree-attr /", denied},
		{"a mount moved", "move-mount HERE OUT", denied},
		{"a mount's attributes", "mount-setattr /", denied},
		{"a namespace entered", "setns /proc/self/ns/user", denied},
		{"a user namespace", "unshare 0x10000000", cells{worked, "EPERM", "EPERM"}},
		{"a mount namespace", "unshare 0x20000", denied},
		{"a user namespace by clone", "clone 0x10000000", cells{worked, "EPERM", "EPERM"}},
		{"a pid namespace by clone", "clone 0x20000000", denied},
		{"a network namespace by clone", "clone 0x40000000", denied},
		{"a UTS namespace by clone", "clone 0x4000000", denied},
		{"a user namespace by clone3", "clone3 0x10000000", cells{worked, "ENOSYS", "ENOSYS"}},
		{"a UTS namespace", "unshare 0x4000000", denied},
		{"a time namespace", "unshare 0x80", denied},
		{"a control group namespace", "unshare 0x2000000", denied},
		{"an IPC namespace", "unshare 0x8000000", denied},
	}
}

// kernel are the rows on parts of the kernel no command needs.
func kernel() []row {
	rows := []row{
		{"io_uring", "io-uring", cells{worked, "ENOSYS", "ENOSYS"}},
		{"io_uring_enter", "io-uring-enter", cells{"-", "ENOSYS", "ENOSYS"}},
		{"io_uring_register", "io-uring-register", cells{"-", "ENOSYS", "ENOSYS"}},
		{"bpf", "bpf", cells{"worked EPERM", "EPERM", "EPERM"}},
		{"perf", "perf", cells{"worked EACCES EPERM", "EPERM", "EPERM"}},
		{"userfaultfd", "userfaultfd", cells{worked, "EPERM", "EPERM"}},
		{"keyctl", "keyctl", cells{worked, "EPERM", "EPERM"}},
		{"add_key", "add-key", cells{worked, "EPERM", "EPERM"}},
		{"request_key", "request-key", cells{"-", "EPERM", "EPERM"}},
		{"fanotify", "fanotify", cells{worked, "EPERM", "EPERM"}},
		{"a 32-bit call", "int80", cells{worked, "SIGSYS", "SIGSYS"}},
		{"an x32 call", "x32", cells{"worked ENOSYS", "ENOSYS", "ENOSYS"}},
		{"typing into the terminal", "tiocsti", cells{"worked EIO", "EPERM", "EACCES"}},
		{"typing, with high bits", "tiocsti-high", cells{"worked EIO", "EPERM", "EACCES"}},
		{"the console", "tioclinux", cells{"ENOTTY", "EPERM", "EACCES"}},
		{"the console, with high bits", "tioclinux-high", cells{"ENOTTY", "EPERM", "EACCES"}},
		{"everything executable", "personality", cells{worked, "EPERM", "EPERM"}},
		{"a crash told to the host", "core-limit", cells{worked, "EPERM", "EPERM"}},
		{"the host's name", "hostname", cells{"-", "EPERM", "EPERM"}},
		{"the clock's speed", "adjust-clock", cells{"-", "EPERM", "EPERM"}},
		{"the clock's speed, by clock", "adjust-clock-of 0", cells{"-", "EPERM", "EPERM"}},
		{"the clock", "set-clock", cells{"-", "EPERM", "EPERM"}},
		{"a call of tomorrow", "syscall 600", cells{"ENOSYS", "ENOSYS", "ENOSYS"}},
	}
	for name, number := range map[string]int{
		"kexec_load": unix.SYS_KEXEC_LOAD, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD,
		"init_module": unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE,
		"reboot": unix.SYS_REBOOT, "swapon": unix.SYS_SWAPON, "swapoff": unix.SYS_SWAPOFF, "acct": unix.SYS_ACCT,
		"quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD, "syslog": unix.SYS_SYSLOG,
		"clock_settime": unix.SYS_CLOCK_SETTIME, "setdomainname": unix.SYS_SETDOMAINNAME,
		"vhangup": unix.SYS_VHANGUP, "migrate_pages": unix.SYS_MIGRATE_PAGES, "move_pages": unix.SYS_MOVE_PAGES,
		"fsconfig": unix.SYS_FSCONFIG, "fsmount": unix.SYS_FSMOUNT, "lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE,
	} {
		rows = append(rows, row{name, "syscall " + strconv.Itoa(number), cells{"-", "EPERM", "EPERM"}})
	}
	return rows
}

// works are the rows on what no wall may break.
func works() []row {
	fine := cells{worked, worked, worked}
	return []row{
		{"a file of the workspace", "write HERE/file", fine},
		{"a new file of the workspace", "create HERE/new", fine},
		{"a mode in the workspace", "chmod HERE/file", fine},
		{"an attribute in the workspace", "setxattr HERE/file", fine},
		{"a link in the workspace", "link HERE/file HERE/new", fine},
		{"a nameless file in the workspace", "tmpfile HERE HERE/new", fine},
		{"a pipe in the workspace", "mkfifo HERE/new", fine},
		{"a move between folders", "rename HERE/file HERE/folder/new", fine},
		{"an exchange", "exchange HERE/file HERE/other", fine},
		{"a program in memory", "memfd", fine},
		{"a child, and its end", "child", fine},
		{"its own limits lowered", "prlimit 0", fine},
		{"its own priority", "setpriority 0", fine},
		{"its own processors", "affinity 0", fine},
		{"a server and its client", "loopback", cells{worked, worked, "EACCES"}},
		{"a connected pair", "pair", fine},
		{"a file as large as allowed", "grow HERE/large 1048576", fine},
		{"a file larger than allowed", "grow HERE/large 1048577", cells{"SIGXFSZ", "SIGXFSZ", "SIGXFSZ"}},
		{"no descriptor but three", "descriptors", cells{"EBADF", "EBADF", "EBADF"}},
	}
}

// table is the whole of it.
func table() map[string][]row {
	return map[string][]row{
		"files outside": outside(), "secrets": secrets(), "hooks": hooks(), "network": network(), "processes": processes(),
		"rights": rights(), "kernel": kernel(), "work": works(),
	}
}

func TestAcceptance(t *testing.T) {
	t.Parallel()
	program := attackProgram(t)
	for i, col := range columns() {
		t.Run(col.name, func(t *testing.T) {
			t.Parallel()
			b := newBattlefield(t, program, col, nil)
			for group, rows := range table() {
				for n, r := range rows {
					t.Run(group+"/"+r.name, func(t *testing.T) {
						b.try(t, fmt.Sprintf("%.4s-%d", group, n), r, r.want[i])
					})
				}
			}
			b.check(t)
		})
	}
}

// attackProgram builds the attacks once.
func attackProgram(tb testing.TB) string {
	tb.Helper()
	p, err := builtAttack()
	if err != nil {
		if os.Getenv("ZEPH_REQUIRE_SANDBOX") == "1" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	return p
}

var builtAttack = sync.OnceValues(func() (string, error) {
	sources, err := filepath.Glob("testdata/attack/*.c")
	if err != nil || len(sources) == 0 {
		return "", errors.Join(err, errors.New("no sources of attacks"))
	}
	dir, err := os.MkdirTemp("", "zeph-attack-")
	if err != nil {
		return "", err
	}
	attackDir = dir
	out := filepath.Join(dir, "attack")
	args := append([]string{"-static", "-no-pie", "-O1", "-Wall", "-Wno-unused-result", "-o", out}, sources...)
	if b, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the attacks: %w: %s", err, b)
	}
	return out, nil
})

var attackDir string // to be removed at the end

// battlefield is a world with everything the rows speak of.
type battlefield struct {
	world
	col              column
	program          string
	victim           *exec.Cmd
	otherPID         int
	tcp, tcp6, udp   int
	abstract, setuid string
	reached          atomic.Int64
	network          Network
}

func newBattlefield(t *testing.T, program string, col column, change func(*Config, *Policy)) *battlefield {
	t.Helper()
	b := &battlefield{col: col}
	b.world = newWorld(t, func(c *Config, p *Policy) {
		c.MaxFileSize = 1 << 20
		col.choose(c)
		if change != nil {
			change(c, p)
		}
	})
	if col.level == LevelShared {
		b.sb.only = LevelShared
	}
	b.need(t)
	copied, err := os.ReadFile(program)
	if err == nil {
		b.program = filepath.Join(filepath.Dir(b.root), "attack")
		b.setuid = filepath.Join(filepath.Dir(b.root), "attack-setuid")
		err = errors.Join(os.WriteFile(b.program, copied, 0o755), os.WriteFile(b.setuid, copied, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		err = errors.Join(os.Chown(b.setuid, 1, 1), os.Chmod(filepath.Dir(b.root), 0o755))
	}
	if err := errors.Join(err, os.Chmod(b.setuid, 0o755|os.ModeSetuid), os.WriteFile(b.hooks+"/pre-commit", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.listen(t)
	b.victim = b.bystander(t)
	r := b.startAttack(t, "other", b.root, "wait")
	b.until(t, r, "stands")
	b.otherPID = b.find(t, "other")
	return b
}

// bystander starts a process of the host that is none of the sandbox's.
func (b *battlefield) bystander(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command(b.program, "wait")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// startAttack starts an attack in a session of its own.
func (b *battlefield) startAttack(t *testing.T, session, dir string, args ...string) *Run {
	t.Helper()
	cmd := b.command("")
	cmd.Argv, cmd.Session, cmd.Dir = append([]string{b.program}, args...), session, dir
	cmd.Env = append(cmd.Env, "ATTACK="+session+b.root)
	r := b.start(t, cmd)
	t.Cleanup(func() {
		r.Stop()
		_, _ = r.Wait()
	})
	return r
}

// find looks for a started attack from outside.
func (b *battlefield) find(t *testing.T, session string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text)+"\x00", "ATTACK="+session+b.root+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil {
			return pid
		}
	}
	t.Fatalf("no process of %s", session)
	return 0
}

// listen opens what an attack could reach on the host.
func (b *battlefield) listen(t *testing.T) {
	t.Helper()
	var lc net.ListenConfig
	accept := func(network, address string) net.Addr {
		l, err := lc.Listen(t.Context(), network, address)
		if err != nil {
			return nil
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				b.reached.Add(1)
				_ = c.Close()
			}
		}()
		return l.Addr()
	}
	port := func(a net.Addr) int {
		if tcp, ok := a.(*net.TCPAddr); ok {
			return tcp.Port
		}
		return 9 // nobody listens there
	}
	b.tcp, b.tcp6 = port(accept("tcp4", "127.0.0.1:0")), port(accept("tcp6", "[::1]:0"))
	b.abstract = "zeph-" + filepath.Base(filepath.Dir(b.root))
	if accept("unix", "@"+b.abstract) == nil {
		t.Error("no abstract socket")
	}
	echo, err := lc.ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	if a, ok := echo.LocalAddr().(*net.UDPAddr); ok {
		b.udp = a.Port
	}
	go func() {
		buf := make([]byte, 64)
		for {
			n, from, err := echo.ReadFrom(buf)
			if err != nil {
				return
			}
			b.reached.Add(1)
			_, _ = echo.WriteTo(buf[:n], from)
		}
	}()
}

// sockets makes a folder's local sockets.
func (b *battlefield) sockets(t *testing.T, dir string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/socket", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: dir + "/datagram", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.reached.Add(1)
			_ = c.Close()
		}
	}()
	go func() {
		for buf := make([]byte, 64); ; {
			if _, _, err := d.ReadFrom(buf); err != nil {
				return
			}
			b.reached.Add(1)
		}
	}()
}

// try runs one row in folders of its own.
func (b *battlefield) try(t *testing.T, id string, r row, want string) {
	t.Helper()
	if want == "" {
		t.Fatal("the row has no answer for this column")
	}
	if want == "-" {
		return
	}
	out, here := filepath.Join(b.outside, id), filepath.Join(b.root, id)
	for _, d := range []string{out + "/empty", here + "/folder"} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		os.WriteFile(out+"/file", []byte("canary"), 0o600), os.WriteFile(here+"/file", []byte("mine"), 0o600),
		os.WriteFile(here+"/other", []byte("mine"), 0o600), os.Symlink(out, here+"/out"), os.Symlink(b.secret, here+"/secret"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToUpper(r.attack), "OUT/SOCKET") || strings.Contains(r.attack, "OUT/datagram") {
		b.sockets(t, out)
	}
	before, reached := snapshot(t, out), b.reached.Load()
	attack := r.attack
	if strings.Contains(attack, "ANCHOR") {
		attack = strings.ReplaceAll(attack, "ANCHOR", b.anchor(t))
	}
	args := strings.Fields(b.places(out, here).Replace(attack))
	cmd := b.command("")
	cmd.Argv, cmd.Dir, cmd.Network = append([]string{b.program}, args...), here, b.network
	result := b.runCommand(t, cmd)
	got := answer(t, result)
	switch {
	case want == undone:
		b.undone(t, got, result)
	case want == gap && got == worked:
		return
	case !slices.Contains(strings.Fields(want), got):
		t.Errorf("%s: %s, want %s", strings.Join(args, " "), got, want)
	}
	if b.col.level == LevelNone {
		return
	}
	if diff := cmp.Diff(before, snapshot(t, out)); diff != "" {
		t.Errorf("it changed what lies outside: %s", diff)
	}
	if b.reached.Load() != reached {
		t.Error("it reached somebody")
	}
}

// undone checks that an attack on the hooks left nothing behind, and puts
// everything in its place for the next.
func (b *battlefield) undone(t *testing.T, got string, out Outcome) {
	t.Helper()
	if got == worked && len(out.Restored) == 0 {
		t.Error("nobody is told")
	}
	git := filepath.Dir(b.hooks)
	if moved, err := filepath.Glob(b.root + "/hook-*/*/hooks"); err == nil && len(moved) == 1 {
		if err := errors.Join(os.RemoveAll(git), os.Rename(filepath.Dir(moved[0]), git)); err != nil {
			t.Error(err)
		}
	}
	list, err := os.ReadDir(b.hooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() != "pre-commit" && !strings.Contains(e.Name(), quarantine) {
			t.Errorf("%s is left", e.Name())
		}
	}
	if info, err := os.Stat(b.hooks + "/pre-commit"); err != nil || info.Mode() != 0o600 || readText(t, b.hooks+"/pre-commit") != "x" {
		t.Errorf("the hook is not what it was: %v, %v", info, err)
	}
}

// anchor is how a command names the anchor it runs under.
func (b *battlefield) anchor(t *testing.T) string {
	t.Helper()
	if b.col.level != LevelShared {
		return "1"
	}
	return strings.TrimSpace(b.run(t, "echo $PPID").Stdout.Text())
}

func (b *battlefield) places(out, here string) *strings.Replacer {
	return strings.NewReplacer(
		"OUT", out, "HERE", here, "SECRETS", b.secretDir, "SECRET", b.secret, "STATE", b.state, "HOOKS", b.hooks,
		"GIT", filepath.Dir(b.hooks), "ROOT", b.root, "SETUID", b.setuid, "ABSTRACT", b.abstract,
		"TCP6", strconv.Itoa(b.tcp6), "TCP", strconv.Itoa(b.tcp), "UDP", strconv.Itoa(b.udp),
		"SERVER", strconv.Itoa(os.Getpid()), "VICTIM", strconv.Itoa(b.victim.Process.Pid), "OTHER", strconv.Itoa(b.otherPID),
	)
}

// answer is the last line of what an attack said, or the signal it ended by.
func answer(tb testing.TB, out Outcome) string {
	tb.Helper()
	if out.Signal != "" {
		return out.Signal
	}
	if out.ExitCode != 0 {
		tb.Errorf("exit %d: %s", out.ExitCode, out.Combined.Text())
	}
	lines := strings.Split(strings.TrimSpace(out.Stdout.Text()), "\n")
	return lines[len(lines)-1]
}

// check looks for harm that shows only afterwards.
func (b *battlefield) check(t *testing.T) {
	t.Helper()
	if b.col.level == LevelNone {
		return
	}
	for f, want := range map[string]string{b.secret: "canary\n", b.secretDir + "/id": "canary\n", b.state + "/audit": "canary\n", b.hooks + "/pre-commit": "x"} {
		if got, err := os.ReadFile(f); err != nil || string(got) != want {
			t.Errorf("%s holds %q: %v", f, got, err)
		}
	}
	for what, pid := range map[string]int{"the bystander": b.victim.Process.Pid, "the other session's process": b.otherPID, "the server": os.Getpid()} {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		// The sandbox itself makes it 15 for a command that takes its time; the attack asks for 1.
		if n, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil || n != 20 && n != 15 {
			t.Errorf("%s has priority %d: %v", what, n, err)
		}
		var l unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l); err != nil || l.Max < 64 {
			t.Errorf("%s may open %d files: %v", what, l.Max, err)
		}
	}
	for _, ses := range b.sb.sessions {
		if ses.anchor.ended() {
			t.Error("an anchor is gone")
		}
	}
}

// snapshot describes a folder and what is in it.
func snapshot(tb testing.TB, dir string) []string {
	tb.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(p, &st)
		}
		if err != nil {
			return err
		}
		xattrs := make([]byte, 256)
		n, _ := unix.Llistxattr(p, xattrs)
		text := ""
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text = string(b)
		}
		out = append(out, fmt.Sprintf("%s %o %d:%d links %d changed %d %q %q",
			p, st.Mode, st.Uid, st.Gid, st.Nlink, st.Ctim.Nano(), xattrs[:max(n, 0)], text))
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}
