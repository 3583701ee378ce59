package workspace

import (
	"os"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	tests := []struct {
		text, path string // {WS} {OUT} {HOME}
		place      call.Place
		protected  string
		secret     string
	}{
		{"file.txt", "{WS}/file.txt", call.PlaceWorkspace, "", ""},
		{"./sub/../file.txt", "{WS}/file.txt", call.PlaceWorkspace, "", ""},
		{".", "{WS}", call.PlaceWorkspace, "", ""},
		{"sub//deep/", "{WS}/sub/deep", call.PlaceWorkspace, "", ""},
		{"new/dir/f", "{WS}/new/dir/f", call.PlaceWorkspace, "", ""},
		{"link_in/deep/b.txt", "{WS}/sub/deep/b.txt", call.PlaceWorkspace, "", ""},
		{"link_in/../file.txt", "{WS}/file.txt", call.PlaceWorkspace, "", ""},
		{"sub/up/file.txt", "{WS}/file.txt", call.PlaceWorkspace, "", ""},
		{"..", "{BASE}", call.PlaceOutside, "", ""},
		{"../ws-evil/x", "{BASE}/ws-evil/x", call.PlaceOutside, "", ""},
		{"missing/../../outside/secret.txt", "{OUT}/secret.txt", call.PlaceOutside, "", ""},
		{"link_out/secret.txt", "{OUT}/secret.txt", call.PlaceOutside, "", ""},
		{"link_chain/secret.txt", "{OUT}/secret.txt", call.PlaceOutside, "", ""},
		{"link_chain/../ws/file.txt", "{WS}/file.txt", call.PlaceWorkspace, "", ""},
		{"link_file", "{OUT}/secret.txt", call.PlaceOutside, "", ""},
		{"link_dangling", "{OUT}/missing.txt", call.PlaceOutside, "", ""},
		{"link_etc/hostname", "/etc/hostname", call.PlaceSystem, "", ""},
		{"link_etc/shadow", "/etc/shadow", call.PlaceSecret, "", "/etc/shadow"},
		{"link_ssh/id", "{HOME}/.ssh/id", call.PlaceSecret, "", "~/.ssh"},
		{"link_git/hooks/pre-commit", "{WS}/.git/hooks/pre-commit", call.PlaceWorkspace, ".git/hooks", ""},
		{".git", "{WS}/.git", call.PlaceWorkspace, ".git", ""},
		{".git/index.lock", "{WS}/.git/index.lock", call.PlaceWorkspace, "", ""},
		{".git/config", "{WS}/.git/config", call.PlaceWorkspace, ".git/config", ""},
		{".GIT/Hooks/x", "{WS}/.GIT/Hooks/x", call.PlaceWorkspace, ".git/hooks", ""},
		{"a/.git/modules/libs/a/hooks/x", "{WS}/a/.git/modules/libs/a/hooks/x", call.PlaceWorkspace, ".git/modules/*/hooks", ""},
		{".git/modules/a/refs/heads/config", "{WS}/.git/modules/a/refs/heads/config", call.PlaceWorkspace, "", ""},
		{"sub/.claude/settings.json", "{WS}/sub/.claude/settings.json", call.PlaceWorkspace, ".claude", ""},
		{".vscode/tasks.json", "{WS}/sub/tasks.json", call.PlaceWorkspace, ".vscode", ""},
		{"x.envrc", "{WS}/x.envrc", call.PlaceWorkspace, "", ""},
		{"~/notes.txt", "{HOME}/notes.txt", call.PlaceOutside, "", ""},
		{"~", "{HOME}", call.PlaceOutside, "", ""},
		{"~/.netrc", "{HOME}/.netrc", call.PlaceSecret, "", "~/.netrc"},
		{"~/.netrc.bak", "{HOME}/.netrc.bak", call.PlaceOutside, "", ""},
		{"~/.cargo/registry/x", "{HOME}/.cargo/registry/x", call.PlaceSystem, "", ""},
		{"~/.cargo/credentials.toml", "{HOME}/.cargo/credentials.toml", call.PlaceSecret, "", "~/.cargo/credentials"},
		{"~/.local", "{HOME}/.local", call.PlaceOutside, "", ""},
		{"~/.config/git/ignore", "{HOME}/.config/git/ignore", call.PlaceSystem, "", ""},
		{"~/.config/gh/hosts.yml", "{HOME}/.config/gh/hosts.yml", call.PlaceSecret, "", "~/.config/gh"},
		{"/", "/", call.PlaceSystem, "", ""},
		{"/usr/bin/env", "", call.PlaceSystem, "", ""},
		{"/etc/passwd", "/etc/passwd", call.PlaceSecret, "", "/etc/passwd"},
		{"/etc/sudoers.d/x", "/etc/sudoers.d/x", call.PlaceSecret, "", "/etc/sudoers"},
		{"/etc/hosts", "/etc/hosts", call.PlaceSystem, "", ""},
		{"/home/somebody-else/x", "/home/somebody-else/x", call.PlaceSecret, "", "other users' homes"},
		{"/home", "/home", call.PlaceOutside, "", ""},
		{"/mnt/x", "/mnt/x", call.PlaceOutside, "", ""},
		{"/srv/app", "/srv/app", call.PlaceOutside, "", ""},
		{"/tmp/x/y", "/tmp/x/y", call.PlaceScratch, "", ""},
		{"/dev/shm/x", "/dev/shm/x", call.PlaceScratch, "", ""},
		{"/dev/null", "/dev/null", call.PlaceDevice, "", ""},
		{"/dev/stdin", "/dev/stdin", call.PlaceDevice, "", ""},
		{"/dev/fd/3", "/dev/fd/3", call.PlaceDevice, "", ""},
		{"/dev/urandom", "/dev/urandom", call.PlaceSystem, "", ""},
		{"/dev/mem", "/dev/mem", call.PlaceSecret, "", "/dev/mem"},
		{"/dev/sdz9", "/dev/sdz9", call.PlaceSecret, "", "block device"},
		{"/proc/self/maps", "/proc/self/maps", call.PlaceSystem, "", ""},
		{"/proc/1/environ", "/proc/1/environ", call.PlaceSystem, "", ""},
		{"/proc/4242/environ", "/proc/4242/environ", call.PlaceSecret, "", "/proc/*/environ of other processes"},
		{"/proc/4242/task/4242/mem", "/proc/4242/task/4242/mem", call.PlaceSecret, "", "/proc/*/mem of other processes"},
		{"/proc/self/root/etc/shadow", "/etc/shadow", call.PlaceSecret, "", "/etc/shadow"},
		{"/proc/self/cwd/file.txt", "{WS}/file.txt", call.PlaceWorkspace, "", ""},
		{"/proc/self/cwd/../outside/secret.txt", "{OUT}/secret.txt", call.PlaceOutside, "", ""},
		{"link_proc/root/etc/shadow", "/etc/shadow", call.PlaceSecret, "", "/etc/shadow"},
		{"/proc/self/task/9/root/etc/gshadow", "/etc/gshadow", call.PlaceSecret, "", "/etc/gshadow"},
		{"/run/secrets/db", "/run/secrets/db", call.PlaceSecret, "", "/run/secrets"},
		{"loop/x", "", call.PlaceUnknown, "", ""},
		{"a\x00b", "", call.PlaceUnknown, "", ""},
		{"", "", call.PlaceUnknown, "", ""},
		{strings.Repeat("x/", 2048), "", call.PlaceUnknown, "", ""},
		{strings.Repeat("x", 300), "{WS}/" + strings.Repeat("x", 300), call.PlaceWorkspace, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text[:min(len(tt.text), 40)], func(t *testing.T) {
			t.Parallel()
			got := f.Resolve(f.ws, tt.text, true)
			want := f.expand(tt.path)
			if tt.path != "" && got.Path != want {
				t.Errorf("path = %q, want %q", got.Path, want)
			}
			if got.Place != tt.place || got.Protected != tt.protected || got.Secret != tt.secret {
				t.Errorf("got %v protected=%q secret=%q, want %v %q %q",
					got.Place, got.Protected, got.Secret, tt.place, tt.protected, tt.secret)
			}
			if inside := within(f.ws, got.Path); got.Inside != inside && got.Place != call.PlaceUnknown {
				t.Errorf("inside = %v, want %v", got.Inside, inside)
			}
			if got.Text != tt.text {
				t.Errorf("text = %q", got.Text)
			}
		})
	}
}

func (f fixture) expand(s string) string {
	return strings.NewReplacer("{WS}", f.ws, "{OUT}", f.out, "{HOME}", f.home, "{BASE}", f.ws[:len(f.ws)-3]).Replace(s)
}

func TestResolveKeepsTheLastLink(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for text, want := range map[string]string{
		"link_out":            f.ws + "/link_out",
		"sub/up":              f.ws + "/sub/up",
		"link_in/up":          f.ws + "/sub/up",
		"link_out/secret.txt": f.out + "/secret.txt",
		"link_out/":           f.out, // a trailing slash means what it leads to
		"link_out/.":          f.out,
	} {
		if got := f.Resolve(f.ws, text, false); got.Path != want {
			t.Errorf("%s: %s, want %s", text, got.Path, want)
		}
	}
}

func TestResolveNeedsAnAbsoluteCwd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, cwd := range []string{"", "sub", "/a\x00b"} {
		if got := f.Resolve(cwd, "x", true); got.Place != call.PlaceUnknown {
			t.Errorf("cwd %q: %v", cwd, got.Place)
		}
	}
	if got := f.Resolve(f.ws+"/link_out", "../ws/file.txt", true); got.Path != f.ws+"/file.txt" {
		t.Errorf("a linked cwd: %s", got.Path)
	}
}

func TestRootFlagAndHolds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	if p := f.Resolve(f.ws, ".", true); !p.Root || !p.Inside || p.HoldsDeny != "" {
		t.Errorf("%+v", p)
	}
	if p := f.Resolve(f.ws, "/", true); p.Root || p.HoldsDeny == "" {
		t.Errorf("/ holds places outside: %+v", p)
	}
	if p := f.Resolve(f.ws, "/etc", true); p.HoldsDeny != "" {
		t.Errorf("/etc may be searched: %+v", p)
	}
}

func TestFileToolsNeverReadTheServersOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, p := range []string{"/proc/self/maps", "/proc/self/root/etc/hosts", "/proc/self/cwd/file.txt", "/dev/null", "/dev/shm/x", "/run/x", "link_proc/cwd/file.txt"} {
		if got := f.ResolveFile(p, true); got.Place != call.PlaceSecret || got.Secret == "" {
			t.Errorf("%s: %v %q", p, got.Place, got.Secret)
		}
	}
	if got := f.ResolveFile("file.txt", true); got.Place != call.PlaceWorkspace {
		t.Errorf("%+v", got)
	}
	if got := f.ClassifyFile("/dev/zero"); got.Place != call.PlaceSecret {
		t.Errorf("%+v", got)
	}
}

func TestOwnHomeIsNotAnothers(t *testing.T) {
	t.Parallel()
	ws := workspacetest.Base(t)
	for _, tt := range []struct {
		env  Env
		path string
		want call.Place
	}{
		{Env{Home: "/root", UID: 0}, "/root/notes", call.PlaceOutside},
		{Env{Home: "/root", UID: 0}, "/root/.ssh/id", call.PlaceSecret},
		{Env{Home: "/root", UID: 1000}, "/root/notes", call.PlaceSecret},
		{Env{Home: "/elsewhere", UID: 0}, "/root/notes", call.PlaceSecret},
		{Env{Home: "/root/x", UID: 0}, "/root/notes", call.PlaceOutside},
		{Env{Home: "/home/u", UID: 1000}, "/home/u/notes", call.PlaceOutside},
		{Env{Home: "/home/u", UID: 1000}, "/home/u/.ssh", call.PlaceSecret},
		{Env{Home: "/home/u", UID: 1000}, "/home/us", call.PlaceSecret},
		{Env{Home: "/home/dept/u", UID: 1000}, "/home/dept/u/x", call.PlaceOutside},
		{Env{Home: "/var/lib/u", UID: 1000}, "/var/lib/u/x", call.PlaceOutside},
		{Env{Home: "/var/lib/u", UID: 1000}, "/var/lib/x", call.PlaceSystem},
		{Env{Home: "/", UID: 1000}, "/etc/hosts", call.PlaceSystem},
		{Env{Home: "", UID: 1000}, "/home/u/x", call.PlaceSecret},
	} {
		w, err := Open(Config{Roots: []string{ws}}, tt.env)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Classify(tt.path).Place; got != tt.want {
			t.Errorf("home %q uid %d: %s is %v, want %v", tt.env.Home, tt.env.UID, tt.path, got, tt.want)
		}
	}
}

func TestWorkspaceInTmpWins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mkdir(t, dir+"/ws/sub")
	write(t, dir+"/ws/sub/f", "x")
	if err := os.Symlink("sub", dir+"/ws/link"); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Config{Roots: []string{dir + "/ws"}}, Env{StateDir: dir + "/state"})
	if err != nil {
		t.Fatal(err)
	}
	got := w.Resolve(w.Roots()[0], "link/f", true)
	if got.Path != w.Roots()[0]+"/sub/f" || got.Place != call.PlaceWorkspace {
		t.Errorf("%+v", got)
	}
	if got := w.Resolve("/", dir+"/other", true); got.Place != call.PlaceScratch {
		t.Errorf("%+v", got)
	}
}

func TestDenyRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) {
		c.DenyRead = []string{"**/*.env", ".env", "~/private", "/etc/app*", "sub/deep"}
		c.AllowRead = []string{"**/public.env"}
		c.ReadablePaths = []string{"~/docs", "~/.ssh/known_hosts"}
	})
	for path, want := range map[string]call.Place{
		f.ws + "/.env":                call.PlaceSecret,
		f.ws + "/a/b.env":             call.PlaceSecret,
		f.ws + "/a/public.env":        call.PlaceWorkspace,
		f.ws + "/sub/deep/b.txt":      call.PlaceSecret,
		f.home + "/private/x":         call.PlaceSecret,
		f.home + "/privates":          call.PlaceOutside,
		"/etc/app/token":              call.PlaceSecret,
		"/etc/apt":                    call.PlaceSystem,
		f.home + "/docs/x":            call.PlaceSystem,
		f.home + "/.ssh/known_hosts":  call.PlaceSystem,
		f.home + "/.ssh/id":           call.PlaceSecret,
		f.ws + "/environment/file.go": call.PlaceWorkspace,
	} {
		if got := f.Classify(path); got.Place != want {
			t.Errorf("%s: %v, want %v (%s)", path, got.Place, want, got.Secret)
		}
	}
	if err := os.Symlink("sub/up/file.txt", f.ws+"/link.env"); err != nil {
		t.Fatal(err)
	}
	if got := f.Resolve(f.ws, "link.env", true); got.Place != call.PlaceSecret {
		t.Errorf("a denied name that is a link: %+v", got)
	}
}

func BenchmarkResolve(b *testing.B) {
	f := newFixture(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		f.Resolve(f.ws, "sub/deep/b.txt", true)
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"a", "../../x", "link_out/../x", "~/x", "/proc/self/root/..", "/tmp/../etc/shadow", "a//b/./c/", "/dev/fd/../mem"} {
		f.Add(s, true)
	}
	fx := newFixture(f, nil)
	f.Fuzz(func(t *testing.T, text string, follow bool) {
		p := fx.Resolve(fx.ws, text, follow)
		if p.Place == call.PlaceUnknown {
			return
		}
		again := fx.Resolve(fx.ws, p.Path, false)
		if again.Path != p.Path && again.Place != call.PlaceUnknown {
			t.Errorf("%q resolves to %q and that to %q", text, p.Path, again.Path)
		}
		if p.Secret != "" && p.Place != call.PlaceSecret {
			t.Errorf("%q: secret by %s but %v", text, p.Secret, p.Place)
		}
		if fx.Classify(p.Path).Place < p.Place {
			t.Errorf("%q: %v by name, %v resolved", text, p.Place, fx.Classify(p.Path).Place)
		}
	})
}
