package bash

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// Terms is what a command has whose call says nothing.
func (t *Tool) Terms() sandbox.Terms {
	v, _ := t.cfg.Execution.named(t.cfg.Execution.DefaultEnv)
	return t.box.Terms(v.Profile, t.out.Hosts)
}

// Offline reports whether no command has a network unless a person permits it,
// whatever prepared environment it runs in.
func (t *Tool) Offline() bool {
	all := []sandbox.Terms{t.Terms(), t.box.Terms(sandbox.ProfileUnset, t.out.Hosts)}
	for _, v := range t.cfg.Execution.Environments {
		all = append(all, t.box.Terms(v.Profile, t.out.Hosts))
	}
	for _, x := range all {
		if x.Network != sandbox.NetworkOff {
			return false
		}
	}
	return true
}

// terms is what a call's command has: what the operator gives in its setting,
// less what the call gives up by naming a profile. A profile that would give
// anything more is an error.
func (t *Tool) terms(a args, s setting) (sandbox.Terms, error) {
	base := t.box.Terms(s.profile, t.out.Hosts)
	if a.Profile == "" {
		return base, nil
	}
	fault := func(field, what, suggestion string) (sandbox.Terms, error) {
		return sandbox.Terms{}, call.ArgError(field, what, suggestion)
	}
	var p sandbox.Profile
	if err := p.UnmarshalText([]byte(a.Profile)); err != nil {
		return fault("profile", err.Error(), "leave it out")
	}
	if !t.box.Confined() {
		return fault("profile", "commands are not confined here, so no profile can be held", "leave it out")
	}
	out, err := base.Tighten(t.box.Terms(p, t.out.Hosts))
	if looser, ok := errors.AsType[*sandbox.LooserError](err); ok {
		return fault("profile", fmt.Sprintf("the profile %s gives more than the %s in force here: %s", p, base.Profile, looser),
			"leave it out; a call's profile only takes away")
	}
	if err != nil {
		return sandbox.Terms{}, err
	}
	contradicts := func(field string) (sandbox.Terms, error) {
		return fault(field, fmt.Sprintf("profile %q and %s contradict each other", p, field), "leave one of them out")
	}
	var network sandbox.NetworkMode
	if a.Network != "" {
		if err := network.UnmarshalText([]byte(a.Network)); err != nil {
			return fault("network", err.Error(), "leave it out")
		}
	}
	switch {
	case len(a.AllowWrite) > 0:
		return contradicts("allow_write")
	case len(a.AllowDomains) > 0:
		return contradicts("allow_domains")
	case network > out.Network:
		return contradicts("network")
	}
	return out, nil
}

// given tells the analyzer what needs no asking.
func given(t sandbox.Terms) (shellast.Given, error) {
	rules, err := egress.ParseRules(t.Hosts)
	return shellast.Given{
		Network: t.Network.String(), Opens: rules.Covers, Writes: t.Writes&sandbox.Roots != 0 && t.Lands,
	}, err
}

// says tells the model what is different here from what the description says.
func says(t sandbox.Terms) string {
	var b strings.Builder
	if t.Profile != sandbox.Workspace {
		fmt.Fprintf(&b, "\nHere the profile is %s: commands write %s.", t.Profile, t.Places())
	}
	const shown = 10
	hosts := strings.Join(t.Hosts, ", ")
	if len(t.Hosts) > shown {
		hosts = strings.Join(t.Hosts[:shown], ", ") + " and others"
	}
	switch {
	case t.Network == sandbox.NetworkHost:
		b.WriteString("\nHere commands have the host's network.")
	case hosts != "":
		b.WriteString("\nHere commands reach, through a proxy: " + hosts + ".")
	}
	return b.String()
}
