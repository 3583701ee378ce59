package server

import (
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

// Render returns the end of a call as a client would get it, for the command
// line: the text, and the CallToolResult as JSON.
func Render(r pipeline.Response) (text string, result json.RawMessage, err error) {
	out := toResult(r)
	result, err = json.Marshal(out)
	if err != nil {
		return "", nil, err
	}
	var parts []string
	for _, c := range out.Content {
		if t, ok := c.(mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n"), result, nil
}
