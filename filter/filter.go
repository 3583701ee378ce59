// Package filter makes command output fit to read: [Clean] takes out what only
// a terminal needs, [Cap] bounds the length. Neither loses a fact silently.
package filter

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns raw without terminal control: colours, titles, cursor moves,
// progress that was overwritten by a later state of itself, and struck-over
// letters. A state that was overwritten by something else stays, on a line of
// its own. Carriage returns before a newline go, a NUL becomes a newline. The
// result is never longer than raw, and cleaning it again changes nothing.
func Clean(raw string) string {
	first := indexControl(raw)
	if first < 0 {
		return raw
	}
	start := strings.LastIndexByte(raw[:first], '\n') + 1
	var out strings.Builder
	out.Grow(len(raw))
	out.WriteString(raw[:start])
	var l line
	for rest := raw[start:]; ; {
		text, after, more := strings.Cut(rest, "\n")
		if indexControl(text) < 0 {
			out.WriteString(text)
		} else {
			l.run(text, &out)
		}
		if !more {
			return out.String()
		}
		out.WriteByte('\n')
		rest = after
	}
}

// indexControl finds the first byte that is more than text, tabs and line or
// page ends.
func indexControl(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' && (c < '\t' || c > '\f') || c == 0x7f {
			return i
		}
	}
	return -1
}

// line is one line as a terminal would build it: states that a carriage return
// ended, and the one being written.
type line struct {
	states [][]byte
	cur    []byte
	pos    int  // where the next character goes in cur
	fresh  bool // no carriage return so far
	st     finder
	bell   finder
	out    *strings.Builder
}

func (l *line) run(text string, out *strings.Builder) {
	l.out, l.st, l.bell = out, finder{}, finder{}
	l.reset()
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == 0x1b:
			i += l.escape(text, i)
			continue
		case c == '\r':
			l.home()
		case c == '\b':
			_, w := utf8.DecodeLastRune(l.cur[:l.pos])
			l.pos -= w
		case c == 0:
			l.flush()
			out.WriteByte('\n')
			l.reset()
		case c < ' ' && (c < '\t' || c > '\f') || c == 0x7f:
		default:
			i += l.put(text[i:])
			continue
		}
		i++
	}
	l.flush()
}

func (l *line) reset() { l.states, l.cur, l.pos, l.fresh = l.states[:0], nil, 0, true }

// home is a carriage return: what comes next overwrites what stands there.
func (l *line) home() {
	if len(bytes.TrimSpace(l.cur)) > 0 {
		l.states = append(l.states, l.cur)
		l.cur = nil
	}
	l.cur, l.pos, l.fresh = l.cur[:0], 0, false
}

// put writes plain text up to the next control byte and returns its length.
func (l *line) put(s string) int {
	n := indexControl(s)
	if n < 0 {
		n = len(s)
	}
	end := l.pos // of what is overwritten, one character for each
	for i := 0; i < n && end < len(l.cur); {
		_, size := utf8.DecodeRuneInString(s[i:n])
		_, w := utf8.DecodeRune(l.cur[end:])
		i, end = i+size, end+w
	}
	l.cur = slices.Replace(l.cur, l.pos, end, []byte(s[:n])...)
	l.pos += n
	return n
}

// escape acts on the escape sequence at text[at:] and returns its length.
func (l *line) escape(text string, at int) int {
	s := text[at:]
	if len(s) < 2 {
		return len(s)
	}
	switch c := s[1]; {
	case c == '[':
		n := span(s, 2, 0x20, 0x3f)
		if n == len(s) || !in(s[n], 0x40, 0x7e) {
			return n // broken off: what follows is text
		}
		l.control(s[2:n], s[n])
		return n + 1
	case strings.IndexByte("]P^_X", c) >= 0:
		return l.stringSequence(text, at)
	case in(c, 0x20, 0x2f):
		n := span(s, 2, 0x20, 0x2f)
		if n < len(s) && in(s[n], 0x30, 0x7e) {
			n++
		}
		return n
	case in(c, 0x30, 0x7e):
		return 2
	}
	return 1
}

// in reports whether c lies between lo and hi.
func in(c, lo, hi byte) bool { return lo <= c && c <= hi }

// span returns the end of the run of bytes between lo and hi that starts at n.
func span(s string, n int, lo, hi byte) int {
	for n < len(s) && in(s[n], lo, hi) {
		n++
	}
	return n
}

// stringSequence returns the length of a sequence with a text in it, such as a
// window title or a link target. Without its end on this line only the
// introducer goes, so that no output is swallowed.
func (l *line) stringSequence(text string, at int) int {
	end := l.st.after(text, at+2, "\x1b\\")
	if text[at+1] == ']' {
		if bell := l.bell.after(text, at+2, "\a"); bell < end {
			return bell + 1 - at
		}
	}
	if end == len(text) {
		return 2
	}
	return end + 2 - at
}

// finder remembers where a text was found last, so that asking again further
// on does not search the same stretch twice.
type finder struct{ from, found int }

// after returns the first place of what in text from at on, len(text) when
// there is none.
func (f *finder) after(text string, at int, what string) int {
	if at < f.from || at > f.found || f.found == 0 {
		f.from, f.found = at, len(text)
		if i := strings.Index(text[at:], what); i >= 0 {
			f.found = at + i
		}
	}
	return f.found
}

// control acts on the two control sequences that matter for one line: erase in
// line, and going to the first column.
func (l *line) control(params string, final byte) {
	switch {
	case final == 'G' && (params == "" || params == "0" || params == "1"):
		l.home()
	case final == 'K' && params == "2":
		l.states, l.cur, l.pos = l.states[:0], nil, 0
	case final == 'K' && (params == "" || params == "0"):
		if len(l.cur) == 0 && !l.fresh {
			l.states = l.states[:0]
		}
		l.cur = l.cur[:l.pos]
	}
}

// flush writes the line: its last state, and before it every state that the
// next one does not supersede.
func (l *line) flush() {
	if len(l.states) == 0 {
		text := l.cur
		if !l.fresh {
			text = bytes.TrimRight(text, " \t")
		}
		l.out.Write(text)
		return
	}
	states := l.states
	if len(bytes.TrimSpace(l.cur)) > 0 {
		states = append(states, l.cur)
	}
	later := make(map[string]bool, len(states))
	keep := make([]bool, len(states))
	next := ""
	for i := len(states) - 1; i >= 0; i-- {
		s := skeleton(states[i])
		keep[i] = i == len(states)-1 || !later[s] && !strings.HasPrefix(next, s)
		later[s], next = true, s
	}
	wrote := false
	for i, s := range states {
		if !keep[i] {
			continue
		}
		if wrote {
			l.out.WriteByte('\n')
		}
		l.out.Write(bytes.TrimRight(s, " \t"))
		wrote = true
	}
}

// skeleton is what stays the same while a progress line counts: its letters,
// without units, which stand right behind a number.
func skeleton(s []byte) string {
	var out strings.Builder
	number := false
	for _, r := range string(s) {
		switch {
		case unicode.IsDigit(r):
			number = true
		case number && (unicode.IsLetter(r) || r == '/' || r == '.' || r == '%'):
		case unicode.IsLetter(r):
			out.WriteRune(r)
		default:
			number = false
		}
	}
	return out.String()
}
