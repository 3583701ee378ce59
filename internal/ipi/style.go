package ipi

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"github.com/zeph-tools/zeph-mcp-tools/internal/cssselect"
)

// The limits of what is read from a page's own style sheets. What lies beyond
// them is not evaluated; a page needs none of it to be read.
const (
	maxStyleBytes = 512 << 10
	maxStyleRules = 2000
	maxStyleSteps = 8 << 20 // elements looked at for all rules together
	screenWidth   = 1280    // pixels, for media queries
)

// decl is one declared value with what decides between several.
type decl struct {
	value string
	rank  int // importance, then specificity; later wins among equals
}

// decls are the declarations of one element that matter here.
type decls map[string]decl

const important = 1 << 40

// inline outranks every selector that is not important.
const inline = 1 << 35

func (d decls) get(name string) string { return d[name].value }

// set records a declaration unless a stronger one is there.
func (d decls) set(name, value string, rank int) {
	if old, ok := d[name]; !ok || rank >= old.rank {
		d[name] = decl{value, rank}
	}
}

// declare adds the declarations of a block, which may hold any text.
func (d decls) declare(block string, rank int) {
	if strings.Contains(block, "/*") {
		block = stripComments(block)
	}
	for _, one := range splitOutside(block, ';') {
		name, value, ok := strings.Cut(one, ":")
		if !ok || strings.Contains(name, "{") {
			continue
		}
		name = strings.ToLower(strings.TrimSpace(unescape(name)))
		value = strings.ToLower(strings.TrimSpace(unescape(value)))
		r := rank
		if v, ok := strings.CutSuffix(value, "important"); ok && strings.HasSuffix(strings.TrimSpace(v), "!") {
			value, r = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "!")), rank+important
		}
		if relevant(name) && value != "" {
			d.set(name, value, r)
		}
	}
}

// unescape replaces the escapes of a style sheet by what they stand for.
func unescape(s string) string {
	before, rest, ok := strings.Cut(s, `\`)
	if !ok {
		return s
	}
	var b strings.Builder
	b.WriteString(before)
	for ok {
		n := 0
		for n < min(len(rest), 6) && strings.IndexByte("0123456789abcdefABCDEF", rest[n]) >= 0 {
			n++
		}
		if n > 0 { // else the next character stands for itself
			v, err := strconv.ParseUint(rest[:n], 16, 32)
			if err != nil || v == 0 || v > unicode.MaxRune {
				v = unicode.ReplacementChar
			}
			b.WriteRune(rune(v))
			rest = rest[n:]
			if rest != "" && strings.IndexByte(" \t\n", rest[0]) >= 0 {
				rest = rest[1:]
			}
		} else if rest != "" {
			b.WriteByte(rest[0])
			rest = rest[1:]
		}
		before, rest, ok = strings.Cut(rest, `\`)
		b.WriteString(before)
	}
	return b.String()
}

// relevant reports whether a property can hide text.
func relevant(name string) bool {
	switch name {
	case "display", "visibility", "opacity", "font-size", "font", "color", "background", "background-color",
		"background-image", "position", "left", "right", "top", "bottom", "margin-left", "margin-top",
		"text-indent", "transform", "scale", "filter", "clip", "clip-path", "width", "height", "max-width",
		"max-height", "overflow", "overflow-x", "overflow-y", "content-visibility", "-webkit-text-fill-color",
		"zoom", "inset", "translate":
		return true
	}
	return false
}

// sheet is the text of all style elements of a page.
func sheet(doc *html.Node) string {
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "style" || !inForce(n) {
			continue
		}
		for c := n.FirstChild; c != nil && b.Len() < maxStyleBytes; c = c.NextSibling {
			if c.Type == html.TextNode {
				b.WriteString(c.Data[:min(len(c.Data), maxStyleBytes-b.Len())])
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// inForce reports whether a style element is one of style, for a screen.
func inForce(n *html.Node) bool {
	kind, media := strings.TrimSpace(attr(n, "type")), strings.TrimSpace(attr(n, "media"))
	return (kind == "" || strings.EqualFold(kind, "text/css")) && (media == "" || onScreen(media))
}

// cascade applies a page's own style sheets and returns what they declare for
// each element, as far as it can hide text.
func cascade(doc *html.Node) map[*html.Node]decls {
	css := sheet(doc)
	out := map[*html.Node]decls{}
	if css == "" {
		return out
	}
	var ix *cssselect.Index
	budget, declared := maxStyleRules, 0
	eachRule(stripComments(css), func(selector, block string) {
		d := decls{}
		d.declare(block, 0)
		if len(d) == 0 || budget == 0 || len(selector) > 2048 || ix != nil && ix.Steps()+10*declared > maxStyleSteps {
			return
		}
		budget--
		if ix == nil {
			ix = cssselect.NewIndex(doc)
		}
		for _, alternative := range splitOutside(selector, ',') { // one bad alternative hides nothing else here
			s, err := cssselect.Parse(strings.TrimSpace(alternative))
			if err != nil {
				continue
			}
			for _, n := range ix.Select(s) {
				if out[n] == nil {
					out[n] = decls{}
				}
				declared += len(d)
				for name, v := range d {
					out[n].set(name, v.value, v.rank+s.Specificity())
				}
			}
		}
	})
	return out
}

// eachRule calls f for every style rule that is in force on a screen.
func eachRule(css string, f func(selector, block string)) {
	for css != "" {
		i := strings.IndexAny(css, "{;}")
		if i < 0 {
			return
		}
		prelude := strings.TrimSpace(css[:i])
		if css[i] != '{' {
			css = css[i+1:]
			continue
		}
		n := blockLen(css[i:])
		body := strings.TrimSuffix(css[i+1:i+n], "}")
		css = css[i+n:]
		name, rest, _ := strings.Cut(prelude, " ")
		switch {
		case !strings.HasPrefix(prelude, "@"):
			f(prelude, body)
		case name == "@media" && !onScreen(rest):
		case name == "@media", name == "@supports", strings.HasPrefix(name, "@layer"):
			eachRule(body, f)
		}
	}
}

// blockLen is the length of the block css starts with, its braces included.
func blockLen(css string) int {
	depth := 0
	for i := 0; i < len(css); i++ {
		switch css[i] {
		case '\\':
			i++
		case '"', '\'':
			if j := strings.IndexByte(css[i+1:], css[i]); j >= 0 {
				i += j + 1
			}
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(css)
}

func stripComments(css string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(css, "/*")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteByte(' ')
		_, css, _ = strings.Cut(after, "*/")
	}
}

// splitOutside splits at sep where it is not in quotes or parentheses.
func splitOutside(s string, sep byte) []string {
	var out []string
	start, depth := 0, 0
	var quote byte
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == sep && depth <= 0:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// onScreen decides a media query list for an ordinary desktop screen.
func onScreen(list string) bool {
	for _, query := range splitOutside(strings.ToLower(list), ',') {
		words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(query, "(", " ("), ")", ") "))
		text := strings.Join(words, " ")
		negated := strings.HasPrefix(text, "not ")
		text = strings.TrimPrefix(strings.TrimPrefix(text, "not "), "only ")
		yes := true
		for condition := range strings.SplitSeq(text, " and ") {
			yes = yes && holds(strings.TrimSpace(condition))
		}
		if yes != negated {
			return true
		}
	}
	return false
}

func holds(condition string) bool {
	switch condition {
	case "", "all", "screen":
		return true
	}
	name, value, _ := strings.Cut(strings.Trim(condition, "() "), ":")
	px, ok := pixels(strings.TrimSpace(value))
	switch strings.TrimSpace(name) {
	case "min-width":
		return ok && px <= screenWidth
	case "max-width":
		return ok && px >= screenWidth
	}
	return false
}

// pixels reads a length. Relative units are taken for an ordinary screen.
func pixels(v string) (float64, bool) {
	i := strings.IndexFunc(v, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' && r != '+' })
	unit := ""
	if i >= 0 {
		v, unit = v[:i], strings.TrimSpace(v[i:])
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(n) {
		return 0, false
	}
	switch unit {
	case "", "px":
		return n, true
	case "em", "rem", "ch", "ex":
		return n * 16, true
	case "pt":
		return n * 4 / 3, true
	case "%", "vw", "vh", "vmin", "vmax":
		return n * 10, true
	case "cm":
		return n * 38, true
	case "mm":
		return n * 3.8, true
	case "in":
		return n * 96, true
	}
	return 0, false
}
