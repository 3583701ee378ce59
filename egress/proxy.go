package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// The limits of what commands of one session may do through a proxy.
const (
	maxConnections = 128              // at a time; further ones wait to be taken
	maxTransfer    = 8 << 30          // bytes of one connection, each way
	maxIdle        = 5 * time.Minute  // without a byte in either direction
	firstWords     = 10 * time.Second // for a client to say what it wants
	admitTime      = 20 * time.Second // to resolve and connect
	maxRepeats     = 256              // refusals that are told apart
)

// Codes that say why a connection of a command was refused, beside those of
// URLs.
const (
	CodeNotAllowed = "not_allowed" // no rule opens the host and port
	CodeServerName = "server_name" // TLS for another host than the connection
	CodeProtocol   = "protocol"    // not what is spoken on that port
	CodeTransfer   = "transfer"    // more bytes than one connection may carry
)

// Via says how a connection was asked for.
type Via string

// The ways.
const (
	ViaHTTP    Via = "http"    // a request to the proxy
	ViaConnect Via = "connect" // a tunnel through the proxy
	ViaSOCKS   Via = "socks5"
	ViaDirect  Via = "direct" // a connection to the address that stands for a name
	ViaLookup  Via = "lookup" // the question for a name
	ViaReach   Via = "reach"  // a connection to one of the host's own ports
)

// Connection is one connection that a command made or tried, for the audit
// log. It carries nothing of what was said.
type Connection struct {
	CallID   string        `json:"call_id,omitempty"`
	Calls    []string      `json:"calls,omitempty"` // those that may have made it, when it is not known which
	Via      Via           `json:"via"`
	Host     string        `json:"host,omitempty"`
	Port     int           `json:"port,omitempty"`
	Address  string        `json:"address,omitempty"`
	Sent     int64         `json:"sent_bytes"`
	Received int64         `json:"received_bytes"`
	Outcome  Outcome       `json:"outcome"`
	Code     string        `json:"code,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Count    int           `json:"count,omitempty"` // of equal refusals that this one stands for
	Duration time.Duration `json:"duration_ns"`
}

// Proxy carries what commands of one session say to the hosts that rules
// allow. It opens the connections itself, under the same rules about addresses
// as [Client]. Rules do not change during its life. It is safe for concurrent
// use.
type Proxy struct {
	policy *Policy
	rules  *Rules
	report func(Connection)
	core   core
	names  names

	http    *http.Server
	streams *handoff
	slots   chan struct{}
	ctx     context.Context //nolint:containedctx // ends with the proxy, not with a call
	cancel  context.CancelFunc
	work    sync.WaitGroup
	buffers sync.Pool // of arrays to copy through

	mu      sync.Mutex
	closed  bool
	open    map[io.Closer]struct{}
	callers map[netip.Addr]caller // by the address that a call's proxy connections go to
	next    uint32
	repeats map[repeat]int // refusals that were told once already
}

// caller is a call whose commands use the proxy.
type caller struct {
	id     string
	denied func(call.Violation)
}

// repeat is what makes two refusals equal.
type repeat struct {
	call         string
	via          Via
	host         string
	port         int
	outcome      Outcome
	code, reason string
}

// NewProxy returns a proxy that serves nothing yet. denied is what is never
// reached, whatever the rules say. Close must be called.
func NewProxy(denied *Policy, rules *Rules, report func(Connection)) (*Proxy, error) {
	if denied == nil || rules == nil || report == nil {
		return nil, errors.New("proxy: policy, rules and report are required")
	}
	p := &Proxy{
		policy: denied, rules: rules, report: report,
		core:  core{timeout: admitTime, lookup: lookup, own: ownAddress},
		slots: make(chan struct{}, maxConnections), open: map[io.Closer]struct{}{},
		callers: map[netip.Addr]caller{}, repeats: map[repeat]int{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.streams = newHandoff()
	p.http = &http.Server{
		Handler:           http.HandlerFunc(p.serveHTTP),
		ReadHeaderTimeout: firstWords, IdleTimeout: maxIdle, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return p.ctx },
		ConnContext: withOrigin, DisableGeneralOptionsHandler: true,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // of clients that hang up
	}
	p.work.Go(func() { _ = p.http.Serve(p.streams) })
	return p, nil
}

// Enter returns the address of the proxy that tells this call's connections
// from those of others. What is refused is told to denied, which may be nil.
// Leave ends that.
func (p *Proxy) Enter(callID string, denied func(call.Violation)) netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		p.next++
		// All of 127.0.0.0/8 leads to the listener; 127.0.x.y is left to commands.
		a := netip.AddrFrom4([4]byte{127, byte(1 + p.next>>14%250), byte(p.next >> 7 & 127), byte(1 + p.next&127)})
		if _, taken := p.callers[a]; !taken {
			p.callers[a] = caller{callID, denied}
			return a
		}
	}
}

// Leave forgets a call, and tells how often what was refused was tried again.
func (p *Proxy) Leave(a netip.Addr) {
	p.mu.Lock()
	gone := p.callers[a].id
	delete(p.callers, a)
	last := len(p.callers) == 0
	var again []Connection
	for k, n := range p.repeats {
		if !last && k.call != gone {
			continue
		}
		delete(p.repeats, k)
		if n > 0 {
			again = append(again, Connection{
				CallID: k.call, Via: k.via, Host: k.host, Port: k.port, Outcome: k.outcome, Code: k.code, Reason: k.reason, Count: n,
			})
		}
	}
	p.mu.Unlock()
	for _, c := range again {
		p.report(c)
	}
}

// who says which call a connection belongs to, or which it may belong to.
func (p *Proxy) who(to net.Addr) []caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := addrOf(to); ok {
		if c, ok := p.callers[a.Addr()]; ok {
			return []caller{c}
		}
	}
	all := slices.Collect(maps.Values(p.callers))
	slices.SortFunc(all, func(a, b caller) int { return cmp.Compare(a.id, b.id) })
	return all
}

func addrOf(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), true
}

// ServeProxy takes over a listener for clients that know they talk to a proxy:
// SOCKS5 or HTTP, told apart by the first byte.
func (p *Proxy) ServeProxy(l net.Listener) { p.serve(l, p.greet) }

// ServeDirect takes over a listener for connections to addresses that stand
// for names.
func (p *Proxy) ServeDirect(l net.Listener) { p.serve(l, p.direct) }

// ServeReach takes over a listener whose connections go to one port of the
// host's own loopback.
func (p *Proxy) ServeReach(l net.Listener, port int) {
	p.serve(l, func(c net.Conn) { p.reach(c, port) })
}

// ServeNames takes over a socket that programs ask for names.
func (p *Proxy) ServeNames(c net.PacketConn) {
	if !p.keep(c) {
		return
	}
	p.work.Go(func() {
		defer p.drop(c)
		buf := make([]byte, maxMessage+1)
		for {
			n, from, err := c.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				if p.ctx.Err() != nil {
					return
				}
				continue
			}
			if b, ok := answer(buf[:n], p.lookup); ok {
				_, _ = c.WriteTo(b, from)
			}
		}
	})
}

// lookup answers for a name without asking anybody: whether it may be reached
// is known, and where it is will be asked when it is.
func (p *Proxy) lookup(name string) (netip.Addr, dnsmessage.RCode) {
	if !p.rules.knows(name) || p.policy.denies(name) {
		if !special(name) { // programs ask for these by themselves
			c := p.from(nil, ViaLookup, name, 0)
			p.end(c, refuse(CodeNotAllowed, "the name %s is not among the allowed hosts", name))
		}
		return netip.Addr{}, dnsmessage.RCodeNameError
	}
	a, ok := p.names.address(name)
	if !ok {
		return netip.Addr{}, dnsmessage.RCodeServerFailure
	}
	return a, dnsmessage.RCodeSuccess
}

func (p *Proxy) serve(l net.Listener, handle func(net.Conn)) {
	if !p.keep(l) {
		return
	}
	p.work.Go(func() {
		defer p.drop(l)
		for {
			select {
			case p.slots <- struct{}{}:
			case <-p.ctx.Done():
				return
			}
			c, err := l.Accept()
			if err != nil {
				<-p.slots
				if p.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
					return
				}
				pause(p.ctx) // out of descriptors: others have to end first
				continue
			}
			p.work.Go(func() {
				defer func() { <-p.slots }()
				if p.keep(c) {
					defer p.drop(c)
					handle(c)
				}
			})
		}
	})
}

func pause(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// keep has c closed at the end of the proxy, or at once when that was.
func (p *Proxy) keep(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.open[c] = struct{}{}
	return true
}

// busy has the end of the proxy wait for whoever asks, until that is done.
func (p *Proxy) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Add(1)
	}
	return !p.closed
}

func (p *Proxy) drop(c io.Closer) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// Close ends every connection and waits until the last is reported. Calls that
// did not leave are forgotten.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	clear(p.callers)
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.cancel()
	err := p.http.Close()
	p.work.Wait()
	p.Leave(netip.Addr{})
	return err
}

// refusal is why a connection is not made.
type refusal struct{ code, reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// attempt is a connection while it lasts.
type attempt struct {
	Connection

	began time.Time
	who   []caller
	told  bool
}

func (p *Proxy) from(to net.Addr, via Via, host string, port int) *attempt {
	a := &attempt{began: time.Now(), who: p.who(to), Connection: Connection{Via: via, Host: shown(host), Port: port}}
	if len(a.who) == 1 {
		a.CallID = a.who[0].id
		return a
	}
	for _, c := range a.who {
		a.Calls = append(a.Calls, c.id)
	}
	return a
}

// shown is a host as it may stand in a log: what is none is cut and escaped.
func shown(host string) string {
	if _, ok := asciiHost(host); ok {
		return host
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String()
	}
	if len(host) > 100 {
		host = host[:100]
	}
	q := strconv.QuoteToASCII(host)
	return q[1 : len(q)-1]
}

// end reports how an attempt ended. Of equal refusals in one call the first is
// told at once and the others by their number, so that a loop that tries again
// and again fills no disk.
func (p *Proxy) end(a *attempt, err error) {
	a.Outcome, a.Duration = Final, time.Since(a.began)
	if err == nil {
		p.report(a.Connection)
		return
	}
	a.Outcome, a.Code, a.Reason = Failed, "network", "the connection failed"
	if r, ok := errors.AsType[*refusal](err); ok {
		a.Outcome, a.Code, a.Reason = Blocked, r.code, r.reason
		a.tell(r)
	} else if e, ok := errors.AsType[*call.Error](err); ok {
		a.Outcome, a.Code, a.Reason = outcomeOf(err), e.Code, e.Message
	}
	if a.Sent+a.Received > 0 || !p.repeated(a.Connection) {
		p.report(a.Connection)
	}
}

// tell lets the call know what it was denied, before the client does: that may
// be the last thing the call does. When several calls run and a connection may
// be of each, each is told, and that it is not certain.
func (a *attempt) tell(r *refusal) {
	if a.told {
		return
	}
	a.told = true
	v := call.Violation{
		Kind: call.ViolationNet, Op: "connect", Target: a.Host, Rule: ruleOf(r.code), Source: call.SourceExact, Hint: r.reason,
	}
	if a.Port != 0 {
		v.Target = net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	} else {
		v.Op = "resolve"
	}
	if len(a.who) > 1 {
		v.Source = call.SourceInferred
	}
	for _, c := range a.who {
		if c.denied != nil {
			c.denied(v)
		}
	}
}

// ruleOf names in a violation what denied it.
func ruleOf(code string) string {
	if code == CodeNotAllowed {
		return "net.allow"
	}
	return "net." + code
}

// repeated counts a refusal and says whether an equal one was told already.
func (p *Proxy) repeated(c Connection) bool {
	k := repeat{c.CallID, c.Via, c.Host, c.Port, c.Outcome, c.Code, c.Reason}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.repeats[k]; !ok && len(p.repeats) >= maxRepeats {
		p.repeats[repeat{call: c.CallID, via: c.Via, outcome: c.Outcome, code: c.Code, reason: "further hosts"}]++
		return true
	} else if ok {
		p.repeats[k]++
		return true
	}
	p.repeats[k] = 0
	return false
}
