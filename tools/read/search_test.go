package read

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// treeRig has what a walk must not follow, read or show.
func treeRig(t *testing.T, deny ...string) *rig {
	t.Helper()
	r := newRig(t, Default(), func(c *workspace.Config) { c.DenyRead = deny })
	for name, text := range map[string]string{
		"a.go": "package a\n\nfunc needle() {}\n", "b.txt": "hay\nneedle one\nhay\nneedle two\n", "sub/c.go": "// Needle\n",
		"sub/deep/d.go": "needle", ".env": "needle=1\n", ".git/objects/x": "needle\n", "node_modules/m/i.js": "needle\n",
		".gitignore": "*.log\n/build/\n!keep.log\nsub/*.tmp\n", "x.log": "needle\n", "keep.log": "needle\n",
		"build/out.txt": "needle\n", "sub/build/in.txt": "needle\n", "sub/x.tmp": "needle\n", "sub/deep/y.tmp": "hay\n",
		"sub/.gitignore": "deep/secret*\n", "sub/deep/secret1": "needle\n", "bin": "needle\x00\n", "utf16": "\xff\xfen\x00",
		"../outside/o.txt": "needle\n", "../home/.ssh/id": "needle\n",
	} {
		r.put(name, text)
	}
	for link, target := range map[string]string{"link_out": "../outside", "link_file": "../outside/o.txt", "sub/up": "..", "link_in": "b.txt"} {
		if err := os.Symlink(target, r.ws+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(r.ws+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFindPath(t *testing.T) {
	t.Parallel()
	r := treeRig(t)
	tests := []struct {
		args m
		want []string
	}{
		{m{"pattern": "*.go"}, []string{"a.go"}},
		{m{"pattern": "**/*.go"}, []string{"a.go", "sub/c.go", "sub/deep/d.go"}},
		{m{"pattern": "sub/*.go"}, []string{"sub/c.go"}},
		{m{"pattern": "*.go", "path": "sub"}, []string{"sub/c.go"}},
		{m{"pattern": "deep/*.go", "path": "sub"}, []string{"sub/deep/d.go"}},
		{m{"pattern": "**/*.log"}, []string{"keep.log"}},
		{m{"pattern": "**/*.log", "ignored": true}, []string{"keep.log", "x.log"}},
		{m{"pattern": "**/*.js"}, []string{}},
		{m{"pattern": "**/*.js", "ignored": true}, []string{"node_modules/m/i.js"}},
		{m{"pattern": "**/*.tmp"}, []string{"sub/deep/y.tmp"}},
		{m{"pattern": "**/secret*"}, []string{}},
		{m{"pattern": "**/build/"}, []string{"sub/build"}},
		{m{"pattern": "**/o.txt"}, []string{}},
		{m{"pattern": "{a,b}.*"}, []string{"a.go", "b.txt"}},
		{m{"pattern": "a.go"}, []string{"a.go"}},
		{m{"pattern": "*.none"}, []string{}},
		{m{"pattern": "missing/*.go"}, []string{}},
		{m{"pattern": "link*"}, []string{"link_file", "link_in", "link_out"}},
		{m{"pattern": ".e*"}, []string{".env"}},
		{m{"pattern": "../outside/*"}, []string{r.base + "/outside/o.txt"}},
		{m{"pattern": "~/.s*/*"}, []string{}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.args), func(t *testing.T) {
			t.Parallel()
			var got findResult
			text := r.ok("find_path", tt.args, &got)
			slices.Sort(got.Paths)
			if diff := cmp.Diff(tt.want, got.Paths); diff != "" {
				t.Error(diff)
			}
			if len(tt.want) == 0 && !strings.HasPrefix(text, "No files matching: ") {
				t.Errorf("text = %q", text)
			}
		})
	}
}

func TestFindPathNewestFirstAndCapped(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	for i := range 205 {
		r.put(fmt.Sprintf("f%03d", i), "")
		at := time.Unix(int64(1_000_000+i*(1-2*(i%2))), 0)
		if err := os.Chtimes(fmt.Sprintf("%s/f%03d", r.ws, i), at, at); err != nil {
			t.Fatal(err)
		}
	}
	var got findResult
	text := r.ok("find_path", m{"pattern": "f*"}, &got)
	if n := len(strings.Split(text, "\n")); n != 201 || len(got.Paths) != 200 || !got.Truncated || got.Paths[0] != "f204" {
		t.Errorf("%d lines, %d paths, first %s", n, len(got.Paths), got.Paths[0])
	}
	if !strings.HasSuffix(text, "... and more results (showing first 200 of 205, newest first)") {
		t.Errorf("%q", text[len(text)-80:])
	}
	r.ok("find_path", m{"pattern": "f*", "max_results": 5}, &got)
	if len(got.Paths) != 5 {
		t.Error(got.Paths)
	}
}

func TestFindPathRefuses(t *testing.T) {
	t.Parallel()
	r := treeRig(t)
	for _, args := range []m{
		{"pattern": "[invalid"},
		{"pattern": ""},
		{"pattern": "*/../../x"},
		{"pattern": strings.Repeat("*", 2000)},
		{"pattern": "a\x00/*"},
		{"pattern": "*", "max_results": 0},
	} {
		r.fails("find_path", args, "invalid_parameters")
	}
	acc, err := r.accept("find_path", m{"pattern": "/etc/**/*.conf"})
	if err != nil || acc.Facts.Reads[0].Path != "/etc" || !acc.Facts.Reads[0].Recursive {
		t.Errorf("%+v %v", acc.Facts, err)
	}
	if acc, err = r.accept("find_path", m{"pattern": "/*"}); err != nil || acc.Facts.Reads[0].Path != "/" || acc.Facts.Reads[0].Recursive {
		t.Errorf("%+v %v", acc.Facts, err)
	}
	if acc, err = r.accept("find_path", m{"pattern": "**"}); err != nil || acc.Facts.Reads[0].ImplicitBy != "find_path" {
		t.Errorf("%+v %v", acc.Facts, err)
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	r := treeRig(t)
	tests := []struct {
		args m
		want string
	}{
		{m{"pattern": "needle", "path": "b.txt"}, "b.txt:2: needle one\nb.txt:4: needle two"},
		{m{"pattern": "^needle", "glob": "*.txt"}, "b.txt:2: needle one\nb.txt:4: needle two\nsub/build/in.txt:1: needle"},
		{m{"pattern": "needle", "glob": "*.go"}, "a.go:3: func needle() {}\nsub/deep/d.go:1: needle"},
		{m{"pattern": "needle", "glob": "sub/**"}, "sub/build/in.txt:1: needle\nsub/deep/d.go:1: needle"},
		{m{"pattern": "NEEDLE", "case_sensitive": false, "path": "sub/c.go"}, "sub/c.go:1: // Needle"},
		{m{"pattern": "needle", "output": "files", "glob": "*.go"}, "a.go\nsub/deep/d.go"},
		{m{"pattern": "needle", "output": "count", "glob": "b*"}, "b.txt: 2\n(1 binary files were skipped)"},
		{m{"pattern": "needle two", "path": "b.txt", "context": 1}, "b.txt-3- hay\nb.txt:4: needle two"},
		{m{"pattern": "needle", "path": "b.txt", "context": 1}, "b.txt-1- hay\nb.txt:2: needle one\nb.txt-3- hay\nb.txt:4: needle two"},
		{m{"pattern": "needle", "path": "b.txt", "max_results": 1}, "b.txt:2: needle one\n... (showing the first 1 of 2)"},
		{m{"pattern": "needle", "path": "b.txt", "max_results": 1, "context": 1}, "b.txt-1- hay\nb.txt:2: needle one\nb.txt-3- hay\n... (showing the first 1 of 2)"},
		{m{"pattern": "nothing", "path": "b.txt"}, "No matches for: nothing"},
		{m{"pattern": "needle", "path": "x.log"}, "x.log:1: needle"},
		{m{"pattern": "needle", "path": "build"}, "build/out.txt:1: needle"},
		{m{"pattern": "needle", "path": "sub/deep"}, "sub/deep/d.go:1: needle"},
		{m{"pattern": "$", "path": "a.go", "output": "count"}, "a.go: 3"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.args), func(t *testing.T) {
			t.Parallel()
			if got := r.ok("grep", tt.args, nil); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestGrepLeavesOut(t *testing.T) {
	t.Parallel()
	r := treeRig(t, "**/.env", "sub/deep")
	var got grepResult
	text := r.ok("grep", m{"pattern": "needle", "output": "files"}, &got)
	var files []string
	for _, f := range got.Matches {
		files = append(files, f.Path)
	}
	want := []string{"a.go", "b.txt", "keep.log", "sub/build/in.txt"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	for _, s := range []string{"2 binary files were skipped", "2 entries are closed to tools"} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is not said in %q", s, text)
		}
	}
	all := r.ok("grep", m{"pattern": "needle", "output": "files", "ignored": true}, nil)
	for _, s := range []string{"x.log", "node_modules/m/i.js", "build/out.txt"} {
		if !strings.Contains(all, s) {
			t.Errorf("%s is missing in %q", s, all)
		}
	}
	for _, s := range []string{"outside", ".git/", ".env", ".ssh", "link"} {
		if strings.Contains(all, s) {
			t.Errorf("%s is in %q", s, all)
		}
	}
	r.fails("grep", m{"pattern": "needle", "path": ".env"}, "refused")
	r.fails("grep", m{"pattern": "needle", "path": "fifo"}, "not_regular")
	r.fails("grep", m{"pattern": "needle", "path": "subb"}, "not_found")
}

func TestGrepStructured(t *testing.T) {
	t.Parallel()
	r := treeRig(t)
	var got grepResult
	r.ok("grep", m{"pattern": "needle o", "path": "b.txt", "context": 2}, &got)
	want := grepResult{Matches: []match{{
		Path: "b.txt", Line: 2, Text: "needle one", Before: []string{"hay"}, After: []string{"hay", "needle two"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGrepCapsAndCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	r.put("a", strings.Repeat("match me\n", 150))
	r.put("b", strings.Repeat("match "+strings.Repeat("x", 2000)+"\n", 150))
	var got grepResult
	text := r.ok("grep", m{"pattern": "match"}, &got)
	if len(got.Matches) != 100 || got.Total != 300 || !got.Truncated || !strings.Contains(text, "first 100 of 300") {
		t.Errorf("%d of %d: %s", len(got.Matches), got.Total, text[len(text)-60:])
	}
	text = r.ok("grep", m{"pattern": "match", "max_results": 500, "path": "b"}, &got)
	if len(text) > Default().PageBytes+1000 || !got.Truncated || !strings.Contains(text, "[line cut: 500 of 2006 bytes]") {
		t.Errorf("%d bytes", len(text))
	}
}

// Pieces of a large file join: line numbers and matches are those of a search
// line by line.
func TestGrepPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	var b strings.Builder
	var want []int
	for i := 1; b.Len() < 3*chunkBytes; i++ {
		if i%70_001 == 0 {
			b.WriteString("a needle here\n")
			want = append(want, i)
			continue
		}
		b.WriteString("some hay on a line of ordinary length, number by number\n")
	}
	r.put("big", b.String())
	for _, pattern := range []string{"needle", "n[e]+dle he"} {
		var got grepResult
		r.ok("grep", m{"pattern": pattern, "path": "big"}, &got)
		var at []int
		for _, f := range got.Matches {
			at = append(at, f.Line)
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
	}
}

func TestGrepRefusesPatterns(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	for pattern, hint := range map[string]string{"[": "RE2", "a(?=b)": "look-around", `(a)\1`: "look-around", "": "regular expression", strings.Repeat("x", 1001): "shorter"} {
		if e := r.fails("grep", m{"pattern": pattern}, "invalid_parameters"); e.Field != "pattern" || !strings.Contains(e.Suggestion, hint) {
			t.Errorf("%.20q: %+v", pattern, e)
		}
	}
	r.fails("grep", m{"pattern": "x", "glob": "[z"}, "invalid_parameters")
	acc, err := r.accept("grep", m{"pattern": "x"})
	if err != nil || acc.Facts.Reads[0].ImplicitBy != "grep" || !acc.Facts.Reads[0].Recursive || !acc.Facts.Reads[0].Root {
		t.Errorf("%+v %v", acc.Facts, err)
	}
	if acc, err = r.accept("grep", m{"pattern": "x", "path": "/"}); err != nil || acc.Facts.Reads[0].HoldsDeny == "" {
		t.Errorf("%+v %v", acc.Facts, err)
	}
}

func TestSearchStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	r := treeRig(t)
	for tool, raw := range map[string]m{"grep": {"pattern": "x"}, "find_path": {"pattern": "**"}, "list_directory": {"path": "."}} {
		acc, err := r.accept(tool, raw)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		a, _, err := r.chain.Authorize(ctx, call.Call{ID: "c", Session: "s", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := r.reg.Run(ctx, a); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

func TestListDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	r.put("file.txt", "12345")
	r.put("a\nb", "")
	r.put("subdir/x", "")
	if err := os.Symlink("file.txt", r.ws+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(r.ws+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	var got listResult
	text := r.ok("list_directory", m{"path": "."}, &got)
	at := -1
	for _, s := range []string{"[dir]  subdir", `[file] "a\nb"`, "[file] file.txt  (5 bytes, 2", "[symlink] link -> file.txt", "[other] pipe"} {
		i := strings.Index(text, s)
		if i <= at {
			t.Errorf("%q is not in its place in\n%s", s, text)
		}
		at = i
	}
	if len(got.Entries) != 5 || got.Entries[0].Type != "dir" || got.Entries[2].Size != 5 || got.Entries[3].Target != "file.txt" || got.Truncated {
		t.Errorf("%+v", got)
	}
	if err := os.Mkdir(r.ws+"/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	if text := r.ok("list_directory", m{"path": "empty"}, nil); text != "Empty directory: empty" {
		t.Error(text)
	}
	r.fails("list_directory", m{"path": "file.txt"}, "not_folder")
	r.fails("list_directory", m{"path": "missing"}, "not_found")
	r.fails("list_directory", m{"path": "/proc"}, "refused")
	cfg := Default()
	cfg.MaxResults = 2
	small := newRig(t, cfg, nil)
	for i := range 5 {
		small.put(fmt.Sprint("f", i), "")
	}
	if text := small.ok("list_directory", m{"path": "."}, &got); len(got.Entries) != 2 || !strings.Contains(text, "showing 2 of 5") {
		t.Error(text)
	}
}

func TestIgnoreRules(t *testing.T) {
	t.Parallel()
	text := "# comment\n\n*.o\n/top\ndir/\na/**/z\n\\!bang\n\\#hash\ntrail\\ \nspace  \n!b.o\n[bad\n{x,y}\nfoo/*\n**/gen\n"
	g := &ignores{dir: "/w", rules: parseIgnore(text)}
	for p, want := range map[string]bool{
		"/w/a.o": true, "/w/s/a.o": true, "/w/b.o": false, "/w/top": true, "/w/s/top": false, "/w/dir": false, "/w/dir/": true,
		"/w/s/dir/": true, "/w/a/z": true, "/w/a/b/c/z": true, "/w/s/a/z": false, "/w/!bang": true, "/w/#hash": true,
		"/w/trail ": true, "/w/trail": false, "/w/space": true, "/w/x": false, "/w/{x,y}": true, "/w/foo/bar": true, "/w/foo": false,
		"/w/s/gen": true, "/w/gen": true,
	} {
		if got := g.match(strings.TrimSuffix(p, "/"), strings.HasSuffix(p, "/")); got != want {
			t.Errorf("%s: ignored = %v", p, got)
		}
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add("*.o\n!a\n/x/\n", "a/b.o")
	f.Fuzz(func(t *testing.T, text, p string) {
		g := &ignores{dir: "/w", rules: parseIgnore(text)}
		if got := g.match("/w/"+p, false); got && len(g.rules) == 0 {
			t.Error("ignored by no rule")
		}
	})
}

var update = flag.Bool("update", false, "rewrite the snapshots")

func TestSchemaSnapshots(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	sum := 0
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
		n := len(s.Name) + len(s.Title) + len(s.Description) + len(s.Input) + len(s.Output)
		if sum += n; n > 900 {
			t.Errorf("%s: %d bytes served, at most 900", s.Name, n)
		}
	}
	t.Logf("%d bytes in all", sum)
}
