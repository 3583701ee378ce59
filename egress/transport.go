package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// begin takes a slot and sets the deadline of a whole request.
func (c *core) begin(ctx context.Context, tighter time.Duration) (context.Context, func(), error) {
	limit := c.timeout
	if tighter > 0 {
		limit = min(limit, tighter)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	select {
	case c.slots <- struct{}{}:
		return ctx, func() { <-c.slots; cancel() }, nil
	case <-ctx.Done():
		defer cancel()
		return nil, nil, ended(ctx, limit)
	}
}

// resolve returns every address of host, IPv4 first because a black-holed IPv6
// route would cost a whole dial time-out.
func (c *core) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	dns, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	answers, err := c.lookup(dns, host)
	switch {
	case ctx.Err() != nil:
		return nil, ended(ctx, c.timeout)
	case err != nil:
		var e *net.DNSError
		gone := errors.As(err, &e) && e.IsNotFound
		return nil, network("dns", "the host "+host+" cannot be resolved", !gone, err)
	}
	var addrs []netip.Addr
	for _, a := range answers {
		if a = a.Unmap(); !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 || len(addrs) > maxAnswers {
		return nil, network("dns", "the host "+host+" has no usable address", false, nil)
	}
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return addrs, nil
}

// checkAddr is [CheckAddr] with the test hook applied.
func (c *core) checkAddr(a netip.Addr) (rule string, ok bool) {
	if c.exempt != nil && c.exempt(a.Unmap()) {
		return "", true
	}
	if c.own != nil && c.own(a.Unmap()) {
		return "an address of this machine", false
	}
	return CheckAddr(a)
}

// exempted reports whether a refusal by address falls under the test hook.
func (c *core) exempted(u call.URL, code string) bool {
	a, err := netip.ParseAddr(u.Host)
	return c.exempt != nil && code == CodePrivateAddress && err == nil && c.exempt(a.Unmap())
}

// get requests target from one of addrs, which have been checked. trusted
// addresses, if any, may be special; see [Endpoint].
func (c *core) get(
	ctx context.Context, target *url.URL, addrs []netip.Addr, headers []Header, trusted []netip.Addr,
) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, blocked(CodeBadURL, "the URL cannot be requested")
	}
	if c.userAgent != "" {
		req.Header.Set("User-Agent", c.userAgent)
	}
	for _, h := range headers {
		req.Header.Set(h.Name, h.Value)
	}
	tr := c.transport(target, addrs, trusted)
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, classify(ctx, target.Hostname(), c.timeout, err)
	}
	defer func() { _ = resp.Body.Close() }() // never drained: a rest may be endless
	out := &Response{FinalURL: target.String(), Status: resp.StatusCode, Header: resp.Header}
	if redirects(resp.StatusCode) {
		return out, nil
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, failure("content_encoding", "the server uses a content encoding other than gzip")
	}
	return c.read(ctx, out, resp.Body)
}

// read takes at most the allowed size from a decoded body.
func (c *core) read(ctx context.Context, out *Response, body io.Reader) (*Response, error) {
	data, err := io.ReadAll(io.LimitReader(body, c.maxBody+1))
	if int64(len(data)) > c.maxBody {
		data, out.Truncated, out.Cut = data[:c.maxBody], true, CutSize
		err = nil
	}
	out.Body = data
	switch {
	case err == nil:
		return out, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && len(data) > 0:
		out.Truncated, out.Cut = true, CutTime
		return out, nil
	default:
		return nil, classify(ctx, host(out.FinalURL), c.timeout, err)
	}
}

func host(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the server"
	}
	return u.Hostname()
}

// transport makes a transport that can reach nothing but addrs, for one
// request: a pooled connection would outlive the check it was made under.
func (c *core) transport(target *url.URL, addrs, trusted []netip.Addr) *http.Transport {
	port := 443
	if p, ok := portOf(target.Port()); ok {
		port = p
	}
	if target.Port() == "" && target.Scheme == "http" {
		port = 80
	}
	return &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dial(ctx, addrs, uint16(port), trusted)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots},
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
	}
}

// dial connects to the first of addrs that answers. The address of each socket
// is judged once more when it is about to connect.
func (c *core) dial(ctx context.Context, addrs []netip.Addr, port uint16, trusted []netip.Addr) (net.Conn, error) {
	d := net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: -1,
		Control: func(network, address string, _ syscall.RawConn) error {
			return c.control(network, address, addrs, port, trusted)
		},
	}
	if c.place != nil {
		port = c.place(port)
	}
	var errs []error
	for _, a := range addrs {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), strconv.Itoa(int(port))))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// control is the last word before a connection.
func (c *core) control(network, address string, addrs []netip.Addr, port uint16, trusted []netip.Addr) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return blocked(CodePrivateAddress, "the connection is not plain TCP")
	}
	a := ap.Addr().Unmap()
	if ap.Port() != port || !slices.Contains(addrs, a) {
		return blocked(CodePrivateAddress, "the connection would go to an address that was not checked")
	}
	if slices.Contains(trusted, a) {
		return nil
	}
	if rule, ok := c.checkAddr(a); !ok {
		return blocked(CodePrivateAddress, "the address is not public: "+rule)
	}
	return nil
}
