package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

// wire is a client that speaks MCP by hand, so that it can also do what no good
// client does.
type wire struct {
	t    *testing.T
	base string
	pid  int
	in   io.WriteCloser

	mu      sync.Mutex
	changed *sync.Cond
	answers map[int]map[string]any
	notes   []map[string]any
	closed  bool
	wait    func() error
}

// connectByHand starts a server with a configuration and says hello.
func connectByHand(t *testing.T, config string) *wire {
	t.Helper()
	return connectIn(t, workspacetest.Base(t), config)
}

// connectIn is connectByHand with folders that are there already.
func connectIn(t *testing.T, base, config string) *wire {
	t.Helper()
	args := []string{"serve"}
	if config != "" {
		path := filepath.Join(base, "config.toml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	cmd := start(t, base, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, base: base, pid: cmd.Process.Pid, in: in, answers: map[int]map[string]any{}, wait: sync.OnceValue(cmd.Wait)}
	w.changed = sync.NewCond(&w.mu)
	go w.listen(out)
	t.Cleanup(func() {
		_ = in.Close()
		if err := w.wait(); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	w.send(1, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "hand", "version": "1"},
	})
	w.answer(1)
	return w
}

func (w *wire) listen(out io.Reader) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		var m map[string]any
		if len(line) > 0 && json.Unmarshal(line, &m) != nil {
			w.t.Errorf("not a message: %q", line)
		}
		w.mu.Lock()
		if id, ok := m["id"].(float64); ok {
			w.answers[int(id)] = m
		} else if m != nil {
			w.notes = append(w.notes, m)
		}
		w.closed = err != nil
		w.changed.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// send sends a request, or with id 0 a notification.
func (w *wire) send(id int, method string, params map[string]any) {
	w.t.Helper()
	m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id > 0 {
		m["id"] = id
	}
	b, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.in.Write(append(b, '\n')); err != nil {
		w.t.Error(err)
	}
}

// answer waits for the answer to a request.
func (w *wire) answer(id int) map[string]any {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.answers[id] == nil {
		if w.closed {
			w.t.Fatalf("the server ended before it answered %d", id)
		}
		w.changed.Wait()
	}
	return w.answers[id]
}

// tool calls a tool and waits: its text and its structure.
func (w *wire) tool(id int, name string, args map[string]any) (string, map[string]any) {
	w.t.Helper()
	w.send(id, "tools/call", map[string]any{"name": name, "arguments": args, "_meta": map[string]any{"progressToken": id}})
	res, _ := w.answer(id)["result"].(map[string]any)
	content, _ := res["content"].([]any)
	if len(content) == 0 {
		w.t.Fatalf("%s %v: %v", name, args, w.answer(id))
	}
	text, _ := content[0].(map[string]any)["text"].(string)
	structured, _ := res["structuredContent"].(map[string]any)
	return text, structured
}

// peak is the most memory the server ever had, in bytes.
func (w *wire) peak() int64 {
	w.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			return kb << 10
		}
	}
	w.t.Fatal("no VmHWM")
	return 0
}

// Reports about other tools' processes that need a real server and a client
// beside it.
func TestBugCorpus(t *testing.T) {
	t.Parallel()
	t.Run("PR-08 a cancelled call", func(t *testing.T) {
		t.Parallel()
		w := connectByHand(t, "")
		mark := fmt.Sprintf("4%07d1", os.Getpid())
		w.send(2, "tools/call", map[string]any{"name": "bash", "arguments": map[string]any{"command": "trap '' TERM; sleep " + mark}})
		eventually(t, "it runs", func() bool { return count(t, mark) == 1 })
		w.send(0, "notifications/cancelled", map[string]any{"requestId": 2})
		eventually(t, "it ends", func() bool { return count(t, mark) == 0 })
		w.tool(3, "bash", map[string]any{"command": "true"})
		if a := w.answers[2]; a != nil {
			t.Errorf("a cancelled call was answered: %v", a)
		}
		// The record of the first may come after the answer to the second.
		eventually(t, "both are recorded", func() bool { return len(records(t, w)) == 2 })
		if lines := records(t, w); !slices.ContainsFunc(lines, func(l map[string]any) bool {
			return l["outcome"] == "cancelled" && l["exit_code"] == nil
		}) {
			t.Errorf("%v", lines)
		}
	})
	t.Run("PR-09 a program that reads its input", func(t *testing.T) {
		t.Parallel()
		w := connectByHand(t, "")
		w.send(2, "tools/call", map[string]any{"name": "bash", "arguments": map[string]any{
			"command": "cat; read x; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; sleep 0.5; echo status=$?",
		}})
		w.send(3, "ping", nil)
		w.answer(3)
		if w.answers[2] != nil {
			t.Error("the ping was answered after the command")
		}
		res, _ := json.Marshal(w.answer(2))
		if !strings.Contains(string(res), `/dev/null\n4\nstatus=0`) { // three, and the folder ls reads
			t.Errorf("%s", res)
		}
	})
	t.Run("PR-16 PR-18 gigabytes", func(t *testing.T) {
		t.Parallel()
		w := connectByHand(t, "[tools.sandbox]\nspool_size = 16777216\n")
		w.tool(2, "bash", map[string]any{"command": "true"})
		before := w.peak()
		text, got := w.tool(3, "bash", map[string]any{"command": "head -c 1000000000 /dev/zero | tr '\\0' x", "timeout_ms": 120_000})
		if got["truncated"] != true || got["exit_code"] != 0.0 || !strings.Contains(text, "[cut: 1000000000 bytes in all;") {
			t.Errorf("%v: %s", got["truncated"], text[max(0, len(text)-200):])
		}
		if _, got = w.tool(4, "bash", map[string]any{"command": "timeout 1 yes"}); got["truncated"] != true || got["exit_code"] != 124.0 {
			t.Errorf("%v %v", got["truncated"], got["exit_code"])
		}
		if grown := w.peak() - before; grown > 32<<20 {
			t.Errorf("the server grew by %d bytes", grown)
		}
	})
	t.Run("PR-17 endless output and a limit", func(t *testing.T) {
		t.Parallel()
		w := connectByHand(t, "")
		began := time.Now()
		_, got := w.tool(2, "bash", map[string]any{"command": "yes", "timeout_ms": 2000})
		if got["timed_out"] != true || time.Since(began) > 10*time.Second {
			t.Errorf("%v after %v", got["timed_out"], time.Since(began))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.notes); n > 4 {
			t.Errorf("%d notifications in two seconds", n)
		}
	})
	t.Run("PR-29 cancelled before its turn", func(t *testing.T) {
		t.Parallel()
		w := connectByHand(t, "[server]\nmax_calls = 1\n")
		mark := fmt.Sprintf("4%07d2", os.Getpid())
		w.send(2, "tools/call", map[string]any{"name": "bash", "arguments": map[string]any{"command": "sleep " + mark}})
		eventually(t, "the first runs", func() bool { return count(t, mark) == 1 })
		w.send(3, "tools/call", map[string]any{"name": "bash", "arguments": map[string]any{"command": "touch never"}})
		w.send(0, "notifications/cancelled", map[string]any{"requestId": 3})
		w.send(0, "notifications/cancelled", map[string]any{"requestId": 2})
		eventually(t, "the first ends", func() bool { return count(t, mark) == 0 })
		if text, _ := w.tool(4, "bash", map[string]any{"command": "ls"}); strings.Contains(text, "never") {
			t.Error("a call that was cancelled before its turn ran")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.answers[2] != nil || w.answers[3] != nil {
			t.Errorf("cancelled calls were answered: %v %v", w.answers[2], w.answers[3])
		}
	})
}

// records are the calls in the audit log.
func records(t *testing.T, w *wire) []map[string]any {
	t.Helper()
	lines, err := audit.Tail(filepath.Join(w.base, "state/zeph-mcp-tools/audit.jsonl"), 100)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, l := range lines {
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatal(err)
		}
		if m["tool"] != nil {
			out = append(out, m)
		}
	}
	return out
}
