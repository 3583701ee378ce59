package sandbox

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// freePort is one on which nothing listens now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, _ := l.Addr().(*net.TCPAddr)
	return a.Port
}

// What a command serves on an exposed port is at that port of the host, over
// and over, and not once the command has ended.
func TestExpose(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	w := newWorld(t, func(c *Config, _ *Policy) { c.Expose = []int{port} })
	w.need(t)
	fetch := func() (string, error) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			return "", err
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /file HTTP/1.0\r\n\r\n"); err != nil {
			return "", err
		}
		b, err := io.ReadAll(c)
		return string(b), err
	}
	if err := os.WriteFile(w.root+"/file", []byte("from inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	cmd := w.command("python3 -u -m http.server --bind 127.0.0.1 " + strconv.Itoa(port) + " 2>/dev/null")
	var once sync.Once
	cmd.Progress = func(_ string, n int64) {
		if n > 0 {
			once.Do(func() { close(ready) })
		}
	}
	r, err := w.sb.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ready:
	case <-r.Done():
		t.Fatal("it ended")
	case <-time.After(10 * time.Second):
		t.Fatal("it does not serve")
	}
	for range 3 {
		if got, err := fetch(); err != nil || !strings.HasSuffix(got, "from inside") {
			t.Errorf("%q %v", got, err)
		}
	}
	r.Stop()
	<-r.Done()
	if got, _ := fetch(); got != "" {
		t.Errorf("afterwards: %q", got)
	}
	if err := w.sb.Close(); err != nil {
		t.Error(err)
	}
	if _, err := fetch(); err == nil {
		t.Error("the port is still open")
	}
}

// gate is a gateway that only listens.
type gate struct {
	mu     sync.Mutex
	served []string
	all    []io.Closer
	calls  []string
}

func (g *gate) note(what string, a net.Addr, c io.Closer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.served, g.all = append(g.served, what+" "+a.String()), append(g.all, c)
}

func (g *gate) ServeProxy(l net.Listener)        { g.note("proxy", l.Addr(), l) }
func (g *gate) ServeDirect(l net.Listener)       { g.note("direct", l.Addr(), l) }
func (g *gate) ServeNames(c net.PacketConn)      { g.note("names", c.LocalAddr(), c) }
func (g *gate) ServeReach(l net.Listener, p int) { g.note("reach "+strconv.Itoa(p), l.Addr(), l) }

func (g *gate) Enter(id string, _ func(call.Violation)) netip.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, "+"+id)
	return netip.MustParseAddr("127.1.2.3")
}

func (g *gate) Leave(netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, "-")
}

func (g *gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.all {
		_ = c.Close()
	}
	g.calls = append(g.calls, "closed")
	return nil
}

// A gateway is opened for a session in which a command may reach something,
// with the sockets of that session, and ends with it.
func TestGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Policy) { c.Reach = []int{5432} })
	w.need(t)
	g := &gate{}
	opened := 0
	n := Network{Mode: NetworkProxy, Rules: "a", Ports: []int{22, 80, 443}, Open: func() (Gateway, error) {
		opened++
		return g, nil
	}}
	run := func(n Network) string {
		t.Helper()
		cmd := w.command("echo $HTTP_PROXY $ALL_PROXY $NO_PROXY; grep name /etc/resolv.conf")
		cmd.Network, cmd.CallID = n, "c"
		cmd.Env = append(cmd.Env, "NO_PROXY=mine")
		return w.runCommand(t, cmd).Combined.Text()
	}
	want := "http://127.1.2.3:3128 socks5h://127.1.2.3:3128 mine\nnameserver 127.0.0.1\n"
	for range 2 {
		if got := run(n); got != want {
			t.Errorf("%q", got)
		}
	}
	if got := run(Network{}); strings.Contains(got, "127.") {
		t.Errorf("without a network: %q", got)
	}
	if err := w.sb.Close(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{
		"names 127.0.0.1:53", "proxy 0.0.0.0:3128", "direct 0.0.0.0:22", "direct 0.0.0.0:80", "direct 0.0.0.0:443", "reach 5432 127.0.0.1:5432",
	}, g.served); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"+c", "-", "+c", "-", "closed"}, g.calls); d != "" || opened != 1 {
		t.Errorf("%d gateways; %s", opened, d)
	}
	for _, bad := range []Network{{Mode: NetworkProxy}, {Mode: 9, Open: n.Open}, {Mode: NetworkProxy, Ports: []int{1024}, Open: n.Open}} {
		cmd := w.command("true")
		cmd.Network = bad
		if _, err := w.sb.Run(t.Context(), cmd); err == nil || errors.Is(err, errClosed) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestPortsOfConfig(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*Config){
		"reach[0]: 0":         func(c *Config) { c.Reach = []int{0} },
		"reach[0]: 3128":      func(c *Config) { c.Reach = []int{3128} },
		"reach[1]: 80 is the": func(c *Config) { c.Reach = []int{80, 80} },
		"expose[0]: 70000":    func(c *Config) { c.Expose = []int{70000} },
		"expose[0]: 81":       func(c *Config) { c.Reach, c.Expose = []int{81}, []int{81} },
		"expose: more than":   func(c *Config) { c.Expose = make([]int, 40) },
		"network: say":        func(c *Config) { c.Network = 9 },
	} {
		c := Default()
		edit(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "tools.sandbox."+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	var m NetworkMode
	if err := m.UnmarshalText([]byte("on")); err == nil || m != NetworkOff {
		t.Error("an unknown mode is accepted")
	}
}
