package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// RulesConfig is the part of [tools.sandbox] that says which hosts commands may
// reach when they may reach any.
type RulesConfig struct {
	// AllowDomains is a list as [ParseRules] reads it.
	AllowDomains []string `toml:"allow_domains"`
}

// DefaultRules returns the built-in config: none.
func DefaultRules() RulesConfig { return RulesConfig{AllowDomains: []string{}} }

// Validate reports every entry that cannot be understood.
func (c RulesConfig) Validate() error {
	var errs []error
	for i, text := range c.AllowDomains {
		if _, err := parseRule(text); err != nil {
			errs = append(errs, fmt.Errorf("tools.sandbox.allow_domains[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Rules are the hosts and ports that commands may reach through a [Proxy]. The
// nil Rules allow nothing.
type Rules struct{ list []rule }

// rule is one entry: a host, or everything below it, on one port, or on those
// of the web.
type rule struct {
	pattern

	port int // 0 = 80 and 443
	// local is set for an address and for a special-use name: whoever wrote it
	// meant something in the own network.
	local bool
}

// ParseRules reads a list of "example.com", "*.example.com", "192.0.2.1" and
// "[2001:db8::1]", each with ":port" or without, which means 80 and 443. An
// entry that cannot be understood is an error that begins with its place.
func ParseRules(list []string) (*Rules, error) {
	r := &Rules{}
	var errs []error
	for i, text := range list {
		x, err := parseRule(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("[%d]: %w", i, err))
			continue
		}
		if !slices.Contains(r.list, x) {
			r.list = append(r.list, x)
		}
	}
	return r, errors.Join(errs...)
}

func parseRule(text string) (rule, error) {
	host, port := strings.TrimSpace(text), ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && (strings.Count(host, ":") == 1 || strings.HasSuffix(host[:i], "]")) {
		host, port = host[:i], host[i+1:]
		if port == "" {
			return rule{}, fmt.Errorf("%q has no port after the colon", text)
		}
	}
	p, err := parsePattern(host)
	if err != nil {
		return rule{}, err
	}
	x := rule{pattern: p}
	if a, err := netip.ParseAddr(p.name); err == nil {
		x.name, x.local = a.Unmap().String(), true
	} else {
		x.local = special(p.name)
	}
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return rule{}, fmt.Errorf("%q has a port that is not between 1 and 65535", text)
		}
		x.port = n
	}
	return x, nil
}

func (x rule) opens(port int) bool {
	if x.port != 0 {
		return x.port == port
	}
	return port == 80 || port == 443
}

// Covers reports whether everything that text asks for is allowed already.
func (r *Rules) Covers(text string) bool {
	want, err := parseRule(text)
	if r == nil || err != nil {
		return false
	}
	return slices.ContainsFunc(r.list, func(x rule) bool {
		ports := x.port == want.port || want.port != 0 && x.opens(want.port)
		names := x.pattern == want.pattern || x.below && strings.HasSuffix(want.name, "."+x.name)
		return ports && names
	})
}

// Ports lists the ports below 1024 that some rule opens, smallest first.
func (r *Rules) Ports() []int {
	var out []int
	if r == nil {
		return out
	}
	for _, x := range r.list {
		switch {
		case x.port == 0:
			out = append(out, 80, 443)
		case x.port < 1024:
			out = append(out, x.port)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// allow looks for the rule that opens host and port. local says that it was
// written for something in the own network.
func (r *Rules) allow(host string, port int) (local, ok bool) {
	if r == nil {
		return false, false
	}
	for _, x := range r.list {
		if x.opens(port) && x.covers(host) {
			return x.local, true
		}
	}
	return false, false
}

// knows reports whether some port of host is open.
func (r *Rules) knows(host string) bool {
	return r != nil && slices.ContainsFunc(r.list, func(x rule) bool { return x.covers(host) })
}
