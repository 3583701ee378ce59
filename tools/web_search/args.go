package websearch

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

// What the provider accepts.
const (
	maxCount = 20
	maxQuery = 400 // characters
	maxWords = 50
)

const input = `{"type":"object","properties":{"query":{"type":"string"},` +
	`"limit":{"type":"integer","minimum":1,"maximum":20},` +
	`"freshness":{"type":"string","description":"day, week, month, year or 2026-01-01to2026-01-31"},` +
	`"country":{"type":"string","description":"two letters"}},` +
	`"required":["query"],"additionalProperties":false}`

const output = `{"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{` +
	`"title":{"type":"string"},"url":{"type":"string"},"snippet":{"type":"string"}}}}}}`

type arguments struct {
	Query     string `json:"query"`
	Limit     int    `json:"limit"`
	Freshness string `json:"freshness"`
	Country   string `json:"country"`
}

// parse reads canonical arguments and checks what the schema cannot say.
func parse(raw json.RawMessage) (arguments, error) {
	var a arguments
	if err := tools.DecodeArgs(raw, &a); err != nil {
		return a, err
	}
	return a, a.check()
}

func (a *arguments) check() error {
	a.Query = strings.Join(strings.Fields(a.Query), " ")
	switch {
	case a.Query == "":
		return call.ArgError("query", "must not be empty", "say what to search for")
	case utf8.RuneCountInString(a.Query) > maxQuery || strings.Count(a.Query, " ") >= maxWords:
		return call.ArgError("query", "is longer than 400 characters or 50 words", "search for fewer words")
	}
	if a.Freshness != "" {
		period, ok := period(a.Freshness)
		if !ok {
			return call.ArgError("freshness", "is not day, week, month, year or a range of dates", `use for example "month" or "2026-01-01to2026-01-31"`)
		}
		a.Freshness = period
	}
	if a.Country != "" {
		a.Country = strings.ToUpper(a.Country)
		letters := strings.Trim(a.Country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		if !letters || len(a.Country) != 2 && a.Country != "ALL" {
			return call.ArgError("country", "is not a code of two letters", `use for example "de"`)
		}
	}
	return nil
}

// period turns a word into the provider's code.
func period(s string) (string, bool) {
	switch s = strings.ToLower(s); s {
	case "pd", "pw", "pm", "py":
		return s, true
	case "day", "week", "month", "year":
		return "p" + s[:1], true
	}
	ok, err := regexp.MatchString(`^\d{4}-\d\d-\d\dto\d{4}-\d\d-\d\d$`, s)
	return s, ok && err == nil
}
