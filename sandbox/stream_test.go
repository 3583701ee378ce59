package sandbox

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestKeeper(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		limit  int64
		writes []string
		want   Stream
		text   string
	}{
		{"nothing", 10, nil, Stream{}, ""},
		{"fits in the head", 10, []string{"abc"}, Stream{Head: []byte("abc"), Total: 3, HeadBytes: 3}, "abc"},
		{"fits exactly", 10, []string{"01234", "56789"}, Stream{Head: []byte("0123456789"), Total: 10, HeadBytes: 10}, "0123456789"},
		{
			"one byte over", 10,
			[]string{"0123456789x"},
			Stream{Head: []byte("01234"), Tail: []byte("6789x"), Total: 11, HeadBytes: 5, Truncated: true, Cut: 1},
			"01234\n[... 1 of 11 bytes cut here ...]\n6789x",
		},
		{
			"many small writes", 4,
			strings.Split(strings.Repeat("a b c d e f ", 3), " "),
			Stream{Head: []byte("ab"), Tail: []byte("ef"), Total: 18, HeadBytes: 2, Truncated: true, Cut: 14},
			"ab\n[... 14 of 18 bytes cut here ...]\nef",
		},
		{
			"a write longer than the ring", 4,
			[]string{"ab", strings.Repeat("-", 100) + "yz"},
			Stream{Head: []byte("ab"), Tail: []byte("yz"), Total: 104, HeadBytes: 2, Truncated: true, Cut: 100},
			"ab\n[... 100 of 104 bytes cut here ...]\nyz",
		},
		{"nothing is kept", 0, []string{"abc"}, Stream{Total: 3, Truncated: true, Cut: 3}, "[... 3 of 3 bytes cut here ...]\n"},
		{"bytes that are no text", 10, []string{"a\xffb\xc3"}, Stream{Head: []byte("a�b�"), Total: 4, HeadBytes: 4, InvalidUTF8: 2}, "a�b�"},
		{
			"kept whole, but too long as text", 12,
			[]string{"ab\xff\xfe\xfd\xfcyz"},
			Stream{Head: []byte("ab�"), Tail: []byte("�yz"), Total: 8, HeadBytes: 3, Truncated: true, Cut: 2, InvalidUTF8: 2},
			"ab�\n[... 2 of 8 bytes cut here ...]\n�yz",
		},
		{
			"cut, and too long as text", 6,
			[]string{"\xffabcdef\xff"},
			Stream{Head: []byte("�"), Tail: []byte("�"), Total: 8, HeadBytes: 1, Truncated: true, Cut: 6, InvalidUTF8: 2},
			"�\n[... 6 of 8 bytes cut here ...]\n�",
		},
		{
			"a cut inside characters", 6,
			[]string{"éééééé"},
			Stream{Head: []byte("é"), Tail: []byte("é"), Total: 12, HeadBytes: 2, Truncated: true, Cut: 8},
			"é\n[... 8 of 12 bytes cut here ...]\né",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(tt.limit)
			for _, w := range tt.writes {
				k.write([]byte(w))
			}
			got := k.stream(false)
			if d := cmp.Diff(tt.want, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); d != "" {
				t.Errorf("stream (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.text, got.Text()); d != "" {
				t.Errorf("text (-want +got):\n%s", d)
			}
		})
	}
}

// However it is written, the same bytes are kept.
func TestKeeperIsIndifferentToChunks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		data := make([]byte, r.IntN(400))
		for i := range data {
			data[i] = byte('a' + r.IntN(26))
		}
		limit := int64(r.IntN(120))
		k := newKeeper(limit)
		for rest := data; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			k.write(rest[:n])
			rest = rest[n:]
		}
		s := k.stream(false)
		if s.Truncated != (int64(len(data)) > limit) {
			t.Fatalf("%d bytes of at most %d: truncated %v", len(data), limit, s.Truncated)
		}
		if !bytes.HasPrefix(data, s.Head) || !bytes.HasSuffix(data, s.Tail) {
			t.Fatalf("kept %q and %q of %q", s.Head, s.Tail, data)
		}
		if int64(len(s.Head)+len(s.Tail))+s.Cut != int64(len(data)) {
			t.Fatalf("counts do not add up: %+v of %d", s, len(data))
		}
	}
}

// Whatever the bytes are, the text is valid and not longer than the limit, the
// counts add up, and it is cut exactly when it has to be.
func TestKeeperBoundsText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"a", "é", "€", "😀", "\xff", "\xc3", "\xe2\x82", "\x80", "\n", "\x00", "\ufffd"}
	for range 2000 {
		var data []byte
		for range r.IntN(60) {
			data = append(data, pieces[r.IntN(len(pieces))]...)
		}
		limit := r.IntN(80)
		k := newKeeper(int64(limit))
		k.write(data)
		s := k.stream(false)
		whole := strings.Map(func(r rune) rune { return r }, string(data)) // every byte that is no text becomes one U+FFFD
		switch {
		case !utf8.Valid(s.Head) || !utf8.Valid(s.Tail) || len(s.Head)+len(s.Tail) > limit:
			t.Fatalf("%q in %d: %+v", data, limit, s)
		case s.Truncated != (len(data) > limit || len(whole) > limit):
			t.Fatalf("%q (%d as text) in %d: truncated %v", data, len(whole), limit, s.Truncated)
		case !s.Truncated && (string(s.Head) != whole || s.HeadBytes != int64(len(data)) || len(s.Tail) > 0):
			t.Fatalf("%q in %d: %+v", data, limit, s)
		case s.Truncated && (s.Cut <= 0 || s.HeadBytes < 0 || s.HeadBytes+s.Cut > int64(len(data))):
			t.Fatalf("%q in %d: counts do not add up: %+v", data, limit, s)
		case !strings.HasPrefix(whole, string(s.Head)):
			t.Fatalf("%q in %d: the head %q is not its beginning", data, limit, s.Head)
		}
		if head := strings.Map(func(r rune) rune { return r }, string(data[:s.HeadBytes])); head != string(s.Head) {
			t.Fatalf("%q in %d: the head %q stands for %d bytes, which are %q", data, limit, s.Head, s.HeadBytes, head)
		}
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                      "",
		"one\n":                 "one",
		"one\ntwo\n\n":          "two",
		"10%\r20%\r":            "20%",
		"a\x1b[31mred\x07\n":    "a[31mred",
		"\x9f rest of a line\n": "� rest of a line",
		"é":                     "é",
		"x\n" + "\xff" + "tail": "�tail",
	} {
		got := lastLine([]byte(in))
		if !utf8.ValidString(got) {
			t.Errorf("lastLine(%q) is no text", in)
		}
		if in == "\x9f rest of a line\n" {
			want = " rest of a line" // the end of a cut character
		}
		if got != want {
			t.Errorf("lastLine(%q) = %q, want %q", in, got, want)
		}
	}
}
