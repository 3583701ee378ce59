package webscrape

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

// The limits that keep the markdown of a page in proportion to the page.
const (
	maxNesting = 6   // lists and quotes: each level indents every line once more
	maxSpan    = 20  // columns and rows one cell may span
	maxQuery   = 200 // bytes of a query that a link may keep
)

// furniture is what stands around the content of a page.
const furniture = "nav,:not(blockquote)>footer,menu,button,select,input,textarea,progress,meter," +
	"[role=navigation],[role=banner],[role=contentinfo],[role=search],[role=dialog],[role=alertdialog],[role=menu],[role=toolbar]"

// beside is furniture only outside the part a page declares as its content;
// inside it, documentation uses it for notes.
const beside = ",aside,[role=complementary]"

// mainPart finds the part of a page that is its content and strips furniture
// from it. When in doubt it keeps more: what is left out here cannot be read
// at all.
func mainPart(doc *html.Node) *html.Node {
	page := goquery.NewDocumentFromNode(doc)
	body := page.Find("body").First()
	if body.Length() == 0 {
		return doc
	}
	whole := weigh(body.Nodes[0])
	if main := landmark(body, whole.text); main != nil {
		goquery.NewDocumentFromNode(main).Find(furniture).Remove()
		return main
	}
	around := body.Find(furniture + beside)
	if kept := whole.text - weighAll(around); kept*4 >= whole.text || kept > 2000 {
		around.Remove()
		body.ChildrenFiltered("header").Each(func(_ int, s *goquery.Selection) {
			if s.Find("h1").Length() == 0 {
				s.Remove()
			}
		})
	}
	return densest(body.Nodes[0])
}

// landmark is the element the page itself declares to be its content, if it
// holds a fair share of the text.
func landmark(body *goquery.Selection, total int) *html.Node {
	for _, name := range []string{"main", "[role=main]", "article"} {
		s := body.Find(name)
		if s.Length() == 1 && weigh(s.Nodes[0]).text*4 >= total {
			return s.Nodes[0]
		}
	}
	return nil
}

// densest walks from n towards the child that holds nearly all text outside
// links, so that columns of links beside the content fall away.
func densest(n *html.Node) *html.Node {
	own := weigh(n)
	for {
		var best *html.Node
		var most weight
		for c := range n.ChildNodes() {
			if c.Type == html.ElementNode {
				if w := weigh(c); w.prose() > most.prose() {
					best, most = c, w
				}
			}
		}
		if best == nil || most.prose()*10 < own.prose()*9 || !container(best) {
			return n
		}
		n = best
	}
}

func container(n *html.Node) bool {
	switch n.Data {
	case "div", "section", "article", "main", "center", "form":
		return true
	}
	return false
}

// weight is how much text an element holds and how much of it is link text.
type weight struct{ text, links int }

func (w weight) prose() int { return w.text - w.links }

func weigh(n *html.Node) weight {
	var w weight
	if n.Type == html.TextNode {
		w.text = len(strings.TrimSpace(n.Data))
		return w
	}
	for c := range n.ChildNodes() {
		cw := weigh(c)
		w.text += cw.text
		w.links += cw.links
	}
	if n.Type == html.ElementNode && n.Data == "a" {
		w.links = w.text
	}
	return w
}

func weighAll(s *goquery.Selection) int {
	sum := 0
	for _, n := range s.Nodes {
		sum += weigh(n).text
	}
	return sum
}

// prepare makes a tree safe to render: links absolute and https only, no
// images, no tooltips, nesting and spans bounded.
func prepare(root *html.Node, base *url.URL) {
	nested := 0
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil; {
			next := c.NextSibling
			if c.Type == html.ElementNode {
				deeper := c.Data == "ul" || c.Data == "ol" || c.Data == "blockquote"
				if dropped(c) {
					n.RemoveChild(c)
					c = next
					continue
				}
				if deeper {
					if nested++; nested > maxNesting {
						c.Data, c.DataAtom = "div", 0
					}
				}
				c.Attr = safeAttributes(c, base)
				walk(c)
				if deeper {
					nested--
				}
			}
			c = next
		}
	}
	walk(root)
}

func dropped(n *html.Node) bool {
	switch n.Data {
	case "img", "picture", "source", "track", "image":
		return true
	}
	return false
}

// safeAttributes keeps what carries structure and drops what carries text a
// person does not read.
func safeAttributes(n *html.Node, base *url.URL) []html.Attribute {
	return slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
		switch a.Key {
		case "href":
			return n.Data != "a" || !safeLink(a.Val, base)
		case "colspan", "rowspan":
			span, err := strconv.Atoi(a.Val)
			return err != nil || span < 1 || span > maxSpan
		case "id", "class", "name", "type", "start", "datetime", "lang", "dir", "open", "role", "headers", "scope":
			return len(a.Val) > maxQuery
		}
		return true
	})
}

// safeLink reports whether a link may be shown.
func safeLink(text string, base *url.URL) bool {
	u := absolute(text, base)
	return u != nil && u.Scheme == "https" && u.User == nil && len(u.RawQuery) <= maxQuery && u.Host != ""
}

// absolute resolves a link, nil when it cannot be read.
func absolute(text string, base *url.URL) *url.URL {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil
	}
	return base.ResolveReference(u)
}

// resolveLinks makes the links that are left absolute. One that points into
// its own page becomes text.
func resolveLinks(root *html.Node, base *url.URL) {
	here := *base
	here.Fragment = ""
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "a" {
			continue
		}
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
			if a.Key != "href" {
				return false
			}
			u := absolute(a.Val, base)
			if u == nil {
				return true
			}
			u.Fragment = ""
			return u.String() == here.String()
		})
		for i := range n.Attr {
			if u := absolute(n.Attr[i].Val, base); n.Attr[i].Key == "href" && u != nil {
				n.Attr[i].Val = u.String()
			}
		}
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
