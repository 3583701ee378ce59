package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

// toResult turns the end of a call into what the client gets. It is the one
// place where errors become results.
func toResult(r pipeline.Response) *mcp.CallToolResult {
	if r.Err == nil && len(r.Result.Structured) > 0 && !json.Valid(r.Result.Structured) {
		r.Err = errNotJSON // or nothing at all would reach the client
	}
	if r.Err != nil {
		return errorResult(r.CallID, r.Err)
	}
	out := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(r.Result.Text)}}
	for _, img := range r.Result.Images {
		out.Content = append(out.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(img.Data), img.MIME))
	}
	out.StructuredContent = json.RawMessage(`{}`)
	if len(r.Result.Structured) > 0 {
		out.StructuredContent = r.Result.Structured
	}
	return out
}

// maxErrorText is how many bytes an error's message, or its suggestion, may
// have: both may quote what the caller sent.
const maxErrorText = 4 << 10

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// errNotJSON is a tool's fault, so the client sees an internal error.
var errNotJSON = errors.New("structured result is not JSON")

// errorResult shows an error in four lines and as structured content. What is
// not meant for the model is shown as an internal error with the call's id.
func errorResult(callID string, err error) *mcp.CallToolResult {
	e := classify(callID, err)
	structured := maps.Clone(e.Details)
	if structured == nil {
		structured = make(map[string]any)
	}
	maps.Copy(structured, map[string]any{
		"category": e.Category, "code": e.Code, "error": e.Error(), "suggestion": e.Suggestion, "retryable": e.Retryable, "call_id": callID,
	})
	if e.Phase != "" {
		structured["phase"] = e.Phase
	}
	if e.Field != "" {
		structured["field"] = e.Field
	}
	if e.RetryAfter > 0 {
		structured["retry_after_ms"] = e.RetryAfter.Milliseconds()
	}
	text := fmt.Sprintf("category: %s\nerror: %s\nsuggestion: %s\nretryable: %t",
		e.Category, oneLine(e.Error()), oneLine(e.Suggestion), e.Retryable)
	return &mcp.CallToolResult{
		Content: []mcp.Content{mcp.NewTextContent(text)}, StructuredContent: structured, IsError: true,
	}
}

// classify finds what the model may see of an error.
func classify(callID string, err error) *call.Error {
	var (
		known  *call.Error
		denied *gates.DeniedError
	)
	switch {
	case errors.As(err, &known):
		e := *known
		if e.Code == "" {
			e.Code = string(e.Category)
		}
		e.Message, e.Suggestion, e.Field = clip(e.Message, maxErrorText), clip(e.Suggestion, maxErrorText), clip(e.Field, 256)
		return &e
	case errors.As(err, &denied):
		return &call.Error{
			Category: call.CategoryPolicyBlocked, Code: denied.Code, Phase: call.PhaseSetup,
			Message: clip(denied.Error(), maxErrorText), Suggestion: clip(denied.Suggestion, maxErrorText), Details: map[string]any{"gate": denied.Gate},
		}
	case errors.Is(err, context.Canceled):
		return &call.Error{
			Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution, Message: "the call was cancelled",
		}
	case errors.Is(err, context.DeadlineExceeded):
		return &call.Error{
			Category: call.CategoryTimeout, Code: "timeout", Phase: call.PhaseExecution, Retryable: true,
			Message: "the call took longer than it may", Suggestion: "ask for less at once",
		}
	}
	return &call.Error{
		Category: call.CategoryServerError, Code: "internal", Phase: call.PhaseExecution,
		Message: "internal error " + callID, Suggestion: "tell the operator this id: the log and the audit record have the details",
	}
}

// oneLine keeps the four lines four.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
