package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// origin says how a client came to the HTTP server, and with whom it talks:
// with the proxy, or, when host is set, with that host.
type origin struct {
	via  Via
	host string
	port int
}

// stream is a connection on which HTTP is spoken.
type stream struct {
	*spoken

	from *origin
	once sync.Once
	done chan struct{}
}

// Close ends the stream and lets whoever passed it on know.
func (s *stream) Close() error {
	err := s.spoken.Close()
	s.once.Do(func() { close(s.done) })
	return err
}

// handoff is the listener of the HTTP server: its connections are those that
// turned out to speak HTTP.
type handoff struct {
	streams chan *stream
	closed  chan struct{}
	once    sync.Once
}

func newHandoff() *handoff {
	return &handoff{streams: make(chan *stream), closed: make(chan struct{})}
}

// pass gives a connection to the HTTP server and waits for its end.
func (h *handoff) pass(c *spoken, from *origin) {
	s := &stream{spoken: c, from: from, done: make(chan struct{})}
	select {
	case h.streams <- s:
		<-s.done
	case <-h.closed:
		_ = c.Close()
	}
}

// Accept implements [net.Listener].
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case s := <-h.streams:
		return s, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements [net.Listener].
func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }

// originKey is where net/http carries what is known of a connection; it offers
// no other way.
type originKey struct{}

func withOrigin(ctx context.Context, c net.Conn) context.Context {
	if s, ok := c.(*stream); ok {
		ctx = context.WithValue(ctx, originKey{}, s.from)
	}
	return ctx
}

// greet serves a client of the proxy.
func (p *Proxy) greet(c net.Conn) {
	s := &spoken{c, bufio.NewReader(c)}
	_ = c.SetReadDeadline(time.Now().Add(firstWords))
	b, err := s.r.Peek(1)
	if err != nil {
		return
	}
	if b[0] == socksVersion {
		p.socks(s)
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	p.streams.pass(s, &origin{via: ViaHTTP})
}

// socks serves a client that speaks SOCKS5.
func (p *Proxy) socks(s *spoken) {
	host, port, err := readSocks(s)
	a := p.from(s.LocalAddr(), ViaSOCKS, host, port)
	if e, ok := errors.AsType[*socksError](err); ok {
		p.end(a, refuse(CodeProtocol, "%s", e.why))
		_, _ = s.Write(socksAnswer(e.answer))
		return
	}
	if err != nil {
		return // it hung up, or could not be answered
	}
	if err := s.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	host = p.meant(host)
	a.Host = shown(host)
	p.tunnel(p.ctx, s, a, host, port, func(err error) error {
		_, e := s.Write(socksAnswer(socksCode(err)))
		return e
	})
}

// meant is the host that a client means: the name it gives, in plain form, or
// the one that its address stands for.
func (p *Proxy) meant(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		if name := p.names.name(a); name != "" {
			return name
		}
		return a.Unmap().String()
	}
	if name, ok := asciiHost(host); ok {
		return name
	}
	return host
}

func socksCode(err error) byte {
	if err == nil {
		return socksOK
	}
	if _, refused := errors.AsType[*refusal](err); refused {
		return socksRefused
	}
	return socksUnreachable
}

// direct serves a client that connected to an address standing for a name.
func (p *Proxy) direct(c net.Conn) {
	to, ok := addrOf(c.LocalAddr())
	if !ok || !Captured().Contains(to.Addr()) {
		return // of the session's own loopback, where nothing listens
	}
	s := &spoken{c, bufio.NewReader(c)}
	host, port := p.names.name(to.Addr()), int(to.Port())
	a := p.from(nil, ViaDirect, host, port)
	if host == "" {
		a.Host = to.Addr().String()
		p.end(a, refuse(CodeNotAllowed, "no name was looked up that this address stands for"))
		return
	}
	p.tunnel(p.ctx, s, a, host, port, func(err error) error {
		if err == nil {
			return nil
		}
		if port == 443 && c.SetDeadline(time.Now().Add(firstWords)) == nil {
			if _, e := hearHello(p.ctx, s); e == nil {
				_, _ = c.Write(alertDenied()) // clients show it, and a bare end tells nothing
			}
		}
		return nil
	})
}

// serveHTTP serves one request of a client.
func (p *Proxy) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.busy() {
		return
	}
	defer p.work.Done()
	from, _ := r.Context().Value(originKey{}).(*origin)
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if from == nil {
		http.Error(w, "this connection is not known", http.StatusInternalServerError)
		return
	}
	if from.via == ViaDirect {
		local = nil // it says which host is meant, not which call
	}
	if from.host == "" && r.Method == http.MethodConnect {
		p.serveConnect(w, r, local)
		return
	}
	host, port, err := target(from, r)
	via := from.via
	a := p.from(local, via, host, port)
	if err == nil {
		host = p.meant(host)
		a.Host = shown(host)
		err = p.forward(w, r, a, host, port)
	}
	p.end(a, err)
	if refused, ok := errors.AsType[*refusal](err); ok {
		answerRefused(w, refused)
	}
}

// target is where a request goes.
func target(from *origin, r *http.Request) (host string, port int, err error) {
	if from.host == "" {
		host, port, err = hostPort(r.URL.Host, 80)
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			err = refuse(CodeProtocol, "the proxy takes requests for http:// addresses, and CONNECT for everything else")
		}
		return host, port, err
	}
	host, port, err = hostPort(r.Host, from.port)
	name, _ := asciiHost(host)
	literal, parseErr := netip.ParseAddr(host)
	same := name == from.host || parseErr == nil && literal.Unmap().String() == from.host
	if err == nil && (!same || port != from.port || r.URL.Host != "" && r.URL.Host != r.Host) {
		err = refuse(CodeServerName, "the connection is to %s, but the request asks for %s", from.host, shown(r.Host))
	}
	return from.host, from.port, err
}

// hostPort takes an authority apart.
func hostPort(text string, usual int) (string, int, error) {
	u := url.URL{Host: text}
	host, port := u.Hostname(), usual
	if s := u.Port(); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 65535 {
			return host, 0, refuse(CodeBadURL, "the port is not between 1 and 65535")
		}
		port = n
	}
	if strings.Contains(text, "@") || host == "" {
		return host, port, refuse(CodeBadURL, "%q is not a host", shown(text))
	}
	return host, port, nil
}

// serveConnect makes a tunnel. The answer is written by hand, because the
// reason stands in the status line: that is what clients show.
func (p *Proxy) serveConnect(w http.ResponseWriter, r *http.Request, local net.Addr) {
	host, port, err := hostPort(r.Host, 0)
	if err == nil && port == 0 {
		err = refuse(CodeBadURL, "CONNECT needs a port")
	}
	host = p.meant(host)
	a := p.from(local, ViaConnect, host, port)
	c, rw, e := http.NewResponseController(w).Hijack()
	if e != nil {
		p.end(a, e)
		return
	}
	defer c.Close() //nolint:errcheck // there is nobody left to tell
	client := &spoken{c, rw.Reader}
	say := func(err error) error {
		_, e := io.WriteString(c, connectAnswer(err))
		return e
	}
	if err = errors.Join(err, c.SetDeadline(time.Time{})); err != nil {
		p.end(a, err)
		_ = say(err)
		return
	}
	p.tunnel(r.Context(), client, a, host, port, say)
}

func connectAnswer(err error) string {
	if err == nil {
		return "HTTP/1.1 200 Connection established\r\n\r\n"
	}
	status, why := statusOf(err)
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, why, len(why)+1, why)
}

// statusOf is how a client is told why there is no connection.
func statusOf(err error) (int, string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return http.StatusForbidden, "Blocked by the sandbox: " + r.reason
	}
	if e, ok := errors.AsType[*call.Error](err); ok {
		return http.StatusBadGateway, e.Message
	}
	return http.StatusBadGateway, "the connection failed"
}

func answerRefused(w http.ResponseWriter, r *refusal) {
	status, why := statusOf(r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, why+"\n")
}

// forward passes one request on, as it was understood and not as it was
// written, over a connection that serves for nothing else.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, a *attempt, host string, port int) error {
	if r.Method == http.MethodConnect {
		return refuse(CodeProtocol, "there is no proxy behind this one")
	}
	out, err := p.dial(r.Context(), a, host, port)
	if err != nil {
		if _, ok := errors.AsType[*refusal](err); !ok {
			status, why := statusOf(err)
			http.Error(w, why, status)
		}
		return err
	}
	tr := onlyOver(out)
	defer tr.CloseIdleConnections()
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: tr, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.URL.User = "http", authority(host, port), nil
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
			pr.Out.Host = pr.Out.URL.Host
		},
		ErrorHandler: func(w http.ResponseWriter, req *http.Request, err error) {
			failed = classify(req.Context(), a.Host, maxIdle, err)
			http.Error(w, "the exchange with "+a.Host+" failed", http.StatusBadGateway)
		},
	}
	aborted := serveSafely(proxy, w, r)
	full := p.hangUp(a, out)
	if aborted != nil {
		p.end(a, full)
		panic(aborted) // net/http lets the client see that the answer breaks off
	}
	return errors.Join(full, failed)
}

// serveSafely serves a request and returns what it panicked with.
func serveSafely(h http.Handler, w http.ResponseWriter, r *http.Request) (aborted any) {
	defer func() { aborted = recover() }()
	h.ServeHTTP(w, r)
	return nil
}

// onlyOver is a transport that has one connection and can make no other.
func onlyOver(c net.Conn) *http.Transport {
	var used atomic.Bool
	return &http.Transport{
		Proxy: nil,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, net.ErrClosed
			}
			return c, nil
		},
		DisableKeepAlives: true, DisableCompression: true,
		ResponseHeaderTimeout: maxIdle, MaxResponseHeaderBytes: maxHeader, ExpectContinueTimeout: time.Second,
	}
}

// authority is a host and port as they stand in a request.
func authority(host string, port int) string {
	if port != 80 {
		return net.JoinHostPort(host, strconv.Itoa(port))
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
