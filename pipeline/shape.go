package pipeline

import (
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/filter"
)

// shape makes of a tool's result what the model reads: secrets redacted in
// text and structure alike, the text capped with the cut announced. Tools cap
// what they put into the structure themselves, because only they know which
// field can be paged.
func (p *Pipeline) shape(res call.Result) call.Result {
	var cut bool
	res.Text, _ = p.o.Redact.Text(res.Text)
	res.Structured, _ = p.o.Redact.JSON(res.Structured)
	res.Text, cut = filter.Cap(res.Text, p.o.MaxText)
	res.Outcome.Truncated = res.Outcome.Truncated || cut
	return res
}
