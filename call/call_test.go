package call_test

import (
	mrand "math/rand"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/quick"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func limits(t *testing.T) *quick.Config {
	t.Helper()
	gen := func(r *rand.Rand) call.Limits {
		return call.Limits{Timeout: time.Duration(r.IntN(5)), MaxOutput: int64(r.IntN(5))}
	}
	src := rand.New(rand.NewPCG(1, 2))
	return &quick.Config{MaxCount: 2000, Values: func(args []reflect.Value, _ *mrand.Rand) {
		for i := range args {
			args[i] = reflect.ValueOf(gen(src))
		}
	}}
}

func TestTightenAlgebra(t *testing.T) {
	t.Parallel()
	laws := map[string]any{
		"commutative": func(a, b call.Limits) bool { return a.Tighten(b) == b.Tighten(a) },
		"associative": func(a, b, c call.Limits) bool { return a.Tighten(b).Tighten(c) == a.Tighten(b.Tighten(c)) },
		"idempotent":  func(a call.Limits) bool { return a.Tighten(a) == a },
		"identity":    func(a call.Limits) bool { return a.Tighten(call.Limits{}) == a },
		"never looser": func(a, b call.Limits) bool {
			l := a.Tighten(b)
			return within(l.Timeout, a.Timeout) && within(l.Timeout, b.Timeout) &&
				within(l.MaxOutput, a.MaxOutput) && within(l.MaxOutput, b.MaxOutput)
		},
	}
	for name, law := range laws {
		if err := quick.Check(law, limits(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// within reports whether got is at least as strict as bound; zero states nothing.
func within[T ~int64](got, bound T) bool {
	return bound == 0 || (got != 0 && got <= bound)
}

func TestTightenIgnoresNegative(t *testing.T) {
	t.Parallel()
	got := call.Limits{Timeout: -1, MaxOutput: -1}.Tighten(call.Limits{Timeout: time.Second})
	if want := (call.Limits{Timeout: time.Second}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestUnsetTrustIsBlocked(t *testing.T) {
	t.Parallel()
	var zero call.Trust
	if zero.String() != "blocked" {
		t.Errorf("zero trust reads %q", zero)
	}
	for _, s := range []string{"", "Trusted", "root"} {
		if got, ok := call.ParseTrust(s); ok || got != call.TrustBlocked {
			t.Errorf("ParseTrust(%q) = %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"trusted", "verified", "quarantined", "blocked"} {
		if got, ok := call.ParseTrust(s); !ok || got.String() != s {
			t.Errorf("ParseTrust(%q) = %v, %v", s, got, ok)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		place       call.Place
		read, write bool
		name        string
	}{
		{call.PlaceUnknown, false, false, "unknown"},
		{call.PlaceSecret, false, false, "secret"},
		{call.PlaceOutside, false, false, "outside"},
		{call.PlaceSystem, true, false, "system"},
		{call.PlaceDevice, true, true, "device"},
		{call.PlaceScratch, true, true, "scratch"},
		{call.PlaceWorkspace, true, true, "workspace"},
		{call.Place(99), false, false, "unknown"},
	} {
		if tt.place.Readable() != tt.read || tt.place.Writable() != tt.write || tt.place.String() != tt.name {
			t.Errorf("%d: readable %v writable %v %q", tt.place, tt.place.Readable(), tt.place.Writable(), tt.place)
		}
	}
}
