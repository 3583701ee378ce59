package egress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// EndpointConfig describes one service of the operator's choice.
type EndpointConfig struct {
	// URL is the whole address requests go to; only the query is added.
	URL string
	// AllowPrivate lets this one URL resolve to addresses that are not public,
	// and lets it use http. For a service on the operator's own network.
	AllowPrivate bool
	// Timeout and MaxBodyBytes bound one request.
	Timeout      time.Duration
	MaxBodyBytes int64
	// UserAgent is sent with every request.
	UserAgent string
}

// Endpoint is a client that can reach one configured URL and nothing else. It
// follows no redirect. Nothing a model says can change where it goes. One
// request is under way at a time.
type Endpoint struct {
	base    *url.URL
	host    string
	private bool
	report  func(Event)
	core    core
}

// NewEndpoint returns the client for a configured service. An address that
// could never be used is an error here, not at the first call.
func NewEndpoint(cfg EndpointConfig, p *Policy, report func(Event)) (*Endpoint, error) {
	if p == nil || report == nil {
		return nil, errors.New("endpoint: policy and report are required")
	}
	text := cfg.URL
	if plain, ok := strings.CutPrefix(text, "http://"); ok && cfg.AllowPrivate {
		text = "https://" + plain
	}
	u, base := parse(text)
	if base == nil {
		return nil, fmt.Errorf("endpoint: %s", u.Why)
	}
	code, reason := p.CheckURL(u)
	waived := code == CodePrivateAddress || code == CodeBlockedHost
	listed := code == CodeDomain && !p.denies(u.Host) // allowed_domains is about pages, not about this service
	if code != "" && !listed && (!waived || !cfg.AllowPrivate) {
		return nil, fmt.Errorf("endpoint: %s", reason)
	}
	if text != cfg.URL {
		plain, err := url.Parse(cfg.URL)
		if err != nil {
			return nil, errors.New("endpoint: the URL cannot be read")
		}
		base.Scheme, base.Host = "http", strings.ToLower(plain.Host) // the default port is another one
	}
	return &Endpoint{
		base: base, host: u.Host, private: cfg.AllowPrivate, report: report,
		core: newCore(Config{
			Timeout: cfg.Timeout, MaxBodyBytes: cfg.MaxBodyBytes, MaxConcurrent: 1, UserAgent: cfg.UserAgent,
		}),
	}, nil
}

func (p *Policy) denies(host string) bool {
	return slices.ContainsFunc(p.denied, func(e pattern) bool { return e.covers(host) })
}

// Get requests the configured URL with query added to it. Errors are as in
// [Client.Do]; a redirect is returned as the answer it is.
func (e *Endpoint) Get(ctx context.Context, r Request, query url.Values) (*Response, error) {
	ctx, release, err := e.core.begin(ctx, r.Timeout)
	if err != nil {
		return nil, err
	}
	defer release()
	h := hop{
		Event: Event{
			CallID: r.CallID, Tool: r.Tool, Method: http.MethodGet,
			URL: e.base.Scheme + "://" + e.base.Host + e.base.EscapedPath(), Host: e.host,
		},
		start: time.Now(),
	}
	resp, err := e.get(ctx, r.Headers, query)
	if err != nil {
		e.report(h.end(outcomeOf(err), err))
		return nil, err
	}
	h.Status, h.Bytes = resp.Status, int64(len(resp.Body))
	resp.Hops = []Event{h.end(Final, nil)}
	e.report(resp.Hops[0])
	return resp, nil
}

func (e *Endpoint) get(ctx context.Context, headers []Header, query url.Values) (*Response, error) {
	addrs, err := e.core.resolve(ctx, e.host)
	if err != nil {
		return nil, err
	}
	var trusted []netip.Addr
	if e.private {
		trusted = addrs
	}
	for _, a := range addrs {
		if rule, ok := e.core.checkAddr(a); !ok && !e.private {
			return nil, blocked(CodePrivateAddress, "the service resolves to an address that is not public: "+rule)
		}
	}
	target := *e.base
	all := target.Query()
	maps.Copy(all, query)
	target.RawQuery = all.Encode()
	return e.core.get(ctx, &target, addrs, headers, trusted)
}
