package egress

import (
	"fmt"
	"net/netip"
)

// addrRange is one special range and the rule that is named when it refuses.
type addrRange struct {
	prefix string
	rule   string
}

// special4 is every IPv4 range that is not ordinary public unicast: the IANA
// IPv4 Special-Purpose Address Registry as of 2025-10-09 (the anycast entries
// marked globally reachable included: none of them is a web server), multicast
// and the reserved class E block, and one address outside every registry that
// a large provider gives to the host of each virtual machine.
//
// https://www.iana.org/assignments/iana-ipv4-special-registry/
func special4() []addrRange {
	return []addrRange{
		{"0.0.0.0/8", "this network"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "shared carrier space"},
		{"127.0.0.0/8", "loopback"},
		{"168.63.129.16/32", "provider host service"},
		{"169.254.0.0/16", "link-local"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "protocol assignments"},
		{"192.0.2.0/24", "documentation"},
		{"192.31.196.0/24", "AS112"},
		{"192.52.193.0/24", "AMT"},
		{"192.88.99.0/24", "6to4 relay"},
		{"192.168.0.0/16", "private"},
		{"192.175.48.0/24", "AS112"},
		{"198.18.0.0/15", "benchmarking"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "reserved"},
	}
}

// special6 is what is refused inside 2000::/3, the only part of IPv6 that is
// given out as global unicast; everything outside it is refused by
// [CheckAddr] itself. Source: IANA IPv6 Special-Purpose Address Registry as of
// 2025-10-09. 2001::/23 covers Teredo, benchmarking, ORCHID and the rest of
// the protocol assignments.
//
// https://www.iana.org/assignments/iana-ipv6-special-registry/
func special6() []addrRange {
	return []addrRange{
		{"2001::/23", "protocol assignments"},
		{"2001:db8::/32", "documentation"},
		{"2002::/16", "6to4"},
		{"2620:4f:8000::/48", "AS112"},
		{"3fff::/20", "documentation"},
	}
}

// named6 gives the well-known ranges outside 2000::/3 their name. It decides
// nothing: what it does not name is refused all the same.
func named6() []addrRange {
	return []addrRange{
		{"::/128", "unspecified"},
		{"::1/128", "loopback"},
		{"::/96", "IPv4-compatible"},
		{"::ffff:0:0:0/96", "IPv4-translated"},
		{"64:ff9b::/96", "NAT64"},
		{"64:ff9b:1::/48", "local NAT64"},
		{"100::/64", "discard"},
		{"100:0:0:1::/64", "dummy"},
		{"5f00::/16", "segment routing"},
		{"fc00::/7", "unique local"},
		{"fe80::/10", "link-local"},
		{"fec0::/10", "site-local"},
		{"ff00::/8", "multicast"},
	}
}

// CheckAddr reports whether a is an ordinary public unicast address, and if
// not, which rule refuses it. A mapped IPv4 address is judged as IPv4. The
// zero address and an address with a zone are refused.
func CheckAddr(a netip.Addr) (rule string, ok bool) {
	switch {
	case !a.IsValid():
		return "invalid", false
	case a.Zone() != "":
		return "zone", false
	}
	a = a.Unmap()
	if a.Is4() {
		rule = match(special4(), a)
		return rule, rule == ""
	}
	if !netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3).Contains(a) {
		if rule = match(named6(), a); rule == "" {
			rule = "not global unicast"
		}
		return rule, false
	}
	rule = match(special6(), a)
	return rule, rule == ""
}

func match(table []addrRange, a netip.Addr) string {
	for _, r := range table {
		p, err := netip.ParsePrefix(r.prefix)
		if err != nil { // a typing error in the table refuses rather than permits
			return fmt.Sprintf("broken rule %q", r.prefix)
		}
		if p.Contains(a) {
			return r.rule + " (" + r.prefix + ")"
		}
	}
	return ""
}
