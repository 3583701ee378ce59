package webscrape

import (
	"strconv"
	"strings"
	"sync"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// The formats of a page.
const (
	formatMarkdown = "markdown"
	formatText     = "text"
	formatHTML     = "html"
)

// maxMarkdown is the largest tree that is turned into markdown, in bytes of
// text with a charge for each node. Beyond it conversion takes seconds and
// hundreds of megabytes, so the page comes as plain text.
const maxMarkdown = 8 << 20

// newConverter makes the markdown converter on first need.
func newConverter() func() *converter.Converter {
	return sync.OnceValue(func() *converter.Converter {
		return converter.NewConverter(converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(
				commonmark.WithLinkEmptyHrefBehavior(commonmark.LinkBehaviorSkip),
				commonmark.WithLinkEmptyContentBehavior(commonmark.LinkBehaviorSkip),
				commonmark.WithListEndComment(false),
			),
			table.NewTablePlugin(
				table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
				table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
				table.WithHeaderPromotion(true),
				table.WithSkipEmptyRows(true),
			),
		))
	})
}

// tooLarge reports whether a tree is beyond maxMarkdown.
func tooLarge(root *html.Node) bool {
	size := 0
	for n := range root.Descendants() {
		size += 32
		switch {
		case n.Type == html.TextNode:
			size += len(n.Data)
		case n.Data == "td" || n.Data == "th":
			size += 64 * span(n, "colspan") * span(n, "rowspan")
		}
		if size > maxMarkdown {
			return true
		}
	}
	return false
}

// span is how many columns or rows a cell covers.
func span(n *html.Node, name string) int {
	v, err := strconv.Atoi(attribute(n, name))
	if err != nil {
		return 1
	}
	return max(v, 1)
}

// plainText is the text of a tree as a reader would see it: blocks on their own
// lines, cells apart, preformatted text as it is.
func plainText(root *html.Node) string {
	w := &textWriter{}
	if root.Type == html.TextNode {
		w.node(root, false)
	}
	for c := range root.ChildNodes() { // the marks around root are not part of it
		w.node(c, root.Data == "pre" || root.Data == "textarea")
	}
	return strings.TrimSpace(w.b.String())
}

// textWriter collapses white space as it writes.
type textWriter struct {
	b     strings.Builder
	space bool // white space is owed before the next word
	lines int  // line ends are owed before the next word
}

func (w *textWriter) node(n *html.Node, pre bool) {
	switch n.Type {
	case html.TextNode:
		if pre {
			w.flush()
			w.b.WriteString(n.Data)
			return
		}
		w.words(n.Data)
		return
	case html.ElementNode, html.DocumentNode:
	case html.CommentNode, html.DoctypeNode, html.ErrorNode, html.RawNode:
		return
	}
	gap := blockGap(n.Data)
	w.lines = max(w.lines, gap)
	switch n.Data {
	case "br":
		w.lines = max(w.lines, 1)
		return
	case "li":
		w.flush()
		w.b.WriteString("- ")
	case "td", "th":
		if n.PrevSibling != nil {
			w.flush()
			w.b.WriteByte('\t')
		}
	case "title":
		return
	}
	for c := range n.ChildNodes() {
		w.node(c, pre || n.Data == "pre" || n.Data == "textarea")
	}
	w.lines = max(w.lines, gap)
}

// words writes text with its white space collapsed.
func (w *textWriter) words(s string) {
	if s != "" && isSpace(s[0]) {
		w.space = true
	}
	for f := range strings.FieldsSeq(s) {
		w.flush()
		w.b.WriteString(f)
		w.space = true
	}
	w.space = s != "" && (isSpace(s[len(s)-1]) || w.space && strings.TrimSpace(s) == "")
}

// flush pays what is owed before something is written.
func (w *textWriter) flush() {
	switch {
	case w.b.Len() == 0:
	case w.lines > 0:
		w.b.WriteString("\n\n"[:w.lines])
	case w.space:
		w.b.WriteByte(' ')
	}
	w.lines, w.space = 0, false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// blockGap is how many line ends stand around an element.
func blockGap(tag string) int {
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "pre", "blockquote", "table", "section", "article", "figure", "hr":
		return 2
	case "div", "li", "tr", "dt", "dd", "header", "footer", "main", "nav", "aside", "form", "fieldset", "details", "summary",
		"figcaption", "address", "caption", "thead", "tbody", "tfoot", "body", "html", "option", "legend", "dialog", "center":
		return 1
	}
	return 0
}

// markup renders what is inside a tree as HTML.
func markup(root *html.Node) string {
	var b strings.Builder
	for c := range root.ChildNodes() {
		if html.Render(&b, c) != nil { // a Builder does not fail; a tree that cannot be written is cut there
			break
		}
	}
	return strings.TrimSpace(b.String())
}
