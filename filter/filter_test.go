package filter

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// cleanCases are the table and the seeds of the fuzz target.
func cleanCases() []struct{ name, in, want string } {
	return []struct{ name, in, want string }{
		{"plain", "a\tb\n\nc\n", "a\tb\n\nc\n"},
		{"empty", "", ""},
		{"colour", "\x1b[31mred\x1b[0m \x1b[1;38;5;9mx\x1b[m\n", "red x\n"},
		{"private mode", "\x1b[?25lhidden\x1b[?25h", "hidden"},
		{"colon parameters", "\x1b[4:3mwave\x1b[0m", "wave"},
		{"title", "\x1b]0;title\x07text", "text"},
		{"link", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"open title", "\x1b]0;title\nnext", "0;title\nnext"},
		{"device string", "\x1bPq#0;1\x1b\\x", "x"},
		{"charset", "\x1b(Btext\x1b=", "text"},
		{"broken csi", "\x1b[31", ""},
		{"csi with text", "\x1b[3\u00e4", "\u00e4"},
		{"lone escape", "a\x1b", "a"},
		{"nested", "\x1b\x1b[m[mx", "[mx"},
		{"crlf", "a\r\nb\r\n", "a\nb\n"},
		{"counting", "Receiving:  10% (1/10)\rReceiving:  90% (9/10)\rReceiving: 100% (10/10), done.\n", "Receiving: 100% (10/10), done.\n"},
		{"bar", " 10%|█  | 1/9 [00:01, 1.0s/it]\r 99%|██ | 9/9 [00:09, 1.2kB/s]\n", " 99%|██ | 9/9 [00:09, 1.2kB/s]\n"},
		{"overwritten fact stays", "error: disk full\rprogress 5%\n", "error: disk full\nprogress 5%\n"},
		{"spinner", "a x\rb y\ra x\rb y\rdone\n", "a x\nb y\ndone\n"},
		{"ends with return", "50%\r100%\r", "100%"},
		{"blanked", "working\r       \rdone\n", "working\ndone\n"},
		{"erased", "working\r\x1b[Kdone\n", "done\n"},
		{"erased whole", "working\x1b[2K\rdone\n", "done\n"},
		{"erase at end", "text\x1b[K\n", "text\n"},
		{"first column", "10%\x1b[1G20%\n", "20%\n"},
		{"bold", "N\bNA\bAM\bME\bE\n", "NAME\n"},
		{"underline", "_\bx_\by\n", "xy\n"},
		{"spinner by backspace", "-\b\\\b|\b/\bok", "ok"},
		{"backspace at end", "abc\b\b", "abc"},
		{"backspace at start", "\b\babc", "abc"},
		{"backspace wide", "\u00e4\u00e4\b\bxy", "xy"},
		{"bell", "a\ab\x7fc\x0e", "abc"},
		{"nul", "a\x00b\x00", "a\nb\n"},
		{"invalid utf-8", "\xff\x1b[m\xfe\r\n", "\xff\xfe\n"},
		{"form feed", "a\f\vb", "a\f\vb"},
		{"only returns", "\r\r\r\n", "\n"},
		{"padded", "10%   \r20%   \n", "20%\n"},
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for _, tt := range cleanCases() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(tt.in); got != tt.want {
				t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, c := range cleanCases() {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Clean(in)
		if len(out) > len(in) {
			t.Errorf("longer: %q from %q", out, in)
		}
		if again := Clean(out); again != out {
			t.Errorf("not stable: %q, then %q", out, again)
		}
		if strings.ContainsAny(out, "\x00\x07\b\r\x1b\x7f") {
			t.Errorf("control bytes in %q", out)
		}
		if utf8.ValidString(in) && !utf8.ValidString(out) {
			t.Errorf("broken characters: %q from %q", out, in)
		}
	})
}

// Output chosen to be slow to clean is not: were it quadratic, this would not
// end before the test's own deadline.
func TestCleanIsLinear(t *testing.T) {
	t.Parallel()
	const n = 1_000_000
	for _, in := range []string{
		strings.Repeat("x", n) + strings.Repeat("\b", n) + strings.Repeat("\u20ac", n),
		strings.Repeat("a\r", n), strings.Repeat("\x1b]", n), strings.Repeat("\x1b[", n), strings.Repeat("a\bb", n),
	} {
		if out := Clean(in); len(out) > len(in) {
			t.Errorf("%d bytes became %d", len(in), len(out))
		}
	}
}

func TestCap(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("0123456789\n", 100)
	tests := []struct {
		name, in   string
		limit      int
		cut        bool
		head, tail string
	}{
		{"fits", "abc", 3, false, "abc", "abc"},
		{"lines", lines, 400, true, "0123456789\n", "0123456789\n"},
		{"one long line", strings.Repeat("x", 1000), 400, true, "xxx", "xxx"},
		{"wide", strings.Repeat("\u20ac", 1000), 401, true, "\u20ac", "\u20ac"},
		{"tiny", "abcdef", 3, true, "[…", "…]"},
		{"none", "abc", 0, true, "[…", "…]"},
		{"negative", "abc", -1, true, "[…", "…]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, cut := Cap(tt.in, tt.limit)
			if cut != tt.cut || !strings.HasPrefix(got, tt.head) || !strings.HasSuffix(got, tt.tail) {
				t.Errorf("%v %q", cut, got)
			}
			if !utf8.ValidString(got) || tt.limit >= capReserve && len(got) > tt.limit {
				t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
			}
			if n := strings.Count(got, "left out here"); cut != (n == 1) {
				t.Errorf("announced %d times", n)
			}
		})
	}
}

func FuzzCap(f *testing.F) {
	f.Add("a\nb\nc", 2)
	f.Add(strings.Repeat("\u20ac\n", 99), 150)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		got, cut := Cap(in, limit)
		if !cut && got != in || cut && len(in) <= limit {
			t.Errorf("cut %v: %q", cut, got)
		}
		if limit >= capReserve && len(got) > limit {
			t.Errorf("%d bytes, limit %d", len(got), limit)
		}
		if utf8.ValidString(in) && !utf8.ValidString(got) {
			t.Errorf("broken characters in %q", got)
		}
	})
}

func BenchmarkClean(b *testing.B) {
	text := strings.Repeat("\x1b[32mok\x1b[0m package/name 0.012s\n", 1000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Clean(text)
	}
}
