// Package urls is the gate that keeps requests away from everything that is
// not a public https destination. It judges text only; what a name resolves to
// and where a redirect leads is judged by egress on the way, with the same
// codes.
package urls

import (
	"context"
	"errors"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// Gate judges the URLs among a call's facts.
type Gate struct {
	policy *egress.Policy
}

var _ gates.Gate = (*Gate)(nil)

// New returns the gate for a policy.
func New(p *egress.Policy) (*Gate, error) {
	if p == nil {
		return nil, errors.New("urls: a policy is required")
	}
	return &Gate{policy: p}, nil
}

// Name is the gate's name in trails.
func (*Gate) Name() string { return "urls" }

// Check denies a call when any of its URLs is refused; the first in the order
// of the facts is the one that is told. What a shell command names is left to
// the command gate and to the sandbox, which has no network: an http address
// in an argument of grep is no request.
func (g *Gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	if c.Spec.Effect == call.RunsCommands {
		return gates.Permit(), nil
	}
	for _, u := range c.Facts.URLs {
		if code, reason := g.policy.CheckURL(u); code != "" {
			return gates.Decision{Code: code, Reason: reason + ": " + u.URL, Suggestion: suggest(code, u)}, nil
		}
	}
	return gates.Permit(), nil
}

// suggest names the safer alternative.
func suggest(code string, u call.URL) string {
	switch code {
	case egress.CodeScheme:
		return "use a URL that starts with https://"
	case egress.CodeUserinfo:
		return "leave out the part before the @"
	case egress.CodeBadURL:
		return "write the URL as https://host/path with a plain domain name"
	case egress.CodeBlockedHost, egress.CodePrivateAddress:
		return "only public hosts can be reached; for a service on this machine use bash"
	case egress.CodePort, egress.CodeDomain:
		return "ask the user to add " + u.Host + " in [tools.scrape] of the server's config"
	}
	return ""
}
