package egress

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Codes that say why a destination is refused. They are stable: they appear in
// explain, in errors and in the audit log.
const (
	CodeScheme         = "scheme"
	CodeUserinfo       = "userinfo"
	CodeBadURL         = "bad_url"
	CodeBlockedHost    = "blocked_host"
	CodePrivateAddress = "private_address"
	CodePort           = "port"
	CodeDomain         = "domain"
)

// maxURL is the longest URL accepted, in bytes.
const maxURL = 8192

// ParseURL reads text the way the client will use it: scheme and host in lower
// case, the host as ASCII without brackets or a trailing dot, the port always
// given. A text the client would not use carries a Fault; faults are looked
// for in the order scheme, userinfo, bad_url, so the same text always has the
// same one.
func ParseURL(text string) call.URL {
	u, _ := parse(text)
	return u
}

// parse is [ParseURL] together with the URL to request, which is nil when
// there is a fault.
func parse(text string) (call.URL, *url.URL) {
	fault := func(code, why string) (call.URL, *url.URL) {
		return call.URL{URL: RedactURL(text), Scheme: schemeOf(text), Fault: code, Why: why}, nil
	}
	if code, why := lexical(text); code != "" {
		return fault(code, why)
	}
	std, err := url.Parse(text)
	if authority, _ := authorityOf(text); err != nil || std.Opaque != "" || strings.Contains(authority, "%") {
		return fault(CodeBadURL, "the URL cannot be read")
	}
	host, why := hostOf(std.Host)
	if why != "" {
		return fault(CodeBadURL, why)
	}
	port, ok := portOf(std.Port())
	if !ok {
		return fault(CodeBadURL, "the port is not between 1 and 65535")
	}
	return assemble(std, host, port)
}

// lexical finds the faults that show before the text is taken apart.
func lexical(text string) (code, why string) {
	scheme := schemeOf(text)
	authority, slashes := authorityOf(text)
	switch {
	case scheme == "" && (text == "" || !clean(text)):
		return CodeBadURL, "this is not a URL"
	case scheme == "":
		return CodeScheme, "the URL does not start with https://"
	case scheme != "https":
		return CodeScheme, "only https is allowed, not " + scheme
	case !slashes:
		return CodeBadURL, "the URL has no // after https:"
	case strings.Contains(text, `\`):
		return CodeBadURL, "the URL contains a backslash"
	case strings.Contains(authority, "@"):
		return CodeUserinfo, "the URL carries a user name or password"
	case len(text) > maxURL:
		return CodeBadURL, "the URL is longer than 8192 bytes"
	case !clean(text):
		return CodeBadURL, "the URL contains spaces or control characters"
	}
	return "", ""
}

// assemble makes both forms of an acceptable URL.
func assemble(std *url.URL, host string, port int) (call.URL, *url.URL) {
	hostport := host
	if strings.Contains(host, ":") {
		hostport = "[" + host + "]"
	}
	if port != 443 {
		hostport = net.JoinHostPort(host, strconv.Itoa(port))
	}
	target := &url.URL{
		Scheme: "https", Host: hostport, Path: std.Path, RawPath: std.RawPath,
		RawQuery: std.RawQuery, ForceQuery: std.ForceQuery,
	}
	if target.Path == "" {
		target.Path = "/"
	}
	text := target.String()
	return call.URL{URL: RedactURL(text), Scheme: "https", Host: host, Port: port, Path: target.EscapedPath()}, target
}

// Canonical returns the full normalised text of an acceptable URL and whether
// it is one. Unlike [call.URL].URL it keeps secrets in the query, so it is for
// requests and rule matching only.
func Canonical(text string) (string, bool) {
	_, target := parse(text)
	if target == nil {
		return "", false
	}
	return target.String(), true
}

// schemeOf returns the scheme in lower case, "" when text has none.
func schemeOf(text string) string {
	s, _, ok := strings.Cut(text, ":")
	if !ok || s == "" {
		return ""
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		other := r >= '0' && r <= '9' || r == '+' || r == '-' || r == '.'
		if !letter && (i == 0 || !other) {
			return ""
		}
	}
	return strings.ToLower(s)
}

// authorityOf returns what stands between // and the next / ? or #.
func authorityOf(text string) (authority string, slashes bool) {
	_, rest, _ := strings.Cut(text, ":")
	rest, slashes = strings.CutPrefix(rest, "//")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest, slashes
}

// clean reports whether text has no spaces, no control characters and is valid
// UTF-8.
func clean(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError
	})
}

// hostOf normalises the host of an authority; why says what is wrong with it.
func hostOf(hostport string) (host, why string) {
	if strings.HasPrefix(hostport, "[") {
		inner, _, ok := strings.Cut(hostport[1:], "]")
		a, err := netip.ParseAddr(inner)
		if !ok || err != nil || !a.Is6() || a.Zone() != "" {
			return "", "the address in brackets is not an IPv6 address without a zone"
		}
		return a.String(), ""
	}
	host, _, _ = strings.Cut(hostport, ":")
	if host == "" {
		return "", "the URL has no host"
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), ""
	}
	ascii, ok := asciiHost(host)
	if !ok {
		return "", "the host is not a domain name"
	}
	if numeric(ascii) {
		return "", "the host is a number but not an IPv4 address in plain dotted form"
	}
	return ascii, ""
}

// asciiHost returns a domain name in lower-case ASCII without the trailing dot.
func asciiHost(host string) (string, bool) {
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		if strings.ContainsFunc(host, func(r rune) bool { return unicode.Is(unicode.Cf, r) }) {
			return "", false
		}
		mapped, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", false
		}
		host = mapped
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || len(host) > 253 {
		return "", false
	}
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return "", false
		}
	}
	return host, true
}

// isLabel reports whether s is one label of a host name. Underscores do not
// belong in one, but sites that use them exist.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// numeric reports whether some resolver may read the name as an IPv4 address:
// its last label is a decimal, octal or hexadecimal number.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(last, digits) == ""
}

func portOf(text string) (int, bool) {
	if text == "" {
		return 443, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && n <= 65535
}

// RedactURL returns text fit for logs and questions: no user name or password,
// no value of a query parameter whose name suggests a secret, no fragment, no
// control characters and at most 2000 bytes.
func RedactURL(text string) string {
	text, _, _ = strings.Cut(text, "#")
	base, query, has := strings.Cut(text, "?")
	base = dropUserinfo(base)
	if has {
		pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
		for i, p := range pairs {
			if name, _, ok := strings.Cut(p, "="); ok && secretName(name) {
				pairs[i] = name + "=redacted"
			}
		}
		base += "?" + strings.Join(pairs, "&")
	}
	base = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(base, "\uFFFD"))
	if len(base) > 2000 {
		base = strings.ToValidUTF8(base[:2000], "") + "…"
	}
	return base
}

// dropUserinfo removes everything before the last @ of the authority. A
// backslash ends an authority for some readers and not for others, so the @ is
// looked for in the longest reading.
func dropUserinfo(base string) string {
	head, rest, ok := strings.Cut(base, "//")
	if !ok {
		if i := strings.LastIndexByte(base, '@'); i >= 0 && schemeOf(base) != "" {
			return schemeOf(base) + ":" + base[i+1:]
		}
		return base
	}
	authority, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	if slash {
		path = "/" + path
	}
	return head + "//" + authority + path
}

func secretName(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	name = strings.ToLower(name)
	for _, w := range []string{"token", "key", "secret", "password", "passwd", "auth", "sig", "session", "credential"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
