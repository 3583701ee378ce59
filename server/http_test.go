package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/mark3labs/mcp-go/server"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// web is an HTTP client that speaks for itself.
type web struct {
	t       *testing.T
	url     string
	session string
	client  *http.Client
}

func newWeb(t *testing.T, url string) *web {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &web{t: t, url: url, client: &http.Client{Transport: tr}}
}

func (w *web) do(ctx context.Context, method, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.session != "" {
		r.Header.Set(sdk.HeaderKeySessionID, w.session)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	return w.client.Do(r)
}

// hang posts a message and waits for whatever comes.
func (w *web) hang(ctx context.Context, body string, header ...string) error {
	resp, err := w.do(ctx, http.MethodPost, body, header...)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (w *web) status(method, body string, header ...string) (int, string) {
	w.t.Helper()
	resp, err := w.do(w.t.Context(), method, body, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func (w *web) initialize(caps string) {
	w.t.Helper()
	resp, err := w.do(w.t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+caps+`,"clientInfo":{"name":"t","version":"1"}}}`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if w.session = resp.Header.Get(sdk.HeaderKeySessionID); w.session == "" || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("initialize: %s, session %q", resp.Status, w.session)
	}
	io.Copy(io.Discard, resp.Body)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}`

// modernCall returns body and headers of a call in the new era.
func modernCall(id, tool, caps, more string) (string, []string) {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":{}%s,`+modernMeta+`}}`, id, tool, more, caps),
		[]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool}
}

func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	for _, addr := range []string{
		":8765", "0.0.0.0:8765", "[::]:8765", "192.168.1.2:80", "example.com:80", "127.0.0.1", "127.0.0.1:http", "10.0.0.1:0",
		"[fe80::1%lo]:80", "localhost.example:1", "127.0.0.1:99999", "",
	} {
		err := s.ListenHTTP(t.Context(), addr, func(string) { t.Errorf("%s: listens", addr) })
		if err == nil || !strings.Contains(err.Error(), "listen address") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := s.ListenHTTP(t.Context(), "192.168.1.2:8765", nil); !strings.Contains(err.Error(), "use 127.0.0.1:8765") {
		t.Errorf("no advice in %v", err)
	}
}

func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, func(o *Options) { o.Config.AllowedOrigins = []string{"https://app.example"} })
	url := serveHTTP(t, s)
	w := newWeb(t, url)
	own := strings.TrimSuffix(url, "/mcp")
	_, port, _ := strings.Cut(strings.TrimPrefix(own, "http://"), ":")
	for _, tt := range []struct {
		header []string
		want   int
	}{
		{nil, 200},
		{[]string{"Origin", own}, 200},
		{[]string{"Origin", "https://app.example"}, 200},
		{[]string{"Host", "localhost:" + port, "Origin", "http://localhost:" + port}, 200},
		{[]string{"Host", "[::1]:" + port}, 200},
		{[]string{"Host", "localhost"}, 200},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Origin", "http://x@127.0.0.1:" + port}, 403},
		{[]string{"Origin", own + "/x"}, 403},
		{[]string{"Origin", "https://app.example.evil"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", ""}, 403},
		{[]string{"Origin", "http://localhost:1"}, 403},
		{[]string{"Origin", "https://127.0.0.1:" + port}, 403},
		{[]string{"Host", "evil.example"}, 403},
		{[]string{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port}, 403},
		{[]string{"Host", "127.0.0.1.evil.example"}, 403},
		{[]string{"Host", "192.168.0.1"}, 403},
	} {
		for _, path := range []string{"/mcp", "/healthz"} {
			w := *w
			w.url = own + path
			method, body := http.MethodGet, ""
			if path == "/mcp" {
				method = http.MethodPost
				body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
			}
			if got, text := w.status(method, body, tt.header...); got != tt.want {
				t.Errorf("%v %s: %d, want %d: %s", tt.header, path, got, tt.want, text)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var notReady error
	s, _ := newTestServer(t, func(o *Options) { o.Ready = func() error { return notReady } })
	w := newWeb(t, strings.TrimSuffix(serveHTTP(t, s), "/mcp")+"/readyz")
	if got, text := w.status(http.MethodGet, ""); got != 200 || text != "ok\n" {
		t.Errorf("%d %q", got, text)
	}
	notReady = errors.New("sandbox is not probed")
	if got, text := w.status(http.MethodGet, ""); got != 503 || !strings.Contains(text, "sandbox") {
		t.Errorf("%d %q", got, text)
	}
	w.url = strings.Replace(w.url, "readyz", "nothing", 1)
	if got, _ := w.status(http.MethodGet, ""); got != 404 {
		t.Errorf("%d", got)
	}
}

func TestSessionIDs(t *testing.T) {
	t.Parallel()
	ended := make(chan string, 1)
	s, fake := newTestServer(t, func(o *Options) { o.SessionEnded = func(id string) { ended <- id } })
	w := newWeb(t, serveHTTP(t, s))
	w.initialize("{}")
	real := w.session
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for _, tt := range []struct {
		name, session string
		want          int
	}{
		{"missing", "", 400},
		{"made up", "mcp-session-3f2c1d00-0000-4000-8000-000000000001", 404},
		{"almost", real[:len(real)-1] + "?", 404},
	} {
		w.session = tt.session
		for method, body := range map[string]string{http.MethodPost: ping, http.MethodGet: "", http.MethodDelete: ""} {
			if got, text := w.status(method, body); got != tt.want {
				t.Errorf("%s %s: %d %s", method, tt.name, got, text)
			}
		}
		if got, _ := w.status(http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`); got != tt.want {
			t.Errorf("answer, %s: %d", tt.name, got)
		}
	}
	w.session = real
	if got, text := w.status(http.MethodPost, ping); got != 200 {
		t.Fatalf("%d %s", got, text)
	}
	go w.hang(t.Context(), callLine("9", "slow"))
	<-fake.started
	if got, _ := w.status(http.MethodDelete, ""); got != 200 {
		t.Errorf("delete: %d", got)
	}
	if cause := <-fake.cancelled; !errors.Is(cause, errSessionEnded) {
		t.Errorf("cause %v", cause)
	}
	if got := <-ended; got != fake.last().Session || strings.Contains(got, real) || !strings.HasPrefix(got, "http-") {
		t.Errorf("ended %q", got) // the id opens the session, so it names it nowhere
	}
	if got, _ := w.status(http.MethodPost, ping); got != 404 {
		t.Errorf("deleted: %d", got)
	}
}

// A session id belongs to the principal that made it.
func TestSessionBelongsToItsPrincipal(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	alice := sessionIDs{s: s, flights: newFlights(), caller: call.Caller{ID: "alice"}}
	mallory := alice
	mallory.caller.ID = "mallory"
	id := alice.Generate()
	if _, err := alice.Validate(id); err != nil {
		t.Error(err)
	}
	if _, err := mallory.Validate(id); err == nil {
		t.Error("a stranger's session is valid")
	}
	if _, err := mallory.Terminate(id); err == nil {
		t.Error("a stranger ends a session")
	}
	if alice.find(id) == nil {
		t.Error("the session is gone")
	}
	if _, err := (sessionIDs{s: s, flights: alice.flights}).Terminate(id); err != nil || alice.find(id) != nil {
		t.Error("the server cannot end an idle session")
	}
}

func TestTooManySessions(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, func(o *Options) { o.Config.MaxSessions = 1 })
	w := newWeb(t, serveHTTP(t, s))
	w.initialize("{}")
	got, text := w.status(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if got != 503 || !strings.Contains(text, `"id":5`) {
		t.Errorf("%d %s", got, text)
	}
}

func TestBodyLimitAndForm(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	w := newWeb(t, serveHTTP(t, s))
	w.initialize("{}")
	for _, tt := range []struct {
		body string
		want int
		has  string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`, 413, "longer than 4194304 bytes"},
		{`{"jsonrpc":`, 400, "not valid JSON"},
		{`[]`, 400, "batches"},
		{``, 400, "JSON object"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, "the id must be"},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, 400, "the id must be"},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, 400, `"id":9007199254740993`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, 400, "given twice"},
		{`{"jsonrpc":"2.0","id":"x","method":"nope"}`, 200, "-32601"},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ""},
	} {
		got, text := w.status(http.MethodPost, tt.body)
		if got != tt.want || !strings.Contains(text, tt.has) {
			t.Errorf("%.40s: %d %s", tt.body, got, text)
		}
	}
	if got, _ := w.status(http.MethodPut, ""); got != 405 {
		t.Errorf("PUT: %d", got)
	}
}

// In the new era the closed stream is the only cancellation: an id says
// nothing about whose call is meant.
func TestNewEraCancellation(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	url := serveHTTP(t, s)
	victim, attacker := newWeb(t, url), newWeb(t, url)
	ctx, hangUp := context.WithCancel(t.Context())
	body, header := modernCall("7", "slow", "{}", "")
	gone := make(chan error, 1)
	go func() {
		gone <- victim.hang(ctx, body, header...)
	}()
	<-fake.started
	for _, id := range []string{"7", `"7"`, "1"} {
		cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,`+modernMeta+`}}`, id, "{}")
		if got, _ := attacker.status(http.MethodPost, cancel, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "notifications/cancelled"); got != 202 {
			t.Errorf("cancel: %d", got)
		}
	}
	old := newWeb(t, url)
	old.initialize("{}")
	old.status(http.MethodPost, cancelLine("7"))
	select {
	case cause := <-fake.cancelled:
		t.Fatalf("cancelled by somebody else: %v", cause)
	default:
	}
	hangUp()
	<-fake.cancelled
	if err := <-gone; err == nil {
		t.Error("the client got an answer")
	}
}

// In the old era a lost connection is no cancellation, the notification is,
// and it reaches calls of its own session only.
func TestOldEraCancellation(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	url := serveHTTP(t, s)
	w, other := newWeb(t, url), newWeb(t, url)
	w.initialize("{}")
	other.initialize("{}")
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		w.hang(ctx, callLine("7", "slow"))
		close(gone)
	}()
	<-fake.started
	hangUp()
	<-gone
	other.status(http.MethodPost, cancelLine("7"))
	w.status(http.MethodPost, cancelLine(`"7"`))
	select {
	case cause := <-fake.cancelled:
		t.Fatalf("cancelled: %v", cause)
	default:
	}
	if got, _ := w.status(http.MethodPost, cancelLine("7")); got != 202 {
		t.Errorf("cancel: %d", got)
	}
	if cause := <-fake.cancelled; !errors.Is(cause, errClientCancelled) {
		t.Errorf("cause %v", cause)
	}
}

// A client of the old era that lost its connection takes up the stream and
// misses nothing.
func TestResume(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	w := newWeb(t, serveHTTP(t, s))
	w.initialize(`{"elicitation":{}}`)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	resp, err := w.do(ctx, http.MethodPost, callLine("7", "ask"))
	if err != nil {
		t.Fatal(err)
	}
	stream := bufio.NewReader(resp.Body)
	id, question := readEvent(t, stream)
	if id == "" || question.Method != "elicitation/create" {
		t.Fatalf("event %q: %+v", id, question)
	}
	hangUp()
	resp.Body.Close()
	if got, text := w.status(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"allow_once"}}}`, question.ID)); got != 202 {
		t.Fatalf("answer: %d %s", got, text)
	}
	again, err := w.do(t.Context(), http.MethodGet, "", "Last-Event-ID", id)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	_, answer := readEvent(t, bufio.NewReader(again.Body))
	if string(answer.ID) != "7" || !strings.Contains(string(answer.Result), "removed") || fake.ran.Load() != 1 {
		t.Errorf("got %+v, ran %d", answer, fake.ran.Load())
	}
}

func readEvent(t *testing.T, r *bufio.Reader) (id string, m message) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "id":
			id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &m); err != nil {
				t.Fatal(err)
			}
			return id, m
		}
	}
}

// The state of a question is taken back once, from its own session, unaltered,
// and only with an answer does it decide anything.
func TestRequestState(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	w := newWeb(t, serveHTTP(t, s))
	const caps = `{"elicitation":{}}`
	ask := func(more string) map[string]any {
		t.Helper()
		body, header := modernCall("1", "ask", caps, more)
		status, text := w.status(http.MethodPost, body, header...)
		var m struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(text), &m); err != nil || status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		return m.Result
	}
	code := func(r map[string]any) string {
		m, _ := r["structuredContent"].(map[string]any)
		c, _ := m["code"].(string)
		return c
	}
	state := func(r map[string]any) string {
		t.Helper()
		s, _ := r["requestState"].(string)
		if r["resultType"] != "input_required" || s == "" {
			t.Fatalf("got %v", r)
		}
		return s
	}
	retry := func(state, answer string) map[string]any {
		more := fmt.Sprintf(`,"requestState":%q`, state)
		if answer != "" {
			more += `,"inputResponses":{"approval":` + answer + `}`
		}
		return ask(more)
	}
	const yes = `{"action":"accept","content":{"decision":"allow_once"}}`

	first := state(ask(""))
	second := state(retry(first, "")) // no answer: asked again about the same
	for name, tt := range map[string]struct{ state, answer, want string }{
		"used":    {first, yes, "expired"},
		"altered": {second[:len(second)-2] + "AA", yes, "invalid_state"},
		"garbage": {"x", yes, "invalid_state"},
	} {
		if got := code(retry(tt.state, tt.answer)); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	fake.mu.Lock()
	if n := len(fake.requests); n < 3 || fake.requests[n-1].Refused == nil {
		t.Errorf("a state that is not ours leaves no record: %d requests", n)
	}
	fake.mu.Unlock()
	if got := code(ask(fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":%s}`, second, `{"action":"cancel"}`))); got != "cancelled" {
		t.Errorf("cancel: %q", got)
	}
	if got := code(retry(second, yes)); got != "expired" {
		t.Errorf("a yes after the cancel, with the same state: %q", got)
	}
	if fake.ran.Load() != 0 {
		t.Fatalf("ran %d", fake.ran.Load())
	}
	third := state(ask(""))
	if res := retry(third, yes); res["isError"] == true || fake.ran.Load() != 1 {
		t.Errorf("the yes: %v", res)
	}
	if got := code(retry(third, yes)); got != "expired" || fake.ran.Load() != 1 {
		t.Errorf("the yes again: %q, ran %d", got, fake.ran.Load())
	}
	// The answer to one question does not run another call.
	fourth := state(ask(""))
	body, header := modernCall("1", "ask", caps, fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":%s}`, fourth, yes))
	body = strings.Replace(body, `"arguments":{}`, `"arguments":{"text":"other"}`, 1)
	if _, text := w.status(http.MethodPost, body, header...); !strings.Contains(text, `"code":"changed"`) || fake.ran.Load() != 1 {
		t.Errorf("another call: %s", text)
	}
	fake.onceEach(t)
}

func TestMetaSessionOverHTTP(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	w := newWeb(t, serveHTTP(t, s))
	body, header := modernCall("1", "echo", "{}", "")
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"zeph/session":"work",`, 1)
	w.status(http.MethodPost, body, header...)
	if r := fake.last(); r.Session != "http:local/work" || r.Meta.Session != "work" {
		t.Errorf("session %q", r.Session)
	}
}

func TestUnknownToolOverHTTP(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	w := newWeb(t, serveHTTP(t, s))
	body, header := modernCall("3", "ehco", "{}", "")
	got, text := w.status(http.MethodPost, body, header...)
	if got != 400 || !strings.Contains(text, `"code":-32602`) || !strings.Contains(text, "did you mean echo?") || !strings.Contains(text, `"id":3`) {
		t.Errorf("%d %s", got, text)
	}
	header[len(header)-1] = "echo" // the header names another tool than the body
	if got, text := w.status(http.MethodPost, body, header...); got != 400 || strings.Contains(text, "did you mean") {
		t.Errorf("%d %s", got, text)
	}
	w.initialize("{}")
	if got, text := w.status(http.MethodPost, callLine("4", "ehco")); got != 200 || !strings.Contains(text, "did you mean echo?") {
		t.Errorf("%d %s", got, text)
	}
}

// Whatever is open when the server stops ends within five seconds, and calls
// that can be cancelled still get their answer.
func TestStopHTTP(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- s.ListenHTTP(ctx, "127.0.0.1:0", func(u string) { url <- u }) }()
	endpoint := <-url
	old, modern := newWeb(t, endpoint), newWeb(t, endpoint)
	old.initialize("{}")
	stream, err := old.do(context.WithoutCancel(t.Context()), http.MethodGet, "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	answers := make(chan string, 2)
	go func() { _, text := old.status(http.MethodPost, callLine("1", "slow")); answers <- text }()
	body, header := modernCall("2", "slow", "{}", "")
	go func() { _, text := modern.status(http.MethodPost, body, header...); answers <- text }()
	<-fake.started
	<-fake.started
	began := time.Now()
	cancel()
	for range 2 {
		if text := <-answers; !strings.Contains(text, `"category":"cancelled"`) {
			t.Errorf("got %s", text)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimSuffix(strings.TrimPrefix(endpoint, "http://"), "/mcp")); err == nil {
		t.Error("still listens")
	}
}

func TestPanicOutsideACall(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, func(o *Options) { o.Ready = func() error { panic("secret") } })
	w := newWeb(t, strings.TrimSuffix(serveHTTP(t, s), "/mcp")+"/readyz")
	if got, text := w.status(http.MethodGet, ""); got != 500 || strings.Contains(text, "secret") {
		t.Errorf("%d %s", got, text)
	}
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	e := newEvents()
	ctx := t.Context()
	put := func(session, stream string, n int) string {
		t.Helper()
		id, err := e.StoreEvent(ctx, session, stream, bytes.Repeat([]byte("x"), n))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	replay := func(session, last string) (n int, err error) {
		_, err = e.ReplayEventsAfter(ctx, session, last, func(string, json.RawMessage) error { n++; return nil })
		return n, err
	}
	first := put("a", "1", 10)
	put("a", "2", 10)
	put("a", "1", 10)
	if n, err := replay("a", first); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, session := range []string{"b", ""} {
		if _, err := replay(session, first); !errors.Is(err, sdk.ErrUnknownEventID) {
			t.Errorf("another session: %v", err)
		}
	}
	var last string
	for range 2 * maxEvents {
		last = put("a", "1", 1)
	}
	if _, err := replay("a", first); !errors.Is(err, sdk.ErrUnknownEventID) {
		t.Errorf("dropped: %v", err)
	}
	if n, err := replay("a", last); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for range 3 {
		put("a", "1", maxEventBytes-1)
	}
	if got := e.sessions["a"]; len(got.events) != 1 || e.total != got.bytes || got.bytes != maxEventBytes-1 {
		t.Errorf("%d events, %d bytes, %d in all", len(got.events), got.bytes, e.total)
	}
	if err := e.PurgeSession(ctx, "a"); err != nil || e.total != 0 || len(e.sessions) != 0 {
		t.Errorf("%v, %d bytes left", err, e.total)
	}
}
