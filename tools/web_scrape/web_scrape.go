// Package webscrape holds the tools that read public web pages: fetch, which
// gives a page's content, and web_scrape, which gives the parts of a page that
// a CSS selector names. Both remove what a person would not see before anything
// else and mark what is left as other people's text.
package webscrape

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/cssselect"
	"github.com/zeph-tools/zeph-mcp-tools/internal/ipi"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

//go:embed web_scrape.md
var scrapeDescription string

// Scrape is the tool that picks parts of a page. It is safe for concurrent
// use.
type Scrape struct {
	reader
}

var _ tools.Tool = (*Scrape)(nil)

// NewScrape returns the tool.
func NewScrape(cfg Config, client *egress.Client) (*Scrape, error) {
	r, err := newReader(cfg, client)
	if err != nil {
		return nil, err
	}
	return &Scrape{reader: r}, nil
}

// Spec implements [tools.Tool].
func (*Scrape) Spec() call.Spec {
	return spec("web_scrape", "Pick parts of a web page", scrapeDescription, scrapeInput, scrapeOutput)
}

// Facts implements [tools.Tool].
func (*Scrape) Facts(args json.RawMessage) (call.Facts, error) {
	var a scrapeArgs
	if err := tools.DecodeArgs(args, &a); err != nil {
		return call.Facts{}, err
	}
	if _, err := a.check(); err != nil {
		return call.Facts{}, err
	}
	return facts(a.URL, "pick parts of the web page"), nil
}

// scrapeResult is the structured result.
type scrapeResult struct {
	URL       string   `json:"url"`
	Status    int      `json:"status"`
	Results   []string `json:"results"`
	Truncated bool     `json:"truncated"`
	Hops      int      `json:"hops"`
	ipi.Report
}

// Run implements [tools.Tool].
func (s *Scrape) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a scrapeArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	sel, err := a.check()
	if err != nil {
		return call.Result{}, err
	}
	p, err := s.open(ctx, auth, a.URL)
	if err != nil {
		return call.Result{}, err
	}
	if !p.html && !strings.HasSuffix(p.mime, "xml") {
		return call.Result{}, call.Failure("not_html", "the page is "+p.mime+", which has no elements to select", "read it with fetch")
	}
	end, err := s.begin(ctx)
	if err != nil {
		return call.Result{}, err
	}
	defer end()
	doc, _, hidden := p.tree()
	found := pick(doc, sel, a, p)
	parts, report := s.filter.Apply(found...)
	report.HiddenRemoved += hidden
	return s.result(a, p, parts, report)
}

// pick extracts the first non-empty results in document order.
func pick(doc *html.Node, sel *cssselect.Selector, a scrapeArgs, p *page) []string {
	out := []string{}
	if a.limit() == 0 {
		return out
	}
	chosen := goquery.NewDocumentFromNode(doc).FindNodes(cssselect.NewIndex(doc).Select(sel)...)
	chosen.EachWithBreak(func(_ int, one *goquery.Selection) bool {
		if text := strings.TrimSpace(extract(one, a.Extract, p)); text != "" {
			out = append(out, text)
		}
		return len(out) < a.limit()
	})
	return out
}

func extract(one *goquery.Selection, what string, p *page) string {
	name, isAttr := strings.CutPrefix(what, "attr:")
	switch {
	case isAttr:
		v := one.AttrOr(strings.ToLower(name), "")
		if u := absolute(v, p.base); u != nil && v != "" && (name == "href" || name == "src") {
			return u.String()
		}
		return v
	case what == formatHTML:
		clone := one.Clone().Nodes[0] // the tree is still selected from
		prepare(clone, p.base)
		resolveLinks(clone, p.base)
		return markup(clone)
	}
	return plainText(one.Nodes[0])
}

// result caps and frames what was found.
func (s *Scrape) result(a scrapeArgs, p *page, parts []string, report ipi.Report) (call.Result, error) {
	kept, cut := capped(parts)
	out := scrapeResult{
		URL: egress.RedactURL(p.resp.FinalURL), Status: p.resp.Status, Results: kept,
		Truncated: cut || p.resp.Truncated, Hops: p.redirects(), Report: report,
	}
	tail := fmt.Sprintf("%d results", len(kept))
	if cut {
		tail += fmt.Sprintf(" of %d, cut at %d characters: select less", len(parts), maxChars)
	}
	text := report.Warning() + strings.Join(kept, "\n")
	if len(kept) == 0 {
		text = "No results for selector: " + a.Select
	}
	return finish(out, ipi.Frame(text, p.about(report.HiddenRemoved), tail), p, out.Truncated)
}

// capped keeps results up to the room there is; the one that crosses the limit
// is cut.
func capped(parts []string) (kept []string, cut bool) {
	kept = []string{}
	room := maxChars
	for _, s := range parts {
		n := utf8.RuneCountInString(s)
		if n > room {
			if room > 0 {
				kept = append(kept, s[:offset(s, room)]+"…")
			}
			return kept, true
		}
		room -= n
		kept = append(kept, s)
	}
	return kept, false
}
