package bash

import (
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// noNetwork is the line about a network that a command missed.
const noNetwork = "[commands reach no host that was not allowed: name it in allow_domains, which asks a person, or get what is needed with fetch]"

// missed reports whether a command that failed says it was for want of a
// network. Nothing is decided by it.
func missed(out sandbox.Outcome, masked bool) bool {
	if out.Level == sandbox.LevelNone || out.ExitCode == 0 && !masked || out.TimedOut || out.Cancelled {
		return false
	}
	said := strings.ToLower(string(out.Combined.Head) + string(out.Combined.Tail))
	for _, s := range []string{
		"network is unreachable", "could not resolve host", "temporary failure in name resolution", "name or service not known",
		"no such host", "eai_again", "enetunreach", "failed to lookup address", "failed to resolve", "nodename nor servname",
	} {
		if strings.Contains(said, s) {
			return true
		}
	}
	return false
}
