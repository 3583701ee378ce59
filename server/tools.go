package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/mark3labs/mcp-go/server"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

func (s *Server) addTools() {
	specs := s.o.Calls.Tools()
	tools := make([]sdk.ServerTool, len(specs))
	for i, spec := range specs {
		s.names[spec.Name] = struct{}{}
		tools[i] = sdk.ServerTool{Tool: toTool(spec), Handler: s.handle}
	}
	s.mcp.AddTools(tools...)
}

// toTool tells of a tool what its spec says, schemas byte for byte.
func toTool(spec call.Spec) mcp.Tool {
	readOnly, destructive := spec.Effect.ReadOnly(), spec.Destructive.Bool()
	idempotent, openWorld := spec.Idempotent.Bool(), spec.OpenWorld.Bool()
	return mcp.Tool{
		Name: spec.Name, Title: spec.Title, Description: strings.TrimSpace(spec.Description),
		RawInputSchema: spec.Input, RawOutputSchema: spec.Output,
		Annotations: mcp.ToolAnnotation{
			ReadOnlyHint: &readOnly, DestructiveHint: &destructive, IdempotentHint: &idempotent, OpenWorldHint: &openWorld,
		},
	}
}

// handle serves tools/call, for clients of every revision.
func (s *Server) handle(ctx context.Context, request mcp.CallToolRequest) (out *mcp.CallToolResult, err error) {
	c := connOf(ctx)
	if c == nil {
		return nil, errors.New("internal error")
	}
	ctx, release := c.flight.bind(ctx)
	defer release()
	started, resp := time.Now(), pipeline.Response{}
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.ErrorContext(ctx, "a call panicked", "call_id", resp.CallID, "tool", request.Params.Name, "panic", fmt.Sprint(p))
			out, err = errorResult(resp.CallID, errors.New("panic")), nil
		}
	}()
	report := s.progress(ctx, c, request.Params.Meta)
	defer report.stop()
	r := s.request(ctx, c, request, report)
	resp = s.answer(ctx, c, request, r, report)
	if resp.Pending != nil {
		return s.askLater(ctx, resp)
	}
	s.tell(ctx, c, request.Params.Name, resp, time.Since(started))
	return toResult(resp), nil
}

// request is the call as the pipeline sees it.
func (s *Server) request(ctx context.Context, c *conn, request mcp.CallToolRequest, report *reporter) pipeline.Request {
	r := pipeline.Request{
		Tool: request.Params.Name, Args: request.Params.RawArguments, Session: c.session,
		Caller: c.client.caller, Meta: toMeta(request.Params.Meta), CanAsk: canAsk(ctx, c.client),
	}
	if string(r.Args) == "null" {
		r.Args = nil
	}
	if r.Session == "" {
		r.Session = statelessSession(r.Caller, r.Meta.Session)
	}
	if report.wanted() {
		r.Progress = report.send
	}
	return r
}

// run makes one pass through the pipeline, when it is the call's turn.
func (s *Server) run(ctx context.Context, r pipeline.Request) pipeline.Response {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done(): // the pipeline records it as cancelled
	}
	return s.o.Calls.Call(ctx, r)
}

// statelessSession names what a caller without a session is counted by.
func statelessSession(caller call.Caller, given string) string {
	name := caller.Transport + ":" + caller.ID
	if given != "" {
		name += "/" + given
	}
	return name
}

// toMeta reads the keys of _meta that gates may use. What has the wrong type
// or is too long counts as absent.
func toMeta(m *mcp.Meta) call.Meta {
	var out call.Meta
	if m == nil {
		return out
	}
	text := func(key string) string {
		v, _ := m.AdditionalFields[key].(string)
		if len(v) > 128 {
			return ""
		}
		return v
	}
	out.Session, out.Turn, out.Task = text("zeph/session"), text("zeph/turn"), text("zeph/task")
	skills, _ := m.AdditionalFields["zeph/skills"].(map[string]any)
	for name, level := range skills {
		if l, ok := level.(string); ok && len(out.Skills) < 64 {
			if out.Skills == nil {
				out.Skills = make(map[string]string)
			}
			out.Skills[name] = l
		}
	}
	out.SkillEnv = skillEnv(m.AdditionalFields[call.SkillEnvKey])
	return out
}

// The bounds of a skill's variables.
const (
	maxSkillVars  = 64
	maxSkillName  = 128
	maxSkillBytes = 32 << 10 // names and values together
)

// skillEnv reads the variables of the active skill. What is no map of a few
// short texts counts as absent as a whole: half an environment is none.
func skillEnv(v any) map[string]string {
	vars, _ := v.(map[string]any)
	if len(vars) == 0 || len(vars) > maxSkillVars {
		return nil
	}
	out, size := make(map[string]string, len(vars)), 0
	for name, value := range vars {
		text, ok := value.(string)
		size += len(name) + len(text)
		if !ok || name == "" || len(name) > maxSkillName || size > maxSkillBytes {
			return nil
		}
		out[name] = text
	}
	return out
}

// reporter sends the progress of one call.
type reporter struct {
	mu    sync.Mutex
	push  func(params map[string]any) // nil = the client wants none
	token any
	last  float64
	next  time.Time
	over  bool
}

// progressEvery is how often a client hears of progress at most.
const progressEvery = 100 * time.Millisecond

// progress returns the reporter of a call; it reports nothing unless the
// client gave a token.
func (s *Server) progress(ctx context.Context, c *conn, m *mcp.Meta) *reporter {
	if m == nil || !isToken(m.ProgressToken) {
		return &reporter{}
	}
	return &reporter{token: m.ProgressToken, last: -1, push: func(params map[string]any) {
		if s.mcp.SendNotificationToClient(ctx, string(mcp.MethodNotificationProgress), params) == nil {
			c.flight.notified.Store(true)
		}
	}}
}

// isToken reports whether a progress token is one of the two kinds there are.
func isToken(token any) bool {
	switch token.(type) {
	case string, float64, int64, int:
		return true
	}
	return false
}

func (r *reporter) wanted() bool { return r.push != nil }

// send reports progress, unless too little time has passed or nothing has
// moved: the protocol wants the number to grow with every report.
func (r *reporter) send(p call.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.push == nil || r.over || p.Done <= r.last || now.Before(r.next) {
		return
	}
	r.last, r.next = p.Done, now.Add(progressEvery)
	params := map[string]any{"progressToken": r.token, "progress": p.Done}
	if p.Total > 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = p.Message
	}
	r.push(params)
}

// tick reports that a call is alive although nothing has moved.
func (r *reporter) tick(message string) {
	r.mu.Lock()
	done := max(r.last, 0)
	r.mu.Unlock()
	r.send(call.Progress{Message: message, Done: done + 0.001})
}

// stop ends the reports: none may come after the answer.
func (r *reporter) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// tell sends a log message about how a call ended to a client that asked for
// messages of that level.
func (s *Server) tell(ctx context.Context, c *conn, tool string, r pipeline.Response, took time.Duration) {
	level, data := mcp.LoggingLevelDebug, map[string]any{"call_id": r.CallID, "tool": tool, "duration_ms": took.Milliseconds()}
	if r.Err != nil {
		e := classify(r.CallID, r.Err)
		data["category"], data["code"] = e.Category, e.Code
		level = severity(e.Category)
	}
	c.flight.notified.Store(true)
	// A client that does not listen misses the message and nothing else.
	_ = s.mcp.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "calls", data))
}

// severity says how much an operator wants to hear of an error.
func severity(c call.Category) mcp.LoggingLevel {
	refused := []call.Category{call.CategoryPolicyBlocked, call.CategoryQuotaBlocked, call.CategoryConfirmationRequired}
	switch {
	case c == call.CategoryServerError:
		return mcp.LoggingLevelError
	case slices.Contains(refused, c):
		return mcp.LoggingLevelWarning
	}
	return mcp.LoggingLevelInfo
}

// unknownTool is the message for a call of a tool that does not exist. The
// pipeline records the attempt.
func (s *Server) unknownTool(ctx context.Context, c *conn, name string) string {
	r := pipeline.Request{Tool: name, Session: c.session, Caller: c.client.caller}
	if r.Session == "" {
		r.Session = statelessSession(r.Caller, "")
	}
	s.run(ctx, r)
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	message := fmt.Sprintf("there is no tool %q", name)
	if near, ok := suggest.Nearest(name, s.toolNames()); ok {
		return message + ": did you mean " + near + "?"
	}
	return message + ": tools/list has the names"
}

func (s *Server) toolNames() []string {
	names := make([]string, 0, len(s.names))
	for n := range s.names {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// missing reports whether a request calls a tool that does not exist, and
// which.
func (s *Server) missing(e envelope, t target) bool {
	if e.Method != string(mcp.MethodToolsCall) {
		return false
	}
	_, ok := s.names[t.Name]
	return !ok
}

// addResources offers what the server knows of itself.
func (s *Server) addResources() {
	if s.o.Status != nil {
		s.resource("zeph://status", "status", "What is in force: gates, sandbox, limits, counters", "application/json",
			func(ctx context.Context) (string, error) {
				raw, err := s.o.Status(ctx)
				return string(raw), err
			})
	}
	if s.o.AuditRecent != nil {
		s.resource("zeph://audit/recent", "audit-recent", "The latest audit records, one a line, newest last", "application/x-ndjson",
			func(ctx context.Context) (string, error) {
				records, err := s.o.AuditRecent(ctx)
				var b strings.Builder
				for _, r := range records {
					b.Write(r)
					b.WriteByte('\n')
				}
				return b.String(), err
			})
	}
}

// errResource is all a client learns when a resource cannot be read.
var errResource = errors.New("the resource cannot be read now: the server's log has the details")

func (s *Server) resource(uri, name, description, mime string, content func(context.Context) (string, error)) {
	s.mcp.AddResource(mcp.Resource{URI: uri, Name: name, Description: description, MIMEType: mime},
		func(ctx context.Context, _ mcp.ReadResourceRequest) (out []mcp.ResourceContents, err error) {
			defer func() {
				if p := recover(); p != nil {
					s.o.Log.ErrorContext(ctx, "a resource panicked", "uri", uri, "panic", fmt.Sprint(p))
					out, err = nil, errResource
				}
			}()
			if c := connOf(ctx); c == nil || c.client.caller.Trust < call.TrustVerified {
				return nil, errors.New("the resource is for trusted clients")
			}
			text, err := content(ctx)
			if err != nil {
				s.o.Log.ErrorContext(ctx, "a resource cannot be read", "uri", uri, "error", err)
				return nil, errResource
			}
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: text}}, nil
		})
}
