// Package websearch holds the tool that searches the web through a provider
// the operator chose. The provider's address comes from the config only, the
// key never leaves the request header, and no result is fetched.
package websearch

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/ipi"
	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

//go:embed web_search.md
var description string

// ErrAbsent means that there is no search: it is not enabled, or there is no
// key. The tool is then left out; it is not a fault of the config.
var ErrAbsent = errors.New("web search is absent")

// maxBody is how much of an answer is read.
const maxBody = 2 << 20

// Search is the tool. It is safe for concurrent use.
type Search struct {
	provider *brave
	filter   *ipi.Filter
	max      int
}

var _ tools.Tool = (*Search)(nil)

// NewSearch returns the tool. The error is [ErrAbsent] when the config does not
// enable it or there is no key, and another error when the config is wrong.
func NewSearch(cfg Config, p *egress.Policy, report func(egress.Event)) (*Search, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if !cfg.Enabled {
		return nil, fmt.Errorf("%w: tools.search.enabled is false", ErrAbsent)
	}
	key, err := readKey(cfg)
	if err != nil {
		return nil, err
	}
	endpoint, err := egress.NewEndpoint(egress.EndpointConfig{
		URL: cfg.Endpoint, AllowPrivate: cfg.AllowPrivateEndpoint,
		Timeout: cfg.Timeout, MaxBodyBytes: maxBody, UserAgent: "zeph-mcp-tools",
	}, p, report)
	if err != nil {
		return nil, fmt.Errorf("tools.search.endpoint: %w", err)
	}
	filter, err := ipi.NewFilter(cfg.IPIFilterThreshold)
	if err != nil {
		return nil, err
	}
	return &Search{provider: &brave{get: endpoint.Get, Key: key}, filter: filter, max: cfg.MaxResults}, nil
}

// readKey reads the provider's key.
func readKey(cfg Config) (secret.Secret, error) {
	text := ""
	switch {
	case cfg.APIKeyFile != "":
		info, err := os.Stat(cfg.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("tools.search.api_key_file: %w", err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			return "", errors.New("tools.search.api_key_file: others can read the file; use chmod 600")
		}
		raw, err := os.ReadFile(cfg.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("tools.search.api_key_file: %w", err)
		}
		text = string(raw)
	case cfg.APIKeyEnv != "":
		text = os.Getenv(cfg.APIKeyEnv)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", fmt.Errorf("%w: there is no key in %s", ErrAbsent, cfg.APIKeyEnv+cfg.APIKeyFile)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("tools.search: the key holds characters no key has")
	}
	return secret.Secret(text), nil
}

// Spec implements [tools.Tool].
func (*Search) Spec() call.Spec {
	return call.Spec{
		Name: "web_search", Title: "Search the web", Description: strings.TrimSpace(description),
		Input: json.RawMessage(input), Output: json.RawMessage(output),
		Effect: call.ReachesNetwork, Confirm: call.ConfirmByPolicy,
		Destructive: call.No, Idempotent: call.Yes, OpenWorld: call.Yes,
		Cacheable: call.Yes, Speculatable: call.No, Retryable: call.Yes,
	}
}

// Facts implements [tools.Tool]. They name no URL: where a search goes is the
// operator's decision and was judged when the tool was made.
func (*Search) Facts(raw json.RawMessage) (call.Facts, error) {
	a, err := parse(raw)
	if err != nil {
		return call.Facts{}, err
	}
	return call.Facts{Summary: fmt.Sprintf("search the web for %q", a.Query), Text: a.Query}, nil
}

// hit is one result.
type hit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
	Age     string `json:"age,omitempty"`
}

// answer is what a provider found.
type answer struct {
	hits    []hit
	altered string // what the provider searched for instead
}

// structured is the structured result.
type structured struct {
	Results []hit  `json:"results"`
	Altered string `json:"altered_query,omitempty"`
	ipi.Report
}

// Run implements [tools.Tool].
func (s *Search) Run(ctx context.Context, auth gates.Authorized) (call.Result, error) {
	var a arguments
	if err := auth.Decode(&a); err != nil {
		return call.Result{}, err
	}
	if err := a.check(); err != nil {
		return call.Result{}, err
	}
	limit := s.max
	if a.Limit > 0 {
		limit = min(a.Limit, s.max)
	}
	got, size, err := s.provider.search(ctx, auth, a, limit)
	if err != nil {
		return call.Result{}, err
	}
	out := s.filtered(got)
	raw, err := tools.EncodeResult(out)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{
		Text:       render(a.Query, out),
		Structured: raw, Untrusted: true,
		Outcome: call.Outcome{RawBytes: int64(size)},
	}, nil
}

// filtered judges everything the provider said together.
func (s *Search) filtered(got answer) structured {
	parts := []string{got.altered}
	for _, h := range got.hits {
		parts = append(parts, h.Title, h.Snippet, h.URL, h.Age)
	}
	parts, report := s.filter.Apply(parts...)
	out := structured{Results: []hit{}, Altered: parts[0], Report: report}
	for p := parts[1:]; len(p) >= 4; p = p[4:] {
		out.Results = append(out.Results, hit{Title: p[0], Snippet: p[1], URL: p[2], Age: p[3]})
	}
	return out
}

// render writes the results as numbered blocks.
func render(query string, s structured) string {
	var b strings.Builder
	b.WriteString(s.Warning())
	if s.Altered != "" {
		fmt.Fprintf(&b, "The query was corrected to: %s\n\n", s.Altered)
	}
	for i, h := range s.Results {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "%d. %s\n   %s", i+1, h.Title, h.URL)
		if h.Snippet != "" {
			b.WriteString("\n   " + h.Snippet)
		}
		if h.Age != "" {
			b.WriteString(" (" + h.Age + ")")
		}
	}
	if len(s.Results) == 0 {
		b.WriteString("No results for query: " + query)
	}
	return ipi.Frame(b.String(), []string{"source: web search"}, fmt.Sprintf("%d results", len(s.Results)))
}
