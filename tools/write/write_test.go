package write

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

type m = map[string]any

type allow struct{}

func (allow) Name() string { return "allow" }
func (allow) Check(context.Context, call.Call) (gates.Decision, error) {
	return gates.Permit(), nil
}

// rig is a registry of both tools over a workspace of its own.
type rig struct {
	tb       testing.TB
	ws, base string
	w        *workspace.Workspace
	reg      *tools.Registry
	chain    *gates.Chain
}

func newRig(tb testing.TB, cfg Config) *rig {
	tb.Helper()
	base := workspacetest.Base(tb)
	r := &rig{tb: tb, base: base, ws: base + "/ws"}
	for _, d := range []string{r.ws, base + "/outside", base + "/home"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	var err error
	r.w, err = workspace.Open(workspace.Config{Roots: []string{r.ws}, DenyRead: []string{"**/.env"}},
		workspace.Env{Home: base + "/home", StateDir: base + "/state", UID: os.Getuid()})
	if err != nil {
		tb.Fatal(err)
	}
	write, err := NewWrite(cfg, r.w)
	if err != nil {
		tb.Fatal(err)
	}
	edit, err := NewEdit(cfg, r.w)
	if err != nil {
		tb.Fatal(err)
	}
	if r.reg, err = tools.NewRegistry(write, edit); err != nil {
		tb.Fatal(err)
	}
	if r.chain, err = gates.NewChain(allow{}); err != nil {
		tb.Fatal(err)
	}
	return r
}

func (r *rig) put(name, text string, mode fs.FileMode) {
	r.tb.Helper()
	if err := os.WriteFile(r.ws+"/"+name, []byte(text), mode); err != nil {
		r.tb.Fatal(err)
	}
	if err := os.Chmod(r.ws+"/"+name, mode); err != nil {
		r.tb.Fatal(err)
	}
}

func (r *rig) get(name string) string {
	r.tb.Helper()
	text, err := os.ReadFile(filepath.Join(r.ws, name))
	if err != nil {
		r.tb.Fatal(err)
	}
	return string(text)
}

func (r *rig) accept(tool string, args m) (tools.Accepted, error) {
	r.tb.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.tb.Fatal(err)
	}
	return r.reg.Accept(tool, raw)
}

func (r *rig) run(tool string, args m) (call.Result, error) {
	r.tb.Helper()
	acc, err := r.accept(tool, args)
	if err != nil {
		return call.Result{}, err
	}
	a, _, err := r.chain.Authorize(context.Background(), call.Call{ID: "c", Session: "s", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts}, nil)
	if err != nil {
		return call.Result{}, err
	}
	return r.reg.Run(context.Background(), a)
}

func (r *rig) ok(tool string, args m, v any) string {
	r.tb.Helper()
	res, err := r.run(tool, args)
	if err != nil {
		r.tb.Fatalf("%s %v: %v", tool, args, err)
	}
	if v != nil {
		if err := json.Unmarshal(res.Structured, v); err != nil {
			r.tb.Fatal(err)
		}
	}
	return res.Text
}

func (r *rig) fails(tool string, args m, code string) *call.Error {
	r.tb.Helper()
	res, err := r.run(tool, args)
	var ce *call.Error
	if !errors.As(err, &ce) || ce.Code != code || ce.Suggestion == "" {
		r.tb.Fatalf("%s %.200v: %v (result %q), want code %s with a suggestion", tool, args, err, res.Text, code)
	}
	return ce
}

func TestWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	var got writeResult
	text := r.ok("write", m{"path": "a/b/new.txt", "content": "hello world"}, &got)
	if text != "Wrote 11 bytes to a/b/new.txt (new file)" || !got.Created || got.Bytes != 11 || r.get("a/b/new.txt") != "hello world" {
		t.Errorf("%q %+v", text, got)
	}
	text = r.ok("write", m{"path": "a/b/new.txt", "content": "hello\nworld\n"}, &got)
	want := "--- a/a/b/new.txt\n+++ b/a/b/new.txt\n@@ -1,1 +1,2 @@\n-hello world\n\\ No newline at end of file\n+hello\n+world"
	if got.Created || got.Diff != want || !strings.HasSuffix(text, want) {
		t.Errorf("%q\n%s", text, cmp.Diff(want, got.Diff))
	}
	if text = r.ok("write", m{"path": "a/b/new.txt", "content": "hello\nworld\n"}, nil); !strings.HasSuffix(text, "(unchanged)") {
		t.Error(text)
	}
	r.fails("write", m{"path": "a/b/new.txt", "content": "x", "overwrite": false}, "exists")
	if r.get("a/b/new.txt") != "hello\nworld\n" {
		t.Error("overwritten all the same")
	}
	r.ok("write", m{"path": "other", "content": "", "overwrite": false}, nil)
	r.put("bin", "\xff\xfe\x00", 0o600)
	if text = r.ok("write", m{"path": "bin", "content": "x"}, &got); !strings.Contains(text, "no diff: binary") || got.Diff != "" {
		t.Error(text)
	}
}

func TestWriteKeepsModes(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o640} {
		r.put("f", "old old\n", mode)
		r.ok("write", m{"path": "f", "content": "old new\n"}, nil)
		r.ok("edit", m{"path": "f", "old_string": "new", "new_string": "newer"}, nil)
		if info, err := os.Stat(r.ws + "/f"); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%v, want %v", info.Mode(), mode)
		}
	}
	r.put("ro", "x\n", 0o444)
	r.fails("write", m{"path": "ro", "content": "y"}, "read_only")
	r.fails("edit", m{"path": "ro", "old_string": "x", "new_string": "y"}, "read_only")
	if r.get("ro") != "x\n" {
		t.Error("a read-only file changed")
	}
}

func TestWriteTellsOfHardLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	r.put("f", "old\n", 0o600)
	if err := os.Link(r.ws+"/f", r.ws+"/g"); err != nil {
		t.Fatal(err)
	}
	var got editResult
	if text := r.ok("edit", m{"path": "f", "old_string": "old", "new_string": "new"}, &got); got.HardLinks != 2 || !strings.Contains(text, "hard_links: 2") {
		t.Errorf("%+v %s", got, text)
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	r.put("f", "x\n", 0o600)
	r.put(".env", "SECRET=1\n", 0o600)
	for _, d := range []string{"sub", ".git/hooks"} {
		if err := os.MkdirAll(r.ws+"/"+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out": "../outside", "dangling": "../outside/x", "git": ".git", "loop": "loop"} {
		if err := os.Symlink(target, r.ws+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	for path, code := range map[string]string{
		"out/x": "refused", "dangling": "refused", "../outside/x": "refused", "/etc/zeph": "refused", "~/x": "refused",
		".git/hooks/pre-commit": "refused", "git/config": "refused", ".vscode/tasks.json": "refused", ".mcp.json": "refused",
		".env": "refused", "/dev/null": "refused", "/proc/self/mem": "refused", "sub": "is_folder", "sub/": "invalid_parameters",
		"f/x": "not_folder", "loop": "invalid_parameters", "": "invalid_parameters", "a\x00": "invalid_parameters",
		strings.Repeat("y", 300): "name_too_long",
	} {
		r.fails("write", m{"path": path, "content": "evil"}, code)
		var ce *call.Error
		if _, err := r.run("edit", m{"path": path, "old_string": "SECRET", "new_string": "evil"}); !errors.As(err, &ce) {
			t.Errorf("edit %s: %v", path, err)
		}
	}
	if list, err := os.ReadDir(r.base + "/outside"); err != nil || len(list) > 0 {
		t.Errorf("outside has %v %v", list, err)
	}
	if r.get(".env") != "SECRET=1\n" {
		t.Error("a denied file changed")
	}
	r.fails("edit", m{"path": "missing", "old_string": "a", "new_string": "b"}, "not_found")
}

func TestWriteInPrivateTmp(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	r.ok("write", m{"path": "/tmp/d/x", "content": "1"}, nil)
	dir, err := r.w.Scratch("s")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(dir + "/d/x"); err != nil || string(text) != "1" {
		t.Errorf("%q %v", text, err)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	tests := []struct {
		name, text, old, repl string
		all                   bool
		want                  string
	}{
		{"once", "foo bar baz", "bar", "qux", false, "foo qux baz"},
		{"all", "a b a b a", "a", "c", true, "c b c b c"},
		{"delete", "a\nb\nc\n", "b\n", "", false, "a\nc\n"},
		{"no final newline", "a\n\tb", "b", "c", false, "a\n\tc"},
		{"crlf", "foo\r\nbar\r\n", "foo", "FOO", false, "FOO\r\nbar\r\n"},
		{"crlf, lf arguments", "foo\r\nbar\r\nbaz\r\n", "foo\nbar\n", "one\ntwo\nthree\n", false, "one\r\ntwo\r\nthree\r\nbaz\r\n"},
		{"crlf, new line", "foo\r\nbar\r\n", "bar", "b\nc", false, "foo\r\nb\r\nc\r\n"},
		{"crlf, leading newline", "foo\r\nbar\r\n", "\nbar", "\nB", false, "foo\r\nB\r\n"},
		{"crlf, crlf arguments", "foo\r\nbar\r\n", "foo\r\nbar", "a\r\nb", false, "a\r\nb\r\n"},
		{"mixed", "a\nb\r\nc\n", "a\n", "A\n", false, "A\nb\r\nc\n"},
		{"mixed, crlf part", "a\nb\r\nc\r\n", "b\nc", "B\nC", false, "a\nB\r\nC\r\n"},
		{"bom", "\xef\xbb\xbffoo\n", "foo", "bar", false, "\xef\xbb\xbfbar\n"},
		{"dollar is text", "a $1 b", "$1", "$0 \\1", false, "a $0 \\1 b"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprint("f", i)
			r.put(name, tt.text, 0o600)
			var got editResult
			text := r.ok("edit", m{"path": name, "old_string": tt.old, "new_string": tt.repl, "replace_all": tt.all}, &got)
			if r.get(name) != tt.want {
				t.Errorf("%q, want %q", r.get(name), tt.want)
			}
			if got.Replacements < 1 || got.Diff == "" || !strings.HasPrefix(text, "Edited "+name) || !strings.Contains(text, "@@") {
				t.Errorf("%+v %q", got, text)
			}
		})
	}
}

func TestEditMisses(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	r.put("f", "package a\n\nfunc one() int {\n\treturn compute(alpha, beta)\n}\n\nfunc two() {}\nfunc two() {}\n", 0o600)
	r.put("crlf", "foo\r\nbar\r\n", 0o600)
	r.put("many", strings.Repeat("ab\n", 500), 0o600)
	r.put("latin1", "gr\xfcn\n", 0o600)
	r.put("bin", "a\x00b", 0o600)
	tests := []struct {
		path, old, code, message, suggestion string
	}{
		{"f", "nothing like it", "no_match", "not in the file", "read the file again"},
		{"f", "func two() {}", "not_unique", "2 times, at lines 7, 8", "replace_all"},
		{"f", "func one() int {\n    return compute(alpha, beta)\n}", "no_match", "line 3 differs from it only in blanks", "   4\t\treturn compute(alpha, beta)"},
		{"f", "return compute(alpha, gamma)", "no_match", "not in the file", "nearest place is:\n   4\t\treturn compute(alpha, beta)"},
		{"f", "   7\tfunc two() {}\n", "no_match", "not in the file", "leave out the line numbers"},
		{"crlf", "quux", "no_match", "not in the file", "read the file again"},
		{"many", "ab", "not_unique", "at least 100 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …", "replace_all"},
		{"latin1", "gr", "not_utf8", "not UTF-8 at byte 3", "iconv"},
		{"bin", "a", "binary", "NUL", "program"},
		{"f", "", "invalid_parameters", "empty", "write"},
		{"f", "same", "invalid_parameters", "same as old_string", "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.path+tt.old, func(t *testing.T) {
			t.Parallel()
			before := r.get(tt.path)
			e := r.fails("edit", m{"path": tt.path, "old_string": tt.old, "new_string": "same"}, tt.code)
			if !strings.Contains(e.Message, tt.message) || !strings.Contains(e.Suggestion, tt.suggestion) || e.Field == "" {
				t.Errorf("%+v", e)
			}
			if r.get(tt.path) != before {
				t.Error("the file changed")
			}
		})
	}
	cfg := Default()
	cfg.MaxFileBytes = 10
	small := newRig(t, cfg)
	small.put("f", "0123456789ab", 0o600)
	small.fails("edit", m{"path": "f", "old_string": "0", "new_string": "1"}, "too_large")
}

func TestEditFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	acc, err := r.accept("edit", m{"path": "sub/../f", "old_string": "a", "new_string": "b"})
	if err != nil {
		t.Fatal(err)
	}
	f := acc.Facts
	if len(f.Reads) != 1 || f.Reads[0].Op != "read" || len(f.Writes) != 1 || f.Writes[0].Op != "write" || f.Writes[0].By != "edit" ||
		f.Text != r.ws+"/f" || f.Summary != "edit f" {
		t.Errorf("%+v", f)
	}
	if acc, err = r.accept("write", m{"path": ".husky/x", "content": "abc"}); err != nil || acc.Facts.Writes[0].Protected != ".husky" ||
		acc.Facts.Summary != "write 3 bytes to .husky/x" {
		t.Errorf("%+v %v", acc.Facts, err)
	}
}

// Edits of one file at the same time all arrive.
func TestEditsAtTheSameTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("word%02d", i))
	}
	r.put("f", strings.Join(names, "\n"), 0o600)
	var wg sync.WaitGroup
	for _, n := range names {
		wg.Go(func() {
			if _, err := r.run("edit", m{"path": "f", "old_string": n, "new_string": "done"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(r.get("f"), "done"); n != 20 {
		t.Errorf("%d of 20 edits arrived", n)
	}
}

func TestLongDiffIsCut(t *testing.T) {
	t.Parallel()
	got := diff("f", []byte(strings.Repeat("a\n", 1000)), []byte(strings.Repeat("b\n", 1000)), 500)
	if len(got) > 600 || !strings.Contains(got, "[diff cut: ") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	if err := (Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "tools.write.max_file_bytes") || !strings.Contains(err.Error(), "tools.write.diff_bytes") {
		t.Error(err)
	}
	if _, err := NewWrite(Default(), nil); err == nil {
		t.Error("no workspace: accepted")
	}
}

func FuzzReplace(f *testing.F) {
	f.Add("a\r\nb\r\n", "a\nb", "x\ny", false)
	f.Add("aaa", "aa", "b", true)
	f.Add("\n\r\n", "\n", "x", false)
	f.Fuzz(func(t *testing.T, text, old, repl string, all bool) {
		if old == "" || old == repl {
			return
		}
		got, n, err := replace(text, editArgs{OldString: old, NewString: repl, ReplaceAll: all})
		if err != nil {
			var ce *call.Error
			if !errors.As(err, &ce) || ce.Suggestion == "" {
				t.Errorf("%v", err)
			}
			return
		}
		if n < 1 || !all && n != 1 {
			t.Errorf("%d replacements", n)
		}
		pure := strings.Count(text, "\n") == strings.Count(text, "\r\n")
		if pure && strings.Contains(text, "\n") && strings.Count(got, "\n") != strings.Count(got, "\r\n") && !strings.Contains(old, "\r") {
			t.Errorf("line ends broke: %q from %q by %q -> %q", got, text, old, repl)
		}
	})
}

var update = flag.Bool("update", false, "rewrite the snapshots")

func TestSchemaSnapshots(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default())
	for _, s := range r.reg.List() {
		var got []byte
		for _, raw := range []json.RawMessage{s.Input, s.Output} {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			pretty, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(append(got, pretty...), '\n')
		}
		if *update {
			if err := os.WriteFile("testdata/"+s.Name+".json", got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/" + s.Name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-snapshot +served):\n%s", s.Name, diff)
		}
		if n := len(s.Name) + len(s.Title) + len(s.Description) + len(s.Input) + len(s.Output); n > 900 {
			t.Errorf("%s: %d bytes served, at most 900", s.Name, n)
		}
	}
}
