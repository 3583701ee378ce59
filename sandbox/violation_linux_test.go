package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// attack runs one of the attacks below inside, as a program of its own.
func (w world) attack(tb testing.TB, name string, more ...string) Outcome {
	tb.Helper()
	return w.runCommand(tb, w.attacker(tb, name, more...))
}

// attacker is the command that attacks: this very test, copied to where it can
// be seen.
func (w world) attacker(tb testing.TB, name string, more ...string) Command {
	tb.Helper()
	copied := filepath.Join(w.root, "attacker")
	if _, err := os.Stat(copied); err != nil {
		self, err := os.ReadFile(os.Args[0])
		if err != nil {
			tb.Fatal(err)
		}
		part := copied + strings.ReplaceAll(tb.Name(), "/", "-") // tests beside this one do the same
		if err := errors.Join(os.WriteFile(part, self, 0o700), os.Rename(part, copied)); err != nil {
			tb.Fatal(err)
		}
	}
	cmd := w.command("")
	cmd.Argv = []string{copied, "-test.run=^TestAttack$"}
	cmd.Env = append(cmd.Env, "ZEPH_TEST_ATTACK="+name, "ZEPH_TEST_MORE="+strings.Join(more, " "))
	return cmd
}

// TestAttack is not a test: it is what other tests run inside.
func TestAttack(t *testing.T) {
	name := os.Getenv("ZEPH_TEST_ATTACK")
	if name == "" {
		t.Skip("only runs when another test starts it")
	}
	attacks[name](strings.Fields(os.Getenv("ZEPH_TEST_MORE")))
	os.Exit(0)
}

// attacks are tried inside; what they say is compared outside.
var attacks = map[string]func(args []string){
	"memory": eatMemory,
	"files":  eatFiles,
	"calls": func(args []string) {
		for _, a := range args {
			var n [4]uintptr
			for i, f := range strings.Split(a, ",") {
				v, _ := strconv.ParseUint(f, 0, 64)
				n[i] = uintptr(v)
			}
			_, _, errno := unix.Syscall(n[0], n[1], n[2], n[3])
			fmt.Println(unix.ErrnoName(errno))
		}
	},
}

func calls(list ...[]uint64) []string {
	var out []string
	for _, l := range list {
		var f []string
		for _, n := range l {
			f = append(f, strconv.FormatUint(n, 10))
		}
		out = append(out, strings.Join(f, ","))
	}
	return out
}

// Every call the filter denies is told, exactly, with who made it.
func TestDeniedCallsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for _, tt := range []struct {
		call         []uint64
		op, target   string
		hintContains string
	}{
		{[]uint64{unix.SYS_PTRACE, unix.PTRACE_TRACEME}, "ptrace", "", "debuggers"},
		{[]uint64{unix.SYS_PROCESS_VM_READV, 1}, "process_vm_readv", "", "debuggers"},
		{[]uint64{unix.SYS_UNSHARE, unix.CLONE_NEWUSER | unix.CLONE_NEWNET}, "unshare", "user,net", "nested"},
		{[]uint64{unix.SYS_CLONE, unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, "clone", "user", "nested"},
		{[]uint64{unix.SYS_SETNS, 0}, "setns", "", "nested"},
		{[]uint64{unix.SYS_MOUNT}, "mount", "", "mounted"},
		{[]uint64{unix.SYS_KEYCTL, 1}, "keyctl", "", "keyrings"},
		{[]uint64{unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM}, "socket", "AF_UNIX", "127.0.0.1"},
		{[]uint64{unix.SYS_SOCKET, 1<<32 | unix.AF_VSOCK, unix.SOCK_STREAM}, "socket", "family 40", "IPv4"},
		{[]uint64{unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, "socketpair", "type 2", "pipe"},
		{[]uint64{unix.SYS_IOCTL, 0, 1<<32 | unix.TIOCSTI}, "ioctl", "0x5412", "closed"},
		{[]uint64{unix.SYS_PERSONALITY, 8}, "personality", "", "closed"},
		{[]uint64{unix.SYS_BPF}, "bpf", "", "closed"},
	} {
		t.Run(tt.op+tt.target, func(t *testing.T) {
			t.Parallel()
			out := w.attack(t, "calls", calls(tt.call, tt.call)...)
			if out.Stdout.Text() != "EPERM\nEPERM\n" || out.ExitCode != 0 {
				t.Fatalf("%d %s", out.ExitCode, out.Combined.Text())
			}
			if len(out.Violations) != 1 {
				t.Fatalf("%+v", out.Violations)
			}
			got := out.Violations[0]
			if !strings.HasPrefix(got.By, "attacker[") || !strings.Contains(got.Hint, tt.hintContains) {
				t.Errorf("%+v", got)
			}
			got.By, got.Hint = "", ""
			want := Violation{
				Kind: call.ViolationSyscall, Op: tt.op, Target: tt.target, Rule: "syscall." + tt.op, Source: call.SourceExact, Count: 2,
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// What other programs find missing, and what is allowed, is no violation; of a
// flood of denials only so many are kept; and each command has its own.
func TestDeniedCallsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	out := w.attack(t, "calls", calls([]uint64{unix.SYS_CLONE3}, []uint64{unix.SYS_IO_URING_SETUP, 1}, []uint64{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM})...)
	if out.Stdout.Text() != "ENOSYS\nENOSYS\n\n" || out.Violations != nil {
		t.Errorf("%+v %s", out.Violations, out.Stdout.Text())
	}
	var many [][]uint64
	for family := range uint64(60) {
		many = append(many, []uint64{unix.SYS_SOCKET, family, unix.SOCK_STREAM})
	}
	for range 500 {
		many = append(many, []uint64{unix.SYS_KEYCTL, 1}, []uint64{unix.SYS_UNSHARE, 0xdead0000 | unix.CLONE_NEWNET})
	}
	both := make(chan Outcome, 2)
	for _, list := range [][][]uint64{many, {{unix.SYS_PTRACE}}} {
		cmd := w.attacker(t, "calls", calls(list...)...)
		go func() {
			out, err := w.sb.Run(t.Context(), cmd)
			if err != nil {
				t.Error(err)
			}
			both <- out
		}()
	}
	for range 2 {
		out := <-both
		n := 0
		for _, v := range out.Violations {
			if v.Op == "ptrace" {
				n++
			}
		}
		if len(out.Violations) != maxViolations && (len(out.Violations) != 1 || n != 1) {
			t.Errorf("%d violations: %+v", len(out.Violations), out.Violations)
		}
	}
}

// A look-up of a name tries a local socket and does without; that is not worth
// telling.
func TestQuietDenials(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	socket := calls([]uint64{unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM})
	cmd := w.attacker(t, "calls", socket...)
	cmd.Argv = []string{"bash", "-c", strings.Join(cmd.Argv, " ") + " > /dev/null; echo fine"}
	if out := w.runCommand(t, cmd); out.Violations != nil {
		t.Errorf("%+v", out.Violations)
	}
	cmd.Argv[2] += "; echo socket: Operation not permitted >&2"
	if out := w.runCommand(t, cmd); len(out.Violations) != 1 {
		t.Errorf("%+v", out.Violations)
	}
}

// The names are those of the calls, and none is missing.
func TestCallNames(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint32]string{
		unix.SYS_PTRACE: "ptrace", unix.SYS_UNSHARE: "unshare", unix.SYS_LOOKUP_DCOOKIE: "lookup_dcookie", 9999: "system call 9999",
	} {
		if got := stage.CallName(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
	if got := namespaces(unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP); got != "pid,cgroup" {
		t.Error(got)
	}
	hints := []string{}
	for _, op := range []string{"kcmp", "pivot_root", "setns", "clone", "add_key", "socket", "socketpair", "ioctl", "reboot"} {
		_, hint := explainCall(op, 0)
		hints = append(hints, hint)
	}
	if slices.Contains(hints, "") {
		t.Errorf("%q", hints)
	}
}

// What is only known from what programs print says so, and is told whatever
// the command's exit code.
func TestInferredIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for script, want := range map[string]Violation{
		"touch /etc/zeph-new; true":                   {Op: "write", Target: "/etc/zeph-new", Rule: "fs.write", Count: 1},
		"touch ../outside/new | cat":                  {Op: "write", Target: w.outside + "/new", Rule: "fs.write", Count: 1},
		"cat " + w.secret + " " + w.secret + "; true": {Op: "read", Target: w.secret, Rule: "fs.secret", Count: 2},
		"echo x > .git/hooks/pre-commit; true":        {Op: "write", Target: ".git/hooks/pre-commit", Rule: "fs.protected", Count: 1},
		"touch f; chmod 0 f; ./f; cat f || ./f; true": {},
	} {
		out := w.run(t, script)
		if want.Op == "" {
			if out.Violations != nil {
				t.Errorf("%s: %+v", script, out.Violations)
			}
			continue
		}
		if !filepath.IsAbs(want.Target) {
			want.Target = filepath.Join(w.root, want.Target)
		}
		want.Kind, want.Source = call.ViolationFS, call.SourceInferred
		if len(out.Violations) != 1 {
			t.Errorf("%s: %+v, %s", script, out.Violations, out.Combined.Text())
			continue
		}
		got := out.Violations[0]
		got.Hint = ""
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", script, d)
		}
	}
}
