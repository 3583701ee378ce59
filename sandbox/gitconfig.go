package sandbox

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// isGitConfig reports whether path is a configuration file of git. Git writes
// it by replacing it, which a read-only mount would forbid; so it stays
// writable and is looked at after every command.
func isGitConfig(path string) bool {
	dir, name := filepath.Split(path)
	if name != "config" && name != "config.worktree" {
		return false
	}
	return strings.HasSuffix(dir, ".git/") || strings.Contains(dir, ".git/modules/") || inWorktrees(path)
}

// isGitPointer reports whether path is a file that leads git to the folder it
// reads its configuration from. It is looked at after every command too.
func isGitPointer(path string) bool {
	dir, name := filepath.Split(path)
	return name == ".git" || name == "commondir" && strings.Contains(dir, ".git/")
}

// verified reports whether a protected path is looked at after a command,
// instead of being made read-only.
func verified(path string) bool { return isGitConfig(path) || isGitPointer(path) }

// inWorktrees reports whether path belongs to a linked worktree, which git may
// remove whole: nothing can be mounted in it.
func inWorktrees(path string) bool { return strings.Contains(path, ".git/worktrees/") }

// ofSubmodule reports whether the text of a .git file leads to where the
// repository above keeps its submodules, whose configuration is verified too.
func ofSubmodule(path, text string) bool {
	to, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), "gitdir: ")
	if !ok {
		return false
	}
	dir := filepath.Dir(path)
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	above, name, ok := strings.Cut(filepath.Clean(to), "/.git/modules/")
	return ok && name != "" && above != dir && below(dir, above)
}

// settings are the entries of a git configuration: name and text of the value.
// The same name may have several.
type settings map[[2]string]struct{}

// harmful names what after says that before did not and that is not known to
// be harmless: git would run a program for it, or send things elsewhere. A
// configuration that cannot be read is harmful.
func harmful(before, after []byte) []string {
	now, ok := parseGitConfig(after)
	if !ok {
		return []string{"what cannot be read"}
	}
	was, _ := parseGitConfig(before)
	found := map[string]struct{}{}
	for s := range now {
		if _, same := was[s]; !same && !harmless(s[0], s[1]) {
			found[s[0]] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// harmlessKeys are the settings that a command may change, as section and
// name; "*" stands for every name. A part between the two is left out.
func harmlessKeys() map[string]string {
	return map[string]string{
		"core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks " +
			"autocrlf eol safecrlf compression quotepath abbrev preloadindex untrackedcache sharedrepository",
		"extensions": "objectformat refstorage worktreeconfig",
		"user":       "name email", "author": "name email", "committer": "name email",
		"remote":    "url pushurl fetch push prune tagopt",
		"branch":    "remote merge rebase pushremote description autosetupmerge autosetuprebase sort",
		"submodule": "url active branch recurse",
		"init":      "defaultbranch",
		"pull":      "rebase ff", "push": "default autosetupremote followtags", "fetch": "prune prunetags",
		"merge": "ff conflictstyle", "rebase": "autosquash autostash updaterefs",
		"commit": "verbose cleanup", "rerere": "enabled autoupdate", "gc": "auto",
		"diff": "algorithm renames colormoved noprefix mnemonicprefix", "status": "*", "log": "*", "color": "*", "advice": "*",
		"column": "*", "index": "version threads", "feature": "manyfiles", "lfs": "repositoryformatversion",
	}
}

func harmless(key, value string) bool {
	section, _, _ := strings.Cut(key, ".")
	name := key[strings.LastIndexByte(key, '.')+1:]
	names := strings.Fields(harmlessKeys()[section])
	if !slices.Contains(names, name) && !slices.Contains(names, "*") {
		return false
	}
	if name == "url" || name == "pushurl" {
		// "ext::" runs a program; a leading dash would be an option.
		value = strings.TrimSpace(strings.ReplaceAll(value, `"`, ""))
		return !strings.Contains(value, "::") && !strings.HasPrefix(value, "-") && !strings.Contains(value, "\\")
	}
	return true
}

// parseGitConfig reads a git configuration. It is strict: what git may read in
// another way is refused.
func parseGitConfig(b []byte) (settings, bool) {
	out := settings{}
	lines := strings.Split(strings.TrimPrefix(string(b), "\ufeff"), "\n")
	section := ""
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "[") {
			end := headerEnd(line)
			if end < 0 {
				return nil, false
			}
			var ok bool
			if section, ok = sectionName(line[1:end]); !ok {
				return nil, false
			}
			line = strings.TrimSpace(line[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if continues(line) && strings.ContainsAny(line, "#;\"") {
			return nil, false // whether a comment goes on is not for us to say
		}
		for continues(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimSuffix(lines[i], "\r")
		}
		name, value, _ := strings.Cut(line, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if section == "" || !plainName(name) {
			return nil, false
		}
		out[[2]string{section + "." + name, strings.TrimSpace(value)}] = struct{}{}
	}
	return out, true
}

// continues reports whether a line ends in a backslash that is not escaped.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// headerEnd finds the bracket that closes a section's header.
func headerEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch {
		case quoted && line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case !quoted && line[i] == ']':
			return i
		}
	}
	return -1
}

// sectionName turns what stands in a header into the first part of a name.
func sectionName(header string) (string, bool) {
	name, sub, has := strings.Cut(header, " ")
	if !has {
		name, sub, has = strings.Cut(header, ".") // the old way to write it
	}
	name = strings.ToLower(name)
	if !plainName(name) {
		return "", false
	}
	if has {
		return name + "." + strings.TrimSpace(sub), true
	}
	return name, true
}

func plainName(s string) bool {
	for _, c := range []byte(s) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}
