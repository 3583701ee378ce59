package config

import (
	"strconv"
	"strings"
)

// positions knows the line of every key that a file sets.
type positions map[string]int

// line returns the line of a key, or of what holds it. 0 means not known.
func (p positions) line(key string) int {
	for key != "" {
		if n, ok := p[key]; ok {
			return n
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return 0
}

// scan finds the lines of keys and table headers in a text that is known to be
// valid TOML.
func scan(src string) positions {
	s := &scanner{src: src, at: positions{}, counts: map[string]int{}}
	for s.pos < len(s.src) {
		s.blank()
		switch {
		case s.pos >= len(s.src):
		case s.src[s.pos] == '\n':
			s.pos++
		case s.src[s.pos] == '#':
			s.toLineEnd()
		case s.src[s.pos] == '[':
			s.header()
		default:
			s.keyValue()
		}
	}
	return s.at
}

type scanner struct {
	src     string
	pos     int
	counted int // up to here lines are counted
	lines   int // newlines before counted
	prefix  string
	counts  map[string]int // tables so far, of each array of tables
	at      positions
}

func (s *scanner) note(key string) {
	if _, ok := s.at[key]; ok || s.pos > len(s.src) {
		return
	}
	s.lines += strings.Count(s.src[s.counted:s.pos], "\n")
	s.counted = s.pos
	s.at[key] = s.lines + 1
}

func (s *scanner) blank() {
	for s.pos < len(s.src) && strings.IndexByte(" \t\r", s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) toLineEnd() {
	if i := strings.IndexByte(s.src[s.pos:], '\n'); i >= 0 {
		s.pos += i
		return
	}
	s.pos = len(s.src)
}

// header reads [a.b] or [[a.b]].
func (s *scanner) header() {
	double := strings.HasPrefix(s.src[s.pos:], "[[")
	s.pos++
	if double {
		s.pos++
	}
	path := ""
	for _, part := range s.keyParts() {
		path = join(path, part)
		if n, ok := s.counts[path]; ok && !strings.HasSuffix(path, "]") {
			path += "[" + strconv.Itoa(n-1) + "]"
		}
		if !double {
			s.note(path)
		}
	}
	if double {
		path = s.nextTable(path)
	}
	s.prefix = path
	s.note(path)
	s.toLineEnd()
}

// nextTable counts one more table of an array of tables.
func (s *scanner) nextTable(path string) string {
	if i := strings.LastIndexByte(path, '['); i >= 0 && strings.HasSuffix(path, "]") {
		path = path[:i]
	}
	s.note(path)
	n := s.counts[path]
	s.counts[path] = n + 1
	return path + "[" + strconv.Itoa(n) + "]"
}

// keyParts reads a dotted key and stops after it.
func (s *scanner) keyParts() []string {
	var parts []string
	for s.pos < len(s.src) {
		s.blank()
		if s.pos >= len(s.src) {
			break
		}
		switch c := s.src[s.pos]; {
		case c == '"' || c == '\'':
			start := s.pos
			s.str()
			parts = append(parts, unquoteKey(s.src[start:s.pos]))
		case isBare(c):
			start := s.pos
			for s.pos < len(s.src) && isBare(s.src[s.pos]) {
				s.pos++
			}
			parts = append(parts, s.src[start:s.pos])
		case c == '.':
			s.pos++
		default:
			return parts
		}
	}
	return parts
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func unquoteKey(lit string) string {
	if strings.HasPrefix(lit, "'") {
		return strings.Trim(lit, "'")
	}
	if s, err := strconv.Unquote(lit); err == nil {
		return s
	}
	return strings.Trim(lit, `"`)
}

// keyValue reads one key = value and stops after it.
func (s *scanner) keyValue() {
	start := s.pos
	path := s.prefix
	for _, part := range s.keyParts() {
		path = join(path, part)
		s.note(path)
	}
	if s.pos == start { // not valid TOML; do not loop
		s.toLineEnd()
		return
	}
	s.value(path)
}

// value steps over a value that may span lines. Items of a list are noted.
func (s *scanner) value(path string) {
	depth, index, fresh := 0, 0, false // fresh: the next character starts an item
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		if c == '\n' && depth <= 0 {
			return
		}
		if s.skipped(c) {
			continue
		}
		if fresh && depth == 1 {
			s.note(path + "[" + strconv.Itoa(index) + "]")
		}
		fresh = false
		switch c {
		case '"', '\'':
			s.str()
			continue
		case '[', '{':
			depth++
			fresh = depth == 1
		case ']', '}':
			depth--
		case ',':
			if depth == 1 {
				index++
				fresh = true
			}
		}
		s.pos++
	}
}

// skipped steps over a space or a comment.
func (s *scanner) skipped(c byte) bool {
	switch c {
	case '#':
		s.toLineEnd()
	case ' ', '\t', '\r', '\n':
		s.pos++
	default:
		return false
	}
	return true
}

// str steps over a string of any of the four kinds.
func (s *scanner) str() {
	quote := s.src[s.pos : s.pos+1]
	if strings.HasPrefix(s.src[s.pos:], quote+quote+quote) {
		quote += quote + quote
	}
	s.pos += len(quote)
	for s.pos < len(s.src) {
		switch {
		case quote[0] == '"' && s.src[s.pos] == '\\':
			s.pos += 2
		case strings.HasPrefix(s.src[s.pos:], quote):
			s.pos += len(quote)
			for len(quote) == 3 && s.pos < len(s.src) && s.src[s.pos] == quote[0] {
				s.pos++ // quotes that belong to the text
			}
			return
		default:
			s.pos++
		}
	}
	s.pos = min(s.pos, len(s.src))
}
