// Package glob matches whole texts against the patterns of rules: tool names,
// commands, paths. It is not the glob of a shell: a star spans everything, the
// slash and the newline included, so that a rule for /etc/* also holds for what
// lies deeper.
package glob

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPattern is the longest pattern in bytes.
const MaxPattern = 1024

// Glob is one compiled pattern. The zero Glob matches only the empty text.
type Glob struct {
	text   string
	tokens []token
	fold   bool
}

type token struct {
	star   bool
	any    bool // ?
	lit    rune
	set    []span // [...]
	negate bool
}

type span struct{ lo, hi rune }

// Compile reads a pattern: * is any run of characters, ? is one, [a-z] one of
// a set, [!a-z] one outside it, and a backslash takes the next character as it
// is.
func Compile(pattern string) (Glob, error) {
	switch {
	case pattern == "":
		return Glob{}, errors.New("the pattern is empty")
	case len(pattern) > MaxPattern:
		return Glob{}, fmt.Errorf("the pattern is longer than %d bytes", MaxPattern)
	case !utf8.ValidString(pattern):
		return Glob{}, errors.New("the pattern is not valid UTF-8")
	}
	g := Glob{text: pattern}
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		switch runes[i] {
		case '*':
			if n := len(g.tokens); n == 0 || !g.tokens[n-1].star {
				g.tokens = append(g.tokens, token{star: true})
			}
		case '?':
			g.tokens = append(g.tokens, token{any: true})
		case '[':
			t, end, err := class(runes, i)
			if err != nil {
				return Glob{}, err
			}
			g.tokens, i = append(g.tokens, t), end
		case '\\':
			if i++; i == len(runes) {
				return Glob{}, errors.New("the pattern ends in a lone backslash")
			}
			g.tokens = append(g.tokens, token{lit: runes[i]})
		default:
			g.tokens = append(g.tokens, token{lit: runes[i]})
		}
	}
	return g, nil
}

// class reads the set that opens at i and returns the place of its end.
func class(runes []rune, i int) (token, int, error) {
	t := token{}
	i++
	if i < len(runes) && (runes[i] == '!' || runes[i] == '^') {
		t.negate = true
		i++
	}
	for first := true; i < len(runes) && (runes[i] != ']' || first); first = false {
		lo := runes[i]
		hi := lo
		if i+2 < len(runes) && runes[i+1] == '-' && runes[i+2] != ']' {
			hi = runes[i+2]
			i += 2
		}
		if hi < lo {
			return t, 0, fmt.Errorf("the range %c-%c is backwards", lo, hi)
		}
		t.set = append(t.set, span{lo, hi})
		i++
	}
	if i >= len(runes) {
		return t, 0, errors.New("the pattern has a [ without its ]")
	}
	return t, i, nil
}

// Fold returns the pattern matching without regard to case.
func (g Glob) Fold() Glob {
	g.fold = true
	return g
}

// String returns the pattern as written.
func (g Glob) String() string { return g.text }

// Literal returns the text before the first special character.
func (g Glob) Literal() string {
	var b strings.Builder
	for _, t := range g.tokens {
		if t.star || t.any || t.set != nil {
			break
		}
		b.WriteRune(t.lit)
	}
	return b.String()
}

// Match reports whether the pattern matches the whole text. Its cost is at
// most the product of both lengths.
func (g Glob) Match(text string) bool {
	p, star, back := 0, -1, 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case p < len(g.tokens) && g.tokens[p].star:
			star, back = p, i
			p++
		case p < len(g.tokens) && g.one(g.tokens[p], r):
			p++
			i += size
		case star >= 0:
			_, skip := utf8.DecodeRuneInString(text[back:])
			back += skip
			p, i = star+1, back
		default:
			return false
		}
	}
	for p < len(g.tokens) && g.tokens[p].star {
		p++
	}
	return p == len(g.tokens)
}

func (g Glob) one(t token, r rune) bool {
	if t.in(r) {
		return true
	}
	if !g.fold {
		return false
	}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if t.in(f) {
			return true
		}
	}
	return false
}

func (t token) in(r rune) bool {
	if t.any {
		return true
	}
	if t.set == nil {
		return !t.star && t.lit == r
	}
	for _, s := range t.set {
		if s.lo <= r && r <= s.hi {
			return !t.negate
		}
	}
	return t.negate
}
