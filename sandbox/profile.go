package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Profile names what a command is given. The zero value stands for the
// configuration's.
type Profile uint8

// The profiles.
const (
	ProfileUnset Profile = iota
	ReadOnly
	Workspace
	Net
	Debug
	Unconfined // only by a flag at the start
)

// Places is a set of places that a command can write to.
type Places uint8

// The places.
const (
	Tmp    Places = 1 << iota // private /tmp and /dev/shm
	Caches                    // private to the workspace
	Roots                     // the workspace, and the repository it belongs to
)

// profileRow is one profile.
type profileRow struct {
	profile Profile
	name    string
	writes  Places
	lands   bool // what is written in the workspace stays
	network NetworkMode
	unix    UnixSockets
	trace   bool // processes of its own can be traced
}

// profiles is all of them. The keys network, allow_domains and unix_sockets add
// to the row of workspace.
func profiles() []profileRow {
	const all = Tmp | Caches | Roots
	return []profileRow{
		// profile   name          writes lands  network      unix sockets        trace
		{ReadOnly, "read-only", Tmp, false, NetworkOff, UnixSocketsNone, false},
		{Workspace, "workspace", all, true, NetworkOff, UnixSocketsNone, false},
		{Net, "net", all, true, NetworkProxy, UnixSocketsPrivate, false},
		{Debug, "debug", all, true, NetworkOff, UnixSocketsPrivate, true},
		{Unconfined, "unconfined", all, true, NetworkHost, UnixSocketsAll, true},
	}
}

// row returns what the table says; nothing at all of what is not in it.
func (p Profile) row() profileRow {
	for _, r := range profiles() {
		if r.profile == p {
			return r
		}
	}
	return profileRow{}
}

// String returns the word used in config and calls, "" for the zero value.
func (p Profile) String() string { return p.row().name }

// MarshalText returns the word used in config.
func (p Profile) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the word used in config and calls. A profile without
// walls is none: no word leads there.
func (p *Profile) UnmarshalText(b []byte) error {
	if string(b) == Unconfined.String() {
		return fmt.Errorf("%q is only for whoever starts the server, with --unconfined", b)
	}
	for _, r := range profiles() {
		if string(b) == r.name {
			*p = r.profile
			return nil
		}
	}
	if len(b) == 0 {
		*p = ProfileUnset
		return nil
	}
	return fmt.Errorf("the profile %q is not known; say one of %s", b, strings.Join(ProfileNames(), ", "))
}

// ProfileNames lists the profiles that can be named.
func ProfileNames() []string {
	var out []string
	for _, r := range profiles() {
		if r.profile != Unconfined {
			out = append(out, r.name)
		}
	}
	return out
}

// Terms are what a profile comes to under a configuration. The zero value is
// the least there is.
type Terms struct {
	Profile Profile
	Writes  Places
	Lands   bool
	Network NetworkMode
	Hosts   []string // that NetworkProxy reaches; as the gateway reads them
	Unix    UnixSockets
	Trace   bool // processes of its own
}

// Terms returns what a profile comes to. hosts are those the operator opened.
func (c Config) Terms(p Profile, hosts []string) Terms {
	if p == ProfileUnset {
		p = c.Profile
	}
	if c.Mode == ModeOff {
		p = Unconfined
	}
	r := p.row()
	t := Terms{Profile: p, Writes: r.writes, Lands: r.lands, Network: r.network, Unix: r.unix, Trace: r.trace}
	if p == Workspace {
		t.Network, t.Unix = c.Network, c.UnixSockets
	}
	if t.Network == NetworkProxy {
		t.Hosts = slices.Sorted(slices.Values(hosts))
	}
	return t
}

// A LooserError says what a call asked for beyond what it has.
type LooserError struct {
	Field string // of Terms
	Asked string
	Has   string
}

// Error names the field.
func (e *LooserError) Error() string {
	return fmt.Sprintf("it would loosen %s from %s to %s", e.Field, e.Has, e.Asked)
}

// Tighten returns t with what o takes away. What o would add is a
// [LooserError].
func (t Terms) Tighten(o Terms) (Terms, error) {
	looser := func(field string, asked, has fmt.Stringer) error {
		return &LooserError{Field: field, Asked: asked.String(), Has: has.String()}
	}
	switch {
	case o.Writes&^t.Writes != 0:
		return Terms{}, looser("writes", o.Writes, t.Writes)
	case o.Lands && !t.Lands:
		return Terms{}, looser("what stays", word(o.Lands), word(t.Lands))
	case o.Network > t.Network:
		return Terms{}, looser("network", o.Network, t.Network)
	case o.Unix > t.Unix:
		return Terms{}, looser("unix_sockets", o.Unix, t.Unix)
	case o.Trace && !t.Trace:
		return Terms{}, looser("tracing", word(o.Trace), word(t.Trace))
	}
	if t.Network == NetworkProxy {
		for _, h := range o.Hosts {
			if !covered(t.Hosts, h) {
				return Terms{}, &LooserError{Field: "allow_domains", Asked: h, Has: list(t.Hosts)}
			}
		}
	}
	out := t.And(o)
	out.Profile = o.Profile
	return out, nil
}

// And returns what both allow. The profile is that of t.
func (t Terms) And(o Terms) Terms {
	out := Terms{
		Profile: t.Profile, Writes: t.Writes & o.Writes, Lands: t.Lands && o.Lands,
		Network: min(t.Network, o.Network), Unix: min(t.Unix, o.Unix), Trace: t.Trace && o.Trace,
	}
	if out.Network == NetworkProxy {
		out.Hosts = bothOpen(t, o)
	}
	return out
}

// bothOpen lists the hosts that both reach, one of them through a proxy.
func bothOpen(t, o Terms) []string {
	var out []string
	for _, x := range [][2]Terms{{t, o}, {o, t}} {
		for _, h := range x[0].Hosts {
			if x[1].Network == NetworkHost || covered(x[1].Hosts, h) {
				out = append(out, h)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// covered reports whether a list of hosts holds all that another entry opens.
func covered(list []string, want string) bool {
	host, port := splitRule(want)
	return slices.ContainsFunc(list, func(entry string) bool {
		h, p := splitRule(entry)
		suffix, below := strings.CutPrefix(h, "*")
		names := h == host || below && strings.HasSuffix(host, suffix)
		return names && (p == port || p == "" && (port == "80" || port == "443"))
	})
}

// splitRule takes an entry apart; "" is the port of one that names none.
func splitRule(entry string) (host, port string) {
	entry = strings.ToLower(strings.TrimSpace(entry))
	if i := strings.LastIndexByte(entry, ':'); i >= 0 && !strings.HasSuffix(entry, "]") && (strings.Count(entry, ":") == 1 || entry[0] == '[') {
		return entry[:i], entry[i+1:]
	}
	return entry, ""
}

// heldAt reports why the walls of a level cannot hold these terms.
func (t Terms) heldAt(level int) error {
	why := ""
	switch {
	case level == LevelFull || level == LevelNone:
	case t.Trace:
		why = "without a pid namespace tracing would reach this user's other processes"
	case level == LevelShared && t.Writes&Roots == 0:
		why = "without mounts, modes and times of files in the workspace could be changed"
	}
	if why == "" {
		return nil
	}
	return &UnavailableError{
		Step: "hold the profile " + t.Profile.String(), Cause: errors.New(why),
		Fix: "level 3 holds it, and level 2 the profile workspace",
	}
}

// key tells sessions apart that must not share an anchor.
func (t Terms) key() string {
	return fmt.Sprint(t.Writes, t.Lands, t.Unix, t.Trace)
}

// String is a line for a person.
func (t Terms) String() string {
	network := t.Network.String()
	if t.Network == NetworkProxy {
		network += " to " + list(t.Hosts)
	}
	if t.Network == NetworkOff {
		network = "loopback of its own"
	}
	trace := ""
	if t.Trace {
		trace = "; traces its own processes"
	}
	return fmt.Sprintf("%s: writes %s; network: %s; unix sockets: %s%s", t.Profile, t.Places(), network, t.Unix, trace)
}

// Places says what can be written, and what becomes of it.
func (t Terms) Places() string {
	if t.Writes&Roots != 0 && !t.Lands {
		return t.Writes.String() + ", and all of it is thrown away"
	}
	return t.Writes.String()
}

// String lists the places.
func (p Places) String() string {
	var out []string
	for _, x := range []struct {
		place Places
		name  string
	}{{Roots, "workspace"}, {Tmp, "/tmp"}, {Caches, "caches"}} {
		if p&x.place != 0 {
			out = append(out, x.name)
		}
	}
	return list(out)
}

func list(s []string) string {
	const shown = 8
	switch {
	case len(s) == 0:
		return "nothing"
	case len(s) > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(s[:shown], ", "), len(s)-shown)
	}
	return strings.Join(s, ", ")
}

type word bool

func (w word) String() string {
	if w {
		return "everything"
	}
	return "nothing"
}
