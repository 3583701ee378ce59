package sandbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func TestViolations(t *testing.T) {
	t.Parallel()
	var vs violations
	if got := vs.all(); got != nil {
		t.Errorf("nothing is %v", got)
	}
	v := Violation{Kind: call.ViolationNet, Op: "connect", Target: "host:443", Rule: "net.allow", Source: call.SourceExact, Hint: "ask"}
	vs.add(v)
	v.By, v.Count = "curl", 3
	vs.add(v)
	v.Target, v.By = "evil\x1b[2J\u202e\n\xff"+strings.Repeat("x", 500), "\u200bsh"
	vs.add(v)
	want := []Violation{
		{Kind: call.ViolationNet, Op: "connect", Target: "host:443", Rule: "net.allow", Source: call.SourceExact, Count: 4, Hint: "ask"},
		{
			Kind: call.ViolationNet, Op: "connect", Target: `evil\x1b[2J\u202e\n\ufffd` + strings.Repeat("x", 175) + "…", Rule: "net.allow",
			Source: call.SourceExact, Count: 3, By: `\u200bsh`, Hint: "ask",
		},
	}
	if d := cmp.Diff(want, vs.all()); d != "" {
		t.Error(d)
	}
	for i := range 100 {
		vs.add(Violation{Op: fmt.Sprint(i)})
	}
	if n := len(vs.all()); n != maxViolations {
		t.Errorf("%d are kept", n)
	}
}
