package webscrape

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/PuerkitoBio/goquery"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/ipi"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

//go:embed fetch.md
var fetchDescription string

// Fetch is the tool that reads one page. It is safe for concurrent use.
type Fetch struct {
	reader

	chars     int
	converter func() *converter.Converter
}

var _ tools.Tool = (*Fetch)(nil)

// NewFetch returns the tool.
func NewFetch(cfg Config, client *egress.Client) (*Fetch, error) {
	r, err := newReader(cfg, client)
	if err != nil {
		return nil, err
	}
	return &Fetch{reader: r, chars: cfg.MaxChars, converter: newConverter()}, nil
}

// Spec implements [tools.Tool].
func (*Fetch) Spec() call.Spec {
	return spec("fetch", "Read a web page", fetchDescription, fetchInput, fetchOutput)
}

func spec(name, title, description, input, output string) call.Spec {
	return call.Spec{
		Name: name, Title: title, Description: strings.TrimSpace(description),
		Input: json.RawMessage(input), Output: json.RawMessage(output),
		Effect: call.ReachesNetwork, Confirm: call.ConfirmByPolicy,
		Destructive: call.No, Idempotent: call.Yes, OpenWorld: call.Yes,
		Cacheable: call.Yes, Speculatable: call.No, Retryable: call.Yes,
	}
}

// Facts implements [tools.Tool].
func (*Fetch) Facts(args json.RawMessage) (call.Facts, error) {
	var a fetchArgs
	if err := tools.DecodeArgs(args, &a); err != nil {
		return call.Facts{}, err
	}
	if err := a.check(); err != nil {
		return call.Facts{}, err
	}
	return facts(a.URL, "read the web page"), nil
}

// fetchResult is the structured result.
type fetchResult struct {
	URL        string `json:"url"`
	Title      string `json:"title"`
	Content    string `json:"content"`
	NextIndex  int    `json:"next_index,omitempty"`
	TotalChars int    `json:"total_chars"`
	Hops       int    `json:"hops"`
	ipi.Report
}

// Run implements [tools.Tool].
func (f *Fetch) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a fetchArgs
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	p, err := f.open(ctx, auth, a.URL)
	if err != nil {
		return call.Result{}, err
	}
	end, err := f.begin(ctx)
	if err != nil {
		return call.Result{}, err
	}
	defer end()
	content, title, hidden := f.content(p, a.Format)
	parts, report := f.filter.Apply(title, content)
	report.HiddenRemoved += hidden
	return f.result(a, p, parts[0], parts[1], report)
}

// content turns a page into the wanted format.
func (f *Fetch) content(p *page, format string) (content, title string, hidden int) {
	if !p.html {
		return p.text, "", 0
	}
	doc, title, hidden := p.tree()
	root := doc
	if format == formatHTML {
		if body := goquery.NewDocumentFromNode(doc).Find("body"); body.Length() > 0 {
			root = body.Nodes[0]
		}
	} else {
		root = mainPart(doc)
	}
	prepare(root, p.base)
	resolveLinks(root, p.base)
	switch {
	case format == formatHTML:
		return markup(root), title, hidden
	case format == formatText:
		return plainText(root), title, hidden
	case tooLarge(root):
		p.notes = append(p.notes, "too large for markdown: plain text")
		return plainText(root), title, hidden
	}
	md, err := f.converter().ConvertNode(root)
	if err != nil {
		p.notes = append(p.notes, "no markdown could be made: plain text")
		return plainText(root), title, hidden
	}
	return string(md), title, hidden
}

// result cuts the wanted piece out of the content and frames it.
func (f *Fetch) result(a fetchArgs, p *page, title, content string, report ipi.Report) (call.Result, error) {
	total := utf8.RuneCountInString(content)
	if a.StartIndex > 0 && a.StartIndex >= total {
		return call.Result{}, call.ArgError("start_index",
			fmt.Sprintf("is past the end: the content has %d characters", total), "start again at 0")
	}
	limit := a.MaxChars
	if limit == 0 {
		limit = f.chars
	}
	piece := slice(content, a.StartIndex, limit)
	next := a.StartIndex + utf8.RuneCountInString(piece)
	tail := fmt.Sprintf("characters %d to %d of %d", a.StartIndex, next, total)
	out := fetchResult{
		URL: egress.RedactURL(p.resp.FinalURL), Title: title, Content: piece,
		TotalChars: total, Hops: p.redirects(), Report: report,
	}
	if next < total {
		out.NextIndex = next
		tail += fmt.Sprintf(" | more: start_index %d", next)
	}
	about := p.about(report.HiddenRemoved)
	if title != "" {
		about = append(about, "title: "+title)
	}
	return finish(out, ipi.Frame(report.Warning()+piece, about, tail), p, out.NextIndex > 0 || p.resp.Truncated)
}

// finish makes the result of either tool.
func finish(structured any, text string, p *page, cut bool) (call.Result, error) {
	raw, err := tools.EncodeResult(structured)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{
		Text: text, Structured: raw, Untrusted: true,
		Outcome: call.Outcome{Truncated: cut, RawBytes: int64(len(p.resp.Body))},
	}, nil
}

// slice returns at most n characters of s from character start on. It ends
// after a line when one ends in the last part of the piece.
func slice(s string, start, n int) string {
	s = s[offset(s, start):]
	end := offset(s, n)
	if end == len(s) {
		return s
	}
	if i := strings.LastIndexByte(s[:end], '\n'); i >= end-end/5 {
		end = i + 1
	}
	return s[:end]
}

// offset is where the n-th character of s starts.
func offset(s string, n int) int {
	if n >= len(s) {
		n = utf8.RuneCountInString(s)
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
