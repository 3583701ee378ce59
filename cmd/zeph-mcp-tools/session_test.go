package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

const sessionPage = "../../docs/session.md"

// TestRecordedSession runs a session of a real client against real processes
// of the program, over both transports and in both eras of the protocol, and
// holds every message against docs/session.md. -update rewrites the page.
func TestRecordedSession(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("# A recorded session\n\n" +
		"Made by `go test ./cmd/zeph-mcp-tools -run TestRecordedSession -update`, checked by every test run; do not edit.\n" +
		"A real client speaks to a real process: `→` is what the client sent, `←` what the server answered. Ids, times and\n" +
		"folders are replaced by words, and the schemas in `tools/list` are left out.\n")
	for _, w := range []struct{ transport, version string }{
		{"stdio", "2025-11-25"}, {"stdio", "2026-07-28"}, {"http", "2025-11-25"}, {"http", "2026-07-28"},
	} {
		rec := &recorder{}
		base := workspacetest.Base(t)
		c := connect(t, w.transport, w.version, base, rec)
		playSession(t, c, rec, base)
		fmt.Fprintf(&page, "\n## %s, revision %s\n%s", map[string]string{"stdio": "stdio", "http": "Streamable HTTP"}[w.transport], w.version, rec.page(base))
	}
	if *update {
		if err := os.WriteFile(sessionPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(sessionPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page.String()); diff != "" {
		t.Errorf("the recorded session changed (-want +got):\n%s", diff)
	}
}

// session is a connected client whose person answers as told.
type testSession struct {
	*client.Client
	decision string
}

// Elicit answers the server's question.
func (s *testSession) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	if s.decision == "decline" {
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionDecline}}, nil
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"decision": s.decision},
	}}, nil
}

func playSession(t *testing.T, s *testSession, rec *recorder, base string) {
	t.Helper()
	victim := filepath.Join(base, "ws", "old.txt")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(victim, []byte("x"), 0o600))
	must(os.WriteFile(filepath.Join(base, "ws", "notes.txt"), []byte("buy milk\nwater plants\n"), 0o600))

	rec.heading("List the tools")
	tools, err := s.ListTools(t.Context(), mcp.ListToolsRequest{})
	must(err)
	if len(tools.Tools) < 10 {
		t.Errorf("only %d tools", len(tools.Tools))
	}
	for _, step := range []struct {
		title, tool string
		args        map[string]any
		decision    string
		isError     bool
		has         string
		victim      bool // is it still there afterwards
	}{
		{"Run a command", "bash", map[string]any{"command": "echo hello; pwd"}, "", false, "hello", true},
		{"Read a file", "read", map[string]any{"path": "notes.txt"}, "", false, "water plants", true},
		{"A command that is refused", "bash", map[string]any{"command": "sudo id"}, "", true, "blocked_command", true},
		{"A risky command the person declines", "bash", map[string]any{"command": "rm old.txt"}, "decline", true, "declined", true},
		{"The same, and the person allows it once", "bash", map[string]any{"command": "rm old.txt"}, "allow_once", false, "", false},
	} {
		rec.heading(step.title)
		s.decision = step.decision
		req := mcp.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = step.tool, step.args
		res, err := s.CallTool(t.Context(), req)
		must(err)
		var text strings.Builder
		for _, c := range res.Content {
			if tc, ok := c.(mcp.TextContent); ok {
				text.WriteString(tc.Text)
			}
		}
		_, gone := os.Stat(victim)
		if res.IsError != step.isError || !strings.Contains(text.String(), step.has) || (gone == nil) != step.victim {
			t.Errorf("%s: isError %v, file there %v, text %s", step.title, res.IsError, gone == nil, text.String())
		}
	}
	must(s.Close())
}

// start starts the program in a process of its own.
func start(t *testing.T, base string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"ws", "home", "state", "config"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, "zeph-mcp-tools") // the test binary acts by its name
	if err := os.Symlink(self, link); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.Command(link, append(args, "--workspace", filepath.Join(base, "ws"))...)
	cmd.Env = append(os.Environ(), "HOME="+base+"/home", "XDG_STATE_HOME="+base+"/state", "XDG_CONFIG_HOME="+base+"/config", "LANG=C")
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func connect(t *testing.T, how, version, base string, rec *recorder) *testSession {
	t.Helper()
	s := &testSession{}
	var tr transport.Interface
	switch how {
	case "stdio":
		cmd := start(t, base)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("server: %v", err)
			}
		})
		tr = transport.NewIO(rec.tee("←", out), rec.sink(in), io.NopCloser(strings.NewReader("")))
	case "http":
		url := listen(t, base)
		var err error
		tr, err = transport.NewStreamableHTTP(url, transport.WithHTTPBasicClient(&http.Client{Transport: rec}))
		if err != nil {
			t.Fatal(err)
		}
	}
	opts := []client.ClientOption{client.WithElicitationHandler(s), client.WithProtocolVersion(version)}
	if version < "2026" {
		opts = append(opts, client.WithLegacyProtocolOnly()) //nolint:staticcheck // the old era is what is tested
	}
	s.Client = client.NewClient(tr, opts...)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	init := mcp.InitializeRequest{}
	init.Params.ProtocolVersion = version
	init.Params.ClientInfo = mcp.Implementation{Name: "recorder", Version: "1"}
	if _, err := s.Initialize(t.Context(), init); err != nil {
		t.Fatal(err)
	}
	if got := s.ProtocolVersion(); got != version {
		t.Errorf("speaks %s, want %s", got, version)
	}
	return s
}

// listen starts the HTTP server and returns its URL.
func listen(t *testing.T, base string) string {
	t.Helper()
	cmd := start(t, base, "serve", "--transport", "http", "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	sc := bufio.NewScanner(stderr)
	for sc.Scan() {
		if url, ok := strings.CutPrefix(sc.Text(), "listening url="); ok {
			go io.Copy(os.Stderr, stderr)
			return url
		}
		t.Log(sc.Text())
	}
	t.Fatal("the server did not start")
	return ""
}

// recorder keeps every JSON-RPC message that passes, in order.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) heading(title string) { r.add("### " + title) }

func (r *recorder) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *recorder) message(arrow string, raw []byte) {
	for line := range bytes.Lines(raw) {
		line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data: "))
		if len(line) > 0 && line[0] == '{' {
			r.add(arrow + " " + string(line))
		}
	}
}

// tee records lines read from the server.
func (r *recorder) tee(arrow string, from io.Reader) io.Reader {
	pr, pw := io.Pipe()
	go func() {
		sc := bufio.NewReader(from)
		for {
			line, err := sc.ReadBytes('\n')
			r.message(arrow, line)
			if _, werr := pw.Write(line); werr != nil || err != nil {
				_ = pw.CloseWithError(err)
				return
			}
		}
	}()
	return pr
}

type sink struct {
	io.WriteCloser
	r *recorder
}

func (s sink) Write(b []byte) (int, error) {
	s.r.message("→", b)
	return s.WriteCloser.Write(b)
}

func (r *recorder) sink(to io.WriteCloser) io.WriteCloser { return sink{to, r} }

// RoundTrip records requests and answers over HTTP.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.message("→", b)
		req.Body = io.NopCloser(bytes.NewReader(b))
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{r.tee("←", resp.Body), resp.Body}
	}
	return resp, err
}

// page returns the lines with everything that differs from run to run
// replaced.
func (r *recorder) page(base string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	open := false
	for _, l := range append([]string{"### Connect"}, r.lines...) {
		if strings.HasPrefix(l, "### ") {
			if open {
				b.WriteString("```\n")
			}
			fmt.Fprintf(&b, "\n%s\n\n```\n", l)
			open = true
			continue
		}
		b.WriteString(normal(l, base) + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}

func normal(line, base string) string {
	arrow, raw, _ := strings.Cut(line, " ")
	var m map[string]any
	if json.Unmarshal([]byte(raw), &m) != nil {
		return line
	}
	res, ok := m["result"].(map[string]any)
	if !ok {
		res = map[string]any{}
	}
	if tools, has := res["tools"].([]any); has {
		var names []any
		for _, t := range tools {
			names = append(names, t.(map[string]any)["name"])
		}
		res["tools"] = names
	}
	if info, has := res["serverInfo"].(map[string]any); has {
		delete(info, "icons")
	}
	if meta, has := res["_meta"].(map[string]any); has {
		for k := range meta {
			if strings.HasSuffix(k, "/serverInfo") {
				meta[k] = "SERVER-INFO"
			}
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(m)
	s := strings.TrimSpace(out.String())
	s = strings.ReplaceAll(s, base+"/ws", "/workspace")
	for _, re := range []struct{ pattern, with string }{
		{`c-[A-Z2-7]{26}`, "CALL-ID"},
		{`"requestState":"[^"]*"`, `"requestState":"STATE"`},
		{`"(duration_ms|uptime|ttlMs)":[0-9.]+`, `"$1":0`},
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "ID"},
		{`\b[A-Z2-7]{26}\b`, "ID"},
		{`expires [0-9:]{8} UTC`, "expires TIME"},
		{`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`, "TIME"},
	} {
		s = regexp.MustCompile(re.pattern).ReplaceAllString(s, re.with)
	}
	return arrow + " " + s
}
