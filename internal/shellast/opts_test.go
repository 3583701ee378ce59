package shellast

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestGrammar compares what a grammar reads out of its text with a table made
// of it, for each of its options and for words that only look like one.
func TestGrammar(t *testing.T) {
	t.Parallel()
	const spec = "single -o=w --output=w -n --number --exclude --exclude-from=r -I=r -isystem=r -x=- plus --name-only -C"
	g := newGrammar(spec)
	if !g.single || !g.plus || g.posix {
		t.Errorf("how options are written: %+v", g)
	}
	want := map[string]role{
		"-o": roleWrite, "--output": roleWrite, "-n": roleNone, "--number": roleNone, "--exclude": roleNone,
		"--exclude-from": roleRead, "-I": roleRead, "-isystem": roleRead, "-x": roleNone, "--name-only": roleNone, "-C": roleNone,
	}
	asked := append(slices.Collect(maps.Keys(want)), "", "-", "--", "-O", "-i", "o", "-o=", "-o=w", "output", "--out", "--exclude-",
		"-isystem=", "single -o", "-n --number", "--name-only -C", " -C", "- ", "=w", "=", "r", "w", "-only", "\x00", "-\xff")
	for _, name := range asked {
		r, ok := g.role(name)
		if w, known := want[name]; ok != known || r != w {
			t.Errorf("%q: %v %v, want %v %v", name, r, ok, w, known)
		}
	}
	if less := g.without("-o", "--exclude-from"); less.takes("-o") || less.takes("--exclude-from") || !less.takes("-n") || !g.takes("-o") {
		t.Error("an option that is a flag is none, or no longer one in the grammar it came from")
	}
}

// TestAbbreviations completes long options where exactly one is meant.
func TestAbbreviations(t *testing.T) {
	t.Parallel()
	g := newGrammar("--exclude --exclude-from=r --number -n --name --name-only posix")
	for name, want := range map[string]string{
		"--num": "--number", "--number": "--number", "--exc": "--exc", "--exclude": "--exclude", "--exclude-": "--exclude-from",
		"--na": "--na", "--n": "--n", "--name-": "--name-only", "--nu": "--number", "--posix": "--posix", "--x": "--x", "-nu": "-nu",
		"--number -n": "--number -n", "--numbers": "--numbers",
	} {
		if got := g.full(name); got != want {
			t.Errorf("%s is read as %s, want %s", name, got, want)
		}
	}
	if got := g.without("--exclude-from").full("--excl"); got != "--exclude" {
		t.Errorf("beside a flag: %s", got)
	}
}

// TestSpecsNameEachOptionOnce holds what reading a grammar out of its text
// relies on: no option twice, and single blanks between them.
func TestSpecsNameEachOptionOnce(t *testing.T) {
	t.Parallel()
	check := func(names, spec string) {
		seen := map[string]bool{}
		for f := range strings.SplitSeq(spec, " ") {
			name, _, _ := strings.Cut(f, "=")
			if f == "" && spec != "" || seen[name] || strings.ContainsAny(f, "\t\n") {
				t.Errorf("%s: %q in %q", names, f, spec)
			}
			seen[name] = true
		}
	}
	for _, rows := range []map[string]row{readingRows(), writingRows(), toolRows()} {
		for names, r := range rows {
			check(names, r.opts)
		}
	}
	for _, rows := range []map[string]wrapper{wrapperRows(), runnerRows()} {
		for name, r := range rows {
			check(name, r.spec)
		}
	}
	for names, r := range carrierRows() {
		check(names, r.spec)
	}
}
