package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// admit judges a destination and returns the addresses it may be reached at.
// trusted are those that may be reached although they are not public.
func (p *Proxy) admit(ctx context.Context, host string, port int) (addrs, trusted []netip.Addr, err error) {
	local, err := p.judge(host, port)
	if err != nil {
		return nil, nil, err
	}
	if addrs, err = p.core.resolve(ctx, host); err != nil {
		return nil, nil, err
	}
	for _, a := range addrs {
		rule, ok := p.core.checkAddr(a)
		switch {
		case ok:
		case local && private(a):
			trusted = append(trusted, a)
		default:
			return nil, nil, refuse(CodePrivateAddress, "%s is allowed, but it resolves to an address that is not public: %s", host, rule)
		}
	}
	return addrs, trusted, nil
}

// judge judges a destination without looking anything up.
func (p *Proxy) judge(host string, port int) (local bool, err error) {
	if clean, ok := asciiHost(host); !ok || clean != host || numeric(host) {
		if a, err := netip.ParseAddr(host); err != nil || a.Unmap().String() != host || a.Zone() != "" {
			return false, refuse(CodeBadURL, "%q is not a host name", shown(host))
		}
	}
	local, ok := p.rules.allow(host, port)
	switch {
	case p.policy.denies(host):
		return false, refuse(CodeDomain, "the host %s is in denied_domains", host)
	case !ok && p.rules.knows(host):
		return false, refuse(CodeNotAllowed, "%s is allowed, but not on port %d", host, port)
	case !ok:
		return false, refuse(CodeNotAllowed, "%s is not among the allowed hosts: ask for it with allow_domains", host)
	}
	return local, nil
}

// private reports whether an address belongs to the networks that anybody may
// use at home. Loopback, link-local and provider addresses do not.
func private(a netip.Addr) bool {
	return a.IsPrivate() // RFC 1918 and fc00::/7, which holds nothing of providers but what follows
}

// ownAddress reports whether an address is one of this machine. When they
// cannot be listed, every address may be.
func ownAddress(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(list, func(x net.Addr) bool {
		n, ok := x.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(n.IP)
		return ok && own.Unmap() == a
	})
}

// line is a connection to the outside: it counts, ends when nothing happens,
// and carries no more than one may.
type line struct {
	net.Conn

	sent, received atomic.Int64
	full           atomic.Bool
	idle           *time.Timer
}

func newLine(c net.Conn) *line {
	return &line{Conn: c, idle: time.AfterFunc(maxIdle, func() { _ = c.Close() })}
}

// dial judges a destination, connects to it and notes where that is.
func (p *Proxy) dial(ctx context.Context, a *attempt, host string, port int) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, admitTime)
	defer cancel()
	addrs, trusted, err := p.admit(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return p.connect(ctx, a, addrs, trusted, port)
}

func (p *Proxy) connect(ctx context.Context, a *attempt, addrs, trusted []netip.Addr, port int) (*line, error) {
	c, err := p.core.dial(ctx, addrs, uint16(port), trusted)
	if err != nil {
		return nil, classify(ctx, a.Host, admitTime, err)
	}
	if ap, ok := addrOf(c.RemoteAddr()); ok {
		a.Address = ap.Addr().String()
	}
	l := newLine(c)
	if !p.keep(l) {
		return nil, net.ErrClosed
	}
	return l, nil
}

var errFull = errors.New("the connection has carried as much as one may")

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if l.count(&l.received, n) {
		err = errFull
	}
	return n, err
}

// Write counts before it writes: the answer may be there before it returns.
func (l *line) Write(b []byte) (int, error) {
	if l.count(&l.sent, len(b)) {
		return 0, errFull
	}
	n, err := l.Conn.Write(b)
	l.sent.Add(int64(n - len(b)))
	return n, err
}

// count reports whether the connection is full, and ends it then.
func (l *line) count(sum *atomic.Int64, n int) bool {
	l.idle.Reset(maxIdle)
	if sum.Add(int64(n)) <= maxTransfer {
		return false
	}
	l.full.Store(true)
	_ = l.Conn.Close()
	return true
}

// Close ends the connection for good.
func (l *line) Close() error {
	l.idle.Stop()
	return l.Conn.Close()
}

// closeWrite says that nothing more will be sent.
func closeWrite(c net.Conn) {
	switch c := c.(type) {
	case *line:
		closeWrite(c.Conn)
	case *stream:
		closeWrite(c.Conn)
	case *spoken:
		closeWrite(c.Conn)
	case interface{ CloseWrite() error }:
		_ = c.CloseWrite()
	default:
		_ = c.Close()
	}
}

// hangUp ends a line and notes what it carried.
func (p *Proxy) hangUp(a *attempt, l *line) error {
	p.drop(l)
	a.Sent, a.Received = l.sent.Load(), l.received.Load()
	if l.full.Load() {
		return refuse(CodeTransfer, "one connection may carry %d bytes each way", int64(maxTransfer))
	}
	return nil
}

// spoken is a connection of which something was read already.
type spoken struct {
	net.Conn

	r *bufio.Reader
}

func (s *spoken) Read(b []byte) (int, error) { return s.r.Read(b) }

// relay passes on what client and outside say until both are done. What the
// client says first is looked at before the outside hears it.
func (p *Proxy) relay(client *spoken, out *line, check func(*spoken) ([]byte, error)) error {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if p.pump(client.Conn, out) != nil {
			_ = client.Close()
		}
		closeWrite(client)
	}()
	first, err := check(client)
	if err == nil && len(first) > 0 {
		_, err = out.Write(first)
	}
	if err == nil {
		err = p.pump(out, client)
	}
	closeWrite(out)
	if err != nil {
		_ = out.Close()
	}
	<-answered
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	return nil // a connection that breaks off has been one
}

func (p *Proxy) pump(to io.Writer, from io.Reader) error {
	b, ok := p.buffers.Get().(*[16 << 10]byte)
	if !ok {
		b = new([16 << 10]byte)
	}
	defer p.buffers.Put(b)
	// Only plain reads and writes, so that every byte is counted.
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, b[:])
	return err
}

// tunnel serves a client that wants to talk to host itself. ready tells it
// whether it can, with nil, or why not.
func (p *Proxy) tunnel(ctx context.Context, client *spoken, a *attempt, host string, port int, ready func(error) error) {
	if port == 80 {
		// What is spoken there is read, so that each request goes to this host.
		if _, err := p.judge(host, port); err != nil {
			p.end(a, err) // before the client knows, and may be gone
			_ = ready(err)
			return
		}
		if ready(nil) == nil {
			p.streams.pass(client, &origin{via: a.Via, host: host, port: port})
		}
		return
	}
	out, err := p.dial(ctx, a, host, port)
	if err != nil {
		p.end(a, err)
		_ = ready(err)
		return
	}
	if err = ready(nil); err != nil {
		p.drop(out)
		p.end(a, err)
		return
	}
	err = p.relay(client, out, func(c *spoken) ([]byte, error) {
		first, err := firstWord(ctx, c, host, port)
		if r, ok := errors.AsType[*refusal](err); ok {
			a.tell(r)
			if len(first) > 0 {
				_, _ = c.Write(alertDenied())
			}
		}
		return first, err
	})
	if full := p.hangUp(a, out); full != nil {
		err = full
	}
	p.end(a, err)
}

// firstWord looks at what a client says first. TLS has to be for the host that
// was allowed, and on its port nothing else is spoken.
func firstWord(ctx context.Context, c *spoken, host string, port int) ([]byte, error) {
	b, err := c.r.Peek(1)
	if err != nil {
		return nil, err
	}
	if b[0] != recordHandshake {
		if port == 443 {
			return nil, refuse(CodeProtocol, "port 443 of %s is for TLS only", host)
		}
		return nil, nil
	}
	h, err := hearHello(ctx, c)
	if err != nil {
		return nil, err
	}
	return h.raw, h.check(host)
}

// hearHello reads the client hello that has begun.
func hearHello(ctx context.Context, c *spoken) (hello, error) {
	if err := c.SetReadDeadline(time.Now().Add(firstWords)); err != nil {
		return hello{}, err
	}
	h, err := readHello(ctx, c)
	if err != nil {
		return h, refuse(CodeProtocol, "what begins like TLS is none")
	}
	return h, c.SetReadDeadline(time.Time{})
}

// check reports why a hello may not be passed on to host.
func (h hello) check(host string) error {
	name, _ := asciiHost(h.name)
	_, literal := netip.ParseAddr(host)
	switch {
	case h.encrypted:
		return refuse(CodeServerName, "the client hides the server name (encrypted client hello), so that where it goes cannot be told")
	case h.name == "" && literal == nil:
		return nil
	case h.name == "":
		return refuse(CodeServerName, "the TLS client names no server, so that where it goes cannot be told")
	case name != host:
		return refuse(CodeServerName, "the connection is to %s, but TLS asks for %s", host, shown(h.name))
	}
	return nil
}

// reach connects a command to one port of the host's loopback.
func (p *Proxy) reach(c net.Conn, port int) {
	a := p.from(c.LocalAddr(), ViaReach, "127.0.0.1", port)
	ctx, cancel := context.WithTimeout(p.ctx, admitTime)
	defer cancel()
	loopback := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	out, err := p.connect(ctx, a, loopback, loopback, port)
	if err != nil {
		p.end(a, err)
		return
	}
	_ = p.relay(&spoken{c, bufio.NewReader(c)}, out, func(*spoken) ([]byte, error) { return nil, nil })
	p.end(a, p.hangUp(a, out))
}
