package egress

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// verdicts is one text a line with the code it is judged by; "" is accepted.
func verdicts() map[string]string {
	return map[string]string{
		"https://example.com":                          "",
		"https://example.com/a?b=c#d":                  "",
		"HTTPS://EXAMPLE.COM./":                        "",
		"https://example.com:8443/path":                "",
		"https://example.com:/":                        "",
		"https://example.com:080/":                     "",
		"https://example.com:65535/":                   "",
		"https://93.184.216.34/page":                   "",
		"https://[::ffff:93.184.216.34]/path":          "",
		"https://[2606:4700:4700::1111]/":              "",
		"https://bücher.example.com/":                  "",
		"https://例え.テスト/":                              "",
		"https://xn--bcher-kva.example.com/":           "",
		"https://my_site.example.com/":                 "",
		"https://example.com/path/with@sign":           "",
		"https://example.com/?u=https://a@b":           "",
		"https://127.0.0.1.nip.io/":                    "", // judged by its address later
		"https://127.0.0.1:80@example.com/":            CodeUserinfo,
		"http://example.com":                           CodeScheme,
		"HTTP://169.254.169.254/":                      CodeScheme,
		"ftp://example.com/":                           CodeScheme,
		"file:///etc/passwd":                           CodeScheme,
		"gopher://127.0.0.1:6379/_x":                   CodeScheme,
		"dict://127.0.0.1/":                            CodeScheme,
		"ldap://127.0.0.1/":                            CodeScheme,
		"javascript:alert(1)":                          CodeScheme,
		"data:text/html,<b>x</b>":                      CodeScheme,
		"unix:///run/docker.sock":                      CodeScheme,
		"//example.com/":                               CodeScheme,
		"example.com/path":                             CodeScheme,
		"example.com:443/path":                         CodeScheme,
		"":                                             CodeBadURL,
		"not a url":                                    CodeBadURL,
		" https://example.com/":                        CodeBadURL,
		"https://example.com/ ":                        CodeBadURL,
		"https://exa\tmple.com/":                       CodeBadURL,
		"https://example.com/\r\nHost: x":              CodeBadURL,
		"https://example.com/\x00":                     CodeBadURL,
		"https://example.com/\u00a0x":                  CodeBadURL,
		"https:example.com/":                           CodeBadURL,
		"https:///example.com/":                        CodeBadURL,
		"https://":                                     CodeBadURL,
		"https://:443/":                                CodeBadURL,
		"https://./":                                   CodeBadURL,
		"https://user@example.com/":                    CodeUserinfo,
		"https://user:pw@example.com/":                 CodeUserinfo,
		"https://@example.com/":                        CodeUserinfo,
		"https://example.com@127.0.0.1/":               CodeUserinfo,
		"https://a@b@127.0.0.1/":                       CodeUserinfo,
		"https://127.0.0.1#@example.com/":              CodePrivateAddress,
		`https://example.com\@127.0.0.1/`:              CodeBadURL,
		`https://example.com/a\b`:                      CodeBadURL,
		"https://127.1/":                               CodeBadURL,
		"https://0/":                                   CodeBadURL,
		"https://2130706433/":                          CodeBadURL,
		"https://0x7f000001/":                          CodeBadURL,
		"https://0177.0.0.1/":                          CodeBadURL,
		"https://0x7f.0.0.1/":                          CodeBadURL,
		"https://0x7f.1/":                              CodeBadURL,
		"https://127.0.0.0x1/":                         CodeBadURL,
		"https://1.2.3.0x/":                            CodeBadURL,
		"https://017700000001/":                        CodeBadURL,
		"https://127.0.0.1./":                          CodeBadURL,
		"https://169.254.169.254./":                    CodeBadURL,
		"https://256.256.256.256/":                     CodeBadURL,
		"https://example.1/":                           CodeBadURL,
		"https://①②⑦.⓪.⓪.①/":                           CodeBadURL,
		"https://127。0。0。1/":                           CodeBadURL,
		"https://127．0．0．1/":                           CodeBadURL,
		"https://[127.0.0.1]/":                         CodeBadURL,
		"https://[fe80::1%25lo]/":                      CodeBadURL,
		"https://[::1%25]/":                            CodeBadURL,
		"https://[::1]:80:90/":                         CodeBadURL,
		"https://[::1/":                                CodeBadURL,
		"https://::1/":                                 CodeBadURL,
		"https://%31%32%37.0.0.1/":                     CodeBadURL,
		"https://127%2e0.0.1/":                         CodeBadURL,
		"https://exam%00ple.com/":                      CodeBadURL,
		"https://example..com/":                        CodeBadURL,
		"https://-example.com/":                        CodeBadURL,
		"https://exa mple.com/":                        CodeBadURL,
		"https://local\u00adhost/":                     CodeBadURL,
		"https://example.com:0/":                       CodeBadURL,
		"https://example.com:65536/":                   CodeBadURL,
		"https://example.com:99999/":                   CodeBadURL,
		"https://example.com:-1/":                      CodeBadURL,
		"https://example.com:http/":                    CodeBadURL,
		"https://localhost/":                           CodeBlockedHost,
		"https://LOCALHOST./":                          CodeBlockedHost,
		"https://foo.localhost/":                       CodeBlockedHost,
		"https://ｌｏｃａｌｈｏｓｔ/":                           CodeBlockedHost,
		"https://service.internal/":                    CodeBlockedHost,
		"https://metadata.google.internal/":            CodeBlockedHost,
		"https://printer.local/":                       CodeBlockedHost,
		"https://x.localdomain/":                       CodeBlockedHost,
		"https://nas.home.arpa/":                       CodeBlockedHost,
		"https://router.lan/":                          CodeBlockedHost,
		"https://abc.onion/":                           CodeBlockedHost,
		"https://intranet/":                            CodeBlockedHost,
		"https://com/":                                 CodeBlockedHost,
		"https://127.0.0.1/":                           CodePrivateAddress,
		"https://127.0.0.1:8443/":                      CodePrivateAddress,
		"https://10.0.0.1/":                            CodePrivateAddress,
		"https://172.16.0.1/":                          CodePrivateAddress,
		"https://192.168.1.1/":                         CodePrivateAddress,
		"https://169.254.169.254/latest/":              CodePrivateAddress,
		"https://0.0.0.0/":                             CodePrivateAddress,
		"https://255.255.255.255/":                     CodePrivateAddress,
		"https://100.100.100.200/":                     CodePrivateAddress,
		"https://192.0.2.1:1/page":                     CodePrivateAddress,
		"https://168.63.129.16/":                       CodePrivateAddress,
		"https://[::1]/":                               CodePrivateAddress,
		"https://[::]/":                                CodePrivateAddress,
		"https://[fe80::1]/":                           CodePrivateAddress,
		"https://[fd12::1]/":                           CodePrivateAddress,
		"https://[::ffff:127.0.0.1]/":                  CodePrivateAddress,
		"https://[::ffff:7f00:1]/":                     CodePrivateAddress,
		"https://[0:0:0:0:0:ffff:a9fe:a9fe]/":          CodePrivateAddress,
		"https://[::127.0.0.1]/":                       CodePrivateAddress,
		"https://[64:ff9b::a9fe:a9fe]/":                CodePrivateAddress,
		"https://[2002:a9fe:a9fe::]/":                  CodePrivateAddress,
		"https://[fec0::1]/":                           CodePrivateAddress,
		"https://[3fff::1]/":                           CodePrivateAddress,
		"https://" + strings.Repeat("a", 9000):         CodeBadURL,
		"https://" + strings.Repeat("a.", 200):         CodeBadURL,
		"https://" + strings.Repeat("a", 64) + ".com/": CodeBadURL,
	}
}

func newPolicy(t *testing.T, edit func(*Config)) *Policy {
	t.Helper()
	cfg := Default()
	if edit != nil {
		edit(&cfg)
	}
	p, err := NewPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, nil)
	for text, want := range verdicts() {
		u := ParseURL(text)
		code, reason := p.CheckURL(u)
		if code != want || (code != "") != (reason != "") {
			t.Errorf("%q: code %q (%s), want %q", text, code, reason, want)
		}
		if (*Policy)(nil).denies0(u) {
			t.Errorf("%q: the nil policy accepted it", text)
		}
	}
}

func (p *Policy) denies0(u call.URL) bool { code, _ := p.CheckURL(u); return code == "" }

func TestParseURL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want call.URL
	}{
		{
			"HTTPS://BÜCHER.Example.Com.:443/a%20b?q=1#frag",
			call.URL{URL: "https://xn--bcher-kva.example.com/a%20b?q=1", Scheme: "https", Host: "xn--bcher-kva.example.com", Port: 443, Path: "/a%20b"},
		},
		{
			"https://[2606:4700:0::1111]:8443?token=abc&x=1",
			call.URL{URL: "https://[2606:4700::1111]:8443/?token=redacted&x=1", Scheme: "https", Host: "2606:4700::1111", Port: 8443, Path: "/"},
		},
		{
			"https://bob:hunter2@example.com/",
			call.URL{URL: "https://example.com/", Scheme: "https", Fault: CodeUserinfo, Why: "the URL carries a user name or password"},
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ParseURL(tt.text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
	if got, ok := Canonical("https://EXAMPLE.com?token=abc#x"); got != "https://example.com/?token=abc" || !ok {
		t.Errorf("Canonical = %q, %v", got, ok)
	}
	if got, ok := Canonical("http://example.com"); got != "" || ok {
		t.Errorf("Canonical of a refused URL = %q, %v", got, ok)
	}
}

func TestRedactURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://u:p@h/x?API_KEY=1&a=2&X-Amz-Signature=3#f": "https://h/x?API_KEY=redacted&a=2&X-Amz-Signature=redacted",
		"https:u:p@h/x":               "https:h/x",
		`https://u:p\@h/x`:            "https://h/x",
		"https://h/?%74oken=1":        "https://h/?%74oken=redacted",
		"https://h/\x1b[31m\u202etxt": "https://h/[31mtxt",
		"nothing":                     "nothing",
	} {
		if got := RedactURL(text); got != want {
			t.Errorf("RedactURL(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestDomains(t *testing.T) {
	t.Parallel()
	allow := newPolicy(t, func(c *Config) {
		c.AllowedDomains = []string{"docs.rs", "*.Rust-Lang.org", "bücher.example"}
		c.DeniedDomains = []string{"evil.rust-lang.org", "*.bad.rust-lang.org"}
	})
	deny := newPolicy(t, func(c *Config) { c.DeniedDomains = []string{"evil.com", "*.ads.net", "8.8.8.8"} })
	ports := newPolicy(t, func(c *Config) { c.AllowedPorts = []int{443, 8443} })
	tests := []struct {
		p    *Policy
		text string
		want string
	}{
		{allow, "https://docs.rs/", ""},
		{allow, "https://blog.rust-lang.org/", ""},
		{allow, "https://a.b.rust-lang.org/", ""},
		{allow, "https://xn--bcher-kva.example/", ""},
		{allow, "https://rust-lang.org/", CodeDomain},
		{allow, "https://notrust-lang.org/", CodeDomain},
		{allow, "https://x.docs.rs/", CodeDomain},
		{allow, "https://other.com/", CodeDomain},
		{allow, "https://93.184.216.34/", CodeDomain},
		{allow, "https://evil.rust-lang.org/", CodeDomain},
		{allow, "https://a.b.bad.rust-lang.org/", CodeDomain},
		{deny, "https://evil.com/", CodeDomain},
		{deny, "https://www.evil.com/", ""},
		{deny, "https://good.com/", ""},
		{deny, "https://ads.net/", ""},
		{deny, "https://a.b.ads.net/", CodeDomain},
		{deny, "https://8.8.8.8/", CodeDomain},
		{deny, "https://[::ffff:8.8.8.8]/", CodeDomain},
		{ports, "https://example.com/", ""},
		{ports, "https://example.com:8443/", ""},
		{ports, "https://example.com:22/", CodePort},
	}
	for _, tt := range tests {
		if code, _ := tt.p.CheckURL(ParseURL(tt.text)); code != tt.want {
			t.Errorf("%s: code %q, want %q", tt.text, code, tt.want)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
	bad := Config{
		AllowedDomains: []string{"ok.com", "*.*.x.com", "1.2.3.4", ""},
		DeniedDomains:  []string{"a b"},
		AllowedPorts:   []int{0},
		UserAgent:      "x\r\ny",
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, key := range []string{
		"tools.scrape.allowed_domains[1]", "allowed_domains[2]", "allowed_domains[3]", "denied_domains[0]",
		"allowed_ports[0]", "timeout", "max_body_bytes", "max_concurrent", "user_agent",
	} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("%q not named in:\n%v", key, err)
		}
	}
	if _, err := NewPolicy(bad); err == nil {
		t.Error("a bad config made a policy")
	}
}

// FuzzURL: whatever the text, an accepted URL names a public address or a
// domain name that no resolver can take for a number, and the URL that would
// be requested is read the same way again.
func FuzzURL(f *testing.F) {
	for text := range verdicts() {
		f.Add(text)
	}
	p, err := NewPolicy(Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, target := parse(text)
		if (target == nil) != (u.Fault != "") {
			t.Fatalf("fault %q but target %v", u.Fault, target)
		}
		if code, _ := p.CheckURL(u); code != "" {
			return
		}
		if a, err := netip.ParseAddr(u.Host); err == nil {
			if rule, ok := CheckAddr(a); !ok {
				t.Fatalf("%q accepted although %s", text, rule)
			}
		} else if numeric(u.Host) || special(u.Host) {
			t.Fatalf("%q accepted with host %q", text, u.Host)
		}
		again, second := parse(target.String())
		if again.Host != u.Host || again.Port != u.Port || second == nil || second.String() != target.String() {
			t.Fatalf("%q reads as %v, then as %v", text, u, again)
		}
		if target.User != nil || target.Scheme != "https" {
			t.Fatalf("%q would request %v", text, target)
		}
	})
}
