package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

func TestSession(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			s, fake := newTestServer(t)
			c := connect(t, s, w)
			list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Tools) != len(fake.Tools()) {
				t.Fatalf("%d tools", len(list.Tools))
			}
			for _, tool := range list.Tools {
				a := tool.Annotations
				if tool.Name == "echo" && (!*a.ReadOnlyHint || !*a.DestructiveHint || *a.IdempotentHint || *a.OpenWorldHint || tool.Title != "The echo" || tool.Description != "does echo") {
					t.Errorf("echo: %+v", tool)
				}
				if tool.Name == "ask" && *a.ReadOnlyHint {
					t.Error("ask says it is read-only")
				}
			}
			res := callTool(t, c, "echo", map[string]any{"text": "x<&>"})
			if got := textOf(res); got != `echo {"text":"x\u003c\u0026\u003e"}` && got != `echo {"text":"x<&>"}` {
				t.Errorf("text %q", got)
			}
			if got := field(t, res, "text"); got != "é<>" || res.IsError {
				t.Errorf("structured %q, error %v", got, res.IsError)
			}
			r := fake.last()
			if r.Caller != (call.Caller{ID: "local", Transport: w.transport, Trust: call.TrustTrusted}) {
				t.Errorf("caller %+v", r.Caller)
			}
			if stateless := r.Session == "http:local"; r.Session == "" || stateless != (w.transport == "http" && w.modern()) {
				t.Errorf("session %q", r.Session)
			}
			fake.onceEach(t)
		})
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			s, _ := newTestServer(t)
			c := connect(t, s, w)
			want := map[string]string{"zeph://status": `{"ok":true}`, "zeph://audit/recent": "{\"n\":1}\n{\"n\":2}\n"}
			list, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
			if err != nil || len(list.Resources) != len(want) {
				t.Fatalf("%v, %v", list, err)
			}
			for uri, text := range want {
				res, err := c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
				if err != nil {
					t.Fatal(err)
				}
				if got, _ := res.Contents[0].(mcp.TextResourceContents); got.Text != text || got.URI != uri {
					t.Errorf("%s: %+v", uri, got)
				}
			}
		})
	}
}

func TestResourceTroubleStaysHere(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]func(context.Context) (json.RawMessage, error){
		"error": func(context.Context) (json.RawMessage, error) { return nil, errors.New("secret") },
		"panic": func(context.Context) (json.RawMessage, error) { panic("secret") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newTestServer(t, func(o *Options) { o.Status, o.AuditRecent = status, nil })
			c := connect(t, s, ways()[0])
			_, err := c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "zeph://status"}})
			if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "log has the details") {
				t.Errorf("got %v", err)
			}
			list, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
			if err != nil || len(list.Resources) != 1 {
				t.Errorf("a resource nobody provides is listed: %v, %v", list, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			s, fake := newTestServer(t)
			c := connect(t, s, w)
			for tool, want := range map[string][]string{
				"denied":  {"category: policy_blocked\nerror: refused by command: sudo is; not allowed (deny_list)\nsuggestion: do without\nretryable: false", "deny_list"},
				"boom":    {"internal error c-", "internal"},
				"badjson": {"internal error c-", "internal"},
				"panic":   {"category: server_error\nerror: internal error", "internal"},
			} {
				res := callTool(t, c, tool, nil)
				text := textOf(res)
				if !res.IsError || !strings.Contains(text, want[0]) || strings.Count(text, "\n") != 3 || strings.Contains(text, "secret") {
					t.Errorf("%s: %q", tool, text)
				}
				if got := field(t, res, "code"); got != want[1] {
					t.Errorf("%s: code %q", tool, got)
				}
				if tool != "panic" && field(t, res, "call_id") == "" {
					t.Errorf("%s: no call id", tool)
				}
			}
			_, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "ehco"}})
			if err == nil || !strings.Contains(err.Error(), `there is no tool "ehco": did you mean echo?`) {
				t.Errorf("unknown tool: %v", err)
			}
			if got := fake.last().Tool; got != "ehco" {
				t.Errorf("the attempt is not recorded: %q", got)
			}
			fake.onceEach(t)
		})
	}
}

// What an error quotes of a call does not make the answer long.
func TestErrorResultIsShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<20)
	for _, err := range []error{
		&call.Error{Category: call.CategoryTypeMismatch, Field: long, Message: long, Suggestion: long},
		&gates.DeniedError{Gate: "command", Code: "blocked_command", Reason: long, Suggestion: long},
	} {
		raw, err := json.Marshal(errorResult("c-1", err))
		if err != nil || len(raw) > 32<<10 {
			t.Errorf("%d bytes, error %v", len(raw), err)
		}
	}
}

func TestErrorResult(t *testing.T) {
	t.Parallel()
	err := &call.Error{
		Category: call.CategoryRateLimited, Phase: call.PhaseSetup, Field: "url", Message: "slow\r\ndown", Suggestion: "wait",
		Retryable: true, RetryAfter: 1500 * time.Millisecond, Details: map[string]any{"category": "forged", "host": "a"}, Cause: errors.New("secret"),
	}
	res := errorResult("c-9", err)
	want := map[string]any{
		"category": call.CategoryRateLimited, "code": "rate_limited", "error": "url: slow\r\ndown", "suggestion": "wait", "retryable": true,
		"call_id": "c-9", "phase": call.PhaseSetup, "field": "url", "retry_after_ms": int64(1500), "host": "a",
	}
	if diff := cmp.Diff(want, res.StructuredContent); diff != "" {
		t.Error(diff)
	}
	if got := textOf(res); got != "category: rate_limited\nerror: url: slow; down\nsuggestion: wait\nretryable: true" {
		t.Errorf("got %q", got)
	}
	if err.Code != "" {
		t.Error("the error was changed")
	}
	for want, in := range map[string]error{
		"cancelled": context.Canceled, "timeout": context.DeadlineExceeded, "server_error": errors.New("x"),
	} {
		if got := classify("", in).Category; string(got) != want {
			t.Errorf("%v: %s", in, got)
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]pipeline.Response{
		`{"content":[{"type":"text","text":"hi"}],"structuredContent":{"a":1}}`: {Result: call.Result{Text: "hi", Structured: json.RawMessage(`{"a":1}`)}},
		`{"content":[{"type":"text","text":""},{"type":"image","data":"AQI=","mimeType":"image/png"}],"structuredContent":{}}`: {
			Result: call.Result{Images: []call.Image{{MIME: "image/png", Data: []byte{1, 2}}}},
		},
	} {
		text, raw, err := Render(r)
		if err != nil || string(raw) != want || text != r.Result.Text {
			t.Errorf("%q, %s, %v", text, raw, err)
		}
	}
	text, raw, err := Render(pipeline.Response{CallID: "c-1", Err: errors.New("x")})
	if err != nil || !strings.Contains(string(raw), `"isError":true`) || !strings.HasPrefix(text, "category: server_error\n") {
		t.Errorf("%q, %s, %v", text, raw, err)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	tests := []struct {
		name   string
		action mcp.ElicitationResponseAction
		form   any
		code   string // "" = it ran
	}{
		{"allow once", "accept", m{"decision": "allow_once"}, ""},
		{"deny", "accept", m{"decision": "deny"}, "declined"},
		{"decline", "decline", nil, "declined"},
		{"decline with a yes", "decline", m{"decision": "allow_once"}, "declined"},
		{"cancel", "cancel", nil, "cancelled"},
		{"no form", "accept", nil, "malformed"},
		{"empty form", "accept", m{}, "malformed"},
		{"other choice", "accept", m{"decision": "yes"}, "malformed"},
		{"not a text", "accept", m{"decision": true}, "malformed"},
		{"not a form", "accept", "allow_once", "malformed"},
		{"other action", "sure", m{"decision": "allow_once"}, "malformed"},
	}
	for _, w := range ways() {
		for _, tt := range tests {
			t.Run(w.String()+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				s, fake := newTestServer(t)
				c := connect(t, s, w, choose(tt.action, tt.form))
				res := callTool(t, c, "ask", map[string]any{"text": "a"})
				ran := int32(0)
				if tt.code == "" {
					ran = 1
				}
				if fake.ran.Load() != ran || res.IsError == (ran == 1) {
					t.Errorf("ran %d, error %v", fake.ran.Load(), res.IsError)
				}
				if res.IsError && (field(t, res, "code") != tt.code || field(t, res, "category") != "confirmation_required") {
					t.Errorf("got %v", res.StructuredContent)
				}
				open, err := s.o.Approvals.List(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if stays := tt.code == "cancelled" || tt.code == "malformed"; stays != (len(open) == 1) {
					t.Errorf("%d questions open", len(open))
				}
				if len(open) == 1 { // the way out of band is left
					if err := s.o.Approvals.Approve(t.Context(), open[0].Record.ID); err != nil {
						t.Fatal(err)
					}
					if res := callTool(t, c, "ask", map[string]any{"text": "a"}); res.IsError || fake.ran.Load() != 1 {
						t.Errorf("approved out of band: %q", textOf(res))
					}
				}
				fake.onceEach(t)
			})
		}
	}
}

func TestAskForm(t *testing.T) {
	t.Parallel()
	for _, w := range append(ways(), way{"stdio", mcp.ProtocolVersion20250618}) {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			s, fake := newTestServer(t)
			var asked []mcp.ElicitationParams
			var mu sync.Mutex
			c := connect(t, s, w, client.WithElicitationHandler(elicitFunc(func(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r.Params)
				return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"decision": "allow_session"}}}, nil
			})))
			for range 3 {
				if res := callTool(t, c, "ask", nil); res.IsError {
					t.Errorf("got %q", textOf(res))
				}
			}
			if len(asked) != 1 || fake.ran.Load() != 3 {
				t.Fatalf("asked %d times, ran %d", len(asked), fake.ran.Load())
			}
			if res := callTool(t, c, "ask", map[string]any{"text": "once only"}); field(t, res, "code") != "malformed" || len(asked) != 2 {
				t.Errorf("a session grant without a kind: %q", textOf(res))
			}
			if !strings.HasPrefix(asked[0].Message, "Allow this? rm file\n") || !strings.Contains(asked[0].Message, "- rm deletes\n") {
				t.Errorf("message %q", asked[0].Message)
			}
			schema, _ := json.Marshal(asked[0].RequestedSchema)
			want := `{"properties":{"decision":{"oneOf":[{"const":"allow_once","title":"Allow once"},{"const":"allow_session","title":"Allow this kind for this session"},{"const":"deny","title":"Do not allow"}],"title":"Decision","type":"string"}},"required":["decision"],"type":"object"}`
			if w.version < mcp.ProtocolVersion20251125 {
				want = `{"properties":{"decision":{"enum":["allow_once","allow_session","deny"],"enumNames":["Allow once","Allow this kind for this session","Do not allow"],"title":"Decision","type":"string"}},"required":["decision"],"type":"object"}`
			}
			if string(schema) != want {
				t.Errorf("schema %s", schema)
			}
			if once, _ := json.Marshal(asked[1].RequestedSchema); strings.Contains(string(once), "allow_session") {
				t.Errorf("offers what cannot be granted: %s", once)
			}
			fake.onceEach(t)
		})
	}
}

// A client that cannot show forms is told at once how a person can approve.
func TestAskNobody(t *testing.T) {
	t.Parallel()
	url := mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{URL: &struct{}{}}}
	for _, w := range ways() {
		for name, opts := range map[string][]client.ClientOption{"nothing": nil, "url only": {client.WithClientCapabilities(url)}} {
			t.Run(w.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				s, fake := newTestServer(t)
				res := callTool(t, connect(t, s, w, opts...), "ask", nil)
				id := field(t, res, "approval_id")
				if !res.IsError || field(t, res, "code") != "approval_required" || id == "" || !strings.Contains(textOf(res), "approvals approve "+id) || fake.ran.Load() != 0 {
					t.Errorf("got %q", textOf(res))
				}
				fake.onceEach(t)
			})
		}
	}
}

func TestCanAsk(t *testing.T) {
	t.Parallel()
	yes := &struct{}{}
	for _, tt := range []struct {
		name string
		caps *mcp.ElicitationCapability
		want bool
	}{
		{"none", nil, false},
		{"empty", &mcp.ElicitationCapability{}, true},
		{"form", &mcp.ElicitationCapability{Form: yes}, true},
		{"url", &mcp.ElicitationCapability{URL: yes}, false},
		{"both", &mcp.ElicitationCapability{Form: yes, URL: yes}, true},
	} {
		c := newPeer(call.Caller{})
		c.caps.Elicitation = tt.caps
		if got := canAsk(t.Context(), c); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A client that answers our question with an error, or not at all, is not
// waited for without end.
func TestAskFailingClient(t *testing.T) {
	t.Parallel()
	for _, w := range []way{ways()[0], ways()[2]} {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			s, fake := newTestServer(t)
			c := connect(t, s, w, client.WithElicitationHandler(elicitFunc(func(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
				return nil, errors.New("method not found")
			})))
			res := callTool(t, c, "ask", nil)
			if field(t, res, "code") != "not_asked" || fake.ran.Load() != 0 {
				t.Errorf("got %q", textOf(res))
			}
			fake.onceEach(t)
		})
	}
}

func TestProgressAndLog(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			s, _ := newTestServer(t)
			c := connect(t, s, w)
			var progress, logged atomic.Int32
			seen := make(chan struct{}, 200)
			c.OnNotification(func(n mcp.JSONRPCNotification) {
				switch n.Method {
				case "notifications/progress":
					if n.Params.AdditionalFields["progressToken"] != "tok" || n.Params.AdditionalFields["message"] != "one" {
						t.Errorf("progress %v", n.Params.AdditionalFields)
					}
					progress.Add(1)
				case "notifications/message":
					logged.Add(1)
				}
				seen <- struct{}{}
			})
			//nolint:staticcheck // deprecated with the feature, which clients still use
			if err := c.SetLevel(t.Context(), mcp.SetLevelRequest{Params: mcp.SetLevelParams{Level: "debug"}}); err != nil {
				t.Fatal(err)
			}
			work := func() {
				if _, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{
					Name: "work", Meta: &mcp.Meta{ProgressToken: "tok"},
				}}); err != nil {
					t.Fatal(err)
				}
			}
			if w.modern() && w.transport == "http" {
				// The SDK may lose what is sent just before a result.
				for i := 0; i < 100 && (progress.Load() == 0 || logged.Load() == 0); i++ {
					work()
				}
				if progress.Load() == 0 || logged.Load() == 0 {
					t.Error("nothing is ever reported")
				}
				return
			}
			work()
			<-seen
			<-seen
			if progress.Load() != 1 || logged.Load() != 1 {
				t.Errorf("%d progress, %d log messages", progress.Load(), logged.Load())
			}
		})
	}
}

func TestNoProgressWithoutToken(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	c := connect(t, s, ways()[0])
	callTool(t, c, "work", nil)
	if fake.last().Progress != nil {
		t.Error("progress is wanted by nobody")
	}
}

func TestToMeta(t *testing.T) {
	t.Parallel()
	got := toMeta(&mcp.Meta{AdditionalFields: map[string]any{
		"zeph/session": "s", "zeph/turn": 7, "zeph/task": strings.Repeat("x", 129),
		"zeph/skills": map[string]any{"a": "trusted", "b": 1},
	}})
	if diff := cmp.Diff(call.Meta{Session: "s", Skills: map[string]string{"a": "trusted"}}, got); diff != "" {
		t.Error(diff)
	}
	long := strings.Repeat("x", 40<<10)
	many := map[string]any{}
	for i := range 65 {
		many[fmt.Sprint("V", i)] = ""
	}
	for name, tt := range map[string]struct {
		give any
		want map[string]string
	}{
		"texts":     {map[string]any{"A": "b", "C": ""}, map[string]string{"A": "b", "C": ""}},
		"a number":  {map[string]any{"A": "b", "C": 1}, nil},
		"too long":  {map[string]any{"A": long}, nil},
		"a name":    {map[string]any{long[:129]: ""}, nil},
		"no name":   {map[string]any{"": "x"}, nil},
		"too many":  {many, nil},
		"no object": {"A=b", nil},
	} {
		got := toMeta(&mcp.Meta{AdditionalFields: map[string]any{"zeph/skill_env": tt.give}})
		if diff := cmp.Diff(call.Meta{SkillEnv: tt.want}, got); diff != "" {
			t.Errorf("skill variables, %s: %s", name, diff)
		}
	}
	if got := toMeta(nil); got.Session != "" {
		t.Error("nil meta")
	}
	if got := statelessSession(call.Caller{ID: "local", Transport: "http"}, "x"); got != "http:local/x" {
		t.Error(got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	a, err := approval.New(approval.Default(), approval.NewMemory(), log)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"calls":     {Approvals: a, Log: log, Config: Default()},
		"approvals": {Calls: newFake(a), Log: log, Config: Default()},
		"log":       {Calls: newFake(a), Approvals: a, Config: Default()},
		"config":    {Calls: newFake(a), Approvals: a, Log: log},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("no %s: accepted", name)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	for key, change := range map[string]func(*Config){
		"server.session_idle":       func(c *Config) { c.SessionIdle = time.Second },
		"server.max_sessions":       func(c *Config) { c.MaxSessions = 0 },
		"server.max_calls":          func(c *Config) { c.MaxCalls = 2000 },
		"server.max_message":        func(c *Config) { c.MaxMessage = 1 },
		"server.allowed_origins[1]": func(c *Config) { c.AllowedOrigins = []string{"https://a.example", "https://a.example/x"} },
		"server.allowed_origins[0]": func(c *Config) { c.AllowedOrigins = []string{"null"} },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
