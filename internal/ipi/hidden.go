package ipi

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// Prune removes from a parsed page everything a person would not see: what
// browsers never show (comments, scripts, templates, the head but its title,
// closed dialogs, fallback content), what attributes hide, and what inline
// styles or the page's own style sheets hide (display, visibility, opacity,
// font size, off-screen and clipped boxes, text in the colour of its
// background). Style sheets in other files are not fetched. It returns how
// many pieces that held text were removed, scripts and styles not counted.
func Prune(doc *html.Node) int {
	p := pruner{styles: cascade(doc), external: linksStyles(doc)}
	p.children(doc, seen{background: p.page()})
	return p.removed
}

type pruner struct {
	styles   map[*html.Node]decls
	external bool // there are style sheets that were not read
	removed  int
}

// seen is what an element inherits.
type seen struct {
	invisible  bool // visibility
	tiny       bool // font-size 0
	color      color
	background color
}

// page is the background a page starts with: white, unless a sheet that was
// not read may say otherwise.
func (p *pruner) page() color {
	if p.external {
		return color{}
	}
	return color{known: true, r: 255, g: 255, b: 255}
}

func linksStyles(doc *html.Node) bool {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "link" && strings.Contains(strings.ToLower(attr(n, "rel")), "stylesheet") {
			return true
		}
	}
	return false
}

func (p *pruner) children(n *html.Node, s seen) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		p.node(c, s)
		c = next
	}
}

func (p *pruner) node(n *html.Node, s seen) {
	switch n.Type {
	case html.CommentNode, html.DoctypeNode:
		p.remove(n, n.Type == html.CommentNode && strings.TrimSpace(n.Data) != "")
	case html.TextNode:
		if s.hidden() && strings.TrimSpace(n.Data) != "" {
			p.remove(n, true)
		}
	case html.ElementNode:
		p.element(n, s)
	case html.DocumentNode, html.ErrorNode, html.RawNode:
		p.children(n, s)
	}
}

func (p *pruner) element(n *html.Node, s seen) {
	top := n.Data == "html" || n.Data == "body"
	switch never, counts := neverShown(n); {
	case never:
		p.remove(n, counts && hasText(n))
		return
	case !top && hiddenByAttr(n):
		p.remove(n, hasText(n))
		return
	}
	d, own := p.styles[n], hints(n)
	if style := attr(n, "style"); style != "" || len(own) > 0 {
		if own == nil {
			own = decls{}
		}
		own.declare(style, inline)
		for name, v := range d {
			own.set(name, v.value, v.rank)
		}
		d = own
	}
	if len(d) > 0 {
		if !top && gone(d) {
			p.remove(n, hasText(n))
			return
		}
		s = s.inherit(d)
		if top { // pages are shown by script once they are loaded
			s.invisible = false
		}
	}
	p.children(n, s)
}

func (p *pruner) remove(n *html.Node, counts bool) {
	if counts {
		p.removed++
	}
	n.Parent.RemoveChild(n)
}

// neverShown reports whether browsers never show an element's text, and
// whether such text is worth counting.
func neverShown(n *html.Node) (never, counts bool) {
	switch n.Data {
	case "script", "style", "link", "meta", "base":
		return true, false
	case "template", "noscript", "noembed", "noframes", "iframe", "object", "embed", "applet", "audio", "video",
		"canvas", "datalist", "rp", "annotation", "annotation-xml", "metadata", "desc", "defs", "symbol", "param", "area", "map":
		return true, true
	case "title":
		return n.Parent != nil && n.Parent.Data != "head", true // the title of a drawing is a tooltip
	case "dialog":
		return !hasAttr(n, "open"), true
	case "input":
		return strings.EqualFold(attr(n, "type"), "hidden"), false
	}
	// In the head everything but the title is for machines.
	return n.Parent != nil && n.Parent.Data == "head", true
}

// hints are what old attributes say about colours. Every style outranks them.
func hints(n *html.Node) decls {
	var d decls
	for _, a := range n.Attr {
		name := ""
		switch {
		case a.Key == "color" && n.Data == "font", a.Key == "text" && n.Data == "body":
			name = "color"
		case a.Key == "bgcolor":
			name = "background-color"
		}
		value := strings.ToLower(strings.TrimSpace(a.Val))
		if name == "" || value == "" {
			continue
		}
		if hexColor(value).known {
			value = "#" + value // these attributes may leave the mark out
		}
		if d == nil {
			d = decls{}
		}
		d.set(name, value, -1)
	}
	return d
}

func hiddenByAttr(n *html.Node) bool {
	return hasAttr(n, "hidden") || hasAttr(n, "popover") || strings.EqualFold(strings.TrimSpace(attr(n, "aria-hidden")), "true")
}

func (s seen) hidden() bool {
	return s.invisible || s.tiny || s.color.transparent || s.color.like(s.background)
}

// inherit returns what the children of an element see.
func (s seen) inherit(d decls) seen {
	if v := d.get("visibility"); v != "" {
		s.invisible = v == "hidden" || v == "collapse"
	}
	size := d.get("font-size")
	if f := d.get("font"); size == "" && f != "" {
		size = fontSize(f)
	}
	if px, ok := pixels(size); ok {
		relative := strings.HasSuffix(size, "%") || strings.HasSuffix(size, "em") && !strings.HasSuffix(size, "rem")
		s.tiny = px < 2 || s.tiny && relative
	}
	s.colors(d)
	return s
}

// colors applies what an element declares about its text and its background.
func (s *seen) colors(d decls) {
	if v := d.get("color"); v != "" && v != "inherit" {
		s.color = parseColor(v)
	}
	if c := parseColor(d.get("-webkit-text-fill-color")); c.transparent && d.get("background") == "" {
		s.color = c
	}
	for _, name := range []string{"background", "background-color", "background-image"} {
		switch v := d.get(name); v {
		case "", "none", "transparent", "inherit":
		default:
			s.background = parseColor(v)
		}
	}
}

// fontSize finds the size in a font shorthand: the first length.
func fontSize(v string) string {
	for f := range strings.FieldsSeq(v) {
		f, _, _ = strings.Cut(f, "/")
		if _, ok := pixels(f); ok && (f == "0" || strings.Trim(f, "0123456789") != "") {
			return f
		}
	}
	return ""
}

// gone reports whether an element and everything in it is not drawn.
func gone(d decls) bool {
	switch {
	case d.get("display") == "none", d.get("content-visibility") == "hidden":
		return true
	case isNear(d.get("opacity"), 0.05), filteredOut(d.get("filter")), isNear(d.get("zoom"), 0.02):
		return true
	}
	return offScreen(d) || clipped(d) || boxless(d)
}

func isNear(v string, limit float64) bool {
	v = strings.TrimSuffix(strings.TrimPrefix(v, "calc("), ")")
	n, err := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64)
	if strings.HasSuffix(v, "%") {
		n /= 100
	}
	return err == nil && n <= limit
}

func filteredOut(v string) bool {
	_, rest, ok := strings.Cut(v, "opacity(")
	arg, _, _ := strings.Cut(rest, ")")
	return ok && isNear(strings.TrimSpace(arg), 0.05)
}

// offScreen reports whether a box lies where nobody scrolls to.
func offScreen(d decls) bool {
	sides := []string{"text-indent", "margin-left", "margin-top"}
	switch d.get("position") {
	case "absolute", "fixed", "relative":
		sides = append(sides, "left", "right", "top", "bottom", "inset")
	}
	for _, name := range append(sides, "translate") {
		for v := range strings.FieldsSeq(d.get(name)) {
			if px, ok := pixels(v); ok && far(px) {
				return true
			}
		}
	}
	if v := d.get("scale"); v != "" && isNear(v, 0.02) {
		return true
	}
	return movedAway(d.get("transform"))
}

// far reports whether an offset leads out of sight.
func far(px float64) bool { return px < -500 || px >= 5000 }

// movedAway reads the functions of a transform.
func movedAway(v string) bool {
	for {
		name, rest, ok := strings.Cut(v, "(")
		if !ok {
			return false
		}
		args, after, _ := strings.Cut(rest, ")")
		v = after
		for arg := range strings.SplitSeq(args, ",") {
			arg = strings.TrimSpace(arg)
			if strings.Contains(name, "scale") && isNear(arg, 0.02) {
				return true
			}
			px, ok := pixels(strings.TrimSuffix(arg, "%")) // of the box itself: small
			if strings.Contains(name, "translate") && ok && far(px) {
				return true
			}
		}
	}
}

// clipped reports whether everything of a box is cut away.
func clipped(d decls) bool {
	if v, ok := strings.CutPrefix(d.get("clip"), "rect("); ok {
		sides := strings.FieldsFunc(strings.TrimSuffix(v, ")"), func(r rune) bool { return r == ',' || r == ' ' })
		for _, s := range sides {
			if px, ok := pixels(s); !ok || px > 1 {
				return false
			}
		}
		return len(sides) == 4
	}
	v := d.get("clip-path")
	if arg, ok := strings.CutPrefix(v, "inset("); ok {
		px, ok := pixels(strings.Trim(strings.Fields(arg + " ")[0], ")"))
		return ok && px >= 500 // 50 % of a side
	}
	return strings.HasPrefix(v, "circle(0") || strings.HasPrefix(v, "polygon(0 0,0 0") || strings.HasPrefix(v, "polygon(0 0, 0 0")
}

// boxless reports whether a box is too small to show anything and cuts what
// would stick out.
func boxless(d decls) bool {
	cuts := false
	for _, name := range []string{"overflow", "overflow-x", "overflow-y"} {
		v := d.get(name)
		cuts = cuts || strings.HasPrefix(v, "hidden") || strings.HasPrefix(v, "clip")
	}
	if !cuts {
		return false
	}
	for _, name := range []string{"width", "height", "max-width", "max-height"} {
		if px, ok := pixels(d.get(name)); ok && px <= 1 {
			return true
		}
	}
	return false
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func hasText(n *html.Node) bool {
	for d := range n.Descendants() {
		if (d.Type == html.TextNode || d.Type == html.CommentNode) && strings.TrimSpace(d.Data) != "" {
			return true
		}
	}
	return false
}

// HiddenTag reports whether a start tag alone says that nobody sees what is in
// the element. It is for pages that cannot be parsed into a tree.
func HiddenTag(t html.Token) bool {
	n := &html.Node{Type: html.ElementNode, Data: t.Data, Attr: t.Attr}
	if never, _ := neverShown(n); never || hiddenByAttr(n) {
		return true
	}
	style := attr(n, "style")
	if style == "" {
		return false
	}
	d := decls{}
	d.declare(style, inline)
	return gone(d) || seen{}.inherit(d).hidden()
}
