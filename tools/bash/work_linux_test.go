package bash_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// What developers do all day has to work inside, with the environment that
// commands really get. A check whose tool is not on this machine is skipped:
// first it is asked for outside.
type work struct {
	name   string
	needs  string // a command that succeeds where the tools are there
	script string
	want   string // what is printed at the end, when it matters
}

const identity = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null; "

func shellWork() []work {
	const git = "git --version"
	start := identity + "git init -q -b main . && echo one > f && git add f && git commit -qm one && "
	return []work{
		{"git commit", git, start + "echo two >> f && git commit -qam two && git log --oneline | wc -l", "2"},
		{"git branch and merge", git, start + "git checkout -qb side && echo two > g && git add g && git commit -qm two && git checkout -q main && git merge -q side && ls", "f\ng"},
		{"git rebase", git, start + "git checkout -qb side && echo two > g && git add g && git commit -qm two && git checkout -q main && echo three > h && git add h && git commit -qm three && git checkout -q side && git rebase -q main && git log --oneline | wc -l", "3"},
		{"git stash", git, start + "echo two > f && git stash -q && cat f && git stash pop -q && cat f", "one\ntwo"},
		{"git gc", git, start + "git gc -q && git fsck", ""},
		{"git worktree", git, start + "git worktree add -q wt && cd wt && echo two > f && git commit -qam two && cd .. && git log --oneline wt -- | wc -l && git worktree remove wt && git branch -D wt -q", "2"},
		{"git push with upstream", git, start + "git init -q -b main --bare remote.git && git remote add origin ./remote.git && git push -qu origin main && git config branch.main.remote && git -C remote.git log --oneline | wc -l", "origin\n1"},
		{"git clone and pull", git, start + "git clone -q . copy && echo two > f && git commit -qam two && cd copy && git pull -q && cat f", "two"},
		{"git submodule", git, start + "git init -q other && git -C other commit -q --allow-empty -m x && git -c protocol.file.allow=always submodule add -q ./other sub && git commit -qm sub && git submodule status | wc -l", "1"},
		{"git tag and describe", git, start + "git tag -am v1 v1 && git describe", "v1"},
		{"gcc", "gcc --version", `printf '#include <stdio.h>\nint main(){puts("built");}' > a.c && gcc -O1 a.c -o a && ./a`, "built"},
		{"make in parallel", "make --version && gcc --version", `printf 'int f(){return 1;}' > a.c; printf 'int f();int main(){return !f();}' > b.c; printf 'p: a.o b.o\n\tcc -o p a.o b.o\n' > Makefile && make -s -j4 && ./p && echo linked`, "linked"},
		{"a pipeline of many", "true", "seq 1000 | sort -R | sort -n | tail -1", "1000"},
		{"flock", "flock --version", "flock lock -c 'echo held'", "held"},
		{"a lock held by another", "flock --version", "flock lock sleep 5 & sleep 0.2; flock -n lock true || echo busy; kill %1", "busy"},
		{"a named pipe", "true", "mkfifo p && (echo through > p &) && cat p", "through"},
		{"a move between folders", "true", "mkdir a b && echo x > a/f && mv a/f b/ && ln b/f b/g && cat b/g", "x"},
		{"an archive", "tar --version", "mkdir d && echo x > d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/f", "x"},
		{"a terminal", "script --version", `script -qec 'test -t 1 && tty | grep -o /dev/pts' /dev/null | tr -d '\r'`, "/dev/pts"},
		{"temporary files", "true", "f=$(mktemp) && echo x > $f && cat $f && mktemp -d > /dev/null", "x"},
		{"devices", "true", "head -c4 /dev/urandom | wc -c; echo x > /dev/null; head -c1 /dev/zero | wc -c; ! echo x > /dev/full", "4\n1"},
		{"processes", "ps --version", "sleep 30 & ps -p $! > /dev/null && kill $! && ! wait $! && echo ended", "ended"},
		{"a time limit of its own", "timeout --version", "timeout 0.1 sleep 5; echo $?", "124"},
		{"here documents and substitution", "true", "cat <<E; diff <(echo a) <(echo a) && echo same\nx\nE", "x\nsame"},
		{"a key pair", "command -v ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -f key && test -s key.pub && echo made", "made"},
		{"sqlite", "sqlite3 --version", "sqlite3 db 'pragma journal_mode=wal; create table t(x); insert into t values(1); select x from t'", "wal\n1"},
		{"perl", "perl -v", `perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(Listen=>1,LocalAddr=>"127.0.0.1")or die; print $l->sockport>0'`, "1"},
		{"background and wait", "true", "for i in 1 2 3; do (echo $i > f$i) & done; wait; cat f?", "1\n2\n3"},
	}
}

func languageWork() []work {
	const py, js = "python3 --version", "node --version"
	return []work{
		{"python multiprocessing", py, python(`
import multiprocessing as m
def f(x): return x*x
if __name__ == "__main__":
    with m.Pool(2) as p: print(sum(p.map(f, range(5))))
    l = m.Lock(); l.acquire(); l.release()
    q = m.Queue(); q.put(1); print(q.get())`), "30\n1"},
		{"python shared memory", py, python(`
from multiprocessing import shared_memory
s = shared_memory.SharedMemory(create=True, size=4); s.buf[0] = 7
t = shared_memory.SharedMemory(name=s.name); print(t.buf[0]); t.close(); s.close(); s.unlink()`), "7"},
		{"python process pool", py, python(`
from concurrent.futures import ProcessPoolExecutor
def f(x): return x+1
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as p: print(list(p.map(f, [1,2])))`), "[2, 3]"},
		{"python asyncio", py, python(`
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("echo", "sub", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode().strip())
    s = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname()); print(await r.read())
    await asyncio.get_running_loop().run_in_executor(None, print, "thread")
asyncio.run(main())`), "sub\nb''\nthread"},
		{"python socket pair", py, python(`
import socket
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1)); a.sendall(b"y"); print(b.recv(1))`), "b'x'\nb'y'"},
		{"python sqlite", py, python(`
import sqlite3
c = sqlite3.connect("db"); print(c.execute("pragma journal_mode=wal").fetchone()[0])
c.execute("create table t(x)"); c.execute("insert into t values(1)"); c.commit()
print(sqlite3.connect("db").execute("select x from t").fetchone()[0])`), "wal\n1"},
		{"python terminal", py, python(`
import os, pty
pid, fd = pty.fork()
if pid == 0: os.execlp("tty", "tty")
print(os.read(fd, 100).decode().strip().startswith("/dev/pts/"))`), "True"},
		{"python virtual environment", "python3 -m venv --help", "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'", "True"},
		{"python lock file", py, python(`
import fcntl
f = open("l", "w"); fcntl.flock(f, fcntl.LOCK_EX); print("locked")`), "locked"},
		{"node server and client", js, node(`
const http = require("http");
const s = http.createServer((q, r) => r.end("served")).listen(0, "127.0.0.1", () =>
  http.get({port: s.address().port}, r => r.on("data", d => console.log(String(d))).on("end", () => s.close())));`), "served"},
		{"node child", js, node(`console.log(require("child_process").execFileSync("echo", ["child"]).toString().trim())`), "child"},
		{"node forked child", js, node(`
const {fork} = require("child_process");
if (process.send) { process.send("hello"); } else fork(__filename).on("message", m => console.log(m));`), "hello"},
		{"node worker", js, node(`
const {Worker, isMainThread, parentPort} = require("worker_threads");
if (isMainThread) new Worker(__filename).on("message", m => console.log(m)); else parentPort.postMessage("worker");`), "worker"},
		{"node watching", js, node(`
const fs = require("fs"); fs.mkdirSync("w");
const w = fs.watch("w", (e, f) => { console.log(f); w.close(); }); setTimeout(() => fs.writeFileSync("w/x", ""), 50);`), "x"},
		{"npm without a network", "npm --version", `mkdir -p dep && echo '{"name":"dep","version":"1.0.0"}' > dep/package.json && echo '{"name":"a","version":"1.0.0","scripts":{"t":"echo ran"}}' > package.json && npm install --offline --no-audit --no-fund --silent ./dep && npm run -s t`, "ran"},
	}
}

func python(text string) string {
	return "cat > t.py <<'END'\n" + strings.TrimSpace(text) + "\nEND\npython3 t.py"
}

func node(text string) string {
	return "cat > t.js <<'END'\n" + strings.TrimSpace(text) + "\nEND\nnode t.js"
}

func goWork() []work {
	const program = `printf 'module x\ngo 1.22\n' > go.mod
printf 'package main\nimport "fmt"\nfunc add(a, b int) int { return a + b }\nfunc main() { fmt.Println(add(1, 2)) }\n' > x.go
printf 'package main\nimport ("testing"; "net"; "os")\nfunc TestAdd(t *testing.T) { c := make(chan int); go func() { c <- add(1, 2) }(); if <-c != 3 { t.Fatal() }
l, err := net.Listen("tcp", "127.0.0.1:0"); if err != nil { t.Fatal(err) }; l.Close(); if err := os.WriteFile(t.TempDir()+"/f", nil, 0o600); err != nil { t.Fatal(err) } }\n' > x_test.go
export GOFLAGS=-mod=mod GOTOOLCHAIN=local; `
	const tool = "go version"
	return []work{
		{"go build and run", tool, program + "go build -o x . && ./x", "3"},
		{"go vet and test", tool, program + "go vet . && go test . | cut -c1-2", "ok"},
		{"go test with the race detector", "go version && gcc --version", program + "go test -race . | cut -c1-2", "ok"},
	}
}

func (w *world) does(t *testing.T, jobs []work) {
	t.Helper()
	for _, job := range jobs {
		t.Run(job.name, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command("bash", "-c", job.needs).CombinedOutput(); err != nil {
				t.Skipf("not on this machine: %s: %v %s", job.needs, err, out)
			}
			dir := strings.ReplaceAll(job.name, " ", "-")
			if err := os.Mkdir(filepath.Join(w.root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
			res, got := w.must(t, "bash", map[string]any{"command": job.script, "cwd": dir, "timeout_ms": 300_000})
			said, _ := got["stdout"].(string)
			if got["exit_code"] != 0.0 || job.want != "" && strings.TrimSpace(said) != job.want {
				t.Errorf("%s\nwant %q, got\n%s", job.script, job.want, res.Text)
			}
			if restored, ok := got["restored"]; ok {
				t.Errorf("it undid what was fine: %v", restored)
			}
		})
	}
}

func TestWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	w.does(t, shellWork())
}

func TestWorkInLanguages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	w.does(t, languageWork())
}

// Building the standard library takes half a minute, so that this test keeps a
// cache of its own from run to run.
func TestWorkInGo(t *testing.T) {
	t.Parallel()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	kept := filepath.Join(cmp.Or(os.Getenv("GOCACHE"), user), "zeph-mcp-tools-test")
	w := newWorld(t, nil, func(p *sandbox.Policy) { p.CacheDir = kept })
	w.need(t)
	w.does(t, goWork())
}

// What one call serves the next one reaches.
func TestWorkAcrossCalls(t *testing.T) {
	t.Parallel()
	if err := exec.Command("python3", "--version").Run(); err != nil {
		t.Skip("no python3:", err)
	}
	w := newWorld(t, nil)
	w.need(t)
	w.must(t, "bash", map[string]any{"command": "echo page > page; python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\",0)); print(s.getsockname()[1])' > port"})
	res, got := w.must(t, "bash", map[string]any{"command": "exec python3 -m http.server --bind 127.0.0.1 $(cat port)", "background": true})
	if got["running"] != true {
		t.Fatal(res.Text)
	}
	fetch := "python3 - <<'E'\nimport urllib.request, time\nfor i in range(200):\n    try: print(urllib.request.urlopen('http://127.0.0.1:%s/page' % open('port').read().strip()).read().decode()); break\n    except OSError: time.sleep(0.05)\nE"
	if res, _ = w.must(t, "bash", map[string]any{"command": fetch}); res.Text != "page" {
		t.Error(res.Text)
	}
	w.must(t, "bash_stop", map[string]any{"run_id": got["run_id"]})
}

// What does not work inside, as docs/inside.md says. When one of these begins
// to work, that page is to be changed.
func TestWorkThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	for _, tt := range []struct{ name, needs, script, says string }{
		{"a python manager", "python3 --version", python("import multiprocessing as m\nif __name__ == '__main__': m.Manager()"), "Operation not permitted"},
		{"a node server on a path", "node --version", node(`require("net").createServer().listen("s")`), "EPERM"},
		{"strace", "strace -V", "strace -o /dev/null true", "Operation not permitted"},
		{"gdb", "gdb --version", "gdb -batch -ex run true 2>&1 | grep -i 'not permitted' >&2; false", "not permitted"},
		{"a sandbox inside", "bwrap --version", "bwrap --ro-bind / / true", "ermi"},
		{"a namespace", "unshare --version", "unshare -r true", "Operation not permitted"},
		{"the network", "true", "exec 3<>/dev/tcp/192.0.2.1/80", "unreachable"},
		{"another user's file", "true", "touch f && chown 12345 f", "changing ownership"},
		{"a low port", "python3 --version", "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 80))'", "Permission denied"},
		{"a file outside", "true", "touch /etc/x", "Read-only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := exec.Command("bash", "-c", tt.needs).Run(); err != nil {
				t.Skipf("not on this machine: %s: %v", tt.needs, err)
			}
			dir := strings.ReplaceAll(tt.name, " ", "-")
			if err := os.Mkdir(filepath.Join(w.root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
			res, got := w.must(t, "bash", map[string]any{"command": tt.script, "cwd": dir})
			if said, _ := got["stderr"].(string); got["exit_code"] == 0.0 || !strings.Contains(said, tt.says) {
				t.Errorf("want %q:\n%s", tt.says, res.Text)
			}
		})
	}
}
