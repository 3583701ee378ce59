package bash

import (
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// Outside is what commands may reach beyond their session's own loopback. The
// zero value is nothing.
type Outside struct {
	Hosts []string // that the operator opened, where there is a network
	// Open makes what carries the connections of one session. nil = nobody does.
	Open func(*egress.Rules) (sandbox.Gateway, error)
}

// network is what a call may reach: what every call may, less what it gives
// up, and what it asks for beyond. That was permitted, or it would not run.
func (o Outside) network(a args, has sandbox.Terms) (sandbox.Network, error) {
	mode := has.Network
	if a.Network != "" {
		if err := mode.UnmarshalText([]byte(a.Network)); err != nil {
			return sandbox.Network{}, call.ArgError("network", err.Error(), "leave it out")
		}
	}
	var hosts []string
	if mode == sandbox.NetworkProxy {
		hosts = slices.Clone(has.Hosts)
		if has.Network != sandbox.NetworkProxy { // asked for: the operator's
			hosts = slices.Clone(o.Hosts)
		}
	}
	if len(a.AllowDomains) > 0 && mode == sandbox.NetworkOff {
		mode = sandbox.NetworkProxy
	}
	hosts = append(hosts, a.AllowDomains...)
	if mode == sandbox.NetworkProxy && o.Open == nil {
		return sandbox.Network{}, call.Failure("not_available", "nothing here carries connections of commands",
			"get what is needed with fetch, then run the command on the file without network and allow_domains")
	}
	if mode == sandbox.NetworkHost {
		return sandbox.Network{Mode: mode}, nil
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	rules, err := egress.ParseRules(hosts)
	if err != nil {
		return sandbox.Network{}, call.ArgError("allow_domains", err.Error(), "name hosts such as example.com or *.example.com:8443")
	}
	n := sandbox.Network{Mode: mode, Rules: strings.Join(hosts, " "), Ports: rules.Ports()}
	if o.Open != nil {
		n.Open = func() (sandbox.Gateway, error) { return o.Open(rules) }
	}
	return n, nil
}

// checkNetwork finds what the schema cannot say about the network arguments.
func (a args) checkNetwork() error {
	if len(a.AllowDomains) > 0 && a.Network == sandbox.NetworkOff.String() {
		return call.ArgError("network", `"off" and allow_domains contradict each other`, "leave one of them out")
	}
	if len(a.AllowDomains) > maxHosts {
		return call.ArgError("allow_domains", "there are too many hosts", "name the few that the command needs")
	}
	return nil
}

// maxHosts is how many hosts one call may ask for: a person has to read them.
const maxHosts = 32

// checkDomains reports what is asked for and is no host, and no matter of
// whether it may be granted.
func checkDomains(domains []string, asked []call.Loosening) error {
	for _, d := range domains {
		never := slices.ContainsFunc(asked, func(l call.Loosening) bool {
			return l.Field == "allow_domains" && l.Value == d && l.Never != ""
		})
		if _, err := egress.ParseRules([]string{d}); err != nil && !never {
			return call.ArgError("allow_domains", strings.TrimPrefix(err.Error(), "[0]: "), "name hosts such as example.com or *.example.com:8443")
		}
	}
	return nil
}

// isProxy reports whether a variable names a proxy. The server's own are of
// use only in the host's network.
func isProxy(name string) bool {
	switch strings.ToUpper(name) {
	case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY":
		return true
	}
	return false
}
