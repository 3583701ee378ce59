package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// capReserve is room for the announcement of a cut.
const capReserve = 112

// Cap bounds text to limit bytes. A longer text loses its middle, at line ends
// where there are some near, else between characters, and the cut is announced
// in its place. The second result says whether there was a cut. A limit too
// small for an announcement leaves the announcement alone.
func Cap(text string, limit int) (string, bool) {
	if len(text) <= limit {
		return text, false
	}
	room := max(limit-capReserve, 0)
	head := headCut(text, room/2)
	tail := tailCut(text[head:], room-room/2)
	lines := strings.Count(text[head:len(text)-tail], "\n")
	note := fmt.Sprintf("[… %d of %d bytes (%d lines) left out here: first %d and last %d kept …]",
		len(text)-head-tail, len(text), lines, head, tail)
	var out strings.Builder
	out.WriteString(text[:head])
	if head > 0 && text[head-1] != '\n' {
		out.WriteByte('\n')
	}
	out.WriteString(note)
	if tail > 0 {
		out.WriteByte('\n')
	}
	out.WriteString(text[len(text)-tail:])
	return out.String(), true
}

// headCut returns how many of at most n leading bytes to keep.
func headCut(s string, n int) int {
	if i := strings.LastIndexByte(s[:n], '\n'); i >= 0 && i >= n/2 {
		return i + 1
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// tailCut returns how many of at most n trailing bytes to keep.
func tailCut(s string, n int) int {
	n = min(n, len(s))
	at := len(s) - n
	if at > 0 && s[at-1] == '\n' {
		return n
	}
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 && i < n/2 {
		return n - i - 1
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return len(s) - at
}
