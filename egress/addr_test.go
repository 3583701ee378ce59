package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestCheckAddr(t *testing.T) {
	t.Parallel()
	public := []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "100.128.0.1", "172.15.255.255",
		"172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "168.63.129.15", "168.63.129.17", "198.17.255.255",
		"198.20.0.0", "223.255.255.255", "11.0.0.0", "9.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0",
		"::ffff:8.8.8.8", "::ffff:93.184.216.34", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e",
		"2001:200::1", "2003::1", "2620:4f:8001::1", "3ffe::1", "3fff:1000::1",
	}
	for _, a := range public {
		if rule, ok := CheckAddr(netip.MustParseAddr(a)); !ok {
			t.Errorf("%s refused by %q, want accepted", a, rule)
		}
	}
	refused := map[string]string{ // address -> part of the rule
		"0.0.0.0": "this network", "0.1.2.3": "this network", "10.0.0.1": "private", "10.255.255.255": "private",
		"100.64.0.1": "carrier", "100.100.100.200": "carrier", "100.127.255.255": "carrier",
		"127.0.0.1": "loopback", "127.255.255.255": "loopback",
		"168.63.129.16": "provider", "169.254.169.254": "link-local", "169.254.170.2": "link-local",
		"172.16.0.1": "private", "172.31.255.255": "private",
		"192.0.0.9": "protocol", "192.0.0.192": "protocol", "192.0.2.1": "documentation", "192.31.196.1": "AS112",
		"192.52.193.1": "AMT", "192.88.99.1": "6to4", "192.168.0.1": "private", "192.175.48.1": "AS112",
		"198.18.0.1": "benchmarking", "198.19.255.255": "benchmarking", "198.51.100.1": "documentation",
		"203.0.113.1": "documentation", "224.0.0.1": "multicast", "233.252.0.1": "multicast", "239.255.255.255": "multicast",
		"240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"::": "unspecified", "::1": "loopback", "::127.0.0.1": "compatible", "::ffff:127.0.0.1": "loopback",
		"::ffff:10.0.0.1": "private", "::ffff:169.254.0.1": "link-local", "::ffff:100.100.100.200": "carrier",
		"::ffff:0.0.0.0": "this network", "::ffff:0:7f00:1": "translated", "64:ff9b::a9fe:a9fe": "NAT64", "64:ff9b::7f00:1": "NAT64",
		"64:ff9b:1::1": "local NAT64", "100::1": "discard", "100:0:0:1::1": "dummy", "2001::1": "protocol",
		"2001:0:7f00:1::1": "protocol", "2001:2::1": "protocol", "2001:10::1": "protocol", "2001:20::1": "protocol",
		"2001:30::1": "protocol", "2001:1ff::1": "protocol", "2001:db8::1": "documentation", "2002:7f00:1::": "6to4", "2002:a9fe:a9fe::": "6to4",
		"2620:4f:8000::1": "AS112", "3fff::1": "documentation", "3fff:fff::1": "documentation", "5f00::1": "segment",
		"fc00::1": "unique local", "fd00:ec2::254": "unique local", "fd20:ce::254": "unique local",
		"fe80::1": "link-local", "fec0::1": "site-local", "ff02::1": "multicast",
		"4000::1": "not global unicast", "1::1": "not global unicast", "fe80::1%lo": "zone", "2606:4700::1%eth0": "zone",
	}
	for a, want := range refused {
		rule, ok := CheckAddr(netip.MustParseAddr(a))
		if ok || !strings.Contains(rule, want) {
			t.Errorf("%s: ok=%v rule=%q, want refused by %q", a, ok, rule, want)
		}
	}
	if _, ok := CheckAddr(netip.Addr{}); ok {
		t.Error("the zero address was accepted")
	}
}

// TestEveryRow proves that each row of each table refuses its own first and
// last address and that no row is mistyped.
func TestEveryRow(t *testing.T) {
	t.Parallel()
	for _, table := range [][]addrRange{special4(), special6(), named6()} {
		for _, r := range table {
			t.Run(r.prefix, func(t *testing.T) {
				t.Parallel()
				p, err := netip.ParsePrefix(r.prefix)
				if err != nil || p != p.Masked() {
					t.Fatalf("row is not a masked prefix: %v", err)
				}
				for _, a := range []netip.Addr{p.Addr(), lastOf(p)} {
					if rule, ok := CheckAddr(a); ok || rule == "" {
						t.Errorf("%s accepted", a)
					}
				}
			})
		}
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
