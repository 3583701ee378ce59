package shellast

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// braces returns the words a brace expansion makes, and false when there are
// too many to list.
func braces(x *syntax.Word) ([]*syntax.Word, bool) {
	if !syntax.SplitBraces(x) {
		for _, p := range x.Parts {
			if _, ok := p.(*syntax.BraceExp); ok {
				return expand(x.Parts)
			}
		}
		return []*syntax.Word{x}, true
	}
	return expand(x.Parts)
}

func expand(parts []syntax.WordPart) ([]*syntax.Word, bool) {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		br, ok := p.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i], p)
			}
			continue
		}
		alts, ok := alternatives(br)
		if !ok || len(alts)*len(out) > maxBraces {
			return nil, false
		}
		next := make([][]syntax.WordPart, 0, len(out)*len(alts))
		for _, o := range out {
			for _, a := range alts {
				next = append(next, append(append([]syntax.WordPart(nil), o...), a...))
			}
		}
		out = next
	}
	words := make([]*syntax.Word, len(out))
	for i, o := range out {
		words[i] = &syntax.Word{Parts: o}
	}
	return words, true
}

func alternatives(b *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if b.Sequence {
		return sequence(b)
	}
	var out [][]syntax.WordPart
	for _, e := range b.Elems {
		ws, ok := expand(e.Parts)
		if !ok || len(out)+len(ws) > maxBraces {
			return nil, false
		}
		for _, w := range ws {
			out = append(out, w.Parts)
		}
	}
	return out, true
}

func sequence(b *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	lo, err1 := strconv.Atoi(from)
	hi, err2 := strconv.Atoi(to)
	chars := err1 != nil || err2 != nil
	if chars {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		lo, hi = int(from[0]), int(to[0])
	}
	step := 1
	if len(b.Elems) > 2 {
		n, err := strconv.Atoi(b.Elems[2].Lit())
		if err != nil {
			return nil, false
		}
		step = max(n, -n, 1)
	}
	if max(hi-lo, lo-hi)/step >= maxBraces {
		return nil, false
	}
	var out [][]syntax.WordPart
	for i := 0; i <= max(hi-lo, lo-hi); i += step {
		n := lo + i
		if hi < lo {
			n = lo - i
		}
		s := strconv.Itoa(n)
		if chars {
			s = string(rune(n))
		}
		out = append(out, []syntax.WordPart{&syntax.Lit{ValuePos: b.Pos(), ValueEnd: b.End(), Value: s}})
	}
	return out, true
}
