package sandbox

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	type m = stage.Mount
	base := Policy{Roots: []string{"/w"}, StateDir: "/home/u/.local/state/z", CacheDir: "/c"}
	for _, tt := range []struct {
		name    string
		change  func(*Policy)
		scratch string
		extra   []string
		want    []m
	}{
		{
			name: "the least there is",
			want: []m{
				{Op: stage.OpWrite, Path: "/c"},
				{Op: stage.OpMask, Path: "/home/u/.local/state/z"},
				{Op: stage.OpEmpty, Path: "/run"},
				{Op: stage.OpKeep, Path: "/run/current-system"},
				{Op: stage.OpTmpfs, Path: "/tmp"},
				{Op: stage.OpWrite, Path: "/w"},
			},
		},
		{
			name:    "a cache inside the state folder, scratch on the host, a root below /tmp",
			change:  func(p *Policy) { p.CacheDir = ""; p.Roots = []string{"/tmp/a-b", "/tmp/a"} },
			scratch: "/home/u/.local/state/z/scratch/1",
			want: []m{
				{Op: stage.OpMaskHold, Path: "/home/u/.local/state/z"},
				{Op: stage.OpWrite, Path: "/home/u/.local/state/z/cache/4c18b5755fef4a3f"},
				{Op: stage.OpEmpty, Path: "/run"},
				{Op: stage.OpKeep, Path: "/run/current-system"},
				{Op: stage.OpWrite, Path: "/tmp", Source: "/home/u/.local/state/z/scratch/1"},
				{Op: stage.OpWrite, Path: "/tmp/a"},
				{Op: stage.OpWrite, Path: "/tmp/a-b"},
			},
		},
		{
			name: "secrets and protected names below a root come after it, ancestors are pinned",
			change: func(p *Policy) {
				p.Secrets = []string{"/w/.env", "/home/u/.ssh"}
				p.ReadOnly = []string{"/w/.git/modules/x/hooks", "/w/.husky", "/w/.git/config"}
			},
			extra: []string{"/w/.git"},
			want: []m{
				{Op: stage.OpWrite, Path: "/c"},
				{Op: stage.OpMask, Path: "/home/u/.local/state/z"},
				{Op: stage.OpMask, Path: "/home/u/.ssh"},
				{Op: stage.OpEmpty, Path: "/run"},
				{Op: stage.OpKeep, Path: "/run/current-system"},
				{Op: stage.OpTmpfs, Path: "/tmp"},
				{Op: stage.OpWrite, Path: "/w"},
				{Op: stage.OpMask, Path: "/w/.env"},
				{Op: stage.OpWrite, Path: "/w/.git"},
				{Op: stage.OpPin, Path: "/w/.git"},
				{Op: stage.OpPin, Path: "/w/.git/modules"},
				{Op: stage.OpPin, Path: "/w/.git/modules/x"},
				{Op: stage.OpReadOnly, Path: "/w/.git/modules/x/hooks"},
				{Op: stage.OpReadOnly, Path: "/w/.husky"},
			},
		},
		{
			name:   "a secret at a writable place wins, a runtime folder is hidden",
			change: func(p *Policy) { p.Secrets = []string{"/w"}; p.RuntimeDir = "/var/run-u" },
			want: []m{
				{Op: stage.OpWrite, Path: "/c"},
				{Op: stage.OpMask, Path: "/home/u/.local/state/z"},
				{Op: stage.OpEmpty, Path: "/run"},
				{Op: stage.OpKeep, Path: "/run/current-system"},
				{Op: stage.OpTmpfs, Path: "/tmp"},
				{Op: stage.OpMask, Path: "/var/run-u"},
				{Op: stage.OpWrite, Path: "/w"},
				{Op: stage.OpMask, Path: "/w"},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := base
			if tt.change != nil {
				tt.change(&p)
			}
			got := p.plan(Tmp|Caches|Roots, tt.scratch, tt.extra)
			if d := gocmp.Diff(tt.want, got); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
		})
	}
}

func TestPolicyValidate(t *testing.T) {
	t.Parallel()
	good := Policy{Roots: []string{"/w"}, StateDir: "/s"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Policy){
		"no root":           func(p *Policy) { p.Roots = nil },
		"the whole disk":    func(p *Policy) { p.Roots = []string{"/"} },
		"a relative root":   func(p *Policy) { p.Roots = []string{"w"} },
		"a root with dots":  func(p *Policy) { p.Roots = []string{"/w/../x"} },
		"a relative secret": func(p *Policy) { p.Secrets = []string{"~/.ssh"} },
		"a NUL":             func(p *Policy) { p.ReadOnly = []string{"/w/\x00"} },
		"no state":          func(p *Policy) { p.StateDir = "" },
		"cache everywhere":  func(p *Policy) { p.CacheDir = "/" },
	} {
		p := good
		change(&p)
		if p.Validate() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	if w := Default().Warnings(); len(w) != 0 {
		t.Errorf("the default warns: %q", w)
	}
	for key, change := range map[string]func(*Config){
		"mode":           func(c *Config) { c.Mode = 7 },
		"unix_sockets":   func(c *Config) { c.UnixSockets = 7 },
		"min_level":      func(c *Config) { c.MinLevel = 0 },
		"max_timeout":    func(c *Config) { c.MaxTimeout = 0 },
		"kill_grace":     func(c *Config) { c.KillGrace = -time.Second },
		"idle_timeout":   func(c *Config) { c.IdleTimeout = 0 },
		"max_sessions":   func(c *Config) { c.MaxSessions = 0 },
		"max_processes":  func(c *Config) { c.MaxProcesses = 1 },
		"max_open_files": func(c *Config) { c.MaxOpenFiles = 3 },
		"max_file_size":  func(c *Config) { c.MaxFileSize = 0 },
		"tmpfs_size":     func(c *Config) { c.TmpfsSize = 0 },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "tools.sandbox."+key+":") {
			t.Errorf("%s: %v", key, err)
		}
	}
	c := Default()
	if err := c.Mode.UnmarshalText([]byte("of")); err == nil {
		t.Error("a misspelt mode was accepted")
	}
	if err := c.Mode.UnmarshalText([]byte("off")); err != nil || len(c.Warnings()) != 1 {
		t.Errorf("off: %v, %q", err, c.Warnings())
	}
	if _, err := New(Default(), Policy{Roots: []string{"/w"}, StateDir: "/s"}, nil); err == nil {
		t.Error("a sandbox without a logger was made")
	}
}

// What is opened is all but what is hidden; a folder that holds something hidden
// is gone through, and in the workspace can only be listed.
func TestGrants(t *testing.T) {
	t.Parallel()
	type m = stage.Mount
	disk := map[string][]string{
		"/":               {"etc", "home", "usr", "tmp", "run", "proc", "dev", "w"},
		"/etc":            {"passwd", "shadow"},
		"/home":           {"u", "other"},
		"/home/u":         {".ssh", ".config", "go", "state"},
		"/home/u/.config": {"gh", "git"},
		"/w":              {".env", "src", "conf"},
		"/w/conf":         {"key", "plain"},
	}
	p := Policy{
		Roots: []string{"/w"}, StateDir: "/home/u/state", CacheDir: "/home/u/state/cache",
		Secrets: []string{"/etc/shadow", "/home/other", "/home/u/.ssh", "/home/u/.config/gh", "/w/.env", "/w/conf/key"},
	}
	got, opened := p.grants(Tmp|Caches|Roots, "/home/u/state/scratch", []string{"/extra"}, func(dir string) []string { return disk[dir] })
	want := []m{
		{Op: stage.OpRead, Path: "/etc/passwd"},
		{Op: stage.OpWrite, Path: "/extra"},
		{Op: stage.OpRead, Path: "/home/u/.config/git"},
		{Op: stage.OpRead, Path: "/home/u/go"},
		{Op: stage.OpWrite, Path: "/home/u/state/cache"},
		{Op: stage.OpWrite, Path: "/home/u/state/scratch"},
		{Op: stage.OpRead, Path: "/proc"},
		{Op: stage.OpRead, Path: "/run/current-system"},
		{Op: stage.OpRead, Path: "/usr"},
		{Op: stage.OpList, Path: "/w"},
		{Op: stage.OpList, Path: "/w/conf"},
		{Op: stage.OpRead, Path: "/w/conf/plain"},
		{Op: stage.OpWrite, Path: "/w/conf/plain"},
		{Op: stage.OpRead, Path: "/w/src"},
		{Op: stage.OpWrite, Path: "/w/src"},
	}
	slices.SortFunc(want, func(a, b m) int { return cmp.Compare(a.Path+string(rune('0'+a.Op)), b.Path+string(rune('0'+b.Op))) })
	slices.SortFunc(got, func(a, b m) int { return cmp.Compare(a.Path+string(rune('0'+a.Op)), b.Path+string(rune('0'+b.Op))) })
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("grants (-want +got):\n%s", d)
	}
	slices.Sort(opened)
	if d := gocmp.Diff([]string{"/", "/etc", "/home", "/home/u", "/home/u/.config", "/w", "/w", "/w/conf", "/w/conf"}, opened); d != "" {
		t.Errorf("gone through (-want +got):\n%s", d)
	}
}
