package bash

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// dropped are variables that make a shell run something on its own, or that
// name a service, a terminal or a folder which does not exist inside.
func dropped() []string {
	return []string{
		"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "IFS",
		"BASH_XTRACEFD", "OLDPWD", "PWD", "SHLVL", "_", "TMPDIR", "TEMP", "TMP",
		"DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "XDG_RUNTIME_DIR",
		"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DOCKER_HOST", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID",
		"COLORTERM", "CLICOLOR_FORCE", "FORCE_COLOR",
	}
}

// fixed are the variables that every command gets: nothing asks at a terminal
// that is not there, and nothing decorates its output for one.
func fixed() map[string]string {
	return map[string]string{
		"TERM": "dumb", "TMPDIR": "/tmp", "PAGER": "cat", "GIT_PAGER": "cat",
		"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "/bin/false", "SSH_ASKPASS": "/bin/false",
	}
}

// caches are the variables that lead caches to a folder that is writable
// inside. What is only read, such as downloaded modules, stays where it is.
func caches(dir string) map[string]string {
	return map[string]string{
		"XDG_CACHE_HOME":      dir,
		"XDG_STATE_HOME":      filepath.Join(dir, "state"),
		"GOCACHE":             filepath.Join(dir, "go-build"),
		"npm_config_cache":    filepath.Join(dir, "npm"),
		"YARN_CACHE_FOLDER":   filepath.Join(dir, "yarn"),
		"PIP_CACHE_DIR":       filepath.Join(dir, "pip"),
		"PYTHONPYCACHEPREFIX": filepath.Join(dir, "pycache"),
	}
}

// base is what every command's environment starts from. It is worked out once:
// the server's own does not change.
func (c Config) base(inherited []string, cacheDir string) map[string]string {
	drop := dropped()
	all := map[string]string{}
	for _, kv := range inherited {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !isName(name) || slices.Contains(drop, name) || c.blocked(name) || c.secret(name, value) {
			continue
		}
		all[name] = value
	}
	if _, ok := all["MAKELEVEL"]; ok {
		// A make that started the server is none of a command's: what it hands
		// down leads to its job server, and changes what an inner make prints.
		for _, name := range []string{"MAKELEVEL", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKE_TERMOUT", "MAKE_TERMERR"} {
			delete(all, name)
		}
	}
	if all["PATH"] == "" {
		all["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	plainLocale(all)
	maps.Copy(all, fixed())
	if cacheDir != "" {
		maps.Copy(all, caches(cacheDir))
	}
	return all
}

// plainLocale leaves of the inherited locale only that text is UTF-8. Messages
// in English and names in byte order are the same everywhere, which is what a
// model, and the output filters, can rely on; and a program that reads twelve
// locale files at its start reads one.
func plainLocale(all map[string]string) {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale == "" {
			locale = all[name]
		}
	}
	maps.DeleteFunc(all, func(name, _ string) bool {
		return name == "LANG" || name == "LANGUAGE" || strings.HasPrefix(name, "LC_")
	})
	if upper := strings.ToUpper(locale); strings.HasSuffix(upper, "UTF-8") || strings.HasSuffix(upper, "UTF8") {
		all["LC_CTYPE"] = locale
	}
}

// environment is the whole environment of a command in a network. The proxies
// that the server itself was told of are reached from the host's only.
func (t *Tool) environment(mode sandbox.NetworkMode, vars map[string]variable) []string {
	base := t.env
	if t.box.Confined() && mode != sandbox.NetworkHost {
		base = maps.Clone(base)
		maps.DeleteFunc(base, func(name, _ string) bool { return isProxy(name) })
	}
	return environment(base, vars)
}

// environment is the whole environment of a command.
func environment(base map[string]string, vars map[string]variable) []string {
	all := base
	if len(vars) > 0 {
		all = maps.Clone(base)
	}
	for name, v := range vars {
		all[name] = v.value
	}
	env := make([]string, 0, len(all))
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// blocked reports whether the operator's list keeps a variable from commands.
func (c Config) blocked(name string) bool {
	return !slices.Contains(c.EnvPass, name) &&
		slices.ContainsFunc(c.EnvBlocklist, func(p string) bool { return strings.HasPrefix(name, p) })
}

// secret reports whether a variable of the server looks like it holds one, by
// its name, or because its value is an address with a password in it. A command
// is not to learn it just because the server was started with it.
func (c Config) secret(name, value string) bool {
	if slices.Contains(c.EnvPass, name) {
		return false
	}
	upper := strings.ToUpper(name)
	for _, end := range []string{"PASSWORD", "PASSWD", "PASSPHRASE", "TOKEN", "SECRET", "APIKEY", "CREDENTIALS"} {
		if strings.HasSuffix(upper, end) {
			return true
		}
	}
	for part := range strings.SplitSeq(upper, "_") {
		if slices.Contains([]string{
			"KEY", "TOKEN", "SECRET", "PASS", "PASSWORD", "PWD", "PAT", "JWT", "AUTH", "PRIVATE", "CREDENTIAL", "CREDS", "DSN", "COOKIE",
		}, part) {
			return true
		}
	}
	return hasPassword(value)
}

// hasPassword reports whether a value is an address with a password in it.
func hasPassword(value string) bool {
	for rest := value; ; {
		_, after, ok := strings.Cut(rest, "://")
		if !ok {
			return false
		}
		authority := after
		if i := strings.IndexAny(after, "/?# \t\n\"'"); i >= 0 {
			authority = after[:i]
		}
		if login, _, ok := strings.Cut(authority, "@"); ok {
			if _, password, _ := strings.Cut(login, ":"); password != "" {
				return true
			}
		}
		rest = after
	}
}

// isName reports whether s can be the name of a variable, or begin one.
func isName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
