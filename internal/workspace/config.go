package workspace

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Config is the [tools.file] table. Its zero value is the strictest one: no
// root, so [Open] refuses it.
type Config struct {
	// Roots are the workspace folders, writable. Relative ones start at the
	// process's working directory.
	Roots []string `toml:"roots"`
	// AllowedPaths are further writable folders, treated like roots.
	AllowedPaths []string `toml:"allowed_paths"`
	// ReadablePaths may be read without asking. A path named here is also
	// taken out of the built-in list of secrets.
	ReadablePaths []string `toml:"readable_paths"`
	// DenyRead are globs over the resolved path that nobody may read. A
	// pattern that is not absolute may match at any depth.
	DenyRead []string `toml:"deny_read"`
	// AllowRead are globs that take a path out of DenyRead again.
	AllowRead []string `toml:"allow_read"`
}

// Default returns the configuration in force when none is given. Roots stay
// empty: the command line or the working directory supplies them.
func Default() Config {
	return Config{
		Roots: []string{}, AllowedPaths: []string{}, ReadablePaths: []string{},
		DenyRead: []string{}, AllowRead: []string{},
	}
}

// Validate checks everything that can be checked without looking at the disk.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct {
		key  string
		vals []string
	}{
		{"roots", c.Roots},
		{"allowed_paths", c.AllowedPaths},
		{"readable_paths", c.ReadablePaths},
	} {
		for i, p := range l.vals {
			switch {
			case strings.TrimSpace(p) == "":
				errs = append(errs, fmt.Errorf("tools.file.%s[%d]: the path is empty", l.key, i))
			case strings.ContainsRune(p, 0):
				errs = append(errs, fmt.Errorf("tools.file.%s[%d]: the path holds a NUL byte", l.key, i))
			}
		}
	}
	errs = append(errs, checkGlobs("deny_read", c.DenyRead), checkGlobs("allow_read", c.AllowRead))
	return errors.Join(errs...)
}

func checkGlobs(key string, patterns []string) error {
	var errs []error
	for i, p := range patterns {
		switch {
		case strings.TrimSpace(p) == "":
			errs = append(errs, fmt.Errorf("tools.file.%s[%d]: the pattern is empty", key, i))
		case strings.ContainsRune(p, 0) || !doublestar.ValidatePattern(p):
			errs = append(errs, fmt.Errorf("tools.file.%s[%d]: %q is not a valid glob", key, i, p))
		case strings.HasPrefix(p, "~") && p != "~" && !strings.HasPrefix(p, "~/"):
			errs = append(errs, fmt.Errorf("tools.file.%s[%d]: %q names another user's home; write the path out", key, i, p))
		case slices.ContainsFunc(strings.Split(p, "/"), func(c string) bool { return c != "**" && strings.Contains(c, "**") }):
			errs = append(errs, fmt.Errorf("tools.file.%s[%d]: in %q, \"**\" stands for folders only between slashes; say %q", key, i, p, betweenSlashes(p)))
		case key == "deny_read" && slices.Contains([]string{"/", "/**"}, path.Clean(p)):
			errs = append(errs, fmt.Errorf("tools.file.%s[%d]: %q would deny everything", key, i, p))
		}
	}
	return errors.Join(errs...)
}

// betweenSlashes is what somebody means who writes "**.txt".
func betweenSlashes(glob string) string {
	parts := strings.Split(glob, "/")
	for i, c := range parts {
		if c != "**" && strings.HasPrefix(c, "**") {
			parts[i] = "**/*" + strings.TrimLeft(c, "*")
		}
	}
	return strings.Join(parts, "/")
}

// Env is what the workspace must know of the machine and the caller. Nothing
// in it comes from a call.
type Env struct {
	Home     string   // the caller's home; "" = none
	StateDir string   // the server's own state, never readable through a tool; "" = no scratch directories
	UID      int      // the caller's user id
	Caches   []string // sandbox caches: writable
}
