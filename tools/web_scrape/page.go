package webscrape

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/ipi"
)

// getter is how a page is obtained: [egress.Client.Do], or a fake in tests.
type getter func(context.Context, egress.Request) (*egress.Response, error)

// reader is what fetch and web_scrape share. It is safe for concurrent use.
type reader struct {
	get    getter
	filter *ipi.Filter
	busy   chan struct{} // one page is taken apart at a time: a large one costs much memory
}

func newReader(cfg Config, client *egress.Client) (reader, error) {
	if client == nil {
		return reader{}, fmt.Errorf("web: an egress client is required")
	}
	if err := cfg.Validate(); err != nil {
		return reader{}, err
	}
	filter, err := ipi.NewFilter(cfg.IPIFilterThreshold)
	if err != nil {
		return reader{}, err
	}
	return reader{get: client.Do, filter: filter, busy: make(chan struct{}, 1)}, nil
}

// page is one answer, decoded.
type page struct {
	resp  *egress.Response
	base  *url.URL // what links are relative to
	mime  string
	text  string // decoded body
	html  bool
	notes []string
}

// open requests a page and decodes it. An answer outside 2xx and a body that
// is not text are errors.
func (r *reader) open(ctx context.Context, a gates.Authorized, text string) (*page, error) {
	resp, err := r.get(ctx, egress.Request{
		URL: text, CallID: a.CallID(), Tool: a.Tool(), Timeout: a.Limits().Timeout,
		Headers: []egress.Header{{Name: "Accept", Value: "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5"}},
	})
	if err != nil {
		return nil, err
	}
	if e := resp.StatusError(); e != nil {
		return nil, e
	}
	p := &page{resp: resp}
	if p.base, err = url.Parse(resp.FinalURL); err != nil {
		return nil, fmt.Errorf("parse final url: %w", err)
	}
	if err := p.decode(); err != nil {
		return nil, err
	}
	switch resp.Cut {
	case egress.CutSize:
		p.notes = append(p.notes, fmt.Sprintf("cut after %d bytes: the page is larger than is read", len(resp.Body)))
	case egress.CutTime:
		p.notes = append(p.notes, fmt.Sprintf("cut after %d bytes: the server was too slow", len(resp.Body)))
	case egress.CutNone:
	}
	return p, nil
}

// begin waits for the turn to take a page apart.
func (r *reader) begin(ctx context.Context) (end func(), err error) {
	select {
	case r.busy <- struct{}{}:
		return func() { <-r.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// decode decides what the body is and turns it into UTF-8.
func (p *page) decode() error {
	body := p.resp.Body
	contentType := p.resp.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media == "" {
		media, _, _ = mime.ParseMediaType(http.DetectContentType(body))
		contentType, params = "", nil
	}
	p.mime = media
	utf16 := bytes.HasPrefix(body, []byte{0xfe, 0xff}) || bytes.HasPrefix(body, []byte{0xff, 0xfe})
	p.html = media == "text/html" || media == "application/xhtml+xml"
	switch {
	case media == "application/pdf", bytes.HasPrefix(body, []byte("%PDF-")):
		return notText("a PDF document", len(body))
	case !textual(media), !utf16 && bytes.IndexByte(body[:min(len(body), 512)], 0) >= 0:
		return notText("binary ("+media+")", len(body))
	}
	p.text = p.toUTF8(body, contentType, params["charset"])
	if bad := strings.Count(p.text, "\uFFFD"); bad > 0 {
		if bad*10 > len(p.text) {
			return notText("binary ("+media+")", len(body))
		}
		p.notes = append(p.notes, fmt.Sprintf("%d unreadable characters replaced", bad))
	}
	return nil
}

// toUTF8 follows a byte order mark, then the header, then the page's own word,
// but believes none of them against a body that is plainly UTF-8.
func (p *page) toUTF8(body []byte, contentType, declared string) string {
	enc, name, certain := charset.DetermineEncoding(body, contentType)
	single := name == "windows-1252" || strings.HasPrefix(name, "iso-8859-")
	json := strings.HasSuffix(p.mime, "json") && declared == ""
	if name == "utf-8" || json || (!certain || single) && utf8.Valid(body) {
		return strings.ToValidUTF8(string(bytes.TrimPrefix(body, []byte("\ufeff"))), "\uFFFD")
	}
	out, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		out = body
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(out), "\ufeff"), "\uFFFD")
}

func textual(media string) bool {
	switch {
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "+json"), strings.HasSuffix(media, "+xml"):
		return true
	}
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonl", "application/x-sh",
		"application/sql", "application/graphql", "application/x-httpd-php", "application/rtf":
		return true
	}
	return false
}

func notText(what string, n int) *call.Error {
	e := call.Failure("not_text", fmt.Sprintf("the answer is %s of %d bytes, not text", what, n), "look for an HTML or text version of it")
	e.Details = map[string]any{"bytes": n}
	return e
}

// about describes a page for its frame.
func (p *page) about(hidden int) []string {
	out := []string{
		"source: " + egress.RedactURL(p.resp.FinalURL),
		fmt.Sprintf("status %d", p.resp.Status), p.mime, fmt.Sprintf("%d bytes", len(p.resp.Body)),
	}
	if hidden > 0 {
		out = append(out, fmt.Sprintf("%d hidden pieces removed", hidden))
	}
	return append(out, p.notes...)
}

// redirects is how many redirects led to the page.
func (p *page) redirects() int { return max(len(p.resp.Hops)-1, 0) }

// tree parses the page and removes what a person would not see. Nesting no
// browser would survive either is flattened first, so this never fails.
func (p *page) tree() (doc *html.Node, title string, hidden int) {
	doc, err := html.Parse(strings.NewReader(p.text))
	if err != nil {
		p.notes = append(p.notes, "nested too deep: flattened")
		if doc, err = html.Parse(strings.NewReader(flatten(p.text))); err != nil {
			doc = &html.Node{Type: html.DocumentNode}
			doc.AppendChild(&html.Node{Type: html.TextNode, Data: tokens(p.text)})
		}
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "base":
			if ref, err := url.Parse(attribute(n, "href")); err == nil && ref.Path+ref.Host != "" {
				p.base = p.base.ResolveReference(ref)
			}
		case "title":
			if title == "" && n.Parent.Data == "head" {
				title = strings.Join(strings.Fields(textOf(n)), " ")
			}
		}
	}
	hidden = ipi.Prune(doc)
	if r := []rune(title); len(r) > 200 {
		title = string(r[:200]) + "…"
	}
	return doc, title, hidden
}

// maxDepth is how deep a flattened page nests; the parser refuses 512.
const maxDepth = 200

// flatten drops the tags, not the text, of elements that nest deeper than
// maxDepth. The text of what a browser would not show is dropped as well.
func flatten(text string) string {
	var f flattener
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := z.Next()
		raw := string(z.Raw())
		switch kind {
		case html.ErrorToken:
			return f.out.String()
		case html.TextToken:
			if f.skip == 0 {
				f.out.WriteString(raw)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			f.start(z.Token(), raw)
		case html.EndTagToken:
			f.end(z.Token().Data, raw)
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// flattener keeps what is open while a page is flattened.
type flattener struct {
	out  strings.Builder
	open []string
	skip int // depth of the hidden element everything is dropped in; 0 = none
}

func (f *flattener) start(t html.Token, raw string) {
	if t.Type == html.SelfClosingTagToken || void(t.Data) {
		if f.skip == 0 && len(f.open) < maxDepth {
			f.out.WriteString(raw)
		}
		return
	}
	f.open = append(f.open, t.Data)
	switch {
	case f.skip != 0:
	case len(f.open) <= maxDepth:
		f.out.WriteString(raw)
	case ipi.HiddenTag(t):
		f.skip = len(f.open)
	}
}

func (f *flattener) end(name, raw string) {
	i := lastIndex(f.open, name)
	if i < 0 {
		return
	}
	f.open = f.open[:i]
	if i < f.skip {
		f.skip = 0
	}
	if i < maxDepth {
		f.out.WriteString(raw)
	}
}

// lastIndex finds the innermost open element of a name, not further out than a
// parser would look.
func lastIndex(open []string, name string) int {
	for i := len(open) - 1; i >= 0 && i >= len(open)-1000; i-- {
		if open[i] == name {
			return i
		}
	}
	return -1
}

func void(tag string) bool {
	switch tag {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// tokens is the last resort: the text between the tags, without scripts and
// styles.
func tokens(text string) string {
	var b strings.Builder
	drop := ""
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if drop == "" {
				b.Write(z.Text())
				b.WriteByte(' ')
			}
		case html.StartTagToken:
			if t := z.Token(); drop == "" && ipi.HiddenTag(t) && !void(t.Data) {
				drop = t.Data
			}
		case html.EndTagToken:
			if t := z.Token(); t.Data == drop {
				drop = ""
			}
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}
