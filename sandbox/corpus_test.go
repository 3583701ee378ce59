package sandbox

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// SB-23: whatever the policy, nothing that is placed later uncovers what must
// stay covered. The operations are carried out one after the other on the names
// of a small tree; what is on top at the end is compared with the deepest thing
// the policy says.
func TestCorpusMountOrder(t *testing.T) {
	t.Parallel()
	var tree []string
	for _, a := range []string{"/a", "/b"} {
		tree = append(tree, a)
		for _, b := range []string{"/x", "/x-y", "/y"} {
			tree = append(tree, a+b)
			for _, c := range []string{"/1", "/2"} {
				tree = append(tree, a+b+c)
			}
		}
	}
	random := rand.New(rand.NewPCG(23, 23)) // repeatable on purpose
	some := func(most int) []string {
		var out []string
		for range random.IntN(most + 1) {
			out = append(out, tree[random.IntN(len(tree))])
		}
		return out
	}
	for range 20_000 {
		p := Policy{Roots: some(2), Git: some(1), Secrets: some(3), ReadOnly: some(3), StateDir: "/state", CacheDir: "/state/cache"}
		extra := some(1)
		p.grantsHold(t, tree, extra)
		plan := p.plan(Tmp|Caches|Roots, "", extra)
		for _, path := range tree {
			var on stage.Op // what is on top of path
			for _, m := range plan {
				if below(path, m.Path) && m.Op != stage.OpPin {
					on = m.Op
				}
			}
			if got, want := access(on), p.wanted(path, extra); got != want {
				t.Fatalf("%s: %v instead of %v with %+v, extra %q:\n%+v", path, got, want, p, extra, plan)
			}
		}
	}
}

// grantsHold checks the plan without namespaces against the same wishes: what is
// to be hidden is below nothing that is opened, and what is to be written is,
// unless what holds it may only be listed.
func (p Policy) grantsHold(t *testing.T, tree, extra []string) {
	t.Helper()
	p.Secrets = append(slices.Clone(p.Secrets), "/state/other") // or the state folder would not exist
	grants, _ := p.grants(Tmp|Caches|Roots, "", extra, func(dir string) []string {
		var out []string
		for _, path := range append([]string{"/state", "/state/cache", "/state/other"}, tree...) {
			name, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
			if name, _, _ := strings.Cut(name, "/"); ok && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		return out
	})
	for _, path := range append([]string{"/state", "/state/audit", "/state/other"}, tree...) {
		open, written, lists := false, false, false
		for _, m := range grants {
			open = open || m.Op != stage.OpList && below(path, m.Path)
			written = written || m.Op == stage.OpWrite && below(path, m.Path)
			lists = lists || m.Op == stage.OpList && m.Path == path
		}
		want := p.wanted(path, extra)
		if below(path, p.StateDir) {
			want = "nothing"
		}
		if open && want == "nothing" || want == "write" && !written && !lists {
			t.Fatalf("%s: open %v, written %v, wanted %s with %+v, extra %q:\n%+v", path, open, written, want, p, extra, grants)
		}
	}
}

// access is what an operation leaves of a place, from none to all.
func access(on stage.Op) string {
	switch on {
	case stage.OpWrite, stage.OpTmpfs:
		return "write"
	case stage.OpMask, stage.OpMaskHold, stage.OpEmpty:
		return "nothing"
	case stage.OpUnset, stage.OpKeep, stage.OpPin, stage.OpReadOnly, stage.OpNames, stage.OpRead, stage.OpList:
	}
	return "read"
}

// wanted is what the policy says of a place: the deepest statement wins, and of
// several at one place the strictest.
func (p Policy) wanted(path string, extra []string) string {
	best, want := "", "read"
	for _, l := range []struct {
		places []string
		is     string
	}{
		{slices.Concat(p.Roots, p.Git, extra), "write"},
		{p.ReadOnly, "read"},
		{p.Secrets, "nothing"},
	} {
		for _, place := range l.places {
			if below(path, place) && len(place) >= len(best) {
				best, want = place, l.is
			}
		}
	}
	return want
}
