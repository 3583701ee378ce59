package command

import (
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// suggestBlocked names the safer way for a command that is never run.
func suggestBlocked(c call.Command, f *call.Facts) string {
	switch c.Name {
	case "curl", "wget":
		if feedsCode(c, f) {
			return "download the script with the fetch tool, read it, and then run it"
		}
		return "use the fetch tool"
	case "nc", "ncat", "netcat", "nc.traditional", "nc.openbsd":
		return "use the fetch tool, or say what has to be reached"
	case "sudo", "doas", "su", "pkexec", "run0":
		return "run the command without it: everything in the workspace is writable already"
	case "dd":
		return "use head -c, or cp"
	}
	return "ask the person to run it"
}

// feedsCode reports whether what a command gets is probably run: there is a
// command that runs what it is given, and what that is is not known, or it
// comes later.
func feedsCode(get call.Command, f *call.Facts) bool {
	unknown := slices.ContainsFunc(f.Unknown, func(u call.Unknown) bool { return u.Code })
	return slices.ContainsFunc(f.Commands, func(c call.Command) bool {
		later := c.Line > get.Line || c.Line == get.Line && c.Column > get.Column
		return (unknown || later) && slices.Contains([]string{
			"sh", "bash", "dash", "zsh", "ksh", "source", ".", "eval", "python", "python3", "perl", "ruby", "node",
		}, c.Name)
	})
}

func suggestAct(a call.Act) string {
	switch {
	case a.Kind == call.ActRemove && a.Sub != "" && strings.Contains(a.Text, "*"):
		return "name the files, or a concrete sub-directory"
	case a.Kind == call.ActRemove:
		return "move the file aside instead of deleting it"
	case a.Kind == call.ActPush:
		return "push a new branch instead"
	case a.Kind == call.ActMassChange && strings.Contains(a.Text, "777"):
		return "use 755 for folders and programs, 644 for files"
	case a.Kind == call.ActMassChange:
		return "list what would change first"
	}
	return "write a new file instead"
}
