package webscrape

import (
	"strconv"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/internal/cssselect"
)

// The largest values of arguments.
const (
	maxChars    = 25_000 // what is left of a result's room beside the frame
	maxSelector = 512    // bytes
	maxResults  = 1000
)

const fetchInput = `{"type":"object","properties":{"url":{"type":"string"},` +
	`"format":{"type":"string","enum":["markdown","text","html"]},` +
	`"max_chars":{"type":"integer","minimum":1,"maximum":25000},` +
	`"start_index":{"type":"integer","minimum":0}},` +
	`"required":["url"],"additionalProperties":false}`

const fetchOutput = `{"type":"object","properties":{"content":{"type":"string"},"url":{"type":"string"},` +
	`"title":{"type":"string"},"next_index":{"type":"integer"},"hops":{"type":"integer"}}}`

const scrapeInput = `{"type":"object","properties":{"url":{"type":"string"},` +
	`"select":{"type":"string","description":"CSS selector"},` +
	`"extract":{"type":"string","description":"text, html or attr:NAME"},` +
	`"limit":{"type":"integer","minimum":0,"maximum":1000}},` +
	`"required":["url","select"],"additionalProperties":false}`

const scrapeOutput = `{"type":"object","properties":{"results":{"type":"array","items":{"type":"string"}},` +
	`"url":{"type":"string"},"status":{"type":"integer"},"hops":{"type":"integer"}}}`

type fetchArgs struct {
	URL        string `json:"url"`
	Format     string `json:"format"`
	MaxChars   int    `json:"max_chars"`
	StartIndex int    `json:"start_index"`
}

type scrapeArgs struct {
	URL     string `json:"url"`
	Select  string `json:"select"`
	Extract string `json:"extract"`
	Limit   *int   `json:"limit"`
}

func (a fetchArgs) check() error {
	switch {
	case a.Format != "" && a.Format != formatMarkdown && a.Format != formatText && a.Format != formatHTML:
		return call.ArgError("format", "must be markdown, text or html", "leave it out for markdown")
	case a.MaxChars < 0 || a.MaxChars > maxChars:
		return call.ArgError("max_chars", "must be between 1 and 25000", "read on with start_index")
	case a.StartIndex < 0:
		return call.ArgError("start_index", "must not be negative", "use the next_index of the result before")
	}
	return nil
}

// check validates what a schema cannot say and returns the parsed selector.
func (a scrapeArgs) check() (*cssselect.Selector, error) {
	if len(a.Select) > maxSelector {
		return nil, call.ArgError("select", "the selector is longer than 512 bytes", "select less, or in several calls")
	}
	sel, err := cssselect.Parse(a.Select)
	if err != nil {
		return nil, call.ArgError("select", "invalid selector: "+err.Error(), `use CSS such as "article h2 > a"`)
	}
	if a.limit() < 0 || a.limit() > maxResults {
		return nil, call.ArgError("limit", "must be between 0 and 1000", "")
	}
	name, attr := strings.CutPrefix(a.Extract, "attr:")
	switch {
	case attr && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_:.") == "" && name != "":
	case a.Extract == "", a.Extract == formatText, a.Extract == formatHTML:
	default:
		return nil, call.ArgError("extract", strconv.Quote(a.Extract)+" is not text, html or attr:NAME", `use for example "attr:href"`)
	}
	return sel, nil
}

func (a scrapeArgs) limit() int {
	if a.Limit == nil {
		return 10
	}
	return *a.Limit
}

// facts is what every call of these tools means: one URL.
func facts(text, summary string) call.Facts {
	u := egress.ParseURL(text)
	canonical, ok := egress.Canonical(text)
	if !ok {
		canonical = u.URL
	}
	return call.Facts{URLs: []call.URL{u}, Summary: summary + " " + u.URL, Text: canonical}
}
