package bash

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	inherited := []string{
		"PATH=/bin", "HOME=/home/u", "LANG=C.UTF-8", "EMPTY=", "EQUALS=a=b",
		"AWS_SECRET_ACCESS_KEY=canary", "AWS_REGION=canary", "HUGGINGFACE=canary", "ZEPH_X=canary",
		"X_API_KEY=canary", "GITHUB_TOKEN=canary", "PGPASSWORD=canary", "DATABASE_DSN=canary", "npm_config__authToken=canary",
		"BASH_ENV=/canary", "PROMPT_COMMAND=canary", "BASH_FUNC_ls%%=() { canary; }", "SSH_AUTH_SOCK=/canary",
		"DBUS_SESSION_BUS_ADDRESS=canary", "TMPDIR=/canary", "TERM=xterm", "PAGER=less", "nonsense",
		"MYSQL_PWD=canary", "DOCKER_AUTH_CONFIG=canary", "npm_config__auth=canary", "CI_JOB_JWT=canary", "REDISCLI_AUTH=canary",
		"DATABASE_URL=postgres://u:canary@h/db", "HTTPS_PROXY=http://u:canary@p:1", "DBS=a://h/,b://:canary@h",
		"MONKEY=1", "KEYBOARD=de", "COMPASS=1", "GIT_AUTHOR_NAME=a", "CACHE_URL=https://u@h/a:b@c",
	}
	for _, tt := range []struct {
		name    string
		cfg     func(*Config)
		call    map[string]string
		cache   string
		want    map[string]string // beside the fixed ones
		refused []string
	}{
		{
			name: "the server's own",
			want: map[string]string{
				"PATH": "/bin", "HOME": "/home/u", "LC_CTYPE": "C.UTF-8", "EMPTY": "", "EQUALS": "a=b",
				"MONKEY": "1", "KEYBOARD": "de", "COMPASS": "1", "GIT_AUTHOR_NAME": "a", "CACHE_URL": "https://u@h/a:b@c",
			},
		},
		{
			name: "the call's variables win, but do not bring back what is blocked",
			call: map[string]string{"LANG": "de", "TERM": "vt100", "AWS_REGION": "x", "ZEPH_A": "y", "API_KEY": "mine"},
			want: map[string]string{
				"PATH": "/bin", "HOME": "/home/u", "LANG": "de", "LC_CTYPE": "C.UTF-8", "EMPTY": "", "EQUALS": "a=b", "TERM": "vt100", "API_KEY": "mine",
				"MONKEY": "1", "KEYBOARD": "de", "COMPASS": "1", "GIT_AUTHOR_NAME": "a", "CACHE_URL": "https://u@h/a:b@c",
			},
			refused: []string{"AWS_REGION", "ZEPH_A"},
		},
		{
			name: "what the operator passes, and caches",
			cfg: func(c *Config) {
				c.EnvPass = []string{"AWS_REGION", "GITHUB_TOKEN"}
				c.EnvBlocklist = []string{"AWS_", "G", "L", "H", "E", "K", "C", "M"}
			},
			cache: "/c",
			want: map[string]string{
				"PATH": "/bin", "AWS_REGION": "canary", "GITHUB_TOKEN": "canary", "ZEPH_X": "canary",
				"XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/c/state", "GOCACHE": "/c/go-build", "npm_config_cache": "/c/npm",
				"YARN_CACHE_FOLDER": "/c/yarn", "PIP_CACHE_DIR": "/c/pip", "PYTHONPYCACHEPREFIX": "/c/pycache",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := Default()
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			if err := cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			set, err := cfg.setting(args{Env: tt.call})
			if err != nil {
				t.Fatal(err)
			}
			env, refused := environment(cfg.base(inherited, tt.cache), set.vars), set.refused
			got := map[string]string{}
			for _, kv := range env {
				name, value, _ := strings.Cut(kv, "=")
				got[name] = value
			}
			want := fixed()
			maps.Copy(want, tt.want)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("environment (-want +got):\n%s", d)
			}
			if !slices.Equal(refused, tt.refused) {
				t.Errorf("refused %q, want %q", refused, tt.refused)
			}
		})
	}
	if env := environment(Default().base(nil, ""), nil); !slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, "PATH=/") }) {
		t.Errorf("no PATH in %q", env)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	for key, change := range map[string]func(*Config){
		"timeout":          func(c *Config) { c.Timeout = 0 },
		"max_timeout":      func(c *Config) { c.MaxTimeout = 1 },
		"max_output":       func(c *Config) { c.MaxOutput = 10 },
		"env_blocklist[0]": func(c *Config) { c.EnvBlocklist = []string{""} },
		"env_pass[1]":      func(c *Config) { c.EnvPass = []string{"A", "B=C"} },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "tools.shell."+key+":") {
			t.Errorf("%s: %v", key, err)
		}
	}
	c := Default()
	c.EnvPass = []string{"GITHUB_TOKEN"}
	if len(Default().Warnings()) != 0 || len(c.Warnings()) != 1 {
		t.Error("warnings do not follow env_pass")
	}
}

func TestPlainLocale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want map[string]string }{
		{map[string]string{"A": "b"}, map[string]string{"A": "b"}},
		{map[string]string{"LANG": "C"}, map[string]string{}},
		{map[string]string{"LANG": "de_DE.UTF-8", "LANGUAGE": "de", "LC_TIME": "fr_FR.UTF-8"}, map[string]string{"LC_CTYPE": "de_DE.UTF-8"}},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, map[string]string{}},
		{map[string]string{"LANG": "C", "LC_CTYPE": "en_US.utf8"}, map[string]string{"LC_CTYPE": "en_US.utf8"}},
		{map[string]string{"LANG": "", "LC_ALL": ""}, map[string]string{}},
	} {
		plainLocale(tt.in)
		if diff := cmp.Diff(tt.want, tt.in); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestNothingOfAnOuterMake(t *testing.T) {
	t.Parallel()
	outer := []string{"PATH=/bin", "MAKELEVEL=1", "MAKEFLAGS=w -j4 --jobserver-auth=3,4", "MFLAGS=-w", "MAKE_TERMOUT=/dev/pts/1"}
	if got := (Config{}).base(outer, ""); got["MAKELEVEL"]+got["MAKEFLAGS"]+got["MFLAGS"]+got["MAKE_TERMOUT"] != "" {
		t.Errorf("handed down: %v", got)
	}
	if got := (Config{}).base([]string{"MAKEFLAGS=-j8"}, ""); got["MAKEFLAGS"] != "-j8" {
		t.Errorf("the user's own setting is gone: %v", got)
	}
}
