package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
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
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// outside is a world with servers that stand for the internet, and a proxy.
type outside struct {
	proxy   *Proxy
	at      string // of the listener for proxy clients
	roots   *x509.CertPool
	plain   *httptest.Server // example.com:80
	tls     *httptest.Server // example.com:443
	tlsPort int

	mu     sync.Mutex
	events []Connection
	asked  []string
}

func newOutside(tb testing.TB, rules []string, h http.HandlerFunc) *outside {
	tb.Helper()
	o := &outside{}
	if h == nil {
		h = func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s%s", r.Method, r.Host, r.URL) }
	}
	o.plain = httptest.NewServer(h)
	o.tls = httptest.NewUnstartedServer(h)
	o.tls.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	o.tls.StartTLS()
	tb.Cleanup(o.plain.Close)
	tb.Cleanup(o.tls.Close)
	o.roots = x509.NewCertPool()
	o.roots.AddCert(o.tls.Certificate())
	o.tlsPort = portOfURL(tb, o.tls.URL)
	list, err := ParseRules(rules)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := Default()
	cfg.DeniedDomains = []string{"denied.example.com"}
	denied, err := NewPolicy(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	o.proxy, err = NewProxy(denied, list, func(c Connection) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events = append(o.events, c)
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := o.proxy.Close(); err != nil {
			tb.Error(err)
		}
	})
	server := netip.MustParseAddr("127.0.0.1")
	core := &o.proxy.core
	core.exempt = func(a netip.Addr) bool { return a == server }
	core.place = func(port uint16) uint16 {
		switch port {
		case 80:
			return uint16(portOfURL(tb, o.plain.URL))
		case 443:
			return uint16(o.tlsPort)
		}
		return port
	}
	core.lookup = o.lookup
	o.at = o.listen(tb, o.proxy.ServeProxy)
	return o
}

func (o *outside) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	o.mu.Lock()
	o.asked = append(o.asked, host)
	n := len(o.asked)
	o.mu.Unlock()
	for name, addrs := range map[string]string{
		"example.com": "127.0.0.1", "www.example.com": "127.0.0.1", "denied.example.com": "127.0.0.1",
		"loopback.example.com": "127.0.0.2", "metadata.example.com": "169.254.169.254", "mixed.example.com": "127.0.0.1 10.0.0.1",
		"mapped.example.com": "::ffff:127.0.0.2", "lan.example.com": "192.168.1.1", "nas.lan": "192.168.1.1", "meta.internal": "169.254.169.254",
	} {
		if name != host {
			continue
		}
		var out []netip.Addr
		for a := range strings.FieldsSeq(addrs) {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
	if host == "rebind.example.com" { // good when it is looked at first
		return []netip.Addr{netip.MustParseAddr(map[bool]string{true: "127.0.0.1", false: "127.0.0.2"}[n == 1])}, nil
	}
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

func portOfURL(tb testing.TB, text string) int {
	tb.Helper()
	u, err := url.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// listen has the proxy serve a new listener and returns its address.
func (o *outside) listen(tb testing.TB, serve func(net.Listener)) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp4", "0.0.0.0:0")
	if err != nil {
		tb.Fatal(err)
	}
	serve(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "127.0.0.1:" + port
}

// client is an HTTP client behind the proxy.
func (o *outside) client(t *testing.T, proxy string) *http.Client {
	t.Helper()
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: &tls.Config{RootCAs: o.roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// fetch returns the status and body, or the error as text.
func fetch(t *testing.T, c *http.Client, req *http.Request) string {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return resp.Status + "|" + string(b)
}

func get(t *testing.T, c *http.Client, text string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, text, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return fetch(t, c, req)
}

// settled is what was reported once nothing is under way.
func (o *outside) settled(t *testing.T) []Connection {
	t.Helper()
	if err := o.proxy.Close(); err != nil {
		t.Error(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

func TestProxyCarries(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http://", "socks5h://"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t, []string{"example.com", "*.example.com"}, nil)
			c := o.client(t, scheme+o.at)
			for text, want := range map[string]string{
				"https://example.com/a?b=1":    "200 OK|GET example.com/a?b=1",
				"http://example.com/a?b=%zz;c": "200 OK|GET example.com/a?b=%zz;c",
				"http://WWW.Example.com./":     "200 OK|GET www.example.com/",
			} {
				if got := get(t, c, text); got != want {
					t.Errorf("%s: %q, want %q", text, got, want)
				}
			}
			c.CloseIdleConnections()
			for _, e := range o.settled(t) {
				if e.Outcome != Final || e.Address != "127.0.0.1" || e.Sent == 0 || e.Received == 0 || e.Code != "" {
					t.Errorf("%+v", e)
				}
			}
			if len(o.events) != 3 {
				t.Errorf("%d connections: %+v", len(o.events), o.events)
			}
		})
	}
}

func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	rules := []string{
		"example.com", "denied.example.com", "loopback.example.com", "metadata.example.com", "mixed.example.com", "mapped.example.com",
		"lan.example.com", "meta.internal", "127.0.0.2", "169.254.169.254", "gone.example.com",
	}
	for _, via := range []string{"http://", "socks5h://"} {
		t.Run(via, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t, rules, nil)
			c := o.client(t, via+o.at)
			hosts := map[string]string{
				"other.example": CodeNotAllowed, "sub.example.com": CodeNotAllowed, "example.com:8443": CodeNotAllowed, "localhost": CodeNotAllowed,
				"denied.example.com": CodeDomain, "loopback.example.com": CodePrivateAddress, "metadata.example.com": CodePrivateAddress,
				"mixed.example.com": CodePrivateAddress, "mapped.example.com": CodePrivateAddress, "lan.example.com": CodePrivateAddress,
				"meta.internal": CodePrivateAddress, "127.0.0.2": CodePrivateAddress, "169.254.169.254": CodePrivateAddress,
				"93.184.216.34": CodeNotAllowed, "[::1]": CodeNotAllowed, "[::ffff:7f00:1]": CodeNotAllowed, "127.1": CodeBadURL, "0x7f000001": CodeBadURL,
				"gone.example.com": "dns",
			}
			for host, code := range hosts {
				for _, scheme := range []string{"https://", "http://"} {
					got := get(t, c, scheme+host+"/")
					ok := strings.Contains(got, "Blocked by the sandbox: ") || strings.Contains(got, "not allowed by ruleset") || code == "dns"
					if strings.HasPrefix(got, "200") || !ok && via == "http://" {
						t.Errorf("%s%s: %q", scheme, host, got)
					}
					for _, leak := range []string{"169.254.169.254", "127.0.0.2", "192.168.1.1", "10.0.0.1"} {
						if strings.Contains(got, leak) && !strings.Contains(host, leak) {
							t.Errorf("%s%s tells an address: %q", scheme, host, got)
						}
					}
				}
			}
			seen := map[string]string{}
			for _, e := range o.settled(t) {
				if e.Outcome == Final || e.Address != "" || e.Sent+e.Received > 0 || e.Reason == "" {
					t.Errorf("%+v", e)
				}
				seen[e.Host] = e.Code
			}
			for host, code := range hosts {
				host, _, _ := strings.Cut(strings.Trim(host, "[]"), ":8443")
				if host == "::ffff:7f00:1" {
					host = "127.0.0.1"
				}
				if host != "example.com" && seen[host] != code {
					t.Errorf("%s: %q, want %q", host, seen[host], code)
				}
			}
		})
	}
}

// A name written by the operator for the own network may lead there.
func TestProxyLocalNames(t *testing.T) {
	t.Parallel()
	o := newOutside(t, []string{"nas.lan", "10.1.2.3:5000", "lan.example.com"}, nil)
	for host, port := range map[string]int{"nas.lan": 443, "10.1.2.3": 5000} {
		addrs, trusted, err := o.proxy.admit(t.Context(), host, port)
		if err != nil || !slices.Equal(addrs, trusted) || len(addrs) != 1 {
			t.Errorf("%s: %v %v %v", host, addrs, trusted, err)
		}
	}
	if _, _, err := o.proxy.admit(t.Context(), "lan.example.com", 443); err == nil {
		t.Error("a public name leads into the own network")
	}
}

// What a name resolves to is asked once, and only that is connected to.
func TestProxyRebinding(t *testing.T) {
	t.Parallel()
	o := newOutside(t, []string{"rebind.example.com"}, nil)
	c := o.client(t, "http://"+o.at)
	if got := get(t, c, "http://rebind.example.com/"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	if got := get(t, c, "http://rebind.example.com/"); !strings.HasPrefix(got, "403") {
		t.Error(got)
	}
	if err := o.proxy.core.control("tcp4", "127.0.0.2:80", []netip.Addr{netip.MustParseAddr("127.0.0.1")}, 80, nil); err == nil {
		t.Error("another address than the one that was checked")
	}
	if ownAddress(netip.MustParseAddr("192.0.2.77")) || !ownAddress(netip.MustParseAddr("127.0.0.1")) {
		t.Error("own addresses are not known")
	}
}

// exchange says something on a tunnel to host:port and returns what came back.
func (o *outside) exchange(t *testing.T, host string, say func(net.Conn) error) (string, error) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", o.at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		return line, err
	}
	if _, err := r.ReadString('\n'); err != nil {
		return line, err
	}
	if err := say(&spoken{c, r}); err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestTunnelSaysWhatItIs(t *testing.T) {
	t.Parallel()
	o := newOutside(t, []string{"example.com", "www.example.com", "127.0.0.1"}, nil)
	talk := func(cfg *tls.Config) func(net.Conn) error {
		return func(c net.Conn) error {
			cfg.RootCAs, cfg.MinVersion = o.roots, tls.VersionTLS13
			tc := tls.Client(c, cfg)
			if err := tc.HandshakeContext(t.Context()); err != nil {
				return err
			}
			return tc.CloseWrite()
		}
	}
	ech, err := echConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		to  string
		say func(net.Conn) error
		ok  bool
	}{
		"the same name":         {"example.com:443", talk(&tls.Config{ServerName: "example.com"}), true},
		"another allowed name":  {"example.com:443", talk(&tls.Config{ServerName: "www.example.com"}), false},
		"another name":          {"example.com:443", talk(&tls.Config{ServerName: "other.example"}), false},
		"no name":               {"example.com:443", talk(&tls.Config{InsecureSkipVerify: true}), false},
		"a hidden name":         {"example.com:443", talk(&tls.Config{ServerName: "hidden.example", EncryptedClientHelloConfigList: ech}), false},
		"no name to an address": {"127.0.0.1:443", talk(&tls.Config{InsecureSkipVerify: true}), true},
	} {
		if _, err := o.exchange(t, tt.to, tt.say); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		} else if err != nil && !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for say, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n": "", "SSH-2.0-x\r\n": "", "\x16\x03\x01\x00\x05hello": "", "": "",
	} {
		got, err := o.exchange(t, "example.com:443", func(c net.Conn) error {
			_, err := io.WriteString(c, say)
			return errors.Join(err, half(c))
		})
		if got != want || err != nil {
			t.Errorf("%q: %q %v", say, got, err)
		}
	}
	for say, want := range map[string]string{
		"GET /x HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n":                 "GET example.com/x",
		"GET /x HTTP/1.1\r\nHost: other.example\r\n\r\n":                                    "403 Forbidden",
		"GET /x HTTP/1.0\r\n\r\n":                                                           "403 Forbidden",
		"GET http://other.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n":                   "403 Forbidden",
		"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n":             "403 Forbidden",
		"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\nTransfer-Encoding: x": "501 Not Implemented",
		"SSH-2.0-x\r\n\r\n": "400 Bad Request",
	} {
		got, err := o.exchange(t, "example.com:80", func(c net.Conn) error {
			_, err := io.WriteString(c, say+"\r\n\r\n")
			return err
		})
		if !strings.Contains(got, want) || err != nil {
			t.Errorf("%q: %q %v", say, got, err)
		}
	}
}

func half(c net.Conn) error {
	closeWrite(c)
	return nil
}

// The server may speak first, and each side may end before the other.
func TestTunnelServerSpeaksFirst(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "220 ready\n")
		b, _ := io.ReadAll(c)
		_, _ = c.Write(bytes.ToUpper(b))
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	o := newOutside(t, []string{"example.com:" + port}, nil)
	got, err := o.exchange(t, "example.com:"+port, func(c net.Conn) error {
		b := make([]byte, 10)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "220 ready\n" {
			return fmt.Errorf("%q %w", b, err)
		}
		_, err := io.WriteString(c, "quit")
		return errors.Join(err, half(c))
	})
	if got != "QUIT" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if e := o.settled(t); len(e) != 1 || e[0].Sent != 4 || e[0].Received != 14 || e[0].Via != ViaConnect {
		t.Errorf("%+v", e)
	}
}

func TestForwardDropsWhatIsForTheProxy(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen http.Header
	var bodies []string
	o := newOutside(t, []string{"example.com"}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen, bodies = r.Header.Clone(), append(bodies, r.URL.Path+"="+string(b))
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("Location", "http://169.254.169.254/")
		w.WriteHeader(http.StatusFound)
	})
	c := o.client(t, "http://user:secret@"+o.at)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/a", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "for the site")
	req.Header.Set("Connection", "X-Hop")
	req.Header.Set("X-Hop", "1")
	req.Header.Set("Proxy-Connection", "keep-alive")
	if got := fetch(t, c, req); !strings.HasPrefix(got, "302") {
		t.Fatal(got)
	}
	for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "X-Hop", "X-Forwarded-For", "Via", "Forwarded"} {
		if v := seen.Get(name); v != "" {
			t.Errorf("%s: %q reached the server", name, v)
		}
	}
	if seen.Get("Authorization") != "for the site" {
		t.Error("the site's own header is gone")
	}
	// Two requests in what one side may read as one.
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", o.at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST http://example.com/b HTTP/1.1\r\nHost: example.com\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"0\r\n\r\nGET http://other.example/smuggled HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(conn)
	if err != nil || bytes.Contains(b, []byte("smuggled")) {
		t.Errorf("%s %v", b, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(bodies, func(s string) bool { return strings.Contains(s, "smuggled") }) || bodies[0] != "/a=body" {
		t.Errorf("%q", bodies)
	}
}

func TestSocksRefusals(t *testing.T) {
	t.Parallel()
	o := newOutside(t, []string{"example.com"}, nil)
	for name, tt := range map[string]struct{ say, want string }{
		"a login only":   {"\x05\x01\x02", "\x05\xff"},
		"no method":      {"\x05\x00", "\x05\xff"},
		"bind":           {"\x05\x01\x00\x05\x02\x00\x01\x01\x02\x03\x04\x00\x50", "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"datagrams":      {"\x05\x01\x00\x05\x03\x00\x01\x01\x02\x03\x04\x00\x50", "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"a strange kind": {"\x05\x01\x00\x05\x01\x00\x09", "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00"},
		"an address":     {"\x05\x01\x00\x05\x01\x00\x01\x5d\xb8\xd8\x22\x01\xbb", "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"},
		"a number":       {"\x05\x01\x00\x05\x01\x00\x03\x05127.1\x01\xbb", "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"},
	} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", o.at)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, tt.say)
		b, err := io.ReadAll(c)
		if string(b) != tt.want {
			t.Errorf("%s: %q %v, want %q", name, b, err, tt.want)
		}
		_ = c.Close()
	}
}

// pretend is a listener whose connections went to an address that stands for a
// name.
type pretend struct {
	net.Listener

	to func() netip.AddrPort
}

type pretended struct {
	*net.TCPConn

	to netip.AddrPort
}

func (p pretend) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tc, _ := c.(*net.TCPConn)
	return pretended{tc, p.to()}, nil
}

func (p pretended) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(p.to) }

func TestDirect(t *testing.T) {
	t.Parallel()
	o := newOutside(t, []string{"example.com", "loopback.example.com"}, nil)
	resolve := func(name string) netip.Addr {
		t.Helper()
		b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7, RecursionDesired: true})
		_ = b.StartQuestions()
		_ = b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET})
		q, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		a, ok := answer(q, o.proxy.lookup)
		var m dnsmessage.Message
		if err := m.Unpack(a); err != nil || !ok || m.ID != 7 || !m.Response {
			t.Fatalf("%s: %+v %v", name, m, err)
		}
		if len(m.Answers) == 0 {
			return netip.Addr{}
		}
		r, _ := m.Answers[0].Body.(*dnsmessage.AResource)
		return netip.AddrFrom4(r.A)
	}
	good, bad := resolve("Example.com"), resolve("loopback.example.com")
	if !Captured().Contains(good) || !Captured().Contains(bad) || good == bad || resolve("example.com") != good {
		t.Fatalf("%v %v", good, bad)
	}
	for _, name := range []string{"other.example", "localhost", "sub.example.com", "1.2.3.4", "host"} {
		if a := resolve(name); a.IsValid() {
			t.Errorf("%s is %v", name, a)
		}
	}
	var mu sync.Mutex
	var to netip.AddrPort
	at := o.listen(t, func(l net.Listener) {
		o.proxy.ServeDirect(&pretend{l, func() netip.AddrPort {
			mu.Lock()
			defer mu.Unlock()
			return to
		}})
	})
	try := func(a netip.Addr, port uint16, text string) string {
		mu.Lock()
		to = netip.AddrPortFrom(a, port)
		mu.Unlock()
		c := o.client(t, "http://unused.example")
		tr, _ := c.Transport.(*http.Transport)
		tr.Proxy = nil
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", at)
		}
		return get(t, c, text)
	}
	for _, tt := range []struct {
		a          netip.Addr
		port       uint16
		text, want string
	}{
		{good, 443, "https://example.com/a", "200 OK|GET example.com/a"},
		{good, 80, "http://example.com/a", "200 OK|GET example.com/a"},
		{good, 443, "https://www.example.com/a", "access denied"},
		{good, 80, "http://www.example.com/a", "403"},
		{bad, 443, "https://loopback.example.com/", "access denied"},
		{bad, 80, "http://loopback.example.com/", "403"},
		{netip.MustParseAddr("198.19.0.1"), 443, "https://example.com/", ""},
		{netip.MustParseAddr("127.0.0.1"), 443, "https://example.com/", ""},
	} {
		if got := try(tt.a, tt.port, tt.text); !strings.Contains(got, tt.want) || tt.want == "" && strings.HasPrefix(got, "200") {
			t.Errorf("%v %s: %q, want %q", tt.a, tt.text, got, tt.want)
		}
	}
}

func TestProxyTellsCallsApart(t *testing.T) {
	t.Parallel()
	o := newOutside(t, []string{"example.com"}, nil)
	told := map[string][]call.Violation{}
	var mu sync.Mutex
	enter := func(id string) netip.Addr {
		return o.proxy.Enter(id, func(v call.Violation) {
			mu.Lock()
			defer mu.Unlock()
			told[id] = append(told[id], v)
		})
	}
	one, two := enter("one"), enter("two")
	_, port, _ := net.SplitHostPort(o.at)
	for range 3 {
		if got := get(t, o.client(t, "http://"+one.String()+":"+port), "https://other.example"); !strings.Contains(got, "Blocked") {
			t.Error(got)
		}
	}
	if got := get(t, o.client(t, "http://"+two.String()+":"+port), "http://example.com/"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	o.proxy.lookup("unclear.example")
	o.proxy.Leave(one)
	o.proxy.lookup("clear.example")
	o.proxy.Leave(two)
	var got []string
	for _, e := range o.settled(t) {
		got = append(got, fmt.Sprint(e.CallID, e.Calls, " ", e.Host, " ", e.Outcome, " ", e.Count))
	}
	want := []string{
		"one[] other.example blocked 0", "two[] example.com final 0", "[one two] unclear.example blocked 0",
		"one[] other.example blocked 2", "two[] clear.example blocked 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if len(told["one"]) != 4 || told["one"][0].Source != call.SourceExact || told["one"][3].Source != call.SourceInferred ||
		told["one"][0].Target != "other.example:443" || told["one"][0].Rule != "net.allow" || len(told["two"]) != 2 || told["two"][1].Op != "resolve" {
		t.Errorf("%+v", told)
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	o := newOutside(t, nil, nil)
	at := o.listen(t, func(l net.Listener) { o.proxy.ServeReach(l, portOfURL(t, o.plain.URL)) })
	if got := get(t, http.DefaultClient, "http://"+at+"/x"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	http.DefaultClient.CloseIdleConnections()
	if e := o.settled(t); len(e) != 1 || e[0].Via != ViaReach || e[0].Address != "127.0.0.1" || e[0].Outcome != Final {
		t.Errorf("%+v", e)
	}
}

// A flood fills neither the log nor the process, and the proxy still serves.
func TestFlood(t *testing.T) {
	t.Parallel()
	o := newOutside(t, []string{"example.com"}, nil)
	a := o.proxy.Enter("c", nil)
	var conns []net.Conn
	for range 3 * maxConnections {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", o.at)
		if err != nil {
			break // the backlog is full, as it should be
		}
		conns = append(conns, c)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	for i := range 2000 {
		o.proxy.lookup("a" + strconv.Itoa(i) + ".other.example")
	}
	if got := get(t, o.client(t, "http://"+o.at), "https://example.com/"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	o.proxy.Leave(a)
	if e := o.settled(t); len(e) > maxRepeats+2 || e[len(e)-1].Count != 2000-maxRepeats && e[len(e)-2].Count != 2000-maxRepeats {
		t.Errorf("%d events, the last %+v", len(e), e[len(e)-1])
	}
	for range maxNames + 1 {
		o.proxy.names.address("a" + strconv.Itoa(len(o.proxy.names.by)))
	}
	if _, ok := o.proxy.names.address("more"); ok {
		t.Error("any number of names")
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	r, err := ParseRules([]string{"example.com", "*.example.org:8443", "[2001:db8::1]:22", "1.2.3.4", "Bücher.example", "ssh.example.com:22"})
	if err != nil {
		t.Fatal(err)
	}
	for dest, want := range map[string]bool{
		"example.com:80": true, "example.com:443": true, "example.com:22": false, "a.example.com:443": false,
		"a.example.org:8443": true, "a.b.example.org:8443": true, "example.org:8443": false, "a.example.org:443": false, "aexample.org:8443": false,
		"2001:db8::1:22": true, "1.2.3.4:443": true, "xn--bcher-kva.example:443": true, "ssh.example.com:22": true, "ssh.example.com:443": false,
	} {
		i := strings.LastIndexByte(dest, ':')
		port, _ := strconv.Atoi(dest[i+1:])
		if _, ok := r.allow(dest[:i], port); ok != want {
			t.Errorf("%s: %v", dest, ok)
		}
	}
	for text, want := range map[string]bool{
		"example.com": true, "example.com:443": true, "example.com:8080": false, "*.example.com": false, "*.a.example.org:8443": true,
		"a.example.org:8443": true, "a.example.org": false, "EXAMPLE.com.": true, "": false, "*": false, "1.2.3.4": true,
	} {
		if got := r.Covers(text); got != want {
			t.Errorf("covers %q: %v", text, got)
		}
	}
	if got := r.Ports(); !slices.Equal(got, []int{22, 80, 443}) {
		t.Errorf("%v", got)
	}
	for _, text := range []string{"", "*", "*.", "a b", "https://example.com", "example.com:", "example.com:0", "example.com:99999", "a.*.com", "127.1", "user@example.com", "example.com/x", "::1:"} {
		if _, err := ParseRules([]string{text}); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	var none *Rules
	if _, ok := none.allow("example.com", 443); ok || none.knows("example.com") || none.Covers("example.com") || none.Ports() != nil {
		t.Error("nil rules allow something")
	}
	if _, err := NewProxy(nil, none, nil); err == nil {
		t.Error("a proxy of nothing")
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	for _, cfg := range []*tls.Config{{ServerName: "example.com"}, {InsecureSkipVerify: true}, {ServerName: "a.b", NextProtos: []string{"h2"}}} {
		var b bytes.Buffer
		_ = tls.Client(say{hearOnly{strings.NewReader("")}, &b}, cfg).HandshakeContext(f.Context())
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rest := bytes.NewReader(b)
		h, err := readHello(t.Context(), rest)
		if !bytes.HasPrefix(b, h.raw) || len(b)-rest.Len() != len(h.raw) || len(h.raw) > maxHello {
			t.Fatalf("read %d of %d bytes, kept %d", len(b)-rest.Len(), len(b), len(h.raw))
		}
		if err == nil && h.check("example.com") == nil && h.name != "example.com" {
			t.Fatalf("%q passes", h.name)
		}
	})
}

// say is a connection that keeps what is written to it.
type say struct {
	hearOnly

	b *bytes.Buffer
}

func (s say) Write(b []byte) (int, error) { return s.b.Write(b) }

// echConfig is how a client learns to hide its server name behind example.com.
func echConfig() ([]byte, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	pub := key.PublicKey().Bytes()
	b := append([]byte{1, 0, 0x20, 0, byte(len(pub))}, pub...) // id, KEM
	b = append(b, 0, 4, 0, 1, 0, 1, 32, 11)                    // one cipher, longest name, length of the public name
	b = append(append(b, "example.com"...), 0, 0)
	b = append([]byte{0xfe, 0x0d, 0, byte(len(b))}, b...)
	return append([]byte{0, byte(len(b))}, b...), nil
}

func FuzzSocks(f *testing.F) {
	for _, s := range []string{
		"", "\x05\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb", "\x05\x02\x00\x02\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50more",
		"\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01\x00\x50", "\x05\xff", "\x04\x01",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		host, port, err := readSocks(struct {
			io.Reader
			io.Writer
		}{r, io.Discard})
		if read := len(b) - r.Len(); read > 2+255+4+1+255+2 || len(host) > 255 || port > 65535 {
			t.Fatalf("%d bytes read for %q %d", read, host, port)
		}
		if err == nil && (b[0] != 5 || len(b)-r.Len() < 10) {
			t.Fatalf("%q is a request", b)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7})
	_ = b.StartQuestions()
	_ = b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName("example.com."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET})
	q, _ := b.Finish()
	f.Add(q)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, q []byte) {
		out, ok := answer(q, func(name string) (netip.Addr, dnsmessage.RCode) {
			if _, clean := asciiHost(name); !clean {
				t.Fatalf("asked for %q", name)
			}
			return Captured().Addr(), dnsmessage.RCodeSuccess
		})
		if ok && (len(out) > maxMessage || out[0] != q[0] || out[1] != q[1] || out[2]&0x80 == 0) {
			t.Fatalf("%x answers %x", out, q)
		}
	})
}
