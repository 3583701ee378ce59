package shellast

import (
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// braceText is the text of a word, or a part of it. Brace expansion comes before
// everything else and knows nothing of variables: $x{a,b} is $xa and $xb.
type braceText struct {
	s    string
	live []bool // bytes that are neither quoted nor inside an expansion
}

func (t braceText) cut(from, to int) braceText {
	return braceText{s: t.s[from:to], live: t.live[from:to]}
}

func (t braceText) is(i int, c byte) bool { return i < len(t.s) && t.s[i] == c && t.live[i] }

// braces returns the words that brace expansion makes of a word, nil when it
// holds none, and false when there are too many or they cannot be read. They
// are parsed anew, by a walker of their own text.
func (w *walker) braces(x *syntax.Word) (words []braceWord, ok bool) {
	t, any := w.braceText(x)
	if !any {
		return nil, true
	}
	texts, ok := t.expand()
	if !ok {
		return nil, false
	}
	if len(texts) == 1 && texts[0] == t.s {
		return nil, true
	}
	return w.braceWords(texts, w.pos(x))
}

func (w *walker) braceWords(texts []string, pos call.Pos) (words []braceWord, ok bool) {
	for _, text := range texts {
		if w.common.left -= len(text); w.common.left < 0 {
			return nil, false
		}
		n := *w
		n.src, n.base = text, &pos
		e := braceWord{w: &n}
		for x, err := range syntax.NewParser().WordsSeq(strings.NewReader(text)) {
			if err != nil || len(e.words) > 0 {
				return nil, false
			}
			e.words = append(e.words, x)
		}
		words = append(words, e)
	}
	return words, true
}

// braceWord is one word out of a brace expansion, or none when it is empty.
type braceWord struct {
	w     *walker
	words []*syntax.Word
}

// braceText is a word as text, and whether it holds an open brace that counts.
func (w *walker) braceText(x *syntax.Word) (t braceText, any bool) {
	for _, p := range x.Parts {
		l, ok := p.(*syntax.Lit)
		any = any || ok && strings.Contains(l.Value, "{")
	}
	if !any {
		return t, false
	}
	for _, p := range x.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			s := w.text(p)
			t.s += s
			t.live = append(t.live, make([]bool, len(s))...)
			continue
		}
		v := strings.ReplaceAll(l.Value, "\\\n", "")
		for i := 0; i < len(v); i++ {
			if t.live = append(t.live, v[i] != '\\'); v[i] == '\\' && i+1 < len(v) {
				i++
				t.live = append(t.live, false)
			}
		}
		t.s += v
	}
	return t, true
}

// end is where a byte stands outside all inner braces, -1 when it does not. A
// closing brace counts only behind a comma or a sequence.
func (t braceText) end(from int, want byte) int {
	level, items := 0, 0
	for i := from; i < len(t.s); i++ {
		switch {
		case !t.live[i]:
		case level == 0 && t.s[i] == want && (want != '}' || items > 0) && !t.emptyPair(i):
			return i
		case t.s[i] == '{':
			level++
		case t.s[i] == '}' && level > 0:
			level--
		case level == 0 && t.separates(i):
			items++
		}
	}
	return -1
}

// separates reports whether a comma or the dots of a sequence stand at i.
func (t braceText) separates(i int) bool {
	return t.is(i, ',') || t.is(i, '.') && t.is(i+1, '.') && !t.is(i+2, '}')
}

// emptyPair reports whether {} begins the text, where it stays as it is.
func (t braceText) emptyPair(i int) bool { return i == 0 && t.is(0, '{') && t.is(1, '}') }

// first is where the first braces that count stand, -1 when there are none.
func (t braceText) first() (from, to int) {
	for from = t.end(0, '{'); from >= 0; {
		if to = t.end(from+1, '}'); to >= 0 {
			return from, to
		}
		next := t.cut(from+1, len(t.s)).end(0, '{')
		if next < 0 {
			break
		}
		from += 1 + next
	}
	return -1, -1
}

// expand returns the texts a text becomes.
func (t braceText) expand() ([]string, bool) {
	from, to := t.first()
	if from < 0 {
		return []string{t.s}, true
	}
	inner, rest := t.cut(from+1, to), t.cut(to+1, len(t.s))
	middle, ok := inner.alternatives()
	if middle == nil && ok {
		middle = []string{t.s[from : to+1]}
	}
	after := []string{""}
	if ok && rest.s != "" {
		after, ok = rest.expand()
	}
	if !ok || len(middle)*len(after) > maxBraces {
		return nil, false
	}
	out := make([]string, 0, len(middle)*len(after))
	for _, m := range middle {
		for _, a := range after {
			out = append(out, t.s[:from]+m+a)
		}
	}
	return out, true
}

// alternatives is what stands between two braces: a list, or a sequence; nil
// when it is neither.
func (t braceText) alternatives() ([]string, bool) {
	if !t.hasComma() {
		return sequence(t.s)
	}
	var out []string
	for {
		n := t.end(0, ',')
		item := t
		if n >= 0 {
			item = t.cut(0, n)
		}
		texts, ok := item.expand()
		if out = append(out, texts...); !ok || len(out) > maxBraces {
			return nil, false
		}
		if n < 0 {
			return out, true
		}
		t = t.cut(n+1, len(t.s))
	}
}

// hasComma looks into quotes and inner braces as well, as bash does.
func (t braceText) hasComma() bool {
	for i := 0; i < len(t.s); i++ {
		switch t.s[i] {
		case '\\':
			i++
		case ',':
			return true
		}
	}
	return false
}

// sequence is FROM..TO or FROM..TO..STEP, of numbers or letters.
func sequence(s string) ([]string, bool) {
	parts := strings.Split(s, "..")
	if len(parts) != 2 && len(parts) != 3 {
		return nil, true
	}
	from, to := parts[0], parts[1]
	lo, hi, letters, ok := ends(from, to)
	if !ok {
		return nil, true
	}
	step, err := strconv.Atoi(strings.Join(parts[2:], ""))
	if err != nil && len(parts) == 3 {
		return nil, true
	}
	step = max(step, -step, 1)
	size := max(hi-lo, lo-hi)
	if size < 0 || size/step >= maxBraces {
		return nil, false
	}
	format := "%d"
	switch {
	case letters:
		format = "%c"
	case padded(from) || padded(to): // all to the width of the wider end
		format = fmt.Sprintf("%%0%dd", max(len(from), len(to)))
	}
	out := make([]string, 0, size/step+1)
	for i := range cap(out) {
		if n := i * step; hi < lo {
			out = append(out, fmt.Sprintf(format, lo-n))
		} else {
			out = append(out, fmt.Sprintf(format, lo+n))
		}
	}
	return out, true
}

// ends are the two ends of a sequence: numbers or letters, but not one of each.
func ends(from, to string) (lo, hi int, letters, ok bool) {
	if isLetter(from) && isLetter(to) {
		return int(from[0]), int(to[0]), true, true
	}
	lo, err1 := strconv.Atoi(from)
	hi, err2 := strconv.Atoi(to)
	return lo, hi, false, err1 == nil && err2 == nil
}

func isLetter(s string) bool { return len(s) == 1 && s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z' }

func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}
