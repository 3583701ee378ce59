package egress

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// world is a loopback TLS server under the name example.com, a resolver that
// knows a few names, and the client that may reach that server only.
type world struct {
	client *Client
	port   string

	mu     sync.Mutex
	events []Event
	asked  []string
	hits   atomic.Int32
}

func newWorld(t *testing.T, edit func(*Config), h http.HandlerFunc) *world {
	t.Helper()
	w := &world{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.hits.Add(1)
		h(rw, r)
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // clients that hang up on purpose
	srv.StartTLS()
	t.Cleanup(srv.Close)
	_, w.port, _ = net.SplitHostPort(srv.Listener.Addr().String())
	cfg := Default()
	if edit != nil {
		edit(&cfg)
	}
	policy, err := NewPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.client = NewClient(policy, cfg, func(e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	})
	c := &w.client.core
	c.roots = x509.NewCertPool()
	c.roots.AddCert(srv.Certificate())
	server := netip.MustParseAddr("127.0.0.1")
	c.exempt = func(a netip.Addr) bool { return a == server }
	c.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, host)
		switch host {
		case "example.com", "other.example.com":
			return []netip.Addr{server}, nil
		case "mixed.example.com":
			return []netip.Addr{server, netip.MustParseAddr("10.0.0.1")}, nil
		case "inside.example.com", "cname-to-localhost.example.com":
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		case "mapped.example.com":
			return []netip.Addr{netip.MustParseAddr("::ffff:169.254.169.254")}, nil
		case "nat64.example.com":
			return []netip.Addr{netip.MustParseAddr("64:ff9b::a9fe:a9fe")}, nil
		case "empty.example.com":
			return nil, nil
		case "slow.example.com":
			return nil, &net.DNSError{Err: "i/o timeout at 10.9.8.7:53", IsTimeout: true}
		}
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true, Server: "10.9.8.7:53"}
	}
	return w
}

func (w *world) url(host, path string) string { return "https://" + host + ":" + w.port + path }

func (w *world) get(t *testing.T, text string, hs ...Header) (*Response, *call.Error) {
	t.Helper()
	resp, err := w.client.Get(t.Context(), text, hs...)
	if err == nil {
		return resp, nil
	}
	var e *call.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: error is not a *call.Error: %v", text, err)
	}
	return nil, e
}

func TestGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "host=%s agent=%s", r.Host, r.Header.Get("User-Agent"))
	})
	resp, e := w.get(t, w.url("EXAMPLE.com", "/a?token=s3cret#x"))
	if e != nil {
		t.Fatal(e)
	}
	if got, want := string(resp.Body), "host=example.com:"+w.port+" agent=zeph-mcp-tools"; got != want {
		t.Errorf("body %q, want %q", got, want)
	}
	if want := w.url("example.com", "/a?token=s3cret"); resp.FinalURL != want {
		t.Errorf("final URL %q, want %q", resp.FinalURL, want)
	}
	if len(resp.Hops) != 1 || !slices.Equal(resp.Hops, w.events) || len(w.asked) != 1 {
		t.Fatalf("hops %+v, events %+v, lookups %v", resp.Hops, w.events, w.asked)
	}
	ev := w.events[0]
	if ev.Outcome != Final || ev.Status != 200 || ev.Bytes != int64(len(resp.Body)) || strings.Contains(ev.URL, "s3cret") {
		t.Errorf("event %+v", ev)
	}
}

func TestRefusedBeforeAnyConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(http.ResponseWriter, *http.Request) {})
	for text, want := range map[string]string{
		w.url("mixed.example.com", "/"):              CodePrivateAddress,
		w.url("inside.example.com", "/"):             CodePrivateAddress,
		w.url("cname-to-localhost.example.com", "/"): CodePrivateAddress,
		w.url("mapped.example.com", "/"):             CodePrivateAddress,
		w.url("nat64.example.com", "/"):              CodePrivateAddress,
		w.url("127.0.0.2", "/"):                      CodePrivateAddress,
		w.url("[::1]", "/"):                          CodePrivateAddress,
		w.url("localhost", "/"):                      CodeBlockedHost,
		"http://example.com:" + w.port:               CodeScheme,
		w.url("u:hunter2@example.com", "/"):          CodeUserinfo,
		w.url("127.1", "/"):                          CodeBadURL,
	} {
		_, e := w.get(t, text)
		if e == nil || e.Code != want || e.Category != call.CategoryPolicyBlocked {
			t.Errorf("%s: %+v, want %s", text, e, want)
			continue
		}
		for _, leak := range []string{"10.0.0.1", "127.0.0.2", "169.254.169.254", "hunter2"} {
			if strings.Contains(e.Message, leak) && !strings.Contains(text, "//"+leak) {
				t.Errorf("%s: message tells %s: %s", text, leak, e.Message)
			}
		}
	}
	for host, retry := range map[string]bool{"gone.example.com": false, "empty.example.com": false, "slow.example.com": true} {
		_, e := w.get(t, w.url(host, "/"))
		if e == nil || e.Code != "dns" || e.Category != call.CategoryNetworkError || e.Retryable != retry || strings.Contains(e.Message, "10.9.8.7") {
			t.Errorf("%s: %+v", host, e)
		}
	}
	if n := w.hits.Load(); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	for _, ev := range w.events {
		if (ev.Outcome != Blocked && ev.Code != "dns") || ev.Code == "" || strings.Contains(ev.URL, "hunter2") {
			t.Errorf("event %+v", ev)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, nil, func(rw http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/1": "/2", "/2": "/3", "/3": "/end", "/0": "/1", "/loop": "/loop", "/none": "",
			"/relative/x": "../end", "/query": "?done", "/protocol-relative": "//127.0.0.2:" + w.port + "/end",
			"/down": "http://example.com:" + w.port + "/end", "/private": "https://192.168.100.1/",
			"/special": "https://metadata.internal/", "/local": "https://x.local/", "/userinfo": "https://a:b@example.com:" + w.port + "/end",
			"/other": w.url("other.example.com", "/headers"), "/same": "/headers", "/rebind": w.url("inside.example.com", "/end"),
			"/backslash": `\\127.0.0.2\x`, "/file": "file:///etc/passwd", "/bad": "https://[::1",
		}
		where, ok := to[r.URL.Path]
		switch {
		case r.URL.Path == "/query" && r.URL.RawQuery == "done":
			fmt.Fprint(rw, "end")
		case ok:
			if where != "" {
				rw.Header().Set("Location", where)
			}
			rw.WriteHeader(map[bool]int{true: 308, false: 302}[r.URL.Path == "/2"])
		case r.URL.Path == "/headers":
			fmt.Fprintf(rw, "%s|%s|%s", r.Header.Get("Authorization"), r.Header.Get("X-Custom"), r.Header.Get("Accept"))
		case r.URL.Path == "/end":
			fmt.Fprint(rw, "end")
		default:
			http.NotFound(rw, r)
		}
	})
	for path, hops := range map[string]int{"/end": 1, "/3": 2, "/1": 4, "/relative/x": 2, "/query": 2} {
		resp, e := w.get(t, w.url("example.com", path))
		if e != nil || string(resp.Body) != "end" || len(resp.Hops) != hops {
			t.Errorf("%s: %v, %+v, want end after %d hops", path, e, resp, hops)
		}
	}
	for path, want := range map[string]string{
		"/0": "too_many_redirects", "/loop": "too_many_redirects", "/none": "bad_redirect",
		"/protocol-relative": CodePrivateAddress, "/down": CodeScheme, "/private": CodePrivateAddress,
		"/special": CodeBlockedHost, "/local": CodeBlockedHost, "/userinfo": CodeUserinfo, "/rebind": CodePrivateAddress,
		"/file": CodeScheme, "/bad": CodeBadURL,
	} {
		_, e := w.get(t, w.url("example.com", path))
		if e == nil || e.Code != want {
			t.Errorf("%s: %+v, want %s", path, e, want)
		}
	}
	if resp, e := w.get(t, w.url("example.com", "/backslash")); e != nil || resp.Status != 404 || !strings.HasPrefix(resp.FinalURL, w.url("example.com", "/%5C%5C")) {
		t.Errorf("a backslash in Location left the host: %v %+v", e, resp)
	}
	secret := []Header{{"Authorization", "Bearer x"}, {"X-Custom", "y"}, {"Accept", "text/html"}}
	if resp, e := w.get(t, w.url("example.com", "/same"), secret...); e != nil || string(resp.Body) != "Bearer x|y|text/html" {
		t.Errorf("same host: %v %s", e, resp.Body)
	}
	if resp, e := w.get(t, w.url("example.com", "/other"), secret...); e != nil || string(resp.Body) != "||text/html" {
		t.Errorf("other host: %v %s", e, resp.Body)
	}
	last := w.events[len(w.events)-2:]
	if last[0].Outcome != Followed || last[0].Status != 302 || last[0].Hop != 0 || last[1].Outcome != Final || last[1].Hop != 1 {
		t.Errorf("events %+v", last)
	}
}

func TestDomainListHoldsOnEveryHop(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, func(c *Config) { c.DeniedDomains = []string{"other.example.com"} }, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, w.url("other.example.com", "/"), http.StatusFound)
	})
	if _, e := w.get(t, w.url("example.com", "/")); e == nil || e.Code != CodeDomain {
		t.Errorf("got %+v, want %s", e, CodeDomain)
	}
}

// TestRebinding: a name that changes its answer is asked once a hop and the
// connection goes to the answer that was checked.
func TestRebinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "checked") })
	asked := 0
	w.client.core.lookup = func(context.Context, string) ([]netip.Addr, error) {
		if asked++; asked > 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	if resp, e := w.get(t, w.url("example.com", "/")); e != nil || string(resp.Body) != "checked" || asked != 1 {
		t.Errorf("%v after %d lookups", e, asked)
	}
	if _, e := w.get(t, w.url("example.com", "/")); e == nil || e.Code != CodePrivateAddress {
		t.Errorf("the second answer was used: %+v", e)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	public := []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("10.0.0.1")}
	c := &core{}
	for _, tt := range []struct {
		network, address string
		want             bool
	}{
		{"tcp4", "93.184.216.34:443", true},
		{"tcp6", "[2606:4700::1]:443", true},
		{"tcp6", "[::ffff:93.184.216.34]:443", true},
		{"tcp4", "93.184.216.35:443", false}, // never checked
		{"tcp4", "93.184.216.34:80", false},  // another port
		{"tcp4", "10.0.0.1:443", false},      // checked list or not
		{"udp4", "93.184.216.34:443", false},
		{"unix", "/run/x.sock", false},
		{"tcp6", "[2606:4700::1%lo]:443", false},
		{"tcp4", "nonsense", false},
	} {
		if err := c.control(tt.network, tt.address, public, 443, nil); (err == nil) != tt.want {
			t.Errorf("%s %s: %v, want accepted %v", tt.network, tt.address, err, tt.want)
		}
	}
}

func TestNoProxyFromEnvironment(t *testing.T) {
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was used") }))
	defer trap.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, trap.URL)
	}
	w := newWorld(t, nil, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "direct") })
	if resp, e := w.get(t, w.url("example.com", "/")); e != nil || string(resp.Body) != "direct" {
		t.Error(e)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.MaxBodyBytes = 1 << 20 }, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			rw.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(rw)
			defer func() { _ = z.Close() }()
			zero := make([]byte, 1<<20)
			for range 1024 {
				if _, err := z.Write(zero); err != nil {
					return
				}
			}
		case "/exact":
			_, _ = rw.Write(make([]byte, 1<<20))
		case "/double":
			rw.Header().Set("Content-Encoding", "gzip, gzip")
		case "/br":
			rw.Header().Set("Content-Encoding", "br")
		case "/headers":
			for i := range 3000 {
				rw.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 200))
			}
		case "/cut":
			rw.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(rw, "part")
		case "/drip":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(rw, "x")
				_ = http.NewResponseController(rw).Flush()
			}
		case "/silent":
			<-r.Context().Done()
		case "/status":
			rw.Header().Set("Retry-After", "7")
			rw.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(rw, "secret body")
		}
	})
	resp, e := w.get(t, w.url("example.com", "/bomb"))
	if e != nil || len(resp.Body) != 1<<20 || !resp.Truncated || resp.Cut != CutSize {
		t.Errorf("bomb: %v, %d bytes, truncated %v", e, len(resp.Body), resp.Truncated)
	}
	if resp, e := w.get(t, w.url("example.com", "/exact")); e != nil || len(resp.Body) != 1<<20 || resp.Truncated {
		t.Errorf("exact: %v, %d bytes, truncated %v", e, len(resp.Body), resp.Truncated)
	}
	for path, want := range map[string]string{"/double": "content_encoding", "/br": "content_encoding", "/headers": "transport", "/cut": "transport"} {
		if _, e := w.get(t, w.url("example.com", path)); e == nil || e.Code != want {
			t.Errorf("%s: %+v, want %s", path, e, want)
		}
	}
	resp, e = w.get(t, w.url("example.com", "/status"))
	if e != nil {
		t.Fatal(e)
	}
	if se := resp.StatusError(); se == nil || se.Category != call.CategoryServerError || !se.Retryable || se.RetryAfter != 7*time.Second || strings.Contains(se.Message, "secret") {
		t.Errorf("status: %+v", se)
	}
	limit := Request{URL: w.url("example.com", "/silent"), Timeout: 50 * time.Millisecond}
	if _, err := w.client.Do(t.Context(), limit); err == nil || !isCode(err, "timeout") {
		t.Errorf("silent: %v", err)
	}
	limit.URL = w.url("example.com", "/drip")
	if resp, err := w.client.Do(t.Context(), limit); err != nil || !resp.Truncated || resp.Cut != CutTime && resp.Cut != CutSize {
		t.Errorf("drip: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.client.Get(gone, w.url("example.com", "/")); err == nil || !isCode(err, "cancelled") {
		t.Errorf("cancelled: %v", err)
	}
}

func isCode(err error, code string) bool {
	var e *call.Error
	return errors.As(err, &e) && e.Code == code
}

func TestTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(http.ResponseWriter, *http.Request) {})
	w.client.core.roots = x509.NewCertPool()
	if _, e := w.get(t, w.url("example.com", "/")); e == nil || e.Code != "tls" || e.Retryable {
		t.Errorf("unknown issuer: %+v", e)
	}
	closed := newWorld(t, nil, func(http.ResponseWriter, *http.Request) {})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	_, e := closed.get(t, "https://example.com:"+port+"/")
	if e == nil || e.Code != "connect" || strings.Contains(e.Message, "127.0.0.1") {
		t.Errorf("closed port: %+v", e)
	}
}

func TestConcurrencyIsCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCore(Config{Timeout: time.Second, MaxConcurrent: 1})
		_, release, err := c.begin(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.begin(t.Context(), 0); !isCode(err, "timeout") {
			t.Errorf("second request: %v", err)
		}
		release()
		_, release, err = c.begin(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
}

func TestNothingMissingMeansYes(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, nil)
	for name, c := range map[string]*Client{
		"nil client": nil, "no policy": NewClient(nil, Default(), func(Event) {}), "no report": NewClient(p, Default(), nil),
	} {
		if _, err := c.Get(t.Context(), "https://example.com/"); !isCode(err, "egress_off") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewEndpoint(EndpointConfig{URL: "https://example.com"}, nil, func(Event) {}); err == nil {
		t.Error("an endpoint without a policy")
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "12": 12 * time.Second, "999999999": time.Hour, "x": 0,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/go" {
			http.Redirect(rw, r, "http://127.0.0.1:1/", http.StatusFound)
			return
		}
		fmt.Fprintf(rw, "%s %s", r.URL.RawQuery, r.Header.Get("X-Key"))
	}))
	defer srv.Close()
	var events []Event
	report := func(e Event) { events = append(events, e) }
	p := newPolicy(t, func(c *Config) {
		c.AllowedDomains = []string{"only.example.com"}
		c.DeniedDomains = []string{"evil.com"}
	})
	cfg := EndpointConfig{URL: srv.URL + "/search?fixed=1", AllowPrivate: true, Timeout: 5 * time.Second, MaxBodyBytes: 1024}
	e, err := NewEndpoint(cfg, p, report)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.Get(t.Context(), Request{Headers: []Header{{"X-Key", "k"}}}, url.Values{"q": {"a b"}})
	if err != nil || string(resp.Body) != "fixed=1&q=a+b k" {
		t.Errorf("%v %+v", err, resp)
	}
	if len(events) != 1 || strings.Contains(events[0].URL, "q=") || events[0].Status != 200 {
		t.Errorf("events %+v", events)
	}
	cfg.URL = srv.URL + "/go"
	if e, err = NewEndpoint(cfg, p, report); err != nil {
		t.Fatal(err)
	}
	if resp, err = e.Get(t.Context(), Request{}, nil); err != nil || resp.Status != 302 {
		t.Errorf("a redirect was followed: %v %+v", err, resp)
	}
	for text, private := range map[string]bool{
		srv.URL: false, "https://127.0.0.1/api": false, "https://localhost/": false, "http://example.com/": false,
		"not a url": true, "https://evil.com/": true, "https://u:p@example.com/": true, "ftp://example.com/": true,
	} {
		if _, err := NewEndpoint(EndpointConfig{URL: text, AllowPrivate: private}, p, report); err == nil {
			t.Errorf("%s with allow_private %v was accepted", text, private)
		}
	}
	if _, err := NewEndpoint(EndpointConfig{URL: "https://api.search.brave.com/res"}, p, report); err != nil {
		t.Errorf("allowed_domains holds for the service: %v", err)
	}
	inside, err := NewEndpoint(EndpointConfig{URL: "https://example.com/", Timeout: time.Second}, p, report)
	if err != nil {
		t.Fatal(err)
	}
	inside.core.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	if _, err := inside.Get(t.Context(), Request{}, nil); !isCode(err, CodePrivateAddress) {
		t.Errorf("a public service resolved inward: %v", err)
	}
}
