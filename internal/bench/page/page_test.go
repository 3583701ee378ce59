package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWith(t *testing.T) {
	t.Parallel()
	one := With("", "One", "first")
	if d := cmp.Diff(preamble+"\n## One\n\nfirst\n", one); d != "" {
		t.Error(d)
	}
	two := With(one, "Two", "second\n")
	if d := cmp.Diff(preamble+"\n## One\n\nfirst\n\n## Two\n\nsecond\n", two); d != "" {
		t.Error(d)
	}
	again := With(two, "One", "changed\n\nmore")
	if d := cmp.Diff(preamble+"\n## One\n\nchanged\n\nmore\n\n## Two\n\nsecond\n", again); d != "" {
		t.Error(d)
	}
}
