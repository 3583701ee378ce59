package shellast

import (
	"net/netip"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// loosening lists what the request asks for beyond the base policy.
func (a *Analyzer) loosening(f *call.Facts, req Request) {
	for _, d := range req.AllowDomains {
		if req.Given.opens(d) {
			continue
		}
		never := ""
		if !a.opt.AllowAnyHost {
			never = specialHost(d)
		}
		f.Loosening = append(f.Loosening, call.Loosening{Field: "allow_domains", Value: d, Never: never})
	}
	for _, text := range req.AllowWrite {
		if l, ok := a.allowWrite(f.Cwd.Path, text, req.Given.Writes); ok {
			f.Loosening = append(f.Loosening, l)
		}
	}
	switch {
	case networkRank(req.Network) >= 0 && networkRank(req.Network) <= networkRank(req.Given.Network):
	case req.Network == "proxy":
		f.Loosening = append(f.Loosening, call.Loosening{Field: "network", Value: req.Network})
	case req.Network == "host":
		l := call.Loosening{Field: "network", Value: req.Network}
		if !a.opt.AllowHostNetwork {
			l.Never = "the host's network is for the operator to open"
		}
		f.Loosening = append(f.Loosening, l)
	default:
		f.Loosening = append(f.Loosening, call.Loosening{Field: "network", Value: req.Network, Never: "no such network mode"})
	}
}

// opens reports whether a domain is reached without asking.
func (g Given) opens(domain string) bool {
	switch g.Network {
	case "host":
		return true
	case "proxy":
		return g.Opens != nil && g.Opens(domain)
	}
	return false
}

// networkRank orders the network modes by how much they are; -1 is no mode.
func networkRank(mode string) int {
	switch mode {
	case "", "off":
		return 0
	case "proxy":
		return 1
	case "host":
		return 2
	}
	return -1
}

func (a *Analyzer) allowWrite(cwd, text string, writes bool) (call.Loosening, bool) {
	l := call.Loosening{Field: "allow_write", Value: text}
	p := a.r.Resolve(cwd, text, true)
	switch {
	case p.Secret != "":
		l.Never = "secret: " + p.Secret
	case p.Protected != "":
		l.Never = "protected: " + p.Protected
	case p.Place == call.PlaceUnknown || p.Path == "":
		l.Never = "the path cannot be resolved"
	case p.Path == "/":
		l.Never = "the whole file system"
	case p.Place.Writable() && (writes || p.Place != call.PlaceWorkspace):
		return l, false
	}
	return l, true
}

// specialHost says why a name can never be opened to a command, "" when it may
// be asked for.
func specialHost(name string) string {
	h := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), "."))
	h = strings.TrimPrefix(h, "*.")
	bare := strings.TrimSuffix(strings.TrimPrefix(h, "["), "]")
	if _, err := netip.ParseAddr(bare); err == nil {
		return "an address, not a domain name"
	}
	if host, _, ok := strings.Cut(h, ":"); ok {
		h = host
	}
	labels := strings.Split(h, ".")
	last := labels[len(labels)-1]
	switch {
	case strings.ContainsAny(h, "/@ \t\\%*?#") || strings.Contains(h, ".."):
		return "not a domain name"
	case last == "" || last[0] >= '0' && last[0] <= '9':
		return "a numeric address, not a domain name"
	case len(labels) == 1:
		return "a single label is a name of the local network"
	}
	for _, s := range []string{"localhost", "local", "localdomain", "internal", "home.arpa", "lan", "onion", "arpa", "test", "invalid"} {
		if h == s || strings.HasSuffix(h, "."+s) {
			return "a special-use name"
		}
	}
	return ""
}
