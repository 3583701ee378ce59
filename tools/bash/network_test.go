package bash_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
)

// opener opens proxies and keeps what they report.
type opener struct {
	mu   sync.Mutex
	seen []egress.Connection
	open int
}

func (o *opener) outside(t *testing.T, hosts ...string) bash.Outside {
	t.Helper()
	policy, err := egress.NewPolicy(egress.Default())
	if err != nil {
		t.Fatal(err)
	}
	return bash.Outside{Hosts: hosts, Open: func(r *egress.Rules) (sandbox.Gateway, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.open++
		return egress.NewProxy(policy, r, func(c egress.Connection) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.seen = append(o.seen, c)
		})
	}}
}

const pyGet = `python3 -c 'import urllib.request,sys; print(urllib.request.urlopen(sys.argv[1]).read().decode())' `

// What a call asks for opens those hosts, for that call alone.
func TestAllowDomains(t *testing.T) {
	t.Parallel()
	o := &opener{}
	w := newWorldIn(t, o.outside(t, "operator.example.com"), nil)
	w.need(t)
	env := func(args map[string]any) string {
		t.Helper()
		args["command"] = "echo $HTTP_PROXY $ALL_PROXY"
		return strings.TrimSpace(strings.Split(w.run(t, args).Text, "\n")[0])
	}
	if got := env(map[string]any{}); got != "(no output)" && got != "" {
		t.Errorf("without asking: %q", got)
	}
	if got := env(map[string]any{"allow_domains": []string{"example.com"}}); !strings.HasPrefix(got, "http://127.") || !strings.Contains(got, " socks5h://127.") {
		t.Errorf("after asking: %q", got)
	}
	if got := env(map[string]any{}); got != "(no output)" && got != "" {
		t.Errorf("afterwards: %q", got)
	}
	for name, tt := range map[string]struct {
		args   map[string]any
		target string
	}{
		"a host not asked for":           {map[string]any{"allow_domains": []string{"example.com"}}, "other.example"},
		"the operator's, not asked for":  {map[string]any{"allow_domains": []string{"example.com"}}, "operator.example.com"},
		"nothing but the operator's":     {map[string]any{"network": "proxy"}, "example.com"},
		"below a name is not asked for":  {map[string]any{"allow_domains": []string{"example.com"}}, "www.example.com"},
		"another port is not asked for":  {map[string]any{"allow_domains": []string{"example.com:8443"}}, "example.com"},
		"nothing without its own asking": {map[string]any{"network": "proxy", "allow_domains": []string{"example.com"}}, "other.example"},
	} {
		tt.args["command"] = pyGet + "https://" + tt.target + "/"
		res := w.run(t, tt.args)
		if !strings.Contains(res.Text, "Blocked by the sandbox: "+tt.target) || *res.Outcome.ExitCode == 0 || !strings.Contains(string(res.Structured), `"network":"proxy"`) {
			t.Errorf("%s: %s %s", name, res.Text, res.Structured)
		}
		if v := res.Outcome.Violations; len(v) != 1 || v[0].Target != tt.target+":443" || v[0].Kind != call.ViolationNet || v[0].Source != call.SourceExact {
			t.Errorf("%s: %+v", name, v)
		}
	}
	_ = w.box.Close()
	for _, c := range o.seen {
		if c.Outcome != egress.Blocked || c.CallID == "" {
			t.Errorf("%+v", c)
		}
	}
	if len(o.seen) != 6 || o.open != 4 {
		t.Errorf("%d connections over %d proxies: %+v", len(o.seen), o.open, o.seen)
	}
}

// What the operator opened to all is no loosening, and can be given up.
func TestOperatorsNetwork(t *testing.T) {
	t.Parallel()
	o := &opener{}
	w := newWorldIn(t, o.outside(t, "*.example.com"), func(_ *bash.Config, s *sandbox.Config) { s.Network = sandbox.NetworkProxy })
	w.need(t)
	for name, tt := range map[string]struct {
		args map[string]any
		want []call.Loosening
	}{
		"nothing":         {map[string]any{}, nil},
		"the same":        {map[string]any{"network": "proxy", "allow_domains": []string{"www.example.com"}}, nil},
		"one more":        {map[string]any{"allow_domains": []string{"www.example.com", "example.net"}}, []call.Loosening{{Field: "allow_domains", Value: "example.net"}}},
		"one that is not": {map[string]any{"allow_domains": []string{"10.0.0.1"}}, []call.Loosening{{Field: "allow_domains", Value: "10.0.0.1", Never: "an address, not a domain name"}}},
		"none":            {map[string]any{"network": "off"}, nil},
	} {
		tt.args["command"] = "true"
		acc, err := w.accept(t, tt.args)
		if err != nil || !slices.Equal(acc.Facts.Loosening, tt.want) {
			t.Errorf("%s: %+v %v", name, acc.Facts.Loosening, err)
		}
	}
	for network, want := range map[string]bool{"": true, "proxy": true, "off": false} {
		args := map[string]any{"command": "env | grep -c HTTP_PROXY"}
		if network != "" {
			args["network"] = network
		}
		if res := w.run(t, args); strings.HasPrefix(res.Text, "0") == want {
			t.Errorf("%q: %s", network, res.Text)
		}
	}
	if d := w.tool.Spec().Description; !strings.HasSuffix(d, "Here commands reach, through a proxy: *.example.com.") {
		t.Errorf("the description does not tell: %q", d)
	}
}

func TestNetworkArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("h%d.example.com", i)
	}
	for name, args := range map[string]map[string]any{
		"network":       {"network": "off", "allow_domains": []string{"example.com"}},
		"allow_domains": {"allow_domains": []string{"example.com:99999"}},
		"too many":      {"allow_domains": many},
	} {
		args["command"] = "true"
		_, err := w.accept(t, args)
		e, ok := errors.AsType[*call.Error](err)
		if !ok || e.Category != call.CategoryInvalidParameters || name != "too many" && e.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A port of the host that the operator opened is at the same place inside.
func TestReachFromBash(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from the host") }))
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	o := &opener{}
	w := newWorldIn(t, o.outside(t), func(_ *bash.Config, s *sandbox.Config) { s.Reach = []int{port} })
	w.need(t)
	if res := w.run(t, map[string]any{"command": pyGet + srv.URL}); !strings.HasPrefix(res.Text, "from the host") {
		t.Error(res.Text)
	}
	_ = w.box.Close()
	if len(o.seen) != 1 || o.seen[0].Via != egress.ViaReach || o.seen[0].CallID == "" || o.seen[0].Port != port {
		t.Errorf("%+v", o.seen)
	}
}
