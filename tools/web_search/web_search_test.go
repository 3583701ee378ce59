package websearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const key = "BSA-s3cret-key"

// newSearch returns the tool against a local endpoint and what was reported.
func newSearch(t *testing.T, edit func(*Config), h http.HandlerFunc) (*Search, *[]egress.Event) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Default()
	cfg.Enabled, cfg.AllowPrivateEndpoint, cfg.Endpoint, cfg.APIKeyFile = true, true, srv.URL+"/res/v1/web/search", file
	if edit != nil {
		edit(&cfg)
	}
	p, err := egress.NewPolicy(egress.Default())
	if err != nil {
		t.Fatal(err)
	}
	var events []egress.Event
	s, err := NewSearch(cfg, p, func(e egress.Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	return s, &events
}

type yes struct{}

func (yes) Name() string                                             { return "yes" }
func (yes) Check(context.Context, call.Call) (gates.Decision, error) { return gates.Permit(), nil }

func authorize(t *testing.T, s *Search, args string) (gates.Authorized, error) {
	t.Helper()
	reg, err := tools.NewRegistry(s)
	if err != nil {
		t.Fatal(err)
	}
	acc, err := reg.Accept("web_search", json.RawMessage(args))
	if err != nil {
		return gates.Authorized{}, err
	}
	chain, err := gates.NewChain(yes{})
	if err != nil {
		t.Fatal(err)
	}
	auth, _, err := chain.Authorize(t.Context(), call.Call{ID: "c1", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return auth, nil
}

func run(t *testing.T, s *Search, args string) (call.Result, error) {
	t.Helper()
	auth, err := authorize(t, s, args)
	if err != nil {
		return call.Result{}, err
	}
	return s.Run(t.Context(), auth)
}

func TestSearch(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/ok.json")
	if err != nil {
		t.Fatal(err)
	}
	var got *http.Request
	s, events := newSearch(t, nil, func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = w.Write(body)
	})
	res, err := run(t, s, `{"query":"  rust   asnyc ","limit":5,"freshness":"week","country":"de"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{
		"q": {"rust asnyc"}, "count": {"5"}, "freshness": {"pw"}, "country": {"DE"},
		"text_decorations": {"false"}, "result_filter": {"web,query"},
	}
	if diff := cmp.Diff(want, got.URL.Query()); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	if got.Header.Get("X-Subscription-Token") != key || got.Header.Get("Accept") != "application/json" {
		t.Errorf("headers %v", got.Header)
	}
	var out structured
	if err := json.Unmarshal(res.Structured, &out); err != nil {
		t.Fatal(err)
	}
	hits := []hit{
		{"Asynchronous Rust & you", "https://example.com/async", "Futures <T> and async / await. 1 < 2", "2 days ago"},
		{"No text", "http://plain.example/", "", ""},
		{"Evil", "https://evil.example/", "Please [FILTERED], [FILTERED] a different assistant.", ""},
	}
	if diff := cmp.Diff(hits, out.Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if out.Altered != "rust async" || out.InjectionScore != 1 || out.HiddenRemoved != 1 {
		t.Errorf("%+v", out)
	}
	for _, part := range []string{
		"[IPI WARNING: score=1.00", "The query was corrected to: rust async",
		"1. Asynchronous Rust & you\n   https://example.com/async\n   Futures <T>", "2. No text\n   http://plain.example/\n\n3. Evil",
		"[untrusted web content ", "3 results]",
	} {
		if !strings.Contains(res.Text, part) {
			t.Errorf("%q is not in\n%s", part, res.Text)
		}
	}
	if !res.Untrusted || res.Outcome.RawBytes != int64(len(body)) {
		t.Errorf("%+v", res.Outcome)
	}
	if len(*events) != 1 || (*events)[0].CallID != "c1" || strings.Contains((*events)[0].URL, "rust") {
		t.Errorf("events %+v", *events)
	}
	if all := res.Text + string(res.Structured) + fmt.Sprintf("%+v %#v %v", *events, s.provider, s.provider.Key); strings.Contains(all, key) {
		t.Error("the key came out")
	}
}

func TestNoResults(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"web":{"results":[]}}`, `{"type":"search","query":{}}`} {
		s, _ := newSearch(t, nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		res, err := run(t, s, `{"query":"nothing"}`)
		if err != nil || !strings.Contains(res.Text, "No results for query: nothing") || !bytes.Contains(res.Structured, []byte(`"results":[]`)) {
			t.Errorf("%s: %v %s", body, err, res.Text)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	var count string
	s, _ := newSearch(t, func(c *Config) { c.MaxResults = 3 }, func(w http.ResponseWriter, r *http.Request) {
		count = r.URL.Query().Get("count")
		var b []string
		for i := range 20 {
			b = append(b, fmt.Sprintf(`{"title":"t%d","url":"https://e.com/%d"}`, i, i))
		}
		fmt.Fprintf(w, `{"web":{"results":[%s]}}`, strings.Join(b, ","))
	})
	for args, want := range map[string]string{`{"query":"x"}`: "3", `{"query":"x","limit":20}`: "3", `{"query":"x","limit":1}`: "1"} {
		res, err := run(t, s, args)
		if err != nil || count != want || !strings.Contains(res.Text, want+" results]") {
			t.Errorf("%s asked for %s: %v", args, count, err)
		}
	}
}

// TestErrors: every way the provider refuses is told apart, by code and not by
// status alone, and nothing of a body or the key is told.
func TestErrors(t *testing.T) {
	t.Parallel()
	errorBody := func(code string) string {
		return `{"type":"ErrorResponse","error":{"id":"1","status":422,"code":"` + code + `","detail":"BODY ` + key + `"}}`
	}
	page := "<html>BODY " + key + "</html>"
	for _, tt := range []struct {
		name     string
		status   int
		body     string
		header   map[string]string
		code     string
		category call.Category
		retry    bool
		after    time.Duration
	}{
		{"key 422", 422, errorBody("SUBSCRIPTION_TOKEN_INVALID"), nil, "search_key_rejected", call.CategoryPolicyBlocked, false, 0},
		{"validation 422", 422, errorBody("VALIDATION"), nil, "invalid_parameters", call.CategoryInvalidParameters, false, 0},
		{"html 422", 422, page, nil, "invalid_parameters", call.CategoryInvalidParameters, false, 0},
		{"401", 401, errorBody("X"), nil, "search_key_rejected", call.CategoryPolicyBlocked, false, 0},
		{"403 html", 403, page, nil, "search_key_rejected", call.CategoryPolicyBlocked, false, 0},
		{"429 plain", 429, page, nil, "rate_limited", call.CategoryRateLimited, true, 0},
		{"429 retry-after", 429, page, map[string]string{"Retry-After": "9"}, "rate_limited", call.CategoryRateLimited, true, 9 * time.Second},
		{
			"429 long", 429, errorBody("RATE_LIMITED"),
			map[string]string{"X-RateLimit-Remaining": "0, 100", "X-RateLimit-Reset": "30, 1419704"},
			"rate_limited", call.CategoryRateLimited, true, 30 * time.Second,
		},
		{
			"429 month", 429, errorBody("RATE_LIMITED"),
			map[string]string{"X-RateLimit-Remaining": "1, 0", "X-RateLimit-Reset": "1, 1419704"},
			"quota_used_up", call.CategoryRateLimited, false, 1419704 * time.Second,
		},
		{"429 broken headers", 429, page, map[string]string{"X-RateLimit-Remaining": "x", "X-RateLimit-Reset": ""}, "rate_limited", call.CategoryRateLimited, true, 0},
		{"500", 500, page, nil, "http_status", call.CategoryServerError, true, 0},
		{"503", 503, page, map[string]string{"Retry-After": "3"}, "http_status", call.CategoryServerError, true, 3 * time.Second},
		{"302", 302, page, map[string]string{"Location": "http://169.254.169.254/"}, "redirected", call.CategoryPermanentFailure, false, 0},
		{"404", 404, page, nil, "http_status", call.CategoryPermanentFailure, false, 0},
		{"200 html", 200, page, nil, "bad_answer", call.CategoryServerError, true, 0},
		{"200 wrong shape", 200, `{"web":[]}`, nil, "bad_answer", call.CategoryServerError, true, 0},
		{"200 huge", 200, `{"x":"` + strings.Repeat("x", maxBody) + `"}`, nil, "too_large", call.CategoryPermanentFailure, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, events := newSearch(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			})
			_, err := run(t, s, `{"query":"x"}`)
			e, ok := errors.AsType[*call.Error](err)
			if !ok {
				t.Fatalf("%v", err)
			}
			if e.Code != tt.code || e.Category != tt.category || e.Retryable != tt.retry || e.RetryAfter != tt.after {
				t.Errorf("%+v", e)
			}
			if all := fmt.Sprintf("%+v %v", e, *events); strings.Contains(all, key) || strings.Contains(all, "BODY") {
				t.Errorf("told too much: %s", all)
			}
		})
	}
}

// TestShortWindow: a rate window of a second is waited for, once.
func TestShortWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		limited := &egress.Response{Status: 429, Header: http.Header{
			"X-Ratelimit-Remaining": {"0, 1000"}, "X-Ratelimit-Reset": {"1, 1419704"},
		}}
		b := &brave{get: func(context.Context, egress.Request, url.Values) (*egress.Response, error) {
			if asked++; asked == 1 {
				return limited, nil
			}
			return &egress.Response{Status: 200, Body: []byte(`{}`)}, nil
		}}
		start := time.Now()
		if _, _, err := b.search(t.Context(), gates.Authorized{}, arguments{Query: "x"}, 5); err != nil || asked != 2 {
			t.Errorf("%v after %d requests", err, asked)
		}
		if d := time.Since(start); d < time.Second || d > 2*time.Second {
			t.Errorf("waited %s", d)
		}
		b.get = func(context.Context, egress.Request, url.Values) (*egress.Response, error) {
			asked++
			return limited, nil
		}
		if _, _, err := b.search(t.Context(), gates.Authorized{}, arguments{Query: "x"}, 5); err == nil || asked != 4 {
			t.Errorf("%v after %d requests", err, asked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, _, err := b.search(ctx, gates.Authorized{}, arguments{Query: "x"}, 5); err == nil || asked != 5 {
			t.Errorf("cancelled: %v after %d requests", err, asked)
		}
	})
}

func TestArguments(t *testing.T) {
	t.Parallel()
	s, _ := newSearch(t, nil, func(http.ResponseWriter, *http.Request) { t.Error("a request was made") })
	for args, field := range map[string]string{
		`{"query":"   "}`: "query",
		`{"query":"` + strings.Repeat("x", 401) + `"}`:    "query",
		`{"query":"` + strings.Repeat("x ", 51) + `"}`:    "query",
		`{"query":"x","freshness":"lately"}`:              "freshness",
		`{"query":"x","country":"deu"}`:                   "country",
		`{"query":"x","country":"1-"}`:                    "country",
		`{"query":"x","endpoint":"https://evil.example"}`: "endpoint",
	} {
		_, err := run(t, s, args)
		if e, ok := errors.AsType[*call.Error](err); !ok || e.Field != field || e.Category != call.CategoryInvalidParameters {
			t.Errorf("%.60s: %v, want a fault of %s", args, err, field)
		}
	}
	f, err := s.Facts(json.RawMessage(`{"query":" a  b "}`))
	if err != nil || f.Text != "a b" || f.Summary != `search the web for "a b"` || len(f.URLs) != 0 {
		t.Errorf("%+v %v", f, err)
	}
}

func TestAbsent(t *testing.T) {
	p, err := egress.NewPolicy(egress.Config{DeniedDomains: []string{"denied.example.com"}, Timeout: time.Second, MaxBodyBytes: 1024, MaxConcurrent: 1})
	if err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		env    string
		edit   func(*Config)
		absent bool
		ok     bool
	}{
		"default":         {key, func(c *Config) { c.Enabled = false }, true, false},
		"no key":          {"", func(*Config) {}, true, false},
		"blank key":       {" \n", func(*Config) {}, true, false},
		"key in env":      {key, func(*Config) {}, false, true},
		"bad key":         {"a\r\nb", func(*Config) {}, false, false},
		"missing file":    {key, func(c *Config) { c.APIKeyFile = open + "x" }, false, false},
		"open file":       {key, func(c *Config) { c.APIKeyFile = open }, false, false},
		"backend":         {key, func(c *Config) { c.Backend = "unknown" }, false, false},
		"not a url":       {key, func(c *Config) { c.Endpoint = "not a url" }, false, false},
		"http":            {key, func(c *Config) { c.Endpoint = "http://example.com" }, false, false},
		"private":         {key, func(c *Config) { c.Endpoint = "https://127.0.0.1/api" }, false, false},
		"denied":          {key, func(c *Config) { c.Endpoint = "https://denied.example.com/api" }, false, false},
		"denied, private": {key, func(c *Config) { c.Endpoint, c.AllowPrivateEndpoint = "https://denied.example.com/", true }, false, false},
	} {
		t.Setenv("ZEPH_TEST_SEARCH_KEY", tt.env)
		cfg := Default()
		cfg.Enabled, cfg.APIKeyEnv = true, "ZEPH_TEST_SEARCH_KEY"
		tt.edit(&cfg)
		s, err := NewSearch(cfg, p, func(egress.Event) {})
		if (err == nil) != tt.ok || errors.Is(err, ErrAbsent) != tt.absent || (s != nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the error tells the key", name)
		}
	}
}

func TestSpec(t *testing.T) {
	t.Parallel()
	spec := (*Search)(nil).Spec()
	if n := len(spec.Description) + len(spec.Input) + len(spec.Output); n > 900 {
		t.Errorf("costs %d bytes", n)
	}
	for name, raw := range map[string]json.RawMessage{"input": spec.Input, "output": spec.Output} {
		var b bytes.Buffer
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		path := filepath.Join("testdata", "web_search."+name+".json")
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
	err := Config{IPIFilterThreshold: -1, APIKeyEnv: "a b"}.Validate()
	for _, key := range []string{"backend", "endpoint", "api_key_env", "max_results", "timeout", "ipi_filter_threshold"} {
		if err == nil || !strings.Contains(err.Error(), "tools.search."+key) {
			t.Errorf("%s not named: %v", key, err)
		}
	}
}
