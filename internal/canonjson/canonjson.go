// Package canonjson reduces the JSON arguments of a call to one form.
//
// Two texts that mean the same have the same canonical form, and a text that
// two readers could understand differently is refused: doubled keys, trailing
// data, invalid UTF-8, lone surrogates, and what is nested or sized beyond
// reason. Gates and tools decode only the canonical form, so neither can be
// shown something the other did not see.
package canonjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Limits of what is accepted.
const (
	MaxBytes = 1 << 20 // of the text as received and of its canonical form
	MaxDepth = 64      // objects and arrays, the root counted
)

// Canon returns the canonical form of raw: an object with keys sorted by code
// point at every level, no insignificant space, the shortest escapes, and each
// number written in one way by its exact value. An empty raw is {}. The error
// is a [*call.Error] that names the field. Canon is idempotent.
func Canon(raw []byte) (json.RawMessage, error) {
	if len(bytes.TrimLeft(raw, " \t\r\n")) == 0 {
		return json.RawMessage("{}"), nil
	}
	if len(raw) > MaxBytes {
		return nil, tooLarge()
	}
	p := &parser{src: raw}
	p.space()
	if p.peek() != '{' {
		return nil, call.TypeError("", "the arguments must be one JSON object", `send {"name": value, …}`)
	}
	root, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(raw) {
		return nil, p.fault("there is data after the end of the arguments", "send exactly one JSON object")
	}
	out := root.append(make([]byte, 0, len(raw)))
	if len(out) > MaxBytes {
		return nil, tooLarge()
	}
	return out, nil
}

func tooLarge() error {
	return call.ArgError("", fmt.Sprintf("the arguments are larger than %d bytes", MaxBytes), "send less at once")
}

// node is one parsed value. Exactly one of its parts is in use: text for a
// scalar, members for an object, elems for an array.
type node struct {
	open    byte // '{', '[' or 0 for a scalar
	text    []byte
	members []member
	elems   []node
}

type member struct {
	key   string
	value node
}

func (n node) append(out []byte) []byte {
	switch n.open {
	case '{':
		out = append(out, '{')
		for i, m := range n.members {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendString(out, m.key)
			out = append(out, ':')
			out = m.value.append(out)
		}
		return append(out, '}')
	case '[':
		out = append(out, '[')
		for i, e := range n.elems {
			if i > 0 {
				out = append(out, ',')
			}
			out = e.append(out)
		}
		return append(out, ']')
	default:
		return append(out, n.text...)
	}
}

// parser is a strict recursive-descent reader of one JSON text.
type parser struct {
	src  []byte
	pos  int
	path []step
}

// step is one part of the way to the value being read.
type step struct {
	key   string
	index int // used when key is not set
	array bool
}

// field renders the way to the current value as items[2].name.
func (p *parser) field() string {
	var b []byte
	for i, s := range p.path {
		switch {
		case s.array:
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(s.index), 10)
			b = append(b, ']')
		case i == 0:
			b = append(b, s.key...)
		default:
			b = append(b, '.')
			b = append(b, s.key...)
		}
	}
	if len(b) > 200 {
		b = append(bytes.ToValidUTF8(b[:200], nil), "…"...)
	}
	return string(b)
}

func (p *parser) fault(message, suggestion string) error {
	return call.ArgError(p.field(), fmt.Sprintf("%s (byte %d)", message, p.pos), suggestion)
}

func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value() (node, error) {
	p.space()
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.str()
		if err != nil {
			return node{}, err
		}
		return node{text: appendString(nil, s)}, nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(p.src[p.pos:], []byte(word)) {
			p.pos += len(word)
			return node{text: []byte(word)}, nil
		}
	}
	return node{}, p.fault("the arguments are not valid JSON", "send one valid JSON object")
}

func (p *parser) enter() error {
	if len(p.path) >= MaxDepth {
		return p.fault(fmt.Sprintf("values are nested deeper than %d", MaxDepth), "send a flatter value")
	}
	p.pos++ // the opening bracket
	p.space()
	return nil
}

// next reads what follows one element. It reports whether the container ends.
func (p *parser) next(end byte) (done bool, err error) {
	p.space()
	switch p.peek() {
	case ',':
		p.pos++
		p.space()
		return false, nil
	case end:
		p.pos++
		return true, nil
	}
	return false, p.fault("the arguments are not valid JSON: expected , or "+string(rune(end)), "send one valid JSON object")
}

func (p *parser) object() (node, error) {
	n := node{open: '{'}
	if err := p.enter(); err != nil {
		return n, err
	}
	if p.peek() == '}' {
		p.pos++
		return n, nil
	}
	for done := false; !done; {
		m, err := p.member()
		if err != nil {
			return n, err
		}
		n.members = append(n.members, m)
		if done, err = p.next('}'); err != nil {
			return n, err
		}
	}
	slices.SortFunc(n.members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	for i := 1; i < len(n.members); i++ {
		if key := n.members[i].key; key == n.members[i-1].key {
			p.path = append(p.path, step{key: key})
			return n, call.ArgError(p.field(), "the key is given twice", "give each argument once")
		}
	}
	return n, nil
}

func (p *parser) member() (member, error) {
	if p.peek() != '"' {
		return member{}, p.fault("the arguments are not valid JSON: expected a key in quotes", "send one valid JSON object")
	}
	key, err := p.str()
	if err != nil {
		return member{}, err
	}
	p.path = append(p.path, step{key: key})
	p.space()
	if p.peek() != ':' {
		return member{}, p.fault("the arguments are not valid JSON: expected :", "send one valid JSON object")
	}
	p.pos++
	v, err := p.value()
	if err != nil {
		return member{}, err
	}
	p.path = p.path[:len(p.path)-1]
	return member{key: key, value: v}, nil
}

func (p *parser) array() (node, error) {
	n := node{open: '['}
	if err := p.enter(); err != nil {
		return n, err
	}
	if p.peek() == ']' {
		p.pos++
		return n, nil
	}
	for done := false; !done; {
		p.path = append(p.path, step{array: true, index: len(n.elems)})
		v, err := p.value()
		if err != nil {
			return n, err
		}
		p.path = p.path[:len(p.path)-1]
		n.elems = append(n.elems, v)
		if done, err = p.next(']'); err != nil {
			return n, err
		}
	}
	return n, nil
}

// str reads a string literal and returns what it means.
func (p *parser) str() (string, error) {
	p.pos++ // the opening quote
	var b []byte
	for start := p.pos; ; {
		if p.pos >= len(p.src) {
			return "", p.fault("a string does not end", "close the string with a quote")
		}
		switch c := p.src[p.pos]; {
		case c == '"':
			b = append(b, p.src[start:p.pos]...)
			p.pos++
			return string(b), nil
		case c == '\\':
			b = append(b, p.src[start:p.pos]...)
			var err error
			if b, err = p.escape(b); err != nil {
				return "", err
			}
			start = p.pos
		case c < ' ':
			return "", p.fault("a string holds a raw control character", `write it as an escape, such as \n`)
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.src[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fault("a string is not valid UTF-8", "send text as UTF-8")
			}
			p.pos += size
		}
	}
}

// escape reads one backslash escape, or a surrogate pair of them.
func (p *parser) escape(b []byte) ([]byte, error) {
	p.pos++ // the backslash
	c := p.peek()
	p.pos++
	switch c {
	case '"', '\\', '/':
		return append(b, c), nil
	case 'b':
		return append(b, '\b'), nil
	case 'f':
		return append(b, '\f'), nil
	case 'n':
		return append(b, '\n'), nil
	case 'r':
		return append(b, '\r'), nil
	case 't':
		return append(b, '\t'), nil
	case 'u':
		r, ok := p.codePoint()
		if !ok {
			return b, p.fault(`a \u escape does not name a character`, "write the character itself")
		}
		return utf8.AppendRune(b, r), nil
	}
	return b, p.fault("a string holds an unknown escape", `use \" \\ \/ \b \f \n \r \t or \uXXXX`)
}

// codePoint reads the four digits after \u and, for a surrogate, the pair's
// second half. A surrogate that is alone names no character.
func (p *parser) codePoint() (rune, bool) {
	hi, ok := p.hex4()
	if !ok || hi >= 0xDC00 && hi <= 0xDFFF {
		return 0, false
	}
	if hi < 0xD800 || hi > 0xDFFF {
		return hi, true
	}
	if p.peek() != '\\' || p.pos+1 >= len(p.src) || p.src[p.pos+1] != 'u' {
		return 0, false
	}
	p.pos += 2
	lo, ok := p.hex4()
	if !ok || lo < 0xDC00 || lo > 0xDFFF {
		return 0, false
	}
	return 0x10000 + (hi-0xD800)<<10 + (lo - 0xDC00), true
}

func (p *parser) hex4() (rune, bool) {
	if p.pos+4 > len(p.src) {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.pos : p.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.pos += 4
	return r, true
}

const hexDigits = "0123456789abcdef"

// appendString writes s as a JSON string with the shortest escapes, so the
// canonical form of a string is never longer than any other form of it.
func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	out = append(out, s[start:]...)
	return append(out, '"')
}
