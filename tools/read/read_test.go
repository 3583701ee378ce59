package read

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

type m = map[string]any

func TestReadPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	r.put("five", "a\nb\nc\nd\ne\n")
	r.put("no-newline", "x\r\ny")
	r.put("empty", "")
	r.put("blank", "\n")
	tests := []struct {
		args          m
		content, text string
		lines, total  int
		truncated     bool
		next          int
	}{
		{m{"path": "five"}, "a\nb\nc\nd\ne", "   1\ta\n   2\tb\n   3\tc\n   4\td\n   5\te", 5, 5, false, 0},
		{m{"path": "five", "offset": 1, "limit": 2}, "b\nc", "   2\tb\n   3\tc\n\n[lines 2-3 of 5; go on with offset 3]", 2, 5, true, 3},
		{m{"path": "five", "offset": 3}, "d\ne", "   4\td\n   5\te", 2, 5, false, 0},
		{m{"path": "five", "offset": 5}, "", "(no lines at offset 5: the file has 5)", 0, 5, false, 0},
		{m{"path": "no-newline"}, "x\ny", "   1\tx\n   2\ty", 2, 2, false, 0},
		{m{"path": "no-newline", "limit": 1}, "x", "   1\tx\n\n[lines 1-1 of 2; go on with offset 1]", 1, 2, true, 1},
		{m{"path": "empty"}, "", "(empty file)", 0, 0, false, 0},
		{m{"path": "blank"}, "", "   1\t", 1, 1, false, 0},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.args), func(t *testing.T) {
			t.Parallel()
			var got readResult
			if text := r.ok("read", tt.args, &got); text != tt.text {
				t.Errorf("text = %q, want %q", text, tt.text)
			}
			next := 0
			if got.NextOffset != nil {
				next = *got.NextOffset
			}
			if got.Content != tt.content || got.Lines != tt.lines || *got.TotalLines != tt.total || got.Truncated != tt.truncated || next != tt.next {
				t.Errorf("got %+v total %d next %d", got, *got.TotalLines, next)
			}
		})
	}
}

// Pages put together give every line once, whatever cuts them.
func TestReadPagesJoinWithoutLoss(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.PageBytes = 1000
	r := newRig(t, cfg, nil)
	var want []string
	for i := range 500 {
		want = append(want, strings.Repeat("x", i%97)+fmt.Sprint(i))
	}
	r.put("f", strings.Join(want, "\n"))
	var got []string
	for offset := 0; ; {
		var page readResult
		text := r.ok("read", m{"path": "f", "offset": offset}, &page)
		if len(text) > 1300 {
			t.Fatalf("a page of %d bytes", len(text))
		}
		got = append(got, strings.Split(page.Content, "\n")...)
		if *page.TotalLines != 500 {
			t.Fatalf("total %d", *page.TotalLines)
		}
		if page.NextOffset == nil {
			break
		}
		offset = *page.NextOffset
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

func TestReadDefaultPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	r.put("f", strings.Repeat("x\n", 5000))
	var page readResult
	text := r.ok("read", m{"path": "f"}, &page)
	if page.Lines != 2000 || !strings.HasSuffix(text, "[lines 1-2000 of 5000; go on with offset 2000]") {
		t.Errorf("%d lines, ends %q", page.Lines, text[len(text)-60:])
	}
}

func TestReadLongLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	r.put("f", "short\n"+strings.Repeat("\u20ac", 100_000)+"\nend\n")
	var page readResult
	text := r.ok("read", m{"path": "f"}, &page)
	if !strings.Contains(text, "… [line cut: 1998 of 300001 bytes]\n   3\tend") || !page.Truncated {
		t.Errorf("%.200q", text[1900:])
	}
}

func TestReadEncodings(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	for name, text := range map[string]string{
		"bom":  "\xef\xbb\xbfgr\u00fc\u00df\n",
		"le":   "\xff\xfeg\x00r\x00\xfc\x00\xdf\x00\n\x00",
		"be":   "\xfe\xff\x00g\x00r\x00\xfc\x00\xdf\x00\n",
		"utf8": "gr\u00fc\u00df\n",
	} {
		r.put(name, text)
		var got readResult
		if r.ok("read", m{"path": name}, &got); got.Content != "gr\u00fc\u00df" || *got.TotalLines != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"latin1": {"gr\xfcn\n", "not UTF-8 in line 1 at byte 3"},
		"late":   {"ok\nok\xff\n", "not UTF-8 in line 2 at byte 3"},
		"elf":    {"\x7fELF\x02\x01\x01\x00\x00", "binary, 9 bytes, ELF"},
		"nul":    {"abc\x00def", "binary, 7 bytes, data of unknown type"},
		"pdf":    {"%PDF-1.7\n", "PDF"},
	} {
		r.put(name, c.text)
		if e := r.fails("read", m{"path": name}, "binary"); !strings.Contains(e.Message, c.want) || e.Field != "path" {
			t.Errorf("%s: %v", name, e)
		}
	}
	r.put("mz.txt", "MZ is how this text begins\n")
	r.ok("read", m{"path": "mz.txt"}, nil)
}

func TestReadImage(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.ImageBytes = 100
	r := newRig(t, cfg, nil)
	r.put("a.png", "\x89PNG\r\n\x1a\n\x00data")
	res, err := r.run(t.Context(), "read", m{"path": "a.png"})
	if err != nil || len(res.Images) != 1 || res.Images[0].MIME != "image/png" || string(res.Images[0].Data) != "\x89PNG\r\n\x1a\n\x00data" {
		t.Errorf("%+v %v", res, err)
	}
	r.put("b.png", "\x89PNG\r\n\x1a\n\x00"+strings.Repeat("x", 100))
	r.fails("read", m{"path": "b.png"}, "binary")
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), func(c *workspace.Config) { c.DenyRead = []string{"**/.env"} })
	r.put("file.txt", "x")
	r.put(".env", "x")
	r.put("sub/f", "x")
	if err := unix.Mkfifo(r.ws+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"zero": "/dev/zero", "loop": "loop", "up": "../outside", "env": ".env"} {
		if err := os.Symlink(target, r.ws+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	for path, code := range map[string]string{
		"missing": "not_found", "fiel.txt": "not_found", "sub": "is_folder", "fifo": "not_regular", "zero": "refused",
		"/dev/zero": "refused", "/proc/self/environ": "refused", "/etc/shadow": "refused", ".env": "refused", "env": "refused",
		"~/.ssh/id": "refused", "loop": "invalid_parameters", "": "invalid_parameters", "a\x00b": "invalid_parameters",
		"file.txt/x": "not_folder", strings.Repeat("x", 5000): "invalid_parameters", strings.Repeat("y", 300): "name_too_long",
	} {
		r.fails("read", m{"path": path}, code)
	}
	if e := r.fails("read", m{"path": "fiel.txt"}, "not_found"); e.Suggestion != "did you mean file.txt?" {
		t.Error(e.Suggestion)
	}
	// A relative path that leads outside resolves there; the gates ask about it.
	acc, err := r.accept("read", m{"path": "up/secret.txt"})
	if err != nil || acc.Facts.Reads[0].Path != r.base+"/outside/secret.txt" || acc.Facts.Reads[0].Place != call.PlaceOutside {
		t.Errorf("%+v %v", acc.Facts, err)
	}
}

func TestReadFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	r.put("src/main.go", "x")
	acc, err := r.accept("read", m{"path": "./src/../src/main.go"})
	if err != nil {
		t.Fatal(err)
	}
	f := acc.Facts
	if f.Summary != "read src/main.go" || f.Text != r.ws+"/src/main.go" || len(f.Reads) != 1 || f.Reads[0].Op != "read" ||
		f.Reads[0].By != "read" || !f.Reads[0].Inside || f.Reads[0].Recursive {
		t.Errorf("%+v", f)
	}
}

func TestReadOfPrivateTmp(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	dir, err := r.w.Scratch("s")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/x", []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := r.ok("read", m{"path": "/tmp/x"}, nil); text != "   1\tmine" {
		t.Errorf("%q", text)
	}
}

// A page of a file of a gigabyte costs no more than one of a small file.
func TestReadHugeFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, Default(), nil)
	r.put("huge", strings.Repeat("0123456789\n", 2000))
	if err := os.Truncate(r.ws+"/huge", 1<<30); err != nil {
		t.Fatal(err)
	}
	var page readResult
	r.ok("read", m{"path": "huge", "limit": 10}, &page)
	if page.Lines != 10 || page.TotalLines != nil || page.NextOffset == nil {
		t.Errorf("%+v", page)
	}
	r.put("sparse", "")
	if err := os.Truncate(r.ws+"/sparse", 1<<40); err != nil {
		t.Fatal(err)
	}
	r.fails("read", m{"path": "sparse"}, "binary")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	bad := Default()
	bad.PageLines, bad.LineBytes = 0, 1
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "tools.read.page_lines") || !strings.Contains(err.Error(), "tools.read.line_bytes") {
		t.Error(err)
	}
	if _, err := NewRead(bad, nil); err == nil {
		t.Error("no workspace, bad config: accepted")
	}
}

func BenchmarkRead2KB(b *testing.B) {
	r := newRig(b, Default(), nil)
	r.put("src/main.go", strings.Repeat("func main() { println(\"hello\") }\n", 62))
	raw, err := json.Marshal(m{"path": "src/main.go"})
	if err != nil {
		b.Fatal(err)
	}
	tool, err := NewRead(Default(), r.w)
	if err != nil {
		b.Fatal(err)
	}
	spec := tool.Spec()
	b.ReportAllocs()
	for b.Loop() {
		facts, err := tool.Facts(raw)
		if err != nil {
			b.Fatal(err)
		}
		a, _, err := r.chain.Authorize(b.Context(), call.Call{ID: "c", Session: "s", Spec: spec, Args: raw, Facts: facts}, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tool.Run(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}
