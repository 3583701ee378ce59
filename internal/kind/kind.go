// Package kind names what "allow this kind for the session" covers, from the
// facts of a call and never from its text.
package kind

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Of names the kind of call that c is: the tool with the programs and
// subcommands it runs, the folders it reads and writes, the hosts it reaches.
// It is empty when the call has a part that could not be decided, because then
// nobody can say what a grant would cover.
func Of(c call.Call) string {
	f := c.Facts
	if len(f.Unknown) > 0 || f.Parse != nil || len(f.Loosening) > 0 || c.Spec.Name == "" {
		return ""
	}
	var parts []string
	for _, cmd := range f.Commands {
		if cmd.Name == "" || hidesSubcommand(cmd) {
			return ""
		}
		parts = append(parts, "run "+program(cmd))
	}
	for verb, paths := range map[string][]call.Path{"read ": f.Reads, "write ": f.Writes} {
		for _, p := range paths {
			if p.Place == call.PlaceUnknown && p.Path == "" {
				return ""
			}
			parts = append(parts, verb+folder(p))
		}
	}
	for _, u := range f.URLs {
		if u.Host == "" || u.Fault != "" {
			return ""
		}
		parts = append(parts, "reach "+u.Host)
	}
	slices.Sort(parts)
	return c.Spec.Name + ": " + strings.Join(slices.Compact(parts), ", ")
}

// program is the command's name, real path and subcommand.
func program(cmd call.Command) string {
	name := cmd.Name
	if cmd.Path != "" {
		name = cmd.Path
	}
	if len(cmd.Argv) > 1 && isWord(cmd.Argv[1]) {
		name += " " + cmd.Argv[1]
	}
	return name
}

// hidesSubcommand reports whether an option stands where the subcommand of a
// program with many would tell what it does: git -C dir push.
func hidesSubcommand(cmd call.Command) bool {
	if len(cmd.Argv) < 2 || isWord(cmd.Argv[1]) {
		return false
	}
	switch cmd.Name {
	case "git", "docker", "podman", "kubectl", "npm", "pnpm", "yarn", "cargo", "go", "pip", "pip3", "gh", "systemctl", "aws", "gcloud", "terraform":
		return true
	}
	return false
}

// isWord reports whether s looks like a subcommand.
func isWord(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && r != '-' && r != '_' {
			return false
		}
	}
	return s != "" && s[0] != '-'
}

// folder is the path itself when everything below is meant, else the folder
// that holds it.
func folder(p call.Path) string {
	if p.Recursive || p.Root {
		return p.Path + "/**"
	}
	return path.Dir(p.Path) + "/*"
}
