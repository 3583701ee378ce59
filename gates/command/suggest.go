package command

import (
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// suggestBlocked names the safer way for a command that is never run.
func suggestBlocked(c call.Command, f *call.Facts) string {
	switch c.Name {
	case "curl", "wget":
		if pipesIntoShell(f) {
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

func pipesIntoShell(f *call.Facts) bool {
	for _, c := range f.Commands {
		switch c.Name {
		case "sh", "bash", "dash", "zsh":
			return true
		}
	}
	return false
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
