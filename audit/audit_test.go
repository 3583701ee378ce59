package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_APPEND"); path != "" {
		os.Exit(appendMany(path))
	}
	os.Exit(m.Run())
}

// appendMany is what a second process does in TestProcessesShareOneChain.
func appendMany(path string) int {
	l, err := Open(Config{Path: path}, "", slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := range 200 {
		if err := write(l, fmt.Sprintf("p%d-%d", os.Getpid(), i)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func openTest(tb testing.TB, dir string) *Log {
	tb.Helper()
	l, err := Open(Default(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return l
}

func sample(id string) Record {
	code := 0
	now := time.Now()
	return Record{
		CallID: id, Started: now.Add(-12 * time.Millisecond), Ended: now, Session: "s1", Caller: "local", Transport: "stdio", Trust: "trusted",
		Tool: "bash", Args: json.RawMessage(`{"command":"go test ./...","timeout_ms":60000}`),
		Facts: call.Facts{
			Summary:  "run: go test ./...",
			Commands: []call.Command{{Name: "go", Argv: []string{"go", "test", "./..."}, Pos: call.Pos{Line: 1, Column: 1}}},
			Reads:    []call.Path{{Text: ".", Path: "/w", Inside: true, Op: "read"}},
		},
		Verdict: "allow",
		Trail:   []TrailEntry{{Gate: "policy", Verdict: "allow"}, {Gate: "trust", Verdict: "allow"}, {Gate: "command", Verdict: "allow", Code: "confined", Reason: "the sandbox answers"}},
		Outcome: "ok", ExitCode: &code, RawBytes: 1234, ShownBytes: 400, SandboxLevel: 2, RunTime: 9 * time.Millisecond, PolicyFingerprint: "abc",
		Violations: []call.Violation{{
			Kind: call.ViolationNet, Op: "connect", Target: "host.example:443", Rule: "net.allow", Source: call.SourceExact, Count: 3, By: "curl", Hint: "ask",
		}},
	}
}

func write(l *Log, id string) error {
	e, err := l.Begin(id)
	if err != nil {
		return err
	}
	return e.Finish(sample(id))
}

func mustWrite(tb testing.TB, l *Log, n int) {
	tb.Helper()
	for i := range n {
		if err := write(l, fmt.Sprintf("c-%d", i)); err != nil {
			tb.Fatal(err)
		}
	}
}

func read(tb testing.TB, l *Log) []byte {
	tb.Helper()
	data, err := os.ReadFile(l.Path())
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// check verifies and takes a broken chain for an error.
func check(data []byte) (Report, error) {
	rep, err := Verify(bytes.NewReader(data))
	return rep, errors.Join(err, rep.Err())
}

func verifyOK(tb testing.TB, l *Log) Report {
	tb.Helper()
	rep, err := check(read(tb, l))
	if err != nil {
		tb.Fatalf("verify: %v, %+v", err, rep.Problems)
	}
	return rep
}

func TestOneRecordACall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "zeph")
	l := openTest(t, dir)
	mustWrite(t, l, 3)
	if err := l.Event("start", map[string]any{"version": "1", "api_key": "abc"}); err != nil {
		t.Fatal(err)
	}
	rep := verifyOK(t, l)
	if rep.Records != 4 || rep.FirstSeq != 1 || rep.LastSeq != 4 || len(rep.LastHash) != hashLen {
		t.Errorf("report %+v", rep)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, l.Path(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	lines := bytes.Split(bytes.TrimSpace(read(t, l)), []byte("\n"))
	var got map[string]any
	if err := json.Unmarshal(lines[1], &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"v": 1.0, "seq": 2.0, "kind": "call", "call_id": "c-1", "caller": "local", "transport": "stdio", "tool": "bash", "verdict": "allow",
		"outcome": "ok", "exit_code": 0.0, "timed_out": false, "truncated": false, "raw_bytes": 1234.0, "sandbox_level": 2.0, "run_ms": 9.0, "total_ms": 12.0,
		"args": map[string]any{"command": "go test ./...", "timeout_ms": 60000.0}, "policy": "abc",
		"violations": []any{map[string]any{
			"kind": "net", "op": "connect", "target": "host.example:443", "rule": "net.allow", "source": "exact", "count": 3.0, "by": "curl",
		}},
	} {
		if diff := cmp.Diff(want, got[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	if !strings.Contains(string(lines[3]), `"event":{"api_key":"«[redacted:value]»","version":"1"}`) {
		t.Errorf("event %s", lines[3])
	}
}

// A log that an earlier version wrote, whose records know of no execution
// environment, goes on with records that do, as one chain.
func TestALogOfAnEarlierVersionGoesOn(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile("testdata/before-execution-env.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "audit.jsonl"), old, 0o600)); err != nil {
		t.Fatal(err)
	}
	l := openTest(t, dir)
	for _, env := range []string{"", "repo", strings.Repeat("n", 5000)} {
		e, err := l.Begin("c-new")
		if err != nil {
			t.Fatal(err)
		}
		rec := sample("c-new")
		rec.ExecEnv, rec.Cwd = env, "/w/"+env
		if err := e.Finish(rec); err != nil {
			t.Fatal(err)
		}
	}
	rep := verifyOK(t, l)
	lines := bytes.Split(bytes.TrimSpace(read(t, l)), []byte("\n"))
	if was := bytes.Count(old, []byte("\n")); rep.Records != was+3 || len(lines) != was+3 || !bytes.HasPrefix(read(t, l), old) {
		t.Fatalf("%d records in %d lines after %d", rep.Records, len(lines), was)
	}
	none, named, long := string(lines[len(lines)-3]), string(lines[len(lines)-2]), string(lines[len(lines)-1])
	if strings.Contains(none, "execution_env") || !strings.Contains(none, `"resolved_cwd":"/w/"`) {
		t.Errorf("without one: %s", none)
	}
	if !strings.Contains(named, `"execution_env":"repo","resolved_cwd":"/w/repo"`) {
		t.Errorf("with one: %s", named)
	}
	if len(long) > 6000 || !strings.Contains(long, `"execution_env":"nnn`) {
		t.Errorf("with a long one: %s", long)
	}
	// The name is under the hash like everything else.
	if rep, err := check(bytes.Replace(read(t, l), []byte(`_env":"repo"`), []byte(`_env":"rope"`), 1)); err == nil {
		t.Errorf("a changed name was not found: %+v", rep)
	}
}

func TestKeysOfARecordDoNotCollide(t *testing.T) {
	t.Parallel()
	own := map[string]bool{"v": true, "seq": true, "time": true, "kind": true, "prev": true, "hash": true, "event": true, "run_ms": true, "total_ms": true}
	typ := reflect.TypeFor[Record]()
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || own[name] {
			t.Errorf("field %s is written as %q", field.Name, name)
		}
		if name != "-" {
			own[name] = true
		}
	}
}

func TestRecordsAreOneLineWithoutSecrets(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	const secret = "S3CRETvalue"
	for _, command := range []string{
		"git clone https://u:" + secret + "@example.com/r", "mysql -p" + secret, "curl -u u:" + secret, "curl -H 'Authorization: Bearer " + secret + "'",
		"TOKEN=" + secret + " cmd", "echo \"x\nPURGED ok\"\u2028\x1b[2J",
		strings.Repeat("x", maxReason-len("API_KEY=")-4) + " API_KEY=" + secret + strings.Repeat("y", 100),
	} {
		r := sample("c")
		args, err := json.Marshal(map[string]any{"command": command, "env": map[string]string{"DB_PASSWORD": secret}})
		if err != nil {
			t.Fatal(err)
		}
		r.Args, r.Error = args, command
		r.Facts = call.Facts{Summary: command, Commands: []call.Command{{Argv: argv(command)}}, Unknown: []call.Unknown{{Text: command}}}
		r.Trail = []TrailEntry{{Gate: "command", Reason: command}}
		e, err := l.Begin("c")
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Finish(r); err != nil {
			t.Fatal(err)
		}
		if e.Finish(r) == nil {
			t.Error("an entry was finished twice")
		}
	}
	if data := read(t, l); bytes.Contains(data, []byte(secret)) || bytes.Contains(data, []byte(secret[:4])) {
		t.Errorf("the secret is in the log:\n%s", data)
	}
	if rep := verifyOK(t, l); rep.Lines != 7 {
		t.Errorf("%d lines", rep.Lines)
	}
}

// argv splits a command of the table into words, header and all.
func argv(command string) []string {
	if before, quoted, ok := strings.Cut(command, " '"); ok {
		return append(strings.Fields(before), strings.Trim(quoted, "'"))
	}
	return strings.Fields(command)
}

func TestLargeRecordsAreCut(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	r := sample("c")
	r.Args = json.RawMessage(`{"content":"` + strings.Repeat(`\u0001`, 150_000) + `"}`)
	r.Error = strings.Repeat("é\x00", 50_000)
	r.Tool, r.Session = strings.Repeat("t", 10_000), strings.Repeat("\x01", 100_000)
	for range 500 {
		r.Facts.Commands = append(r.Facts.Commands, call.Command{Name: "x", Argv: []string{strings.Repeat("w", 1000)}})
		r.Trail = append(r.Trail, TrailEntry{Gate: "g", Reason: strings.Repeat("\x02", 5000)})
	}
	e, err := l.Begin("c")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Finish(r); err != nil {
		t.Fatal(err)
	}
	if err := l.Event("big", map[string]any{"x": strings.Repeat("\x01", 1<<20)}); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(read(t, l)) {
		if len(line) > MaxLine {
			t.Errorf("a line of %d bytes", len(line))
		}
		if !bytes.Contains(line, []byte(`"truncated":true`)) {
			t.Errorf("the cut is not announced: %.200s", line)
		}
	}
	verifyOK(t, l)
}

func TestVerifyFindsWhatWasDone(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	mustWrite(t, l, 6)
	lines := bytes.SplitAfter(read(t, l), []byte("\n"))[:6]
	pick := func(order ...int) []byte {
		var out []byte
		for _, i := range order {
			out = append(out, lines[i]...)
		}
		return out
	}
	all := pick(0, 1, 2, 3, 4, 5)
	tests := []struct {
		name string
		data []byte
		kind string
		line int
	}{
		{"first removed", pick(1, 2, 3, 4, 5), "missing", 1},
		{"one removed", pick(0, 1, 3, 4, 5), "missing", 3},
		{"doubled", pick(0, 1, 1, 2, 3, 4, 5), "doubled", 3},
		{"swapped", pick(0, 2, 1, 3, 4, 5), "missing", 2},
		{"moved to the end", pick(0, 1, 3, 4, 5, 2), "missing", 3},
		{"cut in the last line", all[:len(all)-40], "torn", 6},
		{"no last newline", all[:len(all)-1], "torn", 6},
		{"text added", append(bytes.Clone(all), "x"...), "torn", 7},
		{"line added", append(bytes.Clone(all), "{}\n"...), "malformed", 7},
		{"empty line", append(pick(0, 1), append([]byte("\n"), pick(2, 3)...)...), "malformed", 3},
		{"content changed", bytes.Replace(all, []byte(`"call_id":"c-3"`), []byte(`"call_id":"c-9"`), 1), "altered", 4},
		{"hash case", bytes.Replace(all, lines[2][len(lines[2])-67:], bytes.ToUpper(lines[2][len(lines[2])-67:]), 1), "altered", 3},
		{"carriage returns", bytes.ReplaceAll(all, []byte("\n"), []byte("\r\n")), "malformed", 1},
		{"not a log", []byte("hello\nworld\n"), "malformed", 1},
		{"a huge line", append(pick(0), append(bytes.Repeat([]byte("x"), 5*MaxLine), append([]byte("\n"), lines[1]...)...)...), "malformed", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rep, err := check(tt.data)
			if !errors.Is(err, ErrBroken) || rep.Broken == 0 || rep.Problems[0].Kind != tt.kind || rep.Problems[0].Line != tt.line {
				t.Errorf("%v, %+v, want %s in line %d", err, rep.Problems, tt.kind, tt.line)
			}
		})
	}
	if rep, err := check(nil); err != nil || rep.Lines != 0 {
		t.Errorf("empty log: %+v, %v", rep, err)
	}
}

func TestATornLastLineIsAccountedFor(t *testing.T) {
	t.Parallel()
	for _, torn := range []int{2, 10, 75, 76, 200} {
		dir := t.TempDir()
		l := openTest(t, dir)
		mustWrite(t, l, 3)
		if err := os.Truncate(l.Path(), int64(len(read(t, l))-torn)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openTest(t, dir)
		mustWrite(t, l, 2)
		rep := verifyOK(t, l)
		if diff := cmp.Diff([]int{3}, rep.Recovered); diff != "" || rep.LastSeq != 5 || rep.Records != 5 {
			t.Errorf("torn by %d: %s %+v", torn, diff, rep)
		}
		data := read(t, l)
		at := bytes.LastIndex(data[:bytes.Index(data, []byte(`"recovered"`))], []byte("\n")) - 1
		data[at] ^= 1
		if _, err := check(data); !errors.Is(err, ErrBroken) {
			t.Errorf("torn by %d: a changed byte of the torn line is not found", torn)
		}
	}
}

func TestAMissingLastNewlineIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	mustWrite(t, l, 2)
	if err := errors.Join(l.Close(), os.Truncate(l.Path(), int64(len(read(t, l))-1))); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, dir)
	mustWrite(t, l, 1)
	if rep := verifyOK(t, l); rep.Records != 3 || rep.Lines != 3 || len(rep.Recovered) != 0 {
		t.Errorf("%+v", rep)
	}
}

func TestADamagedLastLineStaysAProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	mustWrite(t, l, 3)
	data := read(t, l)
	data[len(data)-100] ^= 1
	if err := errors.Join(l.Close(), os.WriteFile(l.Path(), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, dir)
	mustWrite(t, l, 1)
	rep, err := check(read(t, l))
	if !errors.Is(err, ErrBroken) || rep.Broken != 1 || rep.Problems[0].Line != 3 || rep.Problems[0].Kind != "altered" {
		t.Errorf("%v %+v", err, rep)
	}
}

func TestACutLogIsNoticedWhileItRuns(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	mustWrite(t, l, 4)
	lines := bytes.SplitAfter(read(t, l), []byte("\n"))
	if err := os.Truncate(l.Path(), int64(len(lines[0])+len(lines[1]))); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, l, 1)
	rep, err := check(read(t, l))
	if !errors.Is(err, ErrBroken) || rep.Broken != 1 || rep.Problems[0].Line != 3 || !strings.Contains(rep.Problems[0].Text, "reached record 4") {
		t.Errorf("%v %+v", err, rep)
	}
}

func TestAMovedLogGoesOn(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	mustWrite(t, l, 2)
	old := verifyOK(t, l)
	if err := os.Rename(l.Path(), l.Path()+".1"); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, l, 2)
	rep := verifyOK(t, l)
	if rep.Continues != old.LastHash || rep.Records != 3 {
		t.Errorf("%+v, want it to continue %s", rep, old.LastHash)
	}
	if len(l.Recent(10)) != 3 {
		t.Errorf("recent: %d", len(l.Recent(10)))
	}
}

func TestNoRecordNoCall(t *testing.T) {
	t.Parallel()
	unavailable := func(t *testing.T, err error) {
		t.Helper()
		e, ok := errors.AsType[*call.Error](err)
		if !ok || e.Code != "audit_unavailable" || e.Cause == nil {
			t.Errorf("got %v", err)
		}
	}
	t.Run("no space", func(t *testing.T) {
		t.Parallel()
		l := openTest(t, t.TempDir())
		l.chain.space = func(*os.File, int64, int64) error { return syscall.ENOSPC }
		_, err := l.Begin("c")
		unavailable(t, err)
	})
	t.Run("folder gone", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "x")
		l := openTest(t, dir)
		e, err := l.Begin("c")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err = l.Begin("d")
		unavailable(t, err)
		unavailable(t, e.Finish(sample("c")))
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		l := openTest(t, t.TempDir())
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		_, err := l.Begin("c")
		unavailable(t, err)
	})
	t.Run("best effort", func(t *testing.T) {
		t.Parallel()
		var buf bytes.Buffer
		l, err := Open(Config{Mode: BestEffort}, t.TempDir(), slog.New(slog.NewTextHandler(&buf, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Close(), write(l, "c")); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(buf.String(), "audit record lost"); got != 2 {
			t.Errorf("%d lines in the log", got)
		}
	})
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "none")
		l, err := Open(Config{Mode: Off}, dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(write(l, "c"), l.Event("start", nil), l.Close()); err != nil || l.Recent(5) != nil || l.Path() != "" {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("the folder was made")
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, folder, open := filepath.Join(dir, "link"), filepath.Join(dir, "folder"), filepath.Join(dir, "open")
	if err := errors.Join(os.Symlink("/etc/hostname", link), os.Mkdir(folder, 0o700), os.Mkdir(open, 0o700), os.Chmod(open, 0o777), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, folder, filepath.Join(open, "a"), filepath.Join(dir, "fifo"), filepath.Join(link, "a"), "relative"} {
		if l, err := Open(Config{Path: path}, dir, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("opened %s", l.Path())
		}
	}
	if _, err := Open(Default(), "", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened without a folder")
	}
	if _, err := Open(Default(), dir, nil); err == nil {
		t.Error("opened without a logger")
	}
	wide := filepath.Join(dir, "wide")
	if err := errors.Join(os.WriteFile(wide, nil, 0o600), os.Chmod(wide, 0o644)); err != nil {
		t.Fatal(err)
	}
	l, err := Open(Config{Path: wide}, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(wide); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestProcessesShareOneChain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "audit.jsonl")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), "AUDIT_TEST_APPEND="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	l, err := Open(Config{Path: path}, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 4 {
		wg.Go(func() { mustWrite(t, l, 50) })
	}
	wg.Wait()
	if rep := verifyOK(t, l); rep.Records != 600 {
		t.Errorf("%d records", rep.Records)
	}
}

func TestTailAndRecent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	mustWrite(t, l, 200)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, dir)
	if got := l.Recent(5); len(got) != 0 {
		t.Errorf("recent shows %d older records", len(got))
	}
	mustWrite(t, l, 3)
	seqs := func(lines []json.RawMessage) (out []uint64) {
		for _, line := range lines {
			var h header
			if err := json.Unmarshal(line, &h); err != nil {
				t.Fatal(err)
			}
			out = append(out, h.Seq)
		}
		return out
	}
	if diff := cmp.Diff([]uint64{202, 203}, seqs(l.Recent(2))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{201, 202, 203}, seqs(l.Recent(10))); diff != "" {
		t.Error(diff)
	}
	lines, err := Tail(l.Path(), 150)
	if got := seqs(lines); err != nil || len(got) != 150 || got[0] != 54 || got[149] != 203 {
		t.Errorf("tail %v, %v", got, err)
	}
	lines, err = Tail(l.Path(), 1000)
	if got := seqs(lines); err != nil || len(got) != 203 || got[0] != 1 {
		t.Errorf("whole %d, %v", len(got), err)
	}
	if _, err := Tail(filepath.Join(dir, "none"), 1); err == nil {
		t.Error("no error for a missing log")
	}
}

func TestEventRefusesItsOwnKinds(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	for _, kind := range []string{"", "call", "recovered", "continued", "Start", `x","kind":"call`} {
		if l.Event(kind, nil) == nil {
			t.Errorf("took %q", kind)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for mode := Required; mode <= Off; mode++ {
		var got Mode
		if err := got.UnmarshalText([]byte(mode.String())); err != nil || got != mode {
			t.Errorf("%v: %v, %v", mode, got, err)
		}
		if warns := (Config{Mode: mode}).Warnings(); len(warns) != min(int(mode), 1) {
			t.Errorf("%v: %v", mode, warns)
		}
	}
	if new(Mode).UnmarshalText([]byte("on")) == nil || (Config{Path: "x"}).Validate() == nil || (Config{Mode: 9}).Validate() == nil {
		t.Error("took nonsense")
	}
}

// FuzzAuditVerify changes one byte of a log, or cuts it, and wants it found.
func FuzzAuditVerify(f *testing.F) {
	dir := f.TempDir()
	l := openTest(f, dir)
	mustWrite(f, l, 3)
	whole := read(f, l)
	if err := errors.Join(l.Close(), os.WriteFile(l.Path(), whole[:len(whole)-30], 0o600)); err != nil {
		f.Fatal(err)
	}
	l = openTest(f, dir)
	mustWrite(f, l, 2)
	verifyOK(f, l)
	clean := read(f, l)
	f.Add(uint32(0), byte(1), false)
	f.Add(uint32(len(clean)-1), byte(0x20), false)
	f.Add(uint32(70), byte(0x20), false)
	f.Add(uint32(len(clean)-2), byte(0), true)
	f.Fuzz(func(t *testing.T, at uint32, mask byte, cut bool) {
		data := bytes.Clone(clean)
		i := int(at) % len(data)
		switch {
		case cut && i > 0 && data[i-1] == '\n', !cut && mask == 0, cut && i == 0:
			return // a cut between lines is found by the last hash only
		case cut:
			data = data[:i]
		default:
			data[i] ^= mask
		}
		if rep, err := check(data); !errors.Is(err, ErrBroken) {
			t.Fatalf("byte %d, mask %#x, cut %v not found: %+v", i, mask, cut, rep)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	l, err := Open(Default(), b.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := write(l, "c-1"); err != nil {
			b.Fatal(err)
		}
	}
}
