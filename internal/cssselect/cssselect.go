// Package cssselect finds the elements a CSS selector names, in time that
// grows with the size of the document and of the selector and never with their
// powers.
//
// One compound ("a.x[href]") is left to cascadia. What cascadia tries by
// backtracking, the combinators between compounds, is done here by sets: a
// chain of twenty "*" on a page five hundred elements deep would otherwise
// take for ever, and both the model and the style sheet of a page can write
// one.
package cssselect

import (
	"errors"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// ErrTooComplex is returned for a selector that cannot be evaluated in bounded
// time: a selector inside :has or :not that is not a single compound.
var ErrTooComplex = errors.New(":has and :not take one compound without a nested :has")

// Selector is a parsed selector list. It is safe for concurrent use.
type Selector struct {
	chains []chain
}

// chain is one alternative of a list: compounds from left to right.
type chain []link

type link struct {
	combinator byte // how it hangs on the one before: ' ', '>', '+', '~'; 0 for the first
	match      cascadia.Sel
	keys       keys
}

// keys are names an element must have for a compound to match.
type keys struct {
	tag     string
	id      string
	classes []string
}

// Parse reads a selector list. The error tells what is wrong in words of the
// parser and may be shown.
func Parse(text string) (*Selector, error) {
	s := &Selector{}
	for _, alternative := range split(text) {
		c := make(chain, 0, len(alternative))
		for _, p := range alternative {
			if err := bounded(p.text); err != nil {
				return nil, err
			}
			sel, err := cascadia.Parse(p.text)
			if err != nil {
				return nil, err
			}
			c = append(c, link{combinator: p.combinator, match: sel, keys: keysOf(p.text)})
		}
		if len(c) == 0 || c[0].combinator != 0 {
			return nil, errors.New("an alternative of the selector is empty or starts with a combinator")
		}
		s.chains = append(s.chains, c)
	}
	return s, nil
}

// Specificity is the highest of the list, comparable with >.
func (s *Selector) Specificity() int {
	most := 0
	for _, c := range s.chains {
		sum := 0
		for _, l := range c {
			n := l.match.Specificity()
			sum += n[0]<<20 + n[1]<<10 + n[2]
		}
		most = max(most, sum)
	}
	return most
}

// part is one compound as text.
type part struct {
	combinator byte
	text       string
}

// split takes a selector list apart at its commas and combinators. It does not
// look inside brackets, parentheses, strings or escapes.
func split(text string) [][]part {
	var out [][]part
	var cur []part
	var b strings.Builder
	var comb byte
	flush := func() {
		if b.Len() > 0 {
			cur = append(cur, part{comb, b.String()})
			comb = 0
			b.Reset()
		}
	}
	for i := 0; i < len(text); {
		n := opaque(text[i:])
		if n > 0 {
			b.WriteString(text[i : i+n])
			i += n
			continue
		}
		switch c := text[i]; c {
		case ',':
			flush()
			out, cur, comb = append(out, dangling(cur, comb)), nil, 0
		case '>', '+', '~':
			flush()
			cur = dangling(cur, comb)
			comb = c
		case ' ', '\t', '\n', '\r', '\f':
			flush()
			if comb == 0 && len(cur) > 0 {
				comb = ' '
			}
		default:
			b.WriteByte(c)
		}
		i++
	}
	flush()
	return append(out, dangling(cur, comb))
}

// dangling adds the empty compound that a trailing combinator leaves, so that
// the parser refuses it. A trailing space is no combinator.
func dangling(cur []part, comb byte) []part {
	if comb != 0 && comb != ' ' {
		return append(cur, part{comb, ""})
	}
	return cur
}

// opaque returns the length of the escape, string, bracket or parenthesis that
// text starts with, 0 when it starts with none.
func opaque(text string) int {
	switch text[0] {
	case '\\':
		return min(2, len(text))
	case '"', '\'':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case text[0]:
				return i + 1
			}
		}
		return len(text)
	case '[', '(':
		closing := map[byte]byte{'[': ']', '(': ')'}[text[0]]
		for i := 1; i < len(text); {
			if text[i] == closing {
				return i + 1
			}
			i += max(opaque(text[i:]), 1)
		}
		return len(text)
	}
	return 0
}

// bounded refuses a compound whose functional parts cascadia would evaluate by
// backtracking.
func bounded(compound string) error {
	lower := strings.ToLower(compound)
	for i := 0; i < len(lower); {
		n := opaque(lower[i:])
		if n == 0 || lower[i] != '(' {
			i += max(n, 1)
			continue
		}
		name := lower[strings.LastIndexByte(lower[:i], ':')+1 : i]
		inner := strings.TrimSuffix(lower[i+1:i+n], ")")
		switch name {
		case "has", "haschild", "not", "is", "where", "matches-any":
			if strings.Contains(inner, ":has") {
				return ErrTooComplex
			}
			for _, alternative := range split(inner) {
				if len(alternative) > 1 {
					return ErrTooComplex
				}
			}
		}
		i += n
	}
	return nil
}

// keysOf reads the plain names at the start of a compound; it stops at the
// first thing it does not know.
func keysOf(compound string) keys {
	var k keys
	name := func(i int) int {
		j := i
		for j < len(compound) && (compound[j] == '-' || compound[j] == '_' || compound[j] >= 0x80 || isAlnum(compound[j])) {
			j++
		}
		return j
	}
	i := name(0)
	if strings.ContainsAny(compound, `\|`) {
		return k
	}
	k.tag = strings.ToLower(compound[:i])
	for i < len(compound) && (compound[i] == '.' || compound[i] == '#') {
		j := name(i + 1)
		if compound[i] == '.' {
			k.classes = append(k.classes, compound[i+1:j])
		} else {
			k.id = compound[i+1 : j]
		}
		i = j
	}
	return k
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Index is a document prepared for selection. It holds for as long as the tree
// is not changed.
type Index struct {
	nodes   []*html.Node // elements in document order
	parent  []int32      // index of the parent element, -1 at the top
	prev    []int32      // index of the previous sibling element, -1 at the first
	byTag   map[string][]int32
	byClass map[string][]int32
	byID    map[string][]int32
	steps   int
}

// Steps is how much work the selections so far were, in elements looked at. An
// Index is not safe for concurrent use because of it.
func (ix *Index) Steps() int { return ix.steps }

// NewIndex prepares the elements below root, root included.
func NewIndex(root *html.Node) *Index {
	ix := &Index{byTag: map[string][]int32{}, byClass: map[string][]int32{}, byID: map[string][]int32{}}
	ix.add(root, -1, -1)
	return ix
}

func (ix *Index) add(n *html.Node, parent, prev int32) int32 {
	self := int32(-1)
	if n.Type == html.ElementNode {
		self = int32(len(ix.nodes))
		ix.nodes = append(ix.nodes, n)
		ix.parent = append(ix.parent, parent)
		ix.prev = append(ix.prev, prev)
		ix.byTag[n.Data] = append(ix.byTag[n.Data], self)
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				ix.byID[a.Val] = append(ix.byID[a.Val], self)
			case "class":
				for c := range strings.FieldsSeq(a.Val) {
					if l := ix.byClass[c]; len(l) == 0 || l[len(l)-1] != self {
						ix.byClass[c] = append(l, self)
					}
				}
			}
		}
		parent = self
	}
	last := int32(-1)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if i := ix.add(c, parent, last); i >= 0 {
			last = i
		}
	}
	return self
}

// Select returns the elements a selector names, in document order.
func (ix *Index) Select(s *Selector) []*html.Node {
	var marks []bool
	for _, c := range s.chains {
		if set := ix.chain(c); set != nil {
			if marks == nil {
				marks = make([]bool, len(ix.nodes))
			}
			for _, i := range set {
				marks[i] = true
			}
		}
	}
	var out []*html.Node
	for i, yes := range marks {
		if yes {
			out = append(out, ix.nodes[i])
		}
	}
	return out
}

// chain evaluates one alternative from left to right.
func (ix *Index) chain(c chain) []int32 {
	for _, l := range c {
		if got, all := ix.candidates(l.keys); !all && len(got) == 0 {
			return nil // some compound can match nothing
		}
	}
	var set []int32
	for _, l := range c {
		var near []bool
		if l.combinator != 0 {
			near = ix.spread(set, l.combinator)
		}
		set = ix.compound(l, near)
		if len(set) == 0 {
			return nil
		}
	}
	return set
}

// compound returns the elements that match one compound and are near, which
// nil leaves out of the question.
func (ix *Index) compound(l link, near []bool) []int32 {
	var out []int32
	test := func(i int32) {
		if (near == nil || near[i]) && l.match.Match(ix.nodes[i]) {
			out = append(out, i)
		}
	}
	got, all := ix.candidates(l.keys)
	if all {
		ix.steps += len(ix.nodes)
		for i := range ix.nodes {
			test(int32(i))
		}
		return out
	}
	ix.steps += len(got)
	for _, i := range got {
		test(i)
	}
	return out
}

// candidates returns the shortest list of elements a compound can match; all
// means any element.
func (ix *Index) candidates(k keys) (list []int32, all bool) {
	all = true
	consider := func(l []int32) {
		if all || len(l) < len(list) {
			list, all = l, false
		}
	}
	if k.tag != "" {
		consider(ix.byTag[k.tag])
	}
	if k.id != "" {
		consider(ix.byID[k.id])
	}
	for _, c := range k.classes {
		consider(ix.byClass[c])
	}
	return list, all
}

// spread marks every element that stands in the relation of a combinator to
// some element of set. Parents and earlier siblings come first in document
// order, so one pass is enough.
func (ix *Index) spread(set []int32, combinator byte) []bool {
	ix.steps += len(ix.nodes) / 8 // far cheaper than matching
	in := make([]bool, len(ix.nodes))
	for _, i := range set {
		in[i] = true
	}
	out := make([]bool, len(ix.nodes))
	for i := range ix.nodes {
		from := ix.parent[i]
		if combinator == '+' || combinator == '~' {
			from = ix.prev[i]
		}
		if from < 0 {
			continue
		}
		out[i] = in[from] || (combinator == ' ' || combinator == '~') && out[from]
	}
	return out
}
