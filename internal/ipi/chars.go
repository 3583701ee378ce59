package ipi

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Clean returns text without the characters nobody sees and how many of them
// were of a kind that ordinary text does not need. Line ends become \n,
// invalid bytes the replacement character, and the result is in normal form C.
// Joiners stay where scripts and emoji need them. Clean is idempotent.
func Clean(text string) (clean string, removed int) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if plain(text) {
		return text, 0
	}
	text = norm.NFC.String(strings.ReplaceAll(text, "\r\n", "\n"))
	var b strings.Builder
	b.Grow(len(text))
	last := rune(-1) // the last rune that was kept
	for i, r := range text {
		n := utf8.RuneLen(r)
		switch classify(r) {
		case keep:
			last = r
			b.WriteRune(r)
		case newline:
			last = '\n'
			b.WriteByte('\n')
		case silent:
		case invisible:
			removed++
		case joiner:
			next, _ := utf8.DecodeRuneInString(text[i+n:])
			if needsJoiner(last) && needsJoiner(next) {
				last = r
				b.WriteRune(r)
			} else {
				removed++
			}
		case selector: // one after a visible character
			if last >= 0 && classify(last) == keep && !unicode.IsSpace(last) {
				last = r
				b.WriteRune(r)
			} else {
				removed++
			}
		}
	}
	return norm.NFC.String(b.String()), removed
}

// plain reports whether text is printable ASCII, tabs and line feeds.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

type class uint8

const (
	keep class = iota
	newline
	silent    // dropped, too common to mean anything
	invisible // dropped and counted
	joiner    // kept between letters or emoji
	selector  // kept once after a visible character
)

// ranges is every character that is not simply kept, in ascending order.
//
//nolint:gochecknoglobals // a constant table, read only; an array costs nothing at start
var ranges = [...]struct {
	from, to rune
	class    class
}{
	{0, 0x08, silent}, // control characters
	{0x0b, 0x0c, silent},
	{0x0d, 0x0d, newline},
	{0x0e, 0x1f, silent},
	{0x7f, 0x84, silent},
	{0x85, 0x85, newline},
	{0x86, 0x9f, silent},
	{0xad, 0xad, silent},        // soft hyphen
	{0x34f, 0x34f, invisible},   // grapheme joiner
	{0x115f, 0x1160, invisible}, // Hangul fillers
	{0x180e, 0x180e, invisible}, // Mongolian vowel separator
	{0x200b, 0x200b, invisible}, // zero-width space
	{0x200c, 0x200f, joiner},    // joiners and direction marks
	{0x2028, 0x2029, newline},
	{0x202a, 0x202e, invisible}, // direction embeddings and overrides
	{0x2060, 0x206f, invisible}, // word joiner, invisible operators, direction isolates
	{0x3164, 0x3164, invisible}, // Hangul filler
	{0xe000, 0xf8ff, silent},    // private use: icon fonts
	{0xfe00, 0xfe0f, selector},
	{0xfeff, 0xfeff, silent}, // byte order mark
	{0xffa0, 0xffa0, invisible},
	{0xfff0, 0xfffb, invisible},   // annotation marks
	{0x1d173, 0x1d17a, invisible}, // musical controls
	{0xe0000, 0xe00ff, invisible}, // tag characters
	{0xe0100, 0xe01ef, selector},
	{0xe01f0, 0xe0fff, invisible},
	{0xf0000, unicode.MaxRune, silent}, // private use
}

func classify(r rune) class {
	for i := range ranges {
		switch e := &ranges[i]; {
		case r < e.from:
			return keep
		case r <= e.to:
			return e.class
		}
	}
	return keep
}

// needsJoiner reports whether r is of a kind that is written with joiners: not
// a space, not ASCII, not a Latin letter.
func needsJoiner(r rune) bool {
	switch {
	case r < 0x80 || r == utf8.RuneError || unicode.IsSpace(r) || unicode.Is(unicode.Latin, r):
		return false
	case classify(r) == selector: // an emoji with its selector
		return true
	}
	return classify(r) == keep
}
