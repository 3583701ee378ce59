package sandbox

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testOutput(t *testing.T, limit, quota int64) (*output, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spool")
	o := newOutput(limit, &spool{dir: dir, quota: quota, log: slog.New(slog.DiscardHandler)})
	t.Cleanup(o.drop)
	return &o, dir
}

func TestPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		limit, quota int64
		write        string
		from, most   int64
		want         Part
	}{
		{"nothing", 8, 100, "", 0, 10, Part{}},
		{"in memory", 8, 100, "01234567", 0, 10, Part{Text: "01234567", Next: 8, Total: 8}},
		{"from within", 8, 100, "01234567", 2, 4, Part{Text: "2345", Next: 6, Total: 8}},
		{"at the end", 8, 100, "01234567", 8, 4, Part{Next: 8, Total: 8}},
		{"past the end", 8, 100, "01234567", 80, 4, Part{Next: 8, Total: 8}},
		{"in the file", 8, 100, "0123456789abcdef", 3, 10, Part{Text: "3456789abc", Next: 13, Total: 16}},
		{"the file's end", 8, 100, "0123456789abcdef", 13, 10, Part{Text: "def", Next: 16, Total: 16}},
		{"the quota cuts the middle", 4, 8, "0123456789abcdef", 4, 10, Part{Text: "4567", Next: 8, Total: 16}},
		{"after the quota", 4, 8, "0123456789abcdef", 8, 10, Part{Text: "ef", Next: 16, Total: 16, Skipped: 6}},
		{"the kept end", 4, 8, "0123456789abcdef", 15, 10, Part{Text: "f", Next: 16, Total: 16}},
		{"no file, the head", 4, 0, "0123456789abcdef", 0, 10, Part{Text: "01", Next: 2, Total: 16}},
		{"no file, the gap", 4, 0, "0123456789abcdef", 2, 10, Part{Text: "ef", Next: 16, Total: 16, Skipped: 12}},
		{"a cut character waits", 100, 100, "aé", 0, 2, Part{Text: "a", Next: 1, Total: 3}},
		{"half a character at the end", 100, 100, "a\xc3", 1, 9, Part{Text: "\ufffd", Next: 2, Total: 2, Invalid: 1}},
		{"what is no text is longer as text", 100, 100, "ab\xff\xff\xff\xffc", 0, 8, Part{Text: "ab��", Next: 4, Total: 7, Invalid: 2}},
		{"and goes on after it", 100, 100, "ab\xff\xff\xff\xffc", 4, 8, Part{Text: "��c", Next: 7, Total: 7, Invalid: 2}},
		{"there is always progress", 100, 100, "\xff\xff", 0, 1, Part{Text: "�", Next: 1, Total: 2, Invalid: 1}},
		{"a cut line waits", 100, 100, "abc\nde\nf", 0, 6, Part{Text: "abc\n", Next: 4, Total: 8}},
		{"a long line does not", 100, 100, "a\nbcdefg", 0, 6, Part{Text: "a\nbcde", Next: 6, Total: 8}},
		{"no room", 100, 100, "ab", 0, 0, Part{Total: 2}},
		{"before the start", 100, 100, "ab", -5, 9, Part{Text: "ab", Next: 2, Total: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, _ := testOutput(t, tt.limit, tt.quota)
			for i := range len(tt.write) {
				o.add(i%2, []byte(tt.write[i:i+1]))
			}
			got, err := o.part(tt.from, tt.most)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("part (-want +got):\n%s", d)
			}
		})
	}
}

// A file exists from the byte on that memory has no room for, is its owner's
// alone, has no name, and is gone when it is given back.
func TestSpoolFile(t *testing.T) {
	t.Parallel()
	o, dir := testOutput(t, 8, 100)
	o.add(0, []byte("01234567"))
	if _, err := os.Stat(dir); err == nil || o.spool.file != nil {
		t.Error("a file was made for what memory holds")
	}
	o.add(0, []byte("8"))
	info, err := o.spool.file.Stat()
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 9 {
		t.Errorf("%+v, %v", info, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%+v, %v", info, err)
	}
	o.drop()
	o.add(0, []byte("9"))
	if p, err := o.part(4, 10); err != nil || p.Text != "6789" || p.Skipped != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A disk that takes nothing does not disturb the command.
func TestSpoolFails(t *testing.T) {
	t.Parallel()
	o, dir := testOutput(t, 8, 100)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.add(0, []byte(strings.Repeat("0123456789", 10)))
	if p, err := o.part(10, 100); err != nil || p.Text != "6789" || p.Skipped != 86 {
		t.Errorf("%+v, %v", p, err)
	}
}
