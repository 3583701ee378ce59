package bash_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
)

// processCases are the numbers of all reports about running programs, and the
// file that holds each.
func processCases() map[string]string {
	const (
		here   = "bug_corpus_test.go"
		server = "../../cmd/zeph-mcp-tools/bug_corpus_test.go"
		box    = "../../sandbox/sandbox_linux_test.go"
		design = "../../docs/design.md"
	)
	return map[string]string{
		"PR-01": here, "PR-02": here, "PR-03": here, "PR-05": here, "PR-07": here, "PR-08": server, "PR-09": server, "PR-11": here,
		"PR-13": here, "PR-15": here, "PR-16": server, "PR-17": server, "PR-18": server, "PR-20": here, "PR-21": here, "PR-22": here,
		"PR-23": design, "PR-24": box, "PR-26": here, "PR-28": here, "PR-29": server, "PR-30": here, "PR-32": here, "PR-33": here,
	}
}

func TestBugCorpusIsWhole(t *testing.T) {
	t.Parallel()
	for id, file := range processCases() {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(b), id) < 1 || file == "bug_corpus_test.go" && strings.Count(string(b), `"`+id) < 2 {
			t.Errorf("%s is not in %s", id, file)
		}
	}
}

// bugCase is one report: a command, and what its result has to hold.
type bugCase struct {
	id, command string
	args        map[string]any
	text        string // a pattern for all of the text
	has         map[string]any
}

func bugCases() []bugCase {
	limit := func(ms int) map[string]any { return map[string]any{"timeout_ms": ms} }
	ended := map[string]any{"timed_out": true}
	return []bugCase{
		{
			id: "PR-01 a loop and a reader", command: "mkfifo p; (while :; do echo t; sleep 1; done) > p & cat p", args: limit(300),
			text: `(t\n)+timed out after 300ms; .*`, has: ended,
		},
		{
			id: "PR-02 a grandchild holds the pipe", command: "sh -c 'sleep 1300 & echo done'", text: `done\n\[1 processes it left running were ended\]`,
			has: map[string]any{"exit_code": 0.0, "killed_descendants": 1.0, "survivors": nil},
		},
		{id: "PR-03 output through a process of its own", command: "exec > >(tee -a log) 2>&1; echo ok", text: "ok", has: map[string]any{"exit_code": 0.0}},
		{
			id: "PR-05 the leader goes, its group stays", command: "(sleep 1301 &); exit 4", text: `\(no output\)\nexit code 4\n\[1 processes .*\]`,
			has: map[string]any{"exit_code": 4.0, "killed_descendants": 1.0, "survivors": nil},
		},
		{
			id: "PR-05 another session", command: "setsid sleep 1302 & exit 0", text: `\(no output\)\n\[1 processes .*\]`,
			has: map[string]any{"exit_code": 0.0, "killed_descendants": 1.0, "survivors": nil},
		},
		{
			id: "PR-05 a daemon", command: "(setsid sh -c 'exec </dev/null >/dev/null 2>&1; trap \"\" TERM HUP; (sleep 1303 &); sleep 1304' &); sleep 0.1; echo up",
			text: `up\n\[\d processes .*\]`, has: map[string]any{"exit_code": 0.0, "survivors": nil},
		},
		{
			id: "PR-07 deaf to TERM", command: `trap "" TERM; sleep 1305`, args: limit(200), text: `\(no output\)\ntimed out after 200ms; .*`,
			has: map[string]any{"timed_out": true, "signal": "SIGKILL", "exit_code": 137.0},
		},
		{
			id: "PR-07 deaf and starting anew", command: `trap "" TERM INT HUP; while :; do sleep 1306; done`, args: limit(200), text: `(.|\n)*timed out after 200ms; (.|\n)*`,
			has: map[string]any{"timed_out": true, "survivors": nil},
		},
		{
			id: "PR-11 a terminal to ask at", command: "exec 2>&1; read -p 'password: ' x </dev/tty || echo none; tty", text: `(.|\n)*/dev/tty: No such device or address\nnone\nnot a tty\nexit code 1`,
			has: map[string]any{"exit_code": 1.0},
		},
		{
			id: "PR-11 git asks nobody", command: `echo "$GIT_TERMINAL_PROMPT $GIT_ASKPASS $SSH_ASKPASS"`, text: "0 /bin/false /bin/false",
		},
		{
			id: "PR-13 quiet is not hanging", command: "sleep 0.4; echo late", args: limit(20_000), text: "late", has: map[string]any{"timed_out": false},
		},
		{
			id: "PR-21 the cut falls into a character", command: "for ((i = 0; i < 3000; i++)); do printf é; done", text: `é+\n\[\.\.\. \d+ of 6000 bytes cut here \.\.\.\]\né+\n\[cut: 6000 bytes in all; .*\]`,
			has: map[string]any{"truncated": true, "invalid_utf8": nil},
		},
		{
			id: "PR-21 no text at all", command: `printf 'a\xff\xfeb\xe2\x82'`, text: `a��b��\n\[4 bytes that are no UTF-8 were replaced by �\]`,
			has: map[string]any{"truncated": false, "invalid_utf8": 4.0},
		},
		{
			id: "PR-21 longer as text", command: `for ((i = 0; i < 1500; i++)); do printf '\xff'; done`, text: `�+\n\[\.\.\. \d+ of 1500 bytes cut here \.\.\.\]\n�+\n\[cut: 1500 bytes in all; .*\]\n\[.* were replaced by �\]`,
			has: map[string]any{"truncated": true},
		},
		{id: "PR-21 one byte below the limit", command: "head -c 1399 /dev/zero | tr '\\0' x", text: strings.Repeat("x", 1399), has: map[string]any{"truncated": false}},
		{id: "PR-21 at the limit", command: "head -c 1400 /dev/zero | tr '\\0' x", text: strings.Repeat("x", 1400), has: map[string]any{"truncated": false, "run_id": nil}},
		{
			id: "PR-21 one byte above the limit", command: "head -c 1401 /dev/zero | tr '\\0' x", text: `x{700}\n\[\.\.\. 1 of 1401 bytes cut here \.\.\.\]\nx{700}\n\[cut: 1401 .*\]`,
			has: map[string]any{"truncated": true, "next": 700.0},
		},
		{
			id: "PR-11 no network says so", command: "git ls-remote https://example.invalid/x", text: `(.|\n)*exit code 128\n\[commands reach no host that was not allowed: name it in allow_domains, which asks a person, or get what is needed with fetch\]`,
			has: map[string]any{"exit_code": 128.0},
		},
		{
			id: "SP-11 a socket by hand", command: "python3 -c 'import socket; socket.create_connection((\"203.0.113.7\", 80))'", text: `(.|\n)*Network is unreachable\nexit code 1\n\[commands reach no host .*`,
			has: map[string]any{"exit_code": 1.0},
		},
		{id: "SP-11 words are no failure", command: "echo Network is unreachable", text: "Network is unreachable"},
		{
			id: "PR-26 a stage fails unseen", command: "false | tail -5", text: `\(no output\)\n\[stages of the pipeline: 1, 0\]`,
			has: map[string]any{"exit_code": 0.0, "stages": []any{1.0, 0.0}, "masked_failure": true},
		},
		{
			id: "PR-26 nobody reads on", command: "yes | head -1", text: "y", has: map[string]any{"exit_code": 0.0, "stages": []any{141.0, 0.0}, "masked_failure": nil},
		},
		{id: "PR-26 the command's own choice", command: "false || echo failed", text: "failed", has: map[string]any{"exit_code": 0.0, "masked_failure": nil}},
		{id: "PR-26 all is well", command: "echo a | cat", text: "a", has: map[string]any{"exit_code": 0.0, "stages": nil, "masked_failure": nil}},
		{id: "PR-28 a line feed at the end", command: "false\n", text: `\(no output\)\nexit code 1`, has: map[string]any{"exit_code": 1.0}},
		{id: "PR-28 a comment at the end", command: "false # x", text: `\(no output\)\nexit code 1`, has: map[string]any{"exit_code": 1.0}},
		{id: "PR-28 a pipeline's own status", command: "true | sh -c 'exit 7'\n", text: `\(no output\)\nexit code 7`, has: map[string]any{"exit_code": 7.0, "stages": []any{0.0, 7.0}}},
		{id: "PR-28 an exit before the end", command: "exit 3\necho never", text: `\(no output\)\nexit code 3`, has: map[string]any{"exit_code": 3.0}},
	}
}

// TestBugCorpus runs what reports are about, and looks at the result and at
// what is left.
func TestBugCorpus(t *testing.T) {
	t.Parallel()
	for _, tt := range bugCases() {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *bash.Config, _ *sandbox.Config) { c.MaxOutput = 2000 })
			w.need(t)
			if name, _, _ := strings.Cut(tt.command, " "); name == "git" || name == "python3" {
				if _, err := exec.LookPath(name); err != nil {
					t.Skip(err)
				}
			}
			args := map[string]any{"command": tt.command}
			maps.Copy(args, tt.args)
			began := time.Now()
			res, got := w.must(t, "bash", args)
			if took := time.Since(began); took > 10*time.Second { // three at most, and some for a busy machine
				t.Errorf("took %v", took)
			}
			if !regexp.MustCompile(`^(?:` + tt.text + `)$`).MatchString(res.Text) {
				t.Errorf("text %q is not %q", res.Text, tt.text)
			}
			for name, want := range tt.has {
				if fmt.Sprint(got[name]) != fmt.Sprint(want) {
					t.Errorf("%s is %v, not %v", name, got[name], want)
				}
			}
			if !utf8.ValidString(res.Text) || len(res.Text) > 2000 || len(fmt.Sprint(got["stdout"])) > 2000 {
				t.Errorf("%d bytes of text, %d of stdout", len(res.Text), len(fmt.Sprint(got["stdout"])))
			}
			if n := sleepers(t, w.root); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

// sleepers counts the processes whose working folder is the root or below it,
// or that were started from there.
func sleepers(t *testing.T, root string) int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range folders {
		if cwd, err := os.Readlink(f); err == nil && strings.HasPrefix(cwd, root) {
			n++
		}
	}
	return n
}

// TestBugCorpusBackground are the reports about runs in the background.
func TestBugCorpusBackground(t *testing.T) {
	t.Parallel()
	t.Run("PR-15 a run that has ended can be read", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, nil)
		w.need(t)
		_, got := w.must(t, "bash", map[string]any{"command": "echo out; echo err >&2; exit 9", "background": true})
		id := got["run_id"]
		for range 2 {
			_, got = w.must(t, "bash_output", map[string]any{"run_id": id, "since": 0, "wait_ms": 20_000})
			if out := fmt.Sprint(got["output"]); len(out) != 8 || !strings.Contains(out, "out\n") || !strings.Contains(out, "err\n") || got["exit_code"] != 9.0 {
				t.Errorf("%v", got)
			}
		}
		for range 20 { // those that are kept are bounded
			_, last := w.must(t, "bash", map[string]any{"command": "true", "background": true})
			w.must(t, "bash_output", map[string]any{"run_id": last["run_id"], "wait_ms": 20_000})
		}
		_, _, err := w.ask(t.Context(), t, "s", "bash_output", map[string]any{"run_id": id})
		code(t, err, "run_not_found")
	})
	t.Run("PR-20 endless output does not grow, and does not stop", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(_ *bash.Config, s *sandbox.Config) { s.SpoolSize = 1 << 20 })
		w.need(t)
		_, got := w.must(t, "bash", map[string]any{"command": "yes | head -c 30000000; echo end", "background": true})
		id := got["run_id"]
		_, got = w.must(t, "bash_output", map[string]any{"run_id": id, "since": 30_000_004, "wait_ms": 20_000})
		if got["total"] != 30_000_004.0 || got["exit_code"] != 0.0 {
			t.Errorf("%v", got)
		}
		res, got := w.must(t, "bash_output", map[string]any{"run_id": id, "since": 1 << 20})
		if !strings.HasSuffix(fmt.Sprint(got["output"]), "y\nend\n") || got["skipped"] == nil || strings.Count(res.Text, "were not kept") != 1 || !res.Outcome.Truncated {
			t.Errorf("skipped %v: %.100q", got["skipped"], res.Text)
		}
	})
	t.Run("PR-22 every run has a deadline", func(t *testing.T) {
		t.Parallel()
		for name, args := range map[string]map[string]any{
			"background": {"background": true}, "detached": {}, "killed": {"timeout_ms": 600},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(c *bash.Config, _ *sandbox.Config) { c.Timeout, c.BackgroundTimeoutSecs = 100*time.Millisecond, 1 })
				w.need(t)
				args["command"] = "sleep 1310"
				res, got := w.must(t, "bash", args)
				if id := got["run_id"]; id != nil {
					res, got = w.must(t, "bash_output", map[string]any{"run_id": id, "wait_ms": 20_000})
				}
				if got["timed_out"] != true || got["running"] == true {
					t.Errorf("%v\n%s", got, res.Text)
				}
			})
		}
	})
}

// TestBugCorpusEnvironment is about what the server itself was started with.
// Not parallel: it changes that.
func TestBugCorpusEnvironment(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".bash_profile", ".bashrc", ".profile", "env"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("touch MARK; echo ran\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"X_API_KEY": "canary", "HOME": dir, "BASH_ENV": dir + "/env", "ENV": dir + "/env", "PROMPT_COMMAND": "touch MARK",
		"BASH_FUNC_ls%%": "() { touch MARK; }", "PS4": "$(touch MARK)", "SHELLOPTS": "xtrace",
	} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct{ id, command, not string }{
		{"PR-30 a key of the server", "env; cat /proc/self/environ /proc/$$/environ /proc/$PPID/environ 2>/dev/null; set", "canary"},
		{"PR-30 the server's own environment", fmt.Sprintf("cat /proc/%d/environ 2>/dev/null; cat /proc/1/environ 2>/dev/null; grep -las canary /proc/[0-9]*/environ", os.Getpid()), "canary"},
		{"PR-32 what a shell reads at its start", "ls; bash -c true; sh -c true; echo fine", "ran"},
	} {
		t.Run(tt.id, func(t *testing.T) {
			w := newWorld(t, nil)
			w.need(t)
			res := w.run(t, map[string]any{"command": tt.command})
			if strings.Contains(res.Text, tt.not) {
				t.Errorf("%s", res.Text)
			}
			if _, err := os.Stat(filepath.Join(w.root, "MARK")); err == nil {
				t.Error("something ran at the start of the shell")
			}
		})
	}
}

// A sandbox that cannot start is the machine's fault, and never the command's.
func TestBugCorpusNoSandbox(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"PR-33 the workspace is gone", "PR-33 in the background"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.need(t)
			if err := os.RemoveAll(w.root); err != nil {
				t.Fatal(err)
			}
			_, _, err := w.ask(context.Background(), t, "s", "bash", map[string]any{"command": "true", "background": strings.Contains(id, "back")})
			e := code(t, err, "sandbox_failed")
			if e.Category != call.CategoryPermanentFailure || !strings.Contains(e.Message, "was not run") || !strings.Contains(e.Suggestion, "not about the command") {
				t.Errorf("%+v", e)
			}
		})
	}
}
