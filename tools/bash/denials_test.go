package bash

import (
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

func TestDenials(t *testing.T) {
	t.Parallel()
	ptrace := sandbox.Violation{Kind: call.ViolationSyscall, Op: "ptrace", Rule: "syscall.ptrace", Source: call.SourceExact, Count: 2, Hint: "no"}
	write := sandbox.Violation{Kind: call.ViolationFS, Op: "write", Target: "/etc/hosts", Rule: "fs.write", Source: call.SourceInferred, Count: 1}
	restored := sandbox.Violation{Kind: call.ViolationFS, Op: "write", Target: "/w/.envrc", Rule: "fs.protected", Source: call.SourceExact, Count: 1}
	long := write
	long.Target = strings.Repeat("é", 290)
	for name, tt := range map[string]struct {
		in   []sandbox.Violation
		want string
	}{
		"nothing":          {nil, ""},
		"told elsewhere":   {[]sandbox.Violation{restored}, ""},
		"two":              {[]sandbox.Violation{ptrace, restored, write}, "denied by the sandbox: ptrace (2 times): no; write /etc/hosts (it seems)"},
		"more than a line": {[]sandbox.Violation{ptrace, long, long}, "denied by the sandbox: ptrace (2 times): no; and 2 more"},
		"a long one":       {[]sandbox.Violation{long}, "denied by the sandbox: write " + strings.Repeat("é", 290) + " (it"},
	} {
		if got := denials(tt.in); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
