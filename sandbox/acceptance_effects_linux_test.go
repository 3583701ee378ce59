package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// The rows of the acceptance table that show in what is left, not in an answer.

// confined are the columns with walls.
func confined() []column {
	return slices.DeleteFunc(columns(), func(c column) bool { return c.level == LevelNone })
}

// each runs a test in a world of each column.
func each(t *testing.T, cols []column, change func(*Config, *Policy), test func(*testing.T, *battlefield)) {
	t.Helper()
	program := attackProgram(t)
	for _, col := range cols {
		t.Run(col.name, func(t *testing.T) {
			t.Parallel()
			test(t, newBattlefield(t, program, col, change))
		})
	}
}

// A live command is looked at from outside: what it may do, what it holds.
func TestAcceptancePosture(t *testing.T) {
	t.Parallel()
	each(t, confined(), nil, func(t *testing.T, b *battlefield) {
		t.Helper()
		b.until(t, b.startAttack(t, "posture", b.root, "wait"), "stands")
		pid := b.find(t, "posture")
		proc := "/proc/" + strconv.Itoa(pid)
		status := readText(t, proc+"/status")
		bound := "CapBnd:\t0000000000000000"
		if b.col.level == LevelShared && os.Getuid() != 0 {
			bound = "NoNewPrivs:\t1" // the set cannot be emptied without a namespace; nothing is gained from it
		}
		for _, want := range []string{
			"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
			bound, "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "TracerPid:\t0",
		} {
			if !strings.Contains(status, "\n"+want+"\n") {
				t.Errorf("no %q in\n%s", want, status)
			}
		}
		if files := links(t, proc+"/fd"); len(files) != 3 || files["0"] != "/dev/null" ||
			!strings.HasPrefix(files["1"], "pipe:") || !strings.HasPrefix(files["2"], "pipe:") {
			t.Errorf("open files: %q", files)
		}
		if got := strings.TrimSpace(readText(t, proc+"/oom_score_adj")); got != "500" {
			t.Errorf("out of memory score %s", got)
		}
		if env := readText(t, proc+"/environ"); strings.Contains(env, "GOMAXPROCS") || !strings.HasPrefix(env, "PATH=") {
			t.Errorf("environment %q", env)
		}
		if n, err := unix.Getsid(pid); err != nil || n != pid {
			t.Errorf("session %d of process %d: %v", n, pid, err)
		}
		b.namespaces(t, proc)
		for _, ses := range b.sb.sessions {
			b.anchorPosture(t, ses.anchor.pid)
		}
	})
}

// namespaces checks that a process shares none with the server.
func (b *battlefield) namespaces(t *testing.T, proc string) {
	t.Helper()
	own := links(t, "/proc/self/ns")
	for name, is := range links(t, proc+"/ns") {
		want := slices.Contains([]string{"user", "mnt", "pid", "net", "ipc", "uts", "pid_for_children"}, name) && b.col.level == LevelFull
		if (is != own[name]) != want {
			t.Errorf("namespace %s is %s, the server's is %s", name, is, own[name])
		}
	}
}

// anchorPosture checks what a session's first process shows of itself. What
// belongs to a process that is not dumpable belongs to root.
func (b *battlefield) anchorPosture(t *testing.T, pid int) {
	t.Helper()
	proc := "/proc/" + strconv.Itoa(pid)
	info, err := os.Stat(proc + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 {
		t.Errorf("the anchor is dumpable: %+v", info.Sys())
	}
	if _, err := os.ReadFile(proc + "/environ"); os.Getuid() != 0 && !os.IsPermission(err) {
		t.Errorf("the anchor's environment can be read: %v", err)
	}
	if status := readText(t, proc+"/status"); !strings.Contains(status, "\nSeccomp:\t2\n") {
		t.Errorf("the anchor calls what it likes:\n%s", status)
	}
}

func readText(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// links reads a folder of links.
func links(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range list {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			out[e.Name()] = to
		}
	}
	return out
}

// A daemon as they are made survives neither the end of the command that made
// it, nor a time limit, nor a cancelled call.
func TestAcceptanceDaemon(t *testing.T) {
	t.Parallel()
	each(t, columns(), nil, func(t *testing.T, b *battlefield) {
		t.Helper()
		for name, tt := range map[string]struct {
			attack string
			end    func(*Run)
		}{
			"left behind": {"daemon", func(*Run) {}},
			"timed out":   {"daemon-wait", func(*Run) {}},
			"cancelled":   {"daemon-wait", (*Run).Stop},
		} {
			cmd := b.command("")
			mark := "DAEMON=" + name + b.root
			cmd.Argv, cmd.Env = []string{b.program, tt.attack}, append(cmd.Env, mark)
			cmd.Grace = 100 * time.Millisecond
			if name == "timed out" {
				cmd.Timeout = time.Second
			}
			r := b.start(t, cmd)
			if name == "cancelled" {
				b.until(t, r, "stands")
				if n := sleepers(t, mark); n != 2 {
					t.Errorf("%s: %d processes stand", name, n)
				}
			}
			tt.end(r)
			out, err := r.Wait()
			if err != nil || out.Survivors != 0 || out.Killed == 0 || out.TimedOut != (name == "timed out") || out.Cancelled != (name == "cancelled") {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
			if n := sleepers(t, mark); n != 0 {
				t.Errorf("%s: %d survivors", name, n)
			}
		}
	})
}

// What one command serves on loopback the next reaches, and nobody outside, nor
// another session.
func TestAcceptanceLoopback(t *testing.T) {
	t.Parallel()
	each(t, confined(), nil, func(t *testing.T, b *battlefield) {
		t.Helper()
		if b.col.level == LevelShared {
			cmd := b.command("")
			cmd.Argv = []string{b.program, "serve"}
			if out := b.runCommand(t, cmd); !slices.Contains(strings.Fields(out.Stdout.Text()), "EACCES") {
				t.Errorf("a server without a loopback of its own: %+v", out)
			}
			return
		}
		r := b.startAttack(t, "s", b.root, "serve")
		port := ""
		for port == "" {
			port, _ = r.Last()
		}
		for _, tt := range []struct{ session, want string }{{"s", worked}, {"other", "ECONNREFUSED"}} {
			cmd := b.command("")
			cmd.Session, cmd.Argv = tt.session, []string{b.program, "tcp", "127.0.0.1", port}
			if got := answer(t, b.runCommand(t, cmd)); got != tt.want {
				t.Errorf("session %s: %s", tt.session, got)
			}
		}
	})
}

// What would have something run later outside is detected, undone and told.
func TestAcceptanceDetected(t *testing.T) {
	t.Parallel()
	names := []string{".git/config", ".git/hooks", ".mcp.json", ".envrc", ".vscode", ".idea", ".claude", ".husky", "sub/.git/config"}
	protect := func(_ *Config, p *Policy) {
		root := p.Roots[0]
		p.LookReadOnly = func() []string { return present(root, names...) }
	}
	each(t, confined(), protect, func(t *testing.T, b *battlefield) {
		t.Helper()
		if out := b.run(t, "git init -q --template= . && git config user.name me && git remote add origin https://example.com/x"); out.ExitCode != 0 || out.Restored != nil {
			t.Fatalf("%q %s", out.Restored, out.Combined.Text())
		}
		good := readText(t, b.root+"/.git/config")
		for _, key := range []string{
			"core.hooksPath", "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy", "core.worktree",
			"core.attributesFile", "core.excludesFile", "core.alternateRefsCommand", "alias.st", "filter.x.clean", "filter.x.smudge", "filter.x.process",
			"diff.x.command", "diff.x.textconv", "diff.external", "merge.x.driver", "credential.helper", "credential.https://example.com.helper",
			"include.path", "includeIf.gitdir:/.path", "url.ext::x.insteadOf", "gpg.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand",
			"remote.origin.vcs", "remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.proxy", "submodule.x.update",
			"protocol.ext.allow", "sequence.editor", "pager.log", "browser.x.cmd", "difftool.x.cmd", "mergetool.x.cmd", "interactive.diffFilter",
			"trailer.x.command", "uploadpack.packObjectsHook", "init.templateDir", "commit.template", "http.proxy", "http.sslVerify",
			"sendemail.smtpServer", "instaweb.httpd", "man.x.cmd", "guitool.x.cmd", "web.browser", "tar.x.command",
		} {
			out := b.run(t, "git config "+key+" evil")
			if len(out.Restored) != 1 || !strings.Contains(out.Restored[0], "put back") {
				t.Errorf("%s: %q %s", key, out.Restored, out.Combined.Text())
			}
			if got := readText(t, b.root+"/.git/config"); got != good {
				t.Errorf("%s left %s", key, got)
			}
		}
		for _, name := range []string{".mcp.json", ".envrc", ".vscode/tasks.json", ".idea/workspace.xml", ".claude/settings.json", ".husky/pre-commit"} {
			out := b.run(t, fmt.Sprintf("mkdir -p $(dirname %s) && echo evil > %[1]s", name))
			if len(out.Restored) != 1 || !strings.Contains(out.Restored[0], "set aside") {
				t.Errorf("%s: %q %s", name, out.Restored, out.Combined.Text())
			}
			if _, err := os.Lstat(filepath.Join(b.root, name)); !os.IsNotExist(err) {
				t.Errorf("%s is in force: %v", name, err)
			}
		}
	})
}

// Nothing of the sandbox's own is found in a workspace, during a command or
// after it: no placeholder for a protected name, no probe, no mount point (SB-11).
func TestAcceptanceLitter(t *testing.T) {
	t.Parallel()
	protect := func(_ *Config, p *Policy) {
		root := p.Roots[0]
		p.LookReadOnly = func() []string { return present(root, ".git/hooks", ".git/config", ".envrc", ".vscode", ".mcp.json") }
		p.Secrets = append(p.Secrets, root+"/.env", root+"/no/such")
	}
	each(t, confined(), protect, func(t *testing.T, b *battlefield) {
		t.Helper()
		before := snapshot(t, b.root)
		during := b.run(t, "find . | sort")
		b.run(t, "cat .env .envrc .git/config no/such 2>/dev/null; true")
		b.run(t, "exit 3")
		if diff := cmp.Diff(before, snapshot(t, b.root)); diff != "" {
			t.Error(diff)
		}
		if got := strings.Fields(during.Stdout.Text()); !slices.Equal(got, []string{".", "./.git", "./.git/hooks", "./.git/hooks/pre-commit"}) {
			t.Errorf("a command sees %q", got)
		}
	})
}
