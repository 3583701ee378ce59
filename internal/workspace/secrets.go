package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// The rules whose places may still hold a workspace.
const (
	ruleOtherHome = "other users' homes"
	ruleRootHome  = "/root"
	ruleState     = "the server's own state"
)

// secretPrefix is a secret whose name goes on: every entry of dir that starts
// with name.
type secretPrefix struct{ dir, name, rule string }

// homeSecrets are secret names in the caller's home. A folder stands for
// everything below it.
func homeSecrets() []string {
	return []string{
		// keys and tokens
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".netrc", "_netrc",
		".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".vault-token",
		".gem/credentials", ".composer/auth.json", ".terraform.d/credentials.tfrc.json", ".fly",
		".config/gcloud", ".config/gh", ".config/op", ".config/glab-cli", ".config/hub", ".config/rclone",
		".config/doctl", ".config/hcloud", ".config/git/credentials", ".config/composer/auth.json",
		".config/containers/auth.json", ".config/sops", ".config/age",
		// shell and client histories
		".bash_history", ".zsh_history", ".zsh_sessions", ".sh_history", ".ash_history", ".ksh_history",
		".histfile", ".history", ".python_history", ".node_repl_history", ".psql_history",
		".mysql_history", ".sqlite_history", ".rediscli_history", ".local/share/fish/fish_history",
		".local/state/bash/history", ".local/state/zsh/history",
		// password stores
		".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/keepassxc",
		".config/KeePass", ".config/Bitwarden", ".config/Bitwarden CLI", ".config/1Password",
		".local/share/password-store", ".local/share/gopass", ".config/gopass", "Library/Keychains",
		// browser and mail profiles
		".mozilla", ".librewolf", ".thunderbird", ".config/google-chrome", ".config/google-chrome-beta",
		".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi",
		".config/opera", ".cache/mozilla", ".cache/google-chrome", ".cache/chromium",
		".cache/BraveSoftware", ".cache/microsoft-edge", ".cache/thunderbird", "snap/firefox",
		"snap/chromium", ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome",
		".var/app/org.chromium.Chromium", ".var/app/com.brave.Browser",
		"Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
		// homes of agents
		".claude", ".claude.json", ".codex", ".cursor", ".gemini", ".qwen", ".aider", ".continue", ".copilot",
		".codeium", ".windsurf", ".cline", ".roo", ".goose", ".openhands", ".crush", ".amp", ".zeph",
		".config/claude", ".config/Claude", ".config/codex", ".config/Cursor", ".config/github-copilot",
		".config/goose", ".config/opencode", ".local/share/opencode", ".config/crush", ".local/share/crush",
		".local/share/goose", ".config/amp", ".config/zed", ".config/zeph", ".config/zeph-mcp-tools",
		".local/state/zeph-mcp-tools", ".local/share/zeph-mcp-tools",
	}
}

// systemSecrets are secret wherever the caller's home is.
func systemSecrets() []string {
	return []string{
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd",
		"/etc/ssl/private", "/run/secrets", "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore",
	}
}

// namedSecrets are refused when a call names them; the sandbox leaves them
// readable because programs need them.
func namedSecrets() []string { return []string{"/etc/passwd", "/etc/group"} }

// loadSecrets fills the tables that [Workspace.secretRule] reads.
func (w *Workspace) loadSecrets() {
	home := homeSecrets()
	w.secret = make(map[string]string, len(home)+32)
	for _, p := range slices.Concat(systemSecrets(), namedSecrets()) {
		w.secret[p] = p
	}
	w.prefixes = append(w.prefixes, secretPrefix{"/etc", "sudoers", "/etc/sudoers"})
	if w.home != "" {
		for _, n := range home {
			w.secret[w.home+"/"+n] = "~/" + n
		}
		w.prefixes = append(w.prefixes, secretPrefix{w.home + "/.cargo", "credentials", "~/.cargo/credentials"})
	}
	if !w.rootIsHome() {
		w.secret["/root"] = ruleRootHome
	}
	if w.stateDir != "" {
		w.secret[w.stateDir] = ruleState
	}
}

// rootIsHome reports whether /root is the caller's own home, or holds it.
func (w *Workspace) rootIsHome() bool { return w.uid == 0 && within("/root", w.home) }

// homesDir is where the homes of ordinary users are.
func homesDir() string {
	if runtime.GOOS == "darwin" {
		return "/Users"
	}
	return "/home"
}

// secretRule returns the rule that makes an absolute, clean path secret, ""
// when there is none. deny_read is not part of it.
func (w *Workspace) secretRule(p string) string {
	rule := ""
	for q := p; len(q) > 1; q = parent(q) {
		if r, ok := w.secret[q]; ok {
			rule = r
			break
		}
	}
	if rule == "" {
		rule = w.prefixRule(p)
	}
	if rule == "" && w.otherHome(p) {
		rule = ruleOtherHome
	}
	if rule == "" || w.isLifted(p, rule) {
		return ""
	}
	return rule
}

// parent returns the folder of an absolute, clean path.
func parent(p string) string {
	i := strings.LastIndexByte(p, '/')
	if i <= 0 {
		return "/"
	}
	return p[:i]
}

func (w *Workspace) prefixRule(p string) string {
	for _, s := range w.prefixes {
		if len(p) > len(s.dir) && within(s.dir, p) && strings.HasPrefix(p[len(s.dir)+1:], s.name) {
			return s.rule
		}
	}
	return ""
}

// otherHome reports whether p lies in the home of another user.
func (w *Workspace) otherHome(p string) bool {
	base := homesDir()
	if len(p) <= len(base)+1 || !within(base, p) {
		return false
	}
	user, _, _ := strings.Cut(p[len(base)+1:], "/")
	return !within(base+"/"+user, w.home)
}

// isLifted reports whether the operator, or the choice of a workspace in
// another home, takes p out of the secrets. A workspace lifts only the rule
// about homes: a key file inside it stays secret.
func (w *Workspace) isLifted(p, rule string) bool {
	for _, l := range w.lifted {
		if within(l, p) && !slices.Contains(w.roots, l) {
			return true
		}
	}
	if rule != ruleOtherHome && rule != ruleRootHome {
		return false
	}
	if _, ok := w.rootOf(p); ok {
		return true
	}
	// A package manager's prefix that is a home only in name.
	return within("/home/linuxbrew/.linuxbrew", p)
}

// Secrets returns the existing places a sandbox must hide, without doubles and
// without anything below another entry. It looks at fixed names and the list of
// homes; it walks only for deny_read, and not far.
func (w *Workspace) Secrets() []string { return w.SecretsAt("/") }

// SecretsAt returns those of [Workspace.Secrets] that dir, an absolute and clean
// path, lies in, is or holds. It looks at nothing else, so it costs little for a
// folder that has none. Where a link leads that is elsewhere is not followed:
// such a place is hidden as the target of a secret, and is none by itself.
func (w *Workspace) SecretsAt(dir string) []string {
	c := collector{w: w, dir: dir}
	for p := range w.secret {
		c.add(p)
	}
	for _, s := range w.prefixes {
		for _, n := range c.names(s.dir) {
			if strings.HasPrefix(n, s.name) {
				c.add(s.dir + "/" + n)
			}
		}
	}
	for _, n := range c.names(homesDir()) {
		if p := homesDir() + "/" + n; w.otherHome(p) {
			c.add(p)
		}
	}
	for _, d := range w.deny {
		if d.plain {
			c.add(d.glob)
		}
	}
	if slices.ContainsFunc(slices.Concat(w.roots, w.deniedBases()), c.near) {
		for _, p := range w.deniedInRoots() {
			c.add(p)
		}
	}
	if len(c.found) == 0 {
		return nil
	}
	return w.masks(c.found)
}

// collector finds the secret places near a folder.
type collector struct {
	w     *Workspace
	dir   string
	found []string
}

// near reports whether p is the folder, lies in it or holds it.
func (c *collector) near(p string) bool { return within(c.dir, p) || within(p, c.dir) }

// add takes in a place that is near, exists and is secret.
func (c *collector) add(p string) {
	if !c.near(p) {
		return
	}
	info, err := os.Lstat(p)
	if err != nil || c.w.secretRule(p) == "" && c.w.denied(p) == "" {
		return
	}
	c.found = append(c.found, p)
	if info.Mode()&os.ModeSymlink != 0 {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			c.found = append(c.found, real)
		}
	}
}

// names lists a folder when something near may lie in it.
func (c *collector) names(dir string) []string {
	if !c.near(dir) {
		return nil
	}
	return names(dir)
}

// The bounds of the search for what deny_read matches in the workspace, and for
// how long its result stands.
const (
	deniedLook = 10_000
	deniedMost = 256
	deniedFor  = 2 * time.Second
)

// deniedBases are the folders outside the workspace that a pattern of deny_read
// names before its first wildcard.
func (w *Workspace) deniedBases() []string {
	var out []string
	for _, d := range w.deny {
		if d.plain || !strings.HasPrefix(d.glob, "/") {
			continue
		}
		base, _ := doublestar.SplitPattern(d.glob)
		if _, inside := w.rootOf(base); !inside && base != "/" && !slices.Contains(out, base) {
			out = append(out, base)
		}
	}
	return out
}

// deniedInRoots looks for what deny_read matches in the workspace and in the
// folders it names, in those at the top first, and not without end.
func (w *Workspace) deniedInRoots() []string {
	if len(w.deny) == 0 {
		return nil
	}
	w.found.Lock()
	defer w.found.Unlock()
	if time.Since(w.found.at) < deniedFor {
		return w.found.paths
	}
	w.found.paths = nil
	todo, looked := append(slices.Clone(w.roots), w.deniedBases()...), 0
	for len(todo) > 0 && looked < deniedLook && len(w.found.paths) < deniedMost {
		dir := todo[0]
		todo = todo[1:]
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range list {
			looked++
			p := dir + "/" + e.Name()
			switch {
			case w.denied(p) != "":
				w.found.paths = append(w.found.paths, p)
			case e.IsDir() && e.Name() != ".git" && e.Name() != "node_modules":
				todo = append(todo, p)
			}
		}
	}
	w.found.at = time.Now()
	return w.found.paths
}

// masks turns found secrets into what can be hidden: nothing that is only
// refused by name, nothing that would hide a workspace, a re-allowed path or
// the caller's home.
func (w *Workspace) masks(found []string) []string {
	keep := slices.Concat(w.lifted, []string{"/home/linuxbrew/.linuxbrew"})
	if w.home != "" {
		keep = append(keep, w.home)
	}
	var out []string
	for _, p := range found {
		if !slices.Contains(namedSecrets(), p) {
			out = append(out, around(p, keep, 8)...)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(slices.Clone(out), func(p string) bool {
		return slices.ContainsFunc(out, func(o string) bool { return o != p && within(o, p) })
	})
}

// around returns p, or when p holds something that must stay visible, the
// entries of p beside it.
func around(p string, keep []string, depth int) []string {
	holds := false
	for _, k := range keep {
		if k == p {
			return nil
		}
		holds = holds || within(p, k)
	}
	if !holds {
		return []string{p}
	}
	if depth == 0 {
		return nil
	}
	var out []string
	for _, n := range names(p) {
		out = append(out, around(p+"/"+n, keep, depth-1)...)
	}
	return out
}

// names lists a folder, sorted; a folder that cannot be read is empty.
func names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // opened for reading
	list, err := f.Readdirnames(-1)
	if err != nil {
		return nil
	}
	slices.Sort(list)
	return list
}
