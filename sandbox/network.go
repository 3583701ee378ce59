package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// NetworkMode says how much of a network commands have. The zero value is
// [NetworkOff]; a higher one is more.
type NetworkMode uint8

// The modes.
const (
	NetworkOff   NetworkMode = iota // a loopback of the session's own
	NetworkProxy                    // beside it, chosen hosts through a [Gateway]
	NetworkHost                     // the host's network; only an operator can say so
)

// String returns the word used in config and calls.
func (m NetworkMode) String() string {
	switch m {
	case NetworkProxy:
		return "proxy"
	case NetworkHost:
		return "host"
	case NetworkOff:
	}
	return "off"
}

// MarshalText returns the word used in config.
func (m NetworkMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the word used in config.
func (m *NetworkMode) UnmarshalText(b []byte) error {
	for _, known := range []NetworkMode{NetworkOff, NetworkProxy, NetworkHost} {
		if string(b) == known.String() {
			*m = known
			return nil
		}
	}
	return fmt.Errorf("network mode %q is not known; say \"off\", \"proxy\" or \"host\"", b)
}

// Network is what a command can reach. The zero value is a loopback of the
// session's own and nothing else.
type Network struct {
	Mode NetworkMode
	// Rules names what the gateway lets through. Commands of a session share a
	// gateway, and the loopback it stands in, when theirs are equal.
	Rules string
	// Ports, below 1024, are those on which connections are taken from programs
	// that know nothing of proxies.
	Ports []int
	// Open makes the gateway of a session. It is needed for [NetworkProxy] and
	// where ports of the host may be reached.
	Open func() (Gateway, error)
}

// Gateway carries what the commands of one session say to the outside. Each
// Serve takes over a socket that was made inside and does not wait.
type Gateway interface {
	ServeProxy(l net.Listener)           // clients that know they talk to a proxy
	ServeDirect(l net.Listener)          // connections to addresses that stand for names
	ServeNames(c net.PacketConn)         // questions for names
	ServeReach(l net.Listener, port int) // connections to a port of the host's loopback
	// Enter returns the address at which the proxy knows connections to be of
	// this call. What they are denied is told to denied. Leave ends it.
	Enter(callID string, denied func(call.Violation)) netip.Addr
	Leave(at netip.Addr)
	// Close ends every connection and waits for that.
	Close() error
}

const (
	proxyPort = 3128
	namesPort = 53
)

// key tells sessions apart that must not share a network.
func (n Network) key() string { return n.Mode.String() + " " + n.Rules }

// role is what one socket is for.
type role struct {
	stage.Socket

	serve func(g Gateway, l net.Listener)
}

// roles lists the sockets that a session's gateway is given, in the order they
// are made. None means that it needs no gateway.
func (s *Sandbox) roles(n Network) []role {
	var out []role
	if !s.Confined() || n.Mode == NetworkHost || n.Open == nil {
		return nil
	}
	if n.Mode == NetworkProxy {
		out = append(
			out,
			role{stage.Socket{Datagrams: true, Port: namesPort}, nil},
			role{stage.Socket{Anywhere: true, Port: proxyPort}, Gateway.ServeProxy},
		)
		for _, p := range n.Ports {
			if p != namesPort {
				out = append(out, role{stage.Socket{Anywhere: true, Port: uint16(p)}, Gateway.ServeDirect})
			}
		}
	}
	for _, p := range s.cfg.Reach {
		taken := func(r role) bool { return int(r.Port) == p }
		if !slices.ContainsFunc(out, taken) {
			out = append(out, role{stage.Socket{Port: uint16(p)}, func(g Gateway, l net.Listener) { g.ServeReach(l, p) }})
		}
	}
	return out
}

// check reports what cannot be a network.
func (n Network) check() error {
	for _, p := range n.Ports {
		if p < 1 || p > 1023 {
			return fmt.Errorf("sandbox: connections to port %d cannot be taken", p)
		}
	}
	if n.Mode > NetworkHost || n.Mode == NetworkProxy && n.Open == nil {
		return fmt.Errorf("sandbox: there is nobody to serve the network mode %v", n.Mode)
	}
	return nil
}

// environment adds the variables by which programs find the proxy. What a
// command's own environment says stays.
func (n Network) environment(env []string, proxy netip.AddrPort) []string {
	if n.Mode != NetworkProxy {
		return env
	}
	at := proxy.String()
	local := "localhost,127.0.0.1,::1"
	out := slices.Clone(env)
	for _, v := range [][2]string{
		{"HTTP_PROXY", "http://" + at},
		{"HTTPS_PROXY", "http://" + at},
		{"http_proxy", "http://" + at},
		{"https_proxy", "http://" + at},
		{"ALL_PROXY", "socks5h://" + at},
		{"all_proxy", "socks5h://" + at},
		{"NO_PROXY", local},
		{"no_proxy", local},
		{"NODE_USE_ENV_PROXY", "1"},
		{"npm_config_proxy", "http://" + at},
		{"npm_config_https_proxy", "http://" + at},
		{"npm_config_noproxy", local},
		{"YARN_HTTP_PROXY", "http://" + at},
		{"YARN_HTTPS_PROXY", "http://" + at},
		{"PIP_PROXY", "http://" + at},
		{"CARGO_HTTP_PROXY", "http://" + at},
	} {
		if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, v[0]+"=") }) {
			out = append(out, v[0]+"="+v[1])
		}
	}
	return out
}
