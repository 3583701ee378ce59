package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Policy says which destinations may be reached. It is a pure decision: it
// looks nothing up. The nil Policy refuses everything.
type Policy struct {
	allowed []pattern
	denied  []pattern
	ports   []int
}

// pattern is one entry of a domain list: a name, or everything below it.
type pattern struct {
	name  string
	below bool // written as *.name
}

func (p pattern) covers(host string) bool {
	if p.below {
		return strings.HasSuffix(host, "."+p.name)
	}
	return host == p.name
}

// NewPolicy returns the policy of a config. An entry that cannot be understood
// is an error, never skipped.
func NewPolicy(cfg Config) (*Policy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Policy{ports: slices.Clone(cfg.AllowedPorts)}
	for _, text := range cfg.AllowedDomains {
		entry, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		p.allowed = append(p.allowed, entry)
	}
	for _, text := range cfg.DeniedDomains {
		entry, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		p.denied = append(p.denied, entry)
	}
	return p, nil
}

// parsePattern reads one entry of a domain list.
func parsePattern(text string) (pattern, error) {
	name, below := strings.CutPrefix(strings.TrimSpace(text), "*.")
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil && !below {
		return pattern{name: a.String()}, nil
	}
	if strings.Contains(name, "*") {
		return pattern{}, errors.New(`"*" is only understood as a leading "*."`)
	}
	host, ok := asciiHost(name)
	if !ok || numeric(host) {
		return pattern{}, fmt.Errorf("%q is not a domain name", text)
	}
	return pattern{name: host, below: below}, nil
}

// CheckURL judges a parsed URL without looking anything up. An empty code
// means the URL is fine; otherwise reason says why in words a model can act
// on.
func (p *Policy) CheckURL(u call.URL) (code, reason string) {
	switch {
	case p == nil:
		return CodeDomain, "no destination is allowed"
	case u.Fault != "":
		return u.Fault, u.Why
	case u.Scheme != "https":
		return CodeScheme, "only https is allowed"
	case u.Host == "" || u.Port < 1 || u.Port > 65535:
		return CodeBadURL, "the URL has no host or no valid port"
	}
	addr, err := netip.ParseAddr(u.Host)
	literal := err == nil
	switch {
	case !literal && special(u.Host):
		return CodeBlockedHost, "the host name " + u.Host + " is local or special"
	case literal:
		if rule, ok := CheckAddr(addr); !ok {
			return CodePrivateAddress, "the address is not public: " + rule
		}
	}
	if len(p.ports) > 0 && !slices.Contains(p.ports, u.Port) {
		return CodePort, fmt.Sprintf("port %d is not among the allowed ports", u.Port)
	}
	return p.checkDomain(u.Host, addr, literal)
}

func (p *Policy) checkDomain(host string, addr netip.Addr, literal bool) (code, reason string) {
	if literal { // 1.2.3.4 and ::ffff:1.2.3.4 are one destination
		host = addr.Unmap().String()
	}
	covers := func(e pattern) bool { return e.covers(host) }
	switch {
	case slices.ContainsFunc(p.denied, covers):
		return CodeDomain, "the host " + host + " is in denied_domains"
	case len(p.allowed) == 0:
		return "", ""
	case literal:
		return CodeDomain, "a bare IP address cannot be reached while allowed_domains is set"
	case !slices.ContainsFunc(p.allowed, covers):
		return CodeDomain, "the host " + host + " is not in allowed_domains"
	}
	return "", ""
}

// special reports whether a name is never a public web server: a single label,
// or a name below a domain that is reserved for local use.
func special(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{
		"localhost", "local", "localdomain", "internal", "home.arpa", "lan", "onion",
	} {
		if host == suffix || strings.HasSuffix(host, "."+suffix) {
			return true
		}
	}
	return false
}
