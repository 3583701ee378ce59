package shellast

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// escapes says whose backslash escapes a text has: each reader knows others.
type escapes uint8

const (
	ansiEscapes   escapes = iota // $'…'
	echoEscapes                  // echo -e
	formatEscapes                // the format of printf
	printfEscapes                // %b of printf
)

// ansiC decodes the inside of $'…'. A NUL ends the text, as in bash.
func ansiC(s string) string {
	out, _ := unescape(s, ansiEscapes)
	return out
}

// unescape decodes backslash escapes. It reports whether \c, or a NUL in $'…',
// ended the text.
func unescape(s string, of escapes) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c, ok := simpleEscape(s[i], of); ok {
			b.WriteByte(c)
			continue
		}
		n, done := longEscape(&b, s[i:], of)
		if done {
			return b.String(), true
		}
		i += n - 1
	}
	return b.String(), false
}

func simpleEscape(c byte, of escapes) (byte, bool) {
	switch c {
	case 'a':
		return 7, true
	case 'b':
		return 8, true
	case 'e', 'E':
		return 27, true
	case 'f':
		return 12, true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'v':
		return 11, true
	case '\\':
		return c, true
	case '\'', '"', '?':
		return c, of == ansiEscapes || of == formatEscapes
	}
	return 0, false
}

// longEscape decodes the escape at the start of s (after its backslash) and
// returns how many bytes it took.
func longEscape(b *strings.Builder, s string, of escapes) (n int, end bool) {
	ansi := of == ansiEscapes
	switch c := s[0]; {
	case c == 'x':
		return number(b, s, 1, 2, 16, false, ansi)
	case c == 'u':
		return number(b, s, 1, 4, 16, true, ansi)
	case c == 'U':
		return number(b, s, 1, 8, 16, true, ansi)
	case c == '0' && (of == echoEscapes || of == printfEscapes):
		return number(b, s, 0, 4, 8, false, ansi)
	case c >= '0' && c <= '7' && of != echoEscapes:
		return number(b, s, 0, 3, 8, false, ansi)
	case c == 'c' && ansi:
		return control(b, s)
	case c == 'c' && of != formatEscapes:
		return 1, true
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1, false
}

// control decodes the control character \cX. The one of "@" is a NUL.
func control(b *strings.Builder, s string) (n int, end bool) {
	if len(s) < 2 || s[1]&0x1f == 0 {
		return len(s), true
	}
	b.WriteByte(s[1] & 0x1f)
	return 2, false
}

func number(b *strings.Builder, s string, from, digits, base int, wide, nulEnds bool) (int, bool) {
	n := from
	for n < len(s) && n < from+digits && isDigit(s[n], base) {
		n++
	}
	if n == from {
		b.WriteByte('\\')
		b.WriteString(s[:n])
		return max(n, 1), false
	}
	v, err := strconv.ParseUint(s[from:n], base, 32)
	if err != nil {
		return n, false
	}
	switch {
	case v == 0 && nulEnds:
		return n, true
	case wide:
		b.WriteString(string(utf8.AppendRune(nil, rune(v))))
	default:
		b.WriteByte(byte(v))
	}
	return n, false
}

func isDigit(c byte, base int) bool {
	switch {
	case c >= '0' && c <= '7':
		return true
	case c >= '8' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		return base == 16
	}
	return false
}
