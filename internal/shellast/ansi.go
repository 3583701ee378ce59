package shellast

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansiC decodes the inside of $'…'. A NUL ends the text, as in bash.
func ansiC(s string) string {
	out, _ := unescape(s, true)
	return out
}

// unescape decodes backslash escapes: those of $'…' (ansi), or those of echo
// -e and printf. It reports whether \c or a NUL ended the text.
func unescape(s string, ansi bool) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c, ok := simpleEscape(s[i]); ok {
			b.WriteByte(c)
			continue
		}
		n, done := longEscape(&b, s[i:], ansi)
		if done {
			return b.String(), true
		}
		i += n - 1
	}
	return b.String(), false
}

func simpleEscape(c byte) (byte, bool) {
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
	case '\\', '\'', '"', '?':
		return c, true
	}
	return 0, false
}

// longEscape decodes the escape at the start of s (after its backslash) and
// returns how many bytes it took.
func longEscape(b *strings.Builder, s string, ansi bool) (n int, end bool) {
	switch c := s[0]; {
	case c == 'x':
		return number(b, s, 1, 2, 16, false)
	case c == 'u':
		return number(b, s, 1, 4, 16, true)
	case c == 'U':
		return number(b, s, 1, 8, 16, true)
	case c == '0' && !ansi:
		return number(b, s, 0, 4, 8, false)
	case c >= '0' && c <= '7':
		return number(b, s, 0, 3, 8, false)
	case c == 'c' && ansi:
		if len(s) < 2 {
			return 1, true
		}
		if s[1]&0x1f == 0 {
			return 2, true
		}
		b.WriteByte(s[1] & 0x1f)
		return 2, false
	case c == 'c':
		return 1, true
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1, false
}

func number(b *strings.Builder, s string, from, digits, base int, wide bool) (int, bool) {
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
	case v == 0:
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
