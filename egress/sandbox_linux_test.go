package egress

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// inside is a sandbox whose commands reach the servers of an outside.
type inside struct {
	*outside

	box  *sandbox.Sandbox
	root string
	net  sandbox.Network
}

func newInside(tb testing.TB, rules []string, h http.HandlerFunc, edit func(*sandbox.Config)) *inside {
	tb.Helper()
	in := &inside{outside: newOutside(tb, rules, h)}
	base, err := os.MkdirTemp("/var/tmp", "zeph-net-") //nolint:usetesting // /tmp is private inside
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(base) })
	in.root = filepath.Join(base, "root")
	if err := os.Mkdir(in.root, 0o700); err != nil {
		tb.Fatal(err)
	}
	cfg := sandbox.Default()
	if edit != nil {
		edit(&cfg)
	}
	policy := sandbox.Policy{Roots: []string{in.root}, StateDir: filepath.Join(base, "state")}
	if in.box, err = sandbox.New(cfg, policy, slog.New(slog.DiscardHandler)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := in.box.Close(); err != nil {
			tb.Error(err)
		}
	})
	if r := in.box.Probe(tb.Context()); r.Err != nil {
		if os.Getenv("ZEPH_REQUIRE_SANDBOX") == "1" {
			tb.Fatal(r.Err)
		}
		tb.Skip(r.Err)
	}
	in.net = sandbox.Network{
		Mode: sandbox.NetworkProxy, Rules: strings.Join(rules, " "), Ports: in.proxy.rules.Ports(),
		Open: func() (sandbox.Gateway, error) { return in.proxy, nil },
	}
	ca := filepath.Join(in.root, "ca.pem")
	if err := os.WriteFile(ca, pemOf(in.tls), 0o600); err != nil {
		tb.Fatal(err)
	}
	return in
}

func (in *inside) command(script string) sandbox.Command {
	ca := filepath.Join(in.root, "ca.pem")
	return sandbox.Command{
		Session: "s", CallID: "c", Argv: []string{"bash", "--noprofile", "--norc", "-c", script}, Dir: in.root,
		Env: []string{
			"PATH=/usr/local/go/bin:/usr/bin:/bin", "HOME=" + in.root, "SSL_CERT_FILE=" + ca, "CURL_CA_BUNDLE=" + ca,
			"NODE_EXTRA_CA_CERTS=" + ca, "GIT_SSL_CAINFO=" + ca, "PIP_CERT=" + ca, "npm_config_cafile=" + ca,
		},
		MaxOutput: 30000, Timeout: 60 * time.Second, Network: in.net,
	}
}

func (in *inside) run(t *testing.T, script string) sandbox.Outcome {
	t.Helper()
	out, err := in.box.Run(t.Context(), in.command(script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out
}

const pyGet = `python3 -c 'import urllib.request,sys; print(urllib.request.urlopen(sys.argv[1]).read().decode())' `

// Programs that know of proxies, and those that do not, reach what is allowed.
func TestProgramsReachAllowedHosts(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com"}, nil, nil)
	const bare = "env -u HTTP_PROXY -u HTTPS_PROXY -u http_proxy -u https_proxy -u ALL_PROXY -u all_proxy -u NODE_USE_ENV_PROXY "
	for name, tt := range map[string]struct{ program, script string }{
		"curl":              {"curl", "curl -sS https://example.com/x"},
		"curl plain":        {"curl", "curl -sS http://example.com/x"},
		"curl SOCKS":        {"curl", "curl -sS -x $ALL_PROXY https://example.com/x"},
		"curl own lookup":   {"curl", "curl -sS -x socks5://${HTTP_PROXY#http://} https://example.com/x"},
		"curl direct":       {"curl", bare + "curl -sS https://example.com/x"},
		"curl direct plain": {"curl", bare + "curl -sS http://example.com/x"},
		"python":            {"python3", pyGet + "https://example.com/x"},
		"python direct":     {"python3", bare + pyGet + "https://example.com/x"},
		"node direct":       {"node", bare + `node -e 'fetch("https://example.com/x").then(r => r.text()).then(console.log)'`},
		"node":              {"node", `node -e 'fetch("https://example.com/x").then(r => r.text()).then(console.log)'`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("/usr/bin/" + tt.program); err != nil {
				t.Skip(err)
			}
			out := in.run(t, tt.script)
			if got := out.Combined.Text(); strings.TrimSpace(got) != "GET example.com/x" || out.ExitCode != 0 || len(out.Violations) != 0 {
				t.Errorf("%q %d %+v", got, out.ExitCode, out.Violations)
			}
		})
	}
	out := in.run(t, `python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 & for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS http://localhost:8000/ca.pem -o got && cmp got ca.pem && exit; sleep 0.2; done; exit 1`)
	if out.ExitCode != 0 {
		t.Errorf("the session's own loopback: %s", out.Combined.Text())
	}
}

// What is not allowed is refused whatever way is tried, and told.
func TestProgramsAreRefused(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com", "loopback.example.com", "metadata.example.com"}, nil, nil)
	host := portOfURL(t, in.plain.URL)
	const py = `python3 - <<'END'
import socket, sys, ssl
def tcp(host, port):
    s = socket.create_connection((host, port), 3); return s
`
	for name, tt := range map[string]struct{ script, violation string }{
		"another host":          {"curl -sS https://other.example/", "other.example:443"},
		"another port":          {"curl -sS https://example.com:8443/", "example.com:8443"},
		"plain":                 {"curl -sSf http://other.example/", "other.example:80"},
		"SOCKS":                 {"curl -sS -x $ALL_PROXY https://other.example/", "other.example:443"},
		"SOCKS address":         {"curl -sS -x socks5://${HTTP_PROXY#http://} https://93.184.216.34/", "93.184.216.34:443"},
		"address":               {"curl -sS http://93.184.216.34/ -f", "93.184.216.34:80"},
		"lookup":                {"curl --noproxy '*' -sS https://other.example/", "other.example"},
		"leads to loopback":     {"curl -sS https://loopback.example.com/", "loopback.example.com:443"},
		"leads to loopback 2":   {"curl --noproxy '*' -sSf http://loopback.example.com/", "loopback.example.com:80"},
		"leads to metadata":     {"curl --noproxy '*' -sS https://metadata.example.com/", "metadata.example.com:443"},
		"metadata":              {"curl -sSf http://169.254.169.254/", "169.254.169.254:80"},
		"the host's loopback":   {"curl -sS -f --noproxy '' http://127.0.0.1:" + strconv.Itoa(host), "127.0.0.1:" + strconv.Itoa(host)},
		"another name in TLS":   {"curl -sSk --connect-to other.example:443:example.com:443 https://other.example/", "example.com:443"},
		"another name direct":   {"curl -sSk --noproxy '*' --connect-to other.example:443:example.com:443 https://other.example/", "example.com:443"},
		"another plain host":    {"curl -sSf --noproxy '*' -H 'Host: other.example' http://example.com/", "example.com:80"},
		"raw address":           {"curl --noproxy '*' -sS https://93.184.216.34/", ""},
		"no proxy to loopback":  {"curl --noproxy '*' -sS http://127.0.0.1:" + strconv.Itoa(host), ""},
		"datagram":              {py + "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('93.184.216.34', 53))\nEND", ""},
		"IPv6":                  {py + "tcp('2606:2800:220:1::1', 443)\nEND", ""},
		"a name server outside": {py + "tcp('8.8.8.8', 53)\nEND", ""},
		"a made-up address":     {"curl -sSk --noproxy '*' https://198.18.77.77/", "198.18.77.77:443"},
		"another captured port": {"curl -sSk --noproxy '*' https://example.com:8443/", ""},
		"no name in TLS":        {py + "c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\nc.wrap_socket(tcp('example.com', 443))\nEND", "example.com:443"},
	} {
		t.Run(name, func(t *testing.T) {
			out := in.run(t, tt.script)
			if out.ExitCode == 0 {
				t.Errorf("it worked: %s", out.Combined.Text())
			}
			var told []string
			for _, v := range out.Violations {
				if v.Source != "exact" || v.Kind != "net" || v.Hint == "" {
					t.Errorf("%+v", v)
				}
				told = append(told, v.Target)
			}
			if tt.violation == "" && len(told) > 0 || tt.violation != "" && !slices.Contains(told, tt.violation) {
				t.Errorf("told of %q: %s", told, out.Combined.Text())
			}
		})
	}
	for _, e := range in.settled(t) {
		if e.Outcome == Final || e.Sent+e.Received > 0 || e.Address != "" && e.Code != CodeServerName {
			t.Errorf("%+v", e)
		}
	}
}

// Without the proxy mode nothing of it is there.
func TestOffHasNoProxy(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com"}, nil, nil)
	in.net = sandbox.Network{Open: in.net.Open}
	out := in.run(t, `env | grep -i proxy; curl -sS https://example.com/; curl -sS http://127.0.0.1:3128/; curl -sS https://198.18.1.0/; cat /etc/resolv.conf`)
	if s := out.Combined.Text(); strings.Contains(s, "proxy=") || strings.Count(s, "curl: (") != 3 || strings.Contains(s, "127.0.0.1\n") {
		t.Error(s)
	}
}

func TestReachAndCalls(t *testing.T) {
	t.Parallel()
	var o *outside
	in := newInside(t, []string{"example.com"}, nil, nil)
	o = in.outside
	port := portOfURL(t, o.plain.URL)
	in = &inside{outside: o, root: in.root, net: in.net}
	cfg := sandbox.Default()
	cfg.Reach = []int{port}
	var err error
	in.box, err = sandbox.New(cfg, sandbox.Policy{Roots: []string{in.root}, StateDir: in.root + "-state"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(in.root + "-state") })
	in.net.Mode = sandbox.NetworkOff
	out := in.run(t, "curl -sS http://127.0.0.1:"+strconv.Itoa(port)+"/x")
	if got := out.Combined.Text(); out.ExitCode != 0 || !strings.Contains(got, "GET 127.0.0.1:") {
		t.Errorf("%q", got)
	}
	if err := in.box.Close(); err != nil {
		t.Error(err)
	}
	if e := in.settled(t); len(e) != 1 || e[0].Via != ViaReach || e[0].CallID != "c" {
		t.Errorf("%+v", e)
	}
}

// Two calls of one session at once are told apart.
func TestConcurrentCallsAreToldApart(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com"}, nil, nil)
	var runs []*sandbox.Run
	for _, id := range []string{"a", "b"} {
		cmd := in.command("curl -sS https://" + id + ".other.example/; curl -sS https://example.com/" + id + "; sleep 1; true")
		cmd.CallID = id
		r, err := in.box.Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	for i, id := range []string{"a", "b"} {
		out, err := runs[i].Wait()
		if err != nil || len(out.Violations) != 1 || out.Violations[0].Target != id+".other.example:443" || !strings.Contains(out.Combined.Text(), "example.com/"+id) {
			t.Errorf("%s: %v %+v %s", id, err, out.Violations, out.Combined.Text())
		}
	}
	for _, e := range in.settled(t) {
		if !strings.HasPrefix(e.Host, e.CallID+".") && e.Host != "example.com" || e.CallID == "" {
			t.Errorf("%+v", e)
		}
	}
}

// A flood of connections from inside ends with its command, and the next is
// served.
func TestFloodFromInside(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com"}, nil, nil)
	out := in.run(t, `python3 - <<'END'
import socket, os
at = os.environ['HTTP_PROXY'].removeprefix('http://').split(':')
held = []
for i in range(600):
    s = socket.socket(); s.settimeout(0.2)
    try:
        s.connect((at[0], int(at[1]))); s.send(b'CONNECT ' if i % 2 else bytes([5, 1]))
    except OSError: break
    held.append(s)
print(len(held))
END`)
	if n, err := strconv.Atoi(strings.TrimSpace(out.Combined.Text())); err != nil || n < maxConnections {
		t.Errorf("%s", out.Combined.Text())
	}
	if out = in.run(t, "curl -sS https://example.com/x"); out.ExitCode != 0 {
		t.Errorf("%s", out.Combined.Text())
	}
}

func TestHostNetwork(t *testing.T) {
	t.Parallel()
	in := newInside(t, nil, nil, nil)
	in.net = sandbox.Network{Mode: sandbox.NetworkHost}
	out := in.run(t, "curl -sS "+in.plain.URL+"/x; cat /proc/self/status | grep CapEff; echo x > /etc/x")
	if s := out.Combined.Text(); !strings.Contains(s, "GET 127.0.0.1") || !strings.Contains(s, "CapEff:\t0000000000000000") || !strings.Contains(s, "Read-only") {
		t.Error(s)
	}
}

var _ sandbox.Gateway = (*Proxy)(nil)

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// BenchmarkNetwork runs a program without a network, with one, and as the first
// of a call that was granted another host, in turns.
func BenchmarkNetwork(b *testing.B) {
	in := newInside(b, []string{"example.com"}, nil, nil)
	took := map[string][]time.Duration{}
	n := 0
	for b.Loop() {
		for name, edit := range map[string]func(*sandbox.Command){
			"off":   func(c *sandbox.Command) { c.Network = sandbox.Network{} },
			"proxy": func(*sandbox.Command) {},
			"new-grant": func(c *sandbox.Command) {
				n++
				c.Network.Rules = strconv.Itoa(n)
				c.Network.Open = func() (sandbox.Gateway, error) { return NewProxy(in.proxy.policy, in.proxy.rules, func(Connection) {}) }
			},
		} {
			cmd := in.command("true")
			cmd.Argv, cmd.Session = []string{"/bin/true"}, name
			edit(&cmd)
			began := time.Now()
			if _, err := in.box.Run(b.Context(), cmd); err != nil {
				b.Fatal(err)
			}
			took[name] = append(took[name], time.Since(began))
			if name == "new-grant" {
				in.box.End(name)
			}
		}
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-µs")
	}
}

// BenchmarkConnection fetches over a new TLS connection, through the proxy and
// plainly.
func BenchmarkConnection(b *testing.B) {
	o := newOutside(b, []string{"example.com"}, nil)
	for name, proxy := range map[string]string{"http": "http://" + o.at, "socks": "socks5h://" + o.at, "plain": ""} {
		b.Run(name, func(b *testing.B) {
			u, err := url.Parse(proxy)
			if err != nil {
				b.Fatal(err)
			}
			tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: o.roots, MinVersion: tls.VersionTLS12}}
			target := "https://example.com/"
			if proxy == "" {
				target = o.tls.URL
			} else {
				tr.Proxy = http.ProxyURL(u)
			}
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, target, http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				resp, err := tr.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}
