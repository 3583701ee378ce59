package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

// fakeCalls stands for the pipeline: it asks, resumes and records as the real
// one does, and its tools do nothing but what a test needs.
type fakeCalls struct {
	approvals *approval.Service

	mu        sync.Mutex
	seq       int
	records   map[string]int // ended calls, by id
	requests  []pipeline.Request
	started   chan string // names of tools that began to block
	cancelled chan error  // causes
	release   chan struct{}
	ran       atomic.Int32
}

func newFake(a *approval.Service) *fakeCalls {
	return &fakeCalls{
		approvals: a, records: map[string]int{},
		started: make(chan string, 2000), cancelled: make(chan error, 2000), release: make(chan struct{}),
	}
}

func (f *fakeCalls) Tools() []call.Spec {
	spec := func(name string, e call.Effect) call.Spec {
		return call.Spec{
			Name: name, Title: "The " + name, Description: "does " + name + "\n", Effect: e, Confirm: call.ConfirmByPolicy,
			Input:       json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`),
			Output:      json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
			Destructive: call.Yes, Idempotent: call.No, OpenWorld: call.No, Cacheable: call.No, Speculatable: call.No, Retryable: call.No,
		}
	}
	return []call.Spec{
		spec("echo", call.ReadsState), spec("ask", call.RunsCommands), spec("slow", call.RunsCommands), spec("stubborn", call.RunsCommands),
		spec("boom", call.ReadsState), spec("panic", call.ReadsState), spec("denied", call.ReadsState), spec("badjson", call.ReadsState),
		spec("work", call.ReadsState),
	}
}

func (f *fakeCalls) Call(ctx context.Context, r pipeline.Request) (resp pipeline.Response) {
	f.mu.Lock()
	f.requests = append(f.requests, r)
	f.seq++
	resp.CallID = r.Resume
	if resp.CallID == "" {
		resp.CallID = fmt.Sprintf("c-%d", f.seq)
	}
	f.mu.Unlock()
	defer func() {
		if resp.Pending == nil {
			f.mu.Lock()
			f.records[resp.CallID]++
			f.mu.Unlock()
		}
	}()
	if r.Refused != nil {
		resp.Err = r.Refused
		return resp
	}
	if err := ctx.Err(); err != nil && r.Answer == nil {
		resp.Err = err
		return resp
	}
	switch r.Tool {
	case "echo":
		resp.Result = call.Result{Text: "echo " + string(r.Args), Structured: json.RawMessage(`{"text":"é<>"}`)}
	case "ask":
		f.ask(ctx, r, &resp)
	case "slow":
		f.started <- "slow"
		select {
		case <-ctx.Done():
			f.cancelled <- context.Cause(ctx)
			resp.Err = ctx.Err()
		case <-f.release:
			resp.Result.Text = "slow done"
		}
	case "stubborn":
		f.started <- "stubborn"
		<-f.release
	case "boom":
		resp.Err = errors.New("secret detail /etc/shadow")
	case "panic":
		panic("secret panic text")
	case "denied":
		resp.Err = &gates.DeniedError{Gate: "command", Code: "deny_list", Reason: "sudo is\nnot allowed", Suggestion: "do without"}
	case "badjson":
		resp.Result.Structured = json.RawMessage(`{"text":`)
	case "work":
		if r.Progress != nil {
			r.Progress(call.Progress{Message: "one", Done: 1, Total: 3})
			r.Progress(call.Progress{Message: "too soon", Done: 2, Total: 3})
		}
		resp.Result.Text = "worked"
	default:
		resp.Err = &call.Error{Category: call.CategoryToolNotFound, Code: "tool_not_found", Message: "no such tool"}
	}
	return resp
}

func (f *fakeCalls) ask(ctx context.Context, r pipeline.Request, resp *pipeline.Response) {
	c := call.Call{
		ID: resp.CallID, Session: r.Session, Caller: r.Caller, Args: r.Args, Spec: call.Spec{Name: "ask"},
		Facts: call.Facts{Summary: "rm file"},
	}
	why := []approval.Reason{{Gate: "command", Code: "delete", Text: "rm deletes", Kind: "rm"}}
	if strings.Contains(string(r.Args), "once only") {
		why[0].Kind = ""
	}
	switch {
	case r.Answer != nil:
		resp.Err = f.approvals.Resolve(ctx, c, why, call.Limits{}, "p", *r.Answer)
	case f.approvals.Granted(c.Session, "p", why):
	case f.approvals.Approved(ctx, c, why, call.Limits{}, "p") == nil:
	default:
		rec, err := f.approvals.Propose(ctx, c, why, call.Limits{}, "p")
		switch {
		case err != nil:
			resp.Err = err
		case r.CanAsk:
			resp.Pending = &rec
		default:
			resp.Err = &call.Error{
				Category: call.CategoryConfirmationRequired, Code: "approval_required", Message: "a person must approve this",
				Suggestion: "zeph-mcp-tools approvals approve " + rec.ID, Details: map[string]any{"approval_id": rec.ID},
			}
		}
	}
	if resp.Err == nil && resp.Pending == nil {
		f.ran.Add(1)
		resp.Result.Text = "removed"
	}
}

// onceEach fails the test when a call left no record or two.
func (f *fakeCalls) onceEach(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, n := range f.records {
		if n != 1 {
			t.Errorf("call %s has %d records", id, n)
		}
	}
}

func (f *fakeCalls) last() pipeline.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[len(f.requests)-1]
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func newTestServer(t *testing.T, change ...func(*Options)) (*Server, *fakeCalls) {
	t.Helper()
	cfg := approval.Default()
	cfg.Wait = 2 * time.Second
	logs := &logBuffer{}
	log := slog.New(slog.NewTextHandler(logs, nil))
	approvals, err := approval.New(cfg, approval.NewMemory(), log)
	if err != nil {
		t.Fatal(err)
	}
	fake := newFake(approvals)
	o := Options{
		Calls: fake, Approvals: approvals, Log: log, Config: Default(), Version: "1.2.3", Instructions: "be careful",
		Status: func(context.Context) (json.RawMessage, error) { return json.RawMessage(`{"ok":true}`), nil },
		AuditRecent: func(context.Context) ([]json.RawMessage, error) {
			return []json.RawMessage{[]byte(`{"n":1}`), []byte(`{"n":2}`)}, nil
		},
	}
	for _, c := range change {
		c(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(logs.b.String())
		}
	})
	return s, fake
}

// serveStdio runs the server on pipes and returns the client's ends.
func serveStdio(t *testing.T, s *Server) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := s.ServeStdio(ctx, inR, outW)
		outW.Close()
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		go io.Copy(io.Discard, outR)
		if err := <-done; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
	return inW, outR
}

// serveHTTP runs the server on a free port and returns the endpoint.
func serveHTTP(t *testing.T, s *Server) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	url, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- s.ListenHTTP(ctx, "127.0.0.1:0", func(u string) { url <- u }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ListenHTTP: %v", err)
		}
	})
	select {
	case u := <-url:
		return u
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return ""
	}
}

// way is a transport and an era.
type way struct{ transport, version string }

func (w way) String() string { return w.transport + " " + w.version }

func ways() []way {
	return []way{
		{"stdio", mcp.ProtocolVersion20251125},
		{"stdio", mcp.ProtocolVersion20260728},
		{"http", mcp.ProtocolVersion20251125},
		{"http", mcp.ProtocolVersion20260728},
	}
}

func (w way) modern() bool { return mcp.IsModernProtocol(w.version) }

// connect returns an initialized client of the SDK.
func connect(t *testing.T, s *Server, w way, opts ...client.ClientOption) *client.Client {
	t.Helper()
	var tr transport.Interface
	if w.transport == "stdio" {
		in, out := serveStdio(t, s)
		tr = transport.NewIO(out, in, io.NopCloser(strings.NewReader("")))
	} else {
		h, err := transport.NewStreamableHTTP(serveHTTP(t, s))
		if err != nil {
			t.Fatal(err)
		}
		tr = h
	}
	c := client.NewClient(tr, append([]client.ClientOption{client.WithProtocolVersion(w.version)}, opts...)...)
	t.Cleanup(func() { c.Close() })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: w.version, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}}); err != nil {
		t.Fatal(err)
	}
	if got := c.ProtocolVersion(); got != w.version {
		t.Fatalf("negotiated %q", got)
	}
	return c
}

type elicitFunc func(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error)

func (f elicitFunc) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return f(ctx, r)
}

func choose(action mcp.ElicitationResponseAction, content any) client.ClientOption {
	return client.WithElicitationHandler(elicitFunc(func(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: content}}, nil
	}))
}

func callTool(t *testing.T, c *client.Client, name string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: args}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

func textOf(r *mcp.CallToolResult) string {
	if len(r.Content) == 0 {
		return ""
	}
	c, _ := r.Content[0].(mcp.TextContent)
	return c.Text
}

// field reads one field of a structured result.
func field(t *testing.T, r *mcp.CallToolResult, name string) string {
	t.Helper()
	m, ok := r.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("structured content is %T", r.StructuredContent)
	}
	v, ok := m[name]
	if !ok {
		return ""
	}
	return fmt.Sprint(v)
}

// lines is a client that speaks for itself.
type lines struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newLines(t *testing.T, s *Server) *lines {
	t.Helper()
	in, out := serveStdio(t, s)
	return &lines{t, in, bufio.NewReader(out)}
}

func (l *lines) send(text ...string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, strings.Join(text, "\n")+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

func (l *lines) recv() message {
	l.t.Helper()
	line, err := l.out.ReadBytes('\n')
	if err != nil {
		l.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		l.t.Fatalf("%v in %q", err, line)
	}
	return m
}

func (l *lines) initialize(caps string) {
	l.t.Helper()
	l.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":` + caps + `,"clientInfo":{"name":"t","version":"1"}}}`)
	if m := l.recv(); m.Error != nil {
		l.t.Fatalf("initialize: %v", m.Error)
	}
}
