package sandbox

import (
	"errors"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/quick"
)

// drawn are terms of any kind, with few enough hosts that lists meet.
type drawn struct{ Terms }

func (drawn) Generate(r *rand.Rand, _ int) reflect.Value {
	names := ProfileNames()
	d := drawn{Terms{
		Writes: Places(r.Intn(8)), Lands: r.Intn(2) == 0, Network: NetworkMode(r.Intn(3)), Unix: UnixSockets(r.Intn(int(UnixSocketsAll) + 1)), Trace: r.Intn(2) == 0,
	}}
	_ = d.Profile.UnmarshalText([]byte(names[r.Intn(len(names))]))
	hosts := []string{"a.example", "*.a.example", "b.a.example", "b.a.example:443", "*.a.example:8443", "*.example", "A.example:80"}
	for d.Network == NetworkProxy && r.Intn(4) > 0 {
		d.Hosts = append(d.Hosts, hosts[r.Intn(len(hosts))])
	}
	return reflect.ValueOf(d)
}

// allows lists everything that terms let a command do, out of all there is to
// ask. It is written apart from the algebra, from what the fields mean.
func (d drawn) allows() []string {
	var out []string
	may := func(ok bool, what string) {
		if ok {
			out = append(out, what)
		}
	}
	for _, p := range []Places{Tmp, Caches, Roots} {
		may(d.Writes&p == p, "write "+p.String())
	}
	may(d.Lands, "change what stays")
	may(d.Network >= NetworkProxy, "ask the proxy")
	may(d.Network == NetworkHost, "reach the host")
	may(d.Unix >= UnixSocketsPrivate, "own sockets")
	may(d.Unix == UnixSocketsAll, "all sockets")
	may(d.Trace, "trace")
	for _, host := range []string{"a.example", "b.a.example", "c.b.a.example", "example", "other"} {
		for _, port := range []string{"80", "443", "8443", "22"} {
			open := d.Network == NetworkHost
			for _, entry := range d.Hosts {
				h, p, ok := strings.Cut(strings.ToLower(entry), ":")
				names := h == host || h[0] == '*' && strings.HasSuffix(host, h[1:])
				open = open || d.Network == NetworkProxy && names && (ok && p == port || !ok && (port == "80" || port == "443"))
			}
			may(open, host+":"+port)
		}
	}
	return out
}

func within(a, b []string) bool {
	return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

// Whatever a call names, it gets what the base and the call both allow, and an
// error when the call alone would allow something.
func TestTightenOnlyTakesAway(t *testing.T) {
	t.Parallel()
	both := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
	}
	for name, law := range map[string]any{
		"and is what both allow": func(a, b drawn) bool {
			return slices.Equal(drawn{a.And(b.Terms)}.allows(), both(a.allows(), b.allows()))
		},
		"and is commutative": func(a, b drawn) bool {
			x, y := a.And(b.Terms), b.And(a.Terms)
			y.Profile = x.Profile
			return reflect.DeepEqual(x, y)
		},
		"and is associative": func(a, b, c drawn) bool {
			return slices.Equal(drawn{a.And(b.Terms).And(c.Terms)}.allows(), drawn{a.And(b.And(c.Terms))}.allows())
		},
		"and is idempotent": func(a drawn) bool {
			x := a.And(a.Terms)
			return reflect.DeepEqual(x, x.And(x)) && slices.Equal(drawn{x}.allows(), a.allows())
		},
		"tightened never allows more": func(base, call drawn) bool {
			got, err := base.Tighten(call.Terms)
			return err != nil && reflect.DeepEqual(got, Terms{}) || err == nil && within(drawn{got}.allows(), base.allows()) &&
				within(drawn{got}.allows(), call.allows()) && got.Profile == call.Profile
		},
		"what would allow more is an error that names it": func(base, call drawn) bool {
			_, err := base.Tighten(call.Terms)
			looser, named := errors.AsType[*LooserError](err)
			if !within(call.allows(), base.allows()) {
				return named && looser.Field != "" && strings.Contains(looser.Error(), looser.Field)
			}
			return err == nil || named // an entry no single entry of the base covers
		},
		"tightened twice is tightened once": func(base, call drawn) bool {
			once, err := base.Tighten(call.Terms)
			if err != nil {
				return true
			}
			twice, err := once.Tighten(call.Terms)
			return err == nil && reflect.DeepEqual(once, twice)
		},
	} {
		if err := quick.Check(law, &quick.Config{MaxCount: 3000}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The table is read by people: what it says is what each profile comes to.
func TestProfiles(t *testing.T) {
	t.Parallel()
	cfg := Default()
	for _, want := range []string{
		"read-only: writes /tmp; network: loopback of its own; unix sockets: none",
		"workspace: writes workspace, /tmp, caches; network: loopback of its own; unix sockets: none",
		"net: writes workspace, /tmp, caches; network: proxy to a.example, b.example; unix sockets: private",
		"debug: writes workspace, /tmp, caches; network: loopback of its own; unix sockets: private; traces its own processes",
	} {
		name, _, _ := strings.Cut(want, ":")
		var p Profile
		if err := p.UnmarshalText([]byte(name)); err != nil {
			t.Error(err)
		}
		if got := cfg.Terms(p, []string{"b.example", "a.example"}).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		cfg.Profile = p
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	}
	cfg = Default()
	cfg.Network, cfg.UnixSockets = NetworkProxy, UnixSocketsAll
	if got := cfg.Terms(ProfileUnset, []string{"b.example", "a.example"}).String(); got !=
		"workspace: writes workspace, /tmp, caches; network: proxy to a.example, b.example; unix sockets: all" {
		t.Error(got)
	}
	cfg.Profile = ReadOnly
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "tools.sandbox.network: ") || !strings.Contains(err.Error(), "tools.sandbox.unix_sockets: ") {
		t.Errorf("two networks and two kinds of sockets: %v", err)
	}
	for _, p := range []Profile{ProfileUnset, Unconfined, 99} {
		cfg := Default()
		cfg.Profile = p
		if cfg.Validate() == nil {
			t.Errorf("%d is valid", p)
		}
	}
	cfg = Default()
	cfg.Mode = ModeOff
	if got := cfg.Terms(ReadOnly, nil); got.Profile != Unconfined {
		t.Errorf("without walls: %v", got)
	}
	if got := cfg.Terms(Profile(99), nil); cfg.Mode != ModeOff || got.Profile != Unconfined {
		t.Error(got)
	}
	cfg.Mode = ModeStrict
	if got := cfg.Terms(Profile(99), []string{"x"}); got.Writes != 0 || got.Lands || got.Network != NetworkOff || got.Hosts != nil || got.Unix != UnixSocketsNone {
		t.Errorf("what is in no table: %+v", got)
	}
	for _, word := range []string{"unconfined", "Workspace", "workspace ", "none", "0"} {
		var p Profile
		if err := p.UnmarshalText([]byte(word)); err == nil || p != ProfileUnset {
			t.Errorf("%q is a profile: %v", word, p)
		}
	}
}
