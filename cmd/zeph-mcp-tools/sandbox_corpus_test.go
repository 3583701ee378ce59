package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

// Reports about other tools' sandboxes, by their number, against a real server.
// Those that need what only the package can do stand there: SB-09 linked
// worktrees, SB-10, SB-19 and SB-20 refusals, SB-11 no litter, SB-23 the order
// of mounts, SB-33 sockets, in sandbox; those about the network, SB-39 and
// SB-40, in egress.
func TestSandboxCorpus(t *testing.T) {
	t.Parallel()
	w := connectByHand(t, "")
	ws := filepath.Join(w.base, "ws")
	for i, tt := range []struct{ name, needs, command, want string }{
		{"SB-01 a lock in shared memory", "python3", `python3 -c "import multiprocessing as m; l = m.Lock(); l.acquire(); print('held')"`, "held"},
		{"SB-03 a connected pair", "python3", `python3 -c "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1).decode())"`, "x"},
		{"SB-04 a thread that wakes a loop", "python3", `python3 -c "import asyncio; asyncio.run(asyncio.to_thread(print, 'awake'))"`, "awake"},
		{"SB-05 a child fed through a pair", "python3", `python3 -c "
import socket, subprocess
a, b = socket.socketpair()
p = subprocess.Popen(['cat'], stdin=b, stdout=subprocess.PIPE); b.close()
a.send(b'fed'); a.close()
print(p.communicate()[0].decode())"`, "fed"},
		{"SB-07 loopback in one run", "python3", `python3 -c "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('met')"`, "met"},
		{"SB-09 git add", "git", "git init -q r && touch r/f && git -C r add f && git -C r status --porcelain", "A  f"},
		{"SB-11 no repository, nothing left", "true", "mkdir bare && cd bare && true && ls -A", "(no output)"},
		{"SB-14 caches can be written", "true", `for d in "$GOCACHE" "$npm_config_cache" "$PIP_CACHE_DIR" "$YARN_CACHE_FOLDER" "$XDG_CACHE_HOME" "$XDG_STATE_HOME"; do mkdir -p "$d" && touch "$d/x" || echo "$d"; done; echo all`, "all"},
		{"SB-16 a pipe of make's in a /tmp of its own", "make", "mkfifo /tmp/GMfifo1 && printf 'all: a b\na b:\n\t@echo made\n' > Makefile && make -j4 | sort -u", "made"},
		{"SB-17 nothing leads to a proxy", "python3", `env | grep -ci _proxy=; python3 -c "
import socket
try: socket.create_connection(('192.0.2.1', 22))
except OSError as e: print(e.strerror)"`, "0\nNetwork is unreachable"},
		{"SB-32 no session bus", "true", "echo ${DBUS_SESSION_BUS_ADDRESS:-none}; ls -A /run | grep -v current-system | wc -l", "none\n0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exec.LookPath(tt.needs); err != nil {
				t.Skip(err)
			}
			dir := fmt.Sprintf("%s/%d", ws, i)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			text, _ := w.tool(100+i, "bash", map[string]any{"command": tt.command, "cwd": dir})
			if text, _, _ = strings.Cut(text, "\n[sandbox"); text != tt.want {
				t.Errorf("%q instead of %q", text, tt.want)
			}
		})
	}
	t.Run("SB-18 no way to ask for less", func(t *testing.T) {
		for i, arg := range []string{"dangerously_disable_sandbox", "sandbox", "unsandboxed", "sandbox_level", "sandbox_profile"} {
			text, _ := w.tool(200+i, "bash", map[string]any{"command": "touch MARK", arg: true})
			if !strings.Contains(text, "category: invalid_parameters") {
				t.Errorf("%s: %s", arg, text)
			}
		}
		// A profile only takes away.
		for i, name := range []any{"unconfined", "off", "none", "host", "full", true, ""} {
			text, _ := w.tool(220+i, "bash", map[string]any{"command": "touch MARK " + filepath.Dir(ws) + "/MARK", "profile": name})
			if !strings.Contains(text, "category: invalid_parameters") && !strings.Contains(text, "category: type_mismatch") && name != "" {
				t.Errorf("profile %q: %s", name, text)
			}
		}
		_ = os.Remove(ws + "/MARK") // of the last, which names none
		if _, err := os.Stat(filepath.Dir(ws) + "/MARK"); err == nil {
			t.Error("it ran outside")
		}
		if _, err := os.Stat(ws + "/MARK"); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("SB-33 a socket in the host's /tmp", func(t *testing.T) {
		dir, err := os.MkdirTemp("/tmp", "zeph-") //nolint:usetesting // it has to be the host's /tmp
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/s", Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if text, _ := w.tool(300, "bash", map[string]any{"command": "test -e " + dir + " || echo not there"}); text != "not there" {
			t.Error(text)
		}
	})
	t.Run("SB-43 a refusal names its rule", func(t *testing.T) {
		text, _ := w.tool(301, "write", map[string]any{"path": ".idea/x", "content": "x"})
		if !strings.Contains(text, ".idea") || !strings.Contains(text, "protected") {
			t.Error(text)
		}
	})
}

// SB-02: a pool of python's that is started by a server of forks needs local
// sockets. They are the operator's to allow; without them the failure is told.
func TestSandboxCorpusUnixSockets(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	const pool = "cat > p.py <<'E'\nimport multiprocessing as m\nfrom concurrent.futures import ProcessPoolExecutor\n" +
		"def f(x): return x + 1\nif __name__ == '__main__':\n    with ProcessPoolExecutor(2, mp_context=m.get_context('forkserver')) as p: print(list(p.map(f, [1])))\nE\npython3 p.py"
	w := connectByHand(t, "[tools.sandbox]\nunix_sockets = \"all\"\n")
	if text, _ := w.tool(2, "bash", map[string]any{"command": pool}); text != "[2]" {
		t.Error(text)
	}
	w = connectByHand(t, "")
	if text, got := w.tool(2, "bash", map[string]any{"command": pool}); got["exit_code"] == 0.0 || !strings.Contains(text, "Operation not permitted") {
		t.Error(text)
	}
}

// SB-25, SB-26: what deny_read says holds for commands that hide what they read
// and for the file tools; what it cannot hold stops the start.
func TestSandboxCorpusDenyRead(t *testing.T) {
	t.Parallel()
	base := workspacetest.Base(t)
	for _, d := range []string{"ws/private/deep", "ws/a/b", "home/vault/deep", "home/x/y"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	hidden := []string{"ws/private/f", "ws/private/deep/f", "ws/a/b/pass.kdbx", "home/vault/f", "home/vault/deep/f", "home/x/y/other.kdbx", "home/x/plain"}
	for _, f := range append(hidden, "ws/a/seen") {
		if err := os.WriteFile(filepath.Join(base, f), []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := connectIn(t, base, "[tools.file]\ndeny_read = [\"private/**\", \"**/*.kdbx\", \"~/vault/**\", \"~/**/*.kdbx\", \"~/x/plain\"]\n")
	for i, f := range append(hidden, "ws/a/seen") {
		path := filepath.Join(base, f)
		// The name is put together while it runs, so that nothing but the sandbox
		// can know it.
		text, _ := w.tool(2*i+2, "bash", map[string]any{"command": fmt.Sprintf("p=$(echo %s | rev | rev); cat \"$p\"", path)})
		if strings.Contains(text, "canary") != (f == "ws/a/seen") {
			t.Errorf("%s by a command: %s", f, text)
		}
		text, _ = w.tool(2*i+3, "read", map[string]any{"path": path})
		if strings.Contains(text, "canary") != (f == "ws/a/seen") {
			t.Errorf("%s by read: %s", f, text)
		}
	}
	for _, glob := range []string{"~/**.kdbx", "//**", "/", "~other/x", "[", ""} {
		path := filepath.Join(base, "bad.toml")
		if err := os.WriteFile(path, fmt.Appendf(nil, "[tools.file]\ndeny_read = [%q]\n", glob), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := start(t, base, "serve", "--config", path).CombinedOutput(); err == nil || !strings.Contains(string(b), "deny_read") {
			t.Errorf("%q was accepted: %v %s", glob, err, b)
		}
	}
}

// SB-29, SB-30: a workspace that arrives with everything that could run
// something runs nothing, whatever the server looks at.
func TestSandboxCorpusArrivals(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	base := workspacetest.Base(t)
	ws := filepath.Join(base, "ws")
	mark := filepath.Join(base, "MARK")
	evil := "touch " + mark
	arrive := exec.Command("bash", "-c", `mkdir -p ws && cd ws && git init -q . && echo x > f &&
for h in pre-commit post-checkout post-index-change fsmonitor-watchman; do printf '#!/bin/sh\n%s\n' "$E" > .git/hooks/$h; chmod +x .git/hooks/$h; done
printf '[core]\n\tfsmonitor = "%s"\n\tpager = "%s"\n[diff]\n\texternal = "%s"\n[filter "x"]\n\tclean = "%s"\n\tsmudge = "%s"\n[attr]\n\ttree = HEAD\n' "$E" "$E" "$E" "$E" "$E" >> .git/config
echo '* filter=x' > .gitattributes; echo "$E" > .envrc; mkdir .vscode
echo '{"tasks":[{"command":"'"$E"'","runOptions":{"runOn":"folderOpen"}}]}' > .vscode/tasks.json
echo '{"mcpServers":{"x":{"command":"sh","args":["-c","'"$E"'"]}}}' > .mcp.json; echo "$E" > .bashrc; echo "$E" > .profile`)
	arrive.Dir, arrive.Env = base, append(os.Environ(), "E="+evil, "GIT_CONFIG_GLOBAL=/dev/null")
	if b, err := arrive.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	w := connectIn(t, base, "")
	for i, c := range []struct {
		tool string
		args map[string]any
	}{
		{"status", map[string]any{}},
		{"read", map[string]any{"path": "f"}},
		{"list_directory", map[string]any{"path": "."}},
		{"grep", map[string]any{"pattern": "x"}},
		{"find_path", map[string]any{"pattern": "**"}},
		{"write", map[string]any{"path": "g", "content": "x"}},
		{"edit", map[string]any{"path": "g", "old_string": "x", "new_string": "y"}},
		{"bash", map[string]any{"command": "ls"}},
		{"bash", map[string]any{"command": "git status --porcelain | head -1"}}, // inside, where the mark cannot be made
	} {
		w.tool(i+2, c.tool, c.args)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("something of the workspace ran")
	}
	if b, err := os.ReadFile(ws + "/.git/config"); err != nil || !strings.Contains(string(b), "fsmonitor") {
		t.Errorf("what was there before was changed: %s %v", b, err)
	}
}
