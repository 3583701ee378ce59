// Package egress is the only place that opens an outbound connection.
//
// A destination is judged three times: as text ([ParseURL], [Policy.CheckURL]),
// as the addresses its name resolves to ([CheckAddr] on every answer), and as
// the address a socket is about to connect to. Each redirect starts again at
// the first. No proxy is taken from the environment, because behind a proxy
// only the proxy's address could be judged.
package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// The limits that are not configurable.
const (
	maxRedirects  = 3
	maxHeader     = 256 << 10
	dnsTimeout    = 5 * time.Second
	dialTimeout   = 5 * time.Second
	tlsTimeout    = 5 * time.Second
	headerTimeout = 10 * time.Second
	maxAnswers    = 16
)

// Event is one hop of one request, for the audit log. It carries no secret.
type Event struct {
	CallID   string        `json:"call_id,omitempty"`
	Tool     string        `json:"tool,omitempty"`
	Hop      int           `json:"hop"`
	Method   string        `json:"method"`
	URL      string        `json:"url"` // redacted
	Host     string        `json:"host,omitempty"`
	Outcome  Outcome       `json:"outcome"`
	Status   int           `json:"status,omitempty"`
	Bytes    int64         `json:"response_bytes"`
	Code     string        `json:"code,omitempty"` // why it was blocked or failed
	Reason   string        `json:"reason,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

// Outcome is how a hop ended.
type Outcome string

// The outcomes of a hop.
const (
	Followed Outcome = "followed" // a redirect that led to another hop
	Final    Outcome = "final"    // the answer that was returned, whatever its status
	Failed   Outcome = "failed"   // no usable answer
	Blocked  Outcome = "blocked"  // refused before any connection
)

// Header is one request header. Only Accept and Accept-Language outlive a
// redirect to another host or port.
type Header struct{ Name, Value string }

// Request is one GET.
type Request struct {
	URL     string
	Headers []Header
	CallID  string        // for events
	Tool    string        // for events
	Timeout time.Duration // tightens the config's; 0 = no tighter
}

// Cut says why a body is not whole.
type Cut string

// The reasons for a cut.
const (
	CutNone Cut = ""
	CutSize Cut = "size" // the size limit was reached
	CutTime Cut = "time" // the time limit was reached
)

// Response is the last answer of a request. A status outside 2xx is a
// Response too; see [Response.StatusError].
type Response struct {
	FinalURL  string // as requested, secrets included; show it through [RedactURL]
	Status    int
	Header    http.Header
	Body      []byte // decoded, at most the configured size
	Hops      []Event
	Truncated bool // Body is not whole; Cut says why
	Cut       Cut
}

// Client is the guarded client for URLs that a model or a page chose. It is
// safe for concurrent use.
type Client struct {
	policy *Policy
	report func(Event)
	core   core
}

// core carries out one hop. The unexported hooks are nil outside this
// package's own tests.
type core struct {
	timeout   time.Duration
	maxBody   int64
	userAgent string
	slots     chan struct{}

	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	own    func(netip.Addr) bool // addresses of this machine; nil = not looked at
	exempt func(netip.Addr) bool // addresses that may be dialled although special
	place  func(uint16) uint16   // the port where a test's server for a port is
	roots  *x509.CertPool        // nil = the system's
}

// NewClient returns a guarded client that hands every hop to report. Without a
// policy or without somebody to report to, the client refuses every request.
func NewClient(p *Policy, cfg Config, report func(Event)) *Client {
	return &Client{policy: p, report: report, core: newCore(cfg)}
}

func newCore(cfg Config) core {
	return core{
		timeout:   cfg.Timeout,
		maxBody:   cfg.MaxBodyBytes,
		userAgent: cfg.UserAgent,
		slots:     make(chan struct{}, max(cfg.MaxConcurrent, 1)),
		lookup:    lookup,
	}
}

// lookup asks the system's name servers directly. The name is made absolute so
// that no search domain can turn it into a name of the local network.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true}
	return r.LookupNetIP(ctx, "ip", host+".")
}

// Get requests rawURL. See [Client.Do].
func (c *Client) Get(ctx context.Context, rawURL string, headers ...Header) (*Response, error) {
	return c.Do(ctx, Request{URL: rawURL, Headers: headers})
}

// Do carries out one GET with at most three redirects. Every error is a
// [*call.Error] whose text names no address and holds nothing of any body.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if c == nil || c.policy == nil || c.report == nil {
		return nil, &call.Error{
			Category: call.CategoryPolicyBlocked, Code: "egress_off", Phase: call.PhaseExecution,
			Message: "outbound requests are not configured",
		}
	}
	ctx, release, err := c.core.begin(ctx, r.Timeout)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.follow(ctx, r)
}

// follow runs hops until one is final.
func (c *Client) follow(ctx context.Context, r Request) (*Response, error) {
	var hops []Event
	text, headers := r.URL, r.Headers
	for n := 0; ; n++ {
		h := hop{Event: Event{CallID: r.CallID, Tool: r.Tool, Hop: n, Method: http.MethodGet}, start: time.Now()}
		emit := func(o Outcome, err error) {
			hops = append(hops, h.end(o, err))
			c.report(hops[n])
		}
		target, addrs, err := c.admit(ctx, &h, text)
		if err != nil {
			emit(outcomeOf(err), err)
			return nil, err
		}
		resp, err := c.core.get(ctx, target, addrs, headers, nil)
		if err != nil {
			emit(outcomeOf(err), err)
			return nil, err
		}
		h.Status, h.Bytes = resp.Status, int64(len(resp.Body))
		if !redirects(resp.Status) {
			emit(Final, nil)
			resp.Hops = hops
			return resp, nil
		}
		next, err := nextURL(target, resp, n)
		if err != nil {
			emit(Failed, err)
			return nil, err
		}
		emit(Followed, nil)
		if !sameOrigin(target, next) {
			headers = harmless(headers)
		}
		text = next.String()
	}
}

// admit judges one URL as text and by every address its name has.
func (c *Client) admit(ctx context.Context, h *hop, text string) (*url.URL, []netip.Addr, error) {
	u, target := parse(text)
	h.URL, h.Host = u.URL, u.Host
	if code, reason := c.policy.CheckURL(u); code != "" && !c.core.exempted(u, code) {
		return nil, nil, blocked(code, reason)
	}
	addrs, err := c.core.resolve(ctx, u.Host)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range addrs {
		if rule, ok := c.core.checkAddr(a); !ok {
			return nil, nil, blocked(CodePrivateAddress,
				"the host "+u.Host+" resolves to an address that is not public: "+rule)
		}
	}
	return target, addrs, nil
}

// hop is an event while it happens.
type hop struct {
	Event

	start time.Time
}

func (h *hop) end(o Outcome, err error) Event {
	h.Outcome, h.Duration = o, time.Since(h.start)
	if e, ok := errors.AsType[*call.Error](err); ok {
		h.Code, h.Reason = e.Code, e.Message
	}
	return h.Event
}

func outcomeOf(err error) Outcome {
	if e, ok := errors.AsType[*call.Error](err); ok && e.Category == call.CategoryPolicyBlocked {
		return Blocked
	}
	return Failed
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// nextURL is where a redirect leads, seen from the URL that was requested. It
// is not judged yet.
func nextURL(from *url.URL, resp *Response, n int) (*url.URL, error) {
	where := resp.Header.Get("Location")
	switch {
	case where == "":
		return nil, failure("bad_redirect", fmt.Sprintf("the server answered %d without a Location", resp.Status))
	case n >= maxRedirects:
		return nil, failure("too_many_redirects", fmt.Sprintf("more than %d redirects", maxRedirects))
	}
	ref, err := url.Parse(where)
	if err != nil {
		return nil, blocked(CodeBadURL, "the server redirects to something that is not a URL")
	}
	return from.ResolveReference(ref), nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Host == b.Host
}

// harmless drops every header that may be a credential.
func harmless(headers []Header) []Header {
	var keep []Header
	for _, h := range headers {
		switch http.CanonicalHeaderKey(h.Name) {
		case "Accept", "Accept-Language":
			keep = append(keep, h)
		}
	}
	return keep
}
