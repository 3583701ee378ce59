package workspace

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	base := workspacetest.Base(t)
	home := base + "/home"
	mkdir(t, home+"/.ssh/x")
	mkdir(t, base+"/ws")
	write(t, base+"/file", "x")
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"none", Config{}, "no workspace folder"},
		{"missing", Config{Roots: []string{base + "/missing"}}, "roots[0]"},
		{"file", Config{Roots: []string{base + "/file"}}, "not a folder"},
		{"slash", Config{Roots: []string{"/"}}, "--workspace"},
		{"home", Config{Roots: []string{home}}, "home folder"},
		{"tilde", Config{Roots: []string{"~/"}}, "home folder"},
		{"secret", Config{Roots: []string{home + "/.ssh/x"}}, "secret place"},
		{"allowed", Config{Roots: []string{base + "/ws"}, AllowedPaths: []string{"/"}}, "allowed_paths[0]"},
		{"empty", Config{Roots: []string{" "}}, "roots[0]: the path is empty"},
		{"nul", Config{Roots: []string{"a\x00"}}, "NUL"},
		{"glob", Config{Roots: []string{base + "/ws"}, DenyRead: []string{"ok", "a[", "{"}}, "tools.file.deny_read[1]"},
		{"glob2", Config{Roots: []string{base + "/ws"}, DenyRead: []string{"ok", "a[", "{"}}, "tools.file.deny_read[2]"},
		{"allow", Config{Roots: []string{base + "/ws"}, AllowRead: []string{"[z-"}}, "tools.file.allow_read[0]"},
		{"user", Config{Roots: []string{base + "/ws"}, DenyRead: []string{"~bob/x"}}, "another user"},
		{"blank", Config{Roots: []string{base + "/ws"}, DenyRead: []string{""}}, "pattern is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(tt.cfg, Env{Home: home})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestRootsAreCanonicalAndMerged(t *testing.T) {
	t.Parallel()
	base := workspacetest.Base(t)
	mkdir(t, base+"/real/inner")
	mkdir(t, base+"/other")
	if err := os.Symlink("real", base+"/link"); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Config{
		Roots: []string{base + "/link", base + "/real/inner", base + "/real"}, AllowedPaths: []string{base + "/other"},
	}, Env{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{base + "/real", base + "/other"}, w.Roots()); diff != "" {
		t.Error(diff)
	}
	for _, spelling := range []string{base + "/link/x", base + "/real/x"} {
		if p := w.Resolve("/", spelling, true); !p.Inside || p.Path != base+"/real/x" {
			t.Errorf("%s: %+v", spelling, p)
		}
	}
	if got := w.Rel(base + "/real/inner"); got != "inner" {
		t.Error(got)
	}
	if got := w.Rel(base + "/other"); got != base+"/other" {
		t.Error(got)
	}
}

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.DenyRead = []string{"**/.env", "~/notes.txt", "/nowhere"} })
	if err := os.Symlink(f.out, f.home+"/.aws"); err != nil {
		t.Fatal(err)
	}
	got := f.Secrets()
	for _, want := range []string{
		f.home + "/.ssh", f.home + "/.netrc", f.home + "/.cargo/credentials.toml", f.home + "/notes.txt",
		f.ws + "/.env", f.home + "/.aws", f.out,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	for _, p := range got {
		if p == "/etc/passwd" || p == "/nowhere" || p == f.home || within(p, f.ws) {
			t.Errorf("%s must not be hidden", p)
		}
		if _, err := os.Lstat(p); err != nil {
			t.Error(err)
		}
	}
	if !slices.IsSorted(got) {
		t.Error("not sorted")
	}
}

// TestSecretsAt asks about single folders and wants what the whole list has for
// them, and nothing that lies beside.
func TestSecretsAt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.DenyRead = []string{"**/.env", "~/notes.txt", "sub/deep/b.txt"} })
	mkdir(t, f.home+"/.config/gh")
	if err := os.Symlink("/etc", f.home+"/.aws"); err != nil {
		t.Fatal(err)
	}
	all := f.Secrets()
	for _, dir := range []string{
		"/", f.ws, f.ws + "/sub", f.ws + "/sub/deep", f.home, f.home + "/.config", f.home + "/.config/gh/x", f.home + "/.cargo",
		f.out, "/etc", "/home", "/home/somebody", "/tmp", parent(f.home),
	} {
		got := f.SecretsAt(dir)
		for _, p := range all {
			if near := within(dir, p) || within(p, dir); near && f.Classify(p).Secret != "" && !slices.Contains(got, p) {
				t.Errorf("%s: %s is missing in %v", dir, p, got)
			}
		}
		for _, p := range got {
			if !slices.ContainsFunc(all, func(o string) bool { return within(o, p) }) {
				t.Errorf("%s: %s is nothing that the whole list hides", dir, p)
			}
		}
	}
	want := []string{f.ws + "/sub/deep/b.txt"}
	if diff := cmp.Diff(want, f.SecretsAt(f.ws+"/sub")); diff != "" {
		t.Error(diff)
	}
	if got := f.SecretsAt("/tmp"); got != nil {
		t.Errorf("beside the folder: %v", got)
	}
}

// What deny_read matches deeper in the workspace is hidden too, as far as the
// look goes; what lies nearer the top is found first.
func TestSecretsDeeper(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) {
		c.DenyRead, c.AllowRead = []string{"*.pem", "a/private", "**/x/**"}, []string{"**/ok.pem"}
	})
	for _, n := range []string{"a/private/k", "a/b/c/k.pem", "a/b/ok.pem", "x/y", "deep/x/y", "many/k.pem", "node_modules/k.pem"} {
		mkdir(t, parent(f.ws+"/"+n))
		write(t, f.ws+"/"+n, "")
	}
	for i := range deniedLook + 1 {
		write(t, f.ws+"/many/"+strconv.Itoa(i), "")
	}
	mkdir(t, f.ws+"/many/beyond")
	write(t, f.ws+"/many/beyond/k.pem", "")
	var got []string
	for _, p := range f.Secrets() {
		if within(f.ws, p) {
			got = append(got, f.Rel(p))
		}
	}
	want := []string{"a/private", "deep/x", "many/k.pem", "x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsLeaveTheWorkspaceVisible(t *testing.T) {
	t.Parallel()
	if got := around("/a", []string{"/a"}, 8); got != nil {
		t.Error(got)
	}
	base := workspacetest.Base(t)
	mkdir(t, base+"/u/proj/x")
	mkdir(t, base+"/u/other")
	write(t, base+"/u/f", "")
	want := []string{base + "/u/f", base + "/u/other"}
	if diff := cmp.Diff(want, around(base+"/u", []string{base + "/u/proj"}, 8)); diff != "" {
		t.Error(diff)
	}
}

func TestProtectedIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	want := []string{
		f.ws + "/.envrc", f.ws + "/.git/config", f.ws + "/.git/hooks", f.ws + "/.git/modules/libs/a/config",
		f.ws + "/.git/modules/libs/a/hooks", f.ws + "/.husky", f.ws + "/.vscode",
	}
	if diff := cmp.Diff(want, f.ProtectedIn(f.ws)); diff != "" {
		t.Error(diff)
	}
	want = []string{f.ws + "/.git/config", f.ws + "/.git/modules/libs/a/config"}
	if diff := cmp.Diff(want, f.GuardedIn(f.ws)); diff != "" {
		t.Error(diff)
	}
}

// A command may use its cache; the file tools, which would reach the caches of
// other workspaces too, may not.
func TestCachesAreForCommands(t *testing.T) {
	t.Parallel()
	base := workspacetest.Base(t)
	for _, n := range []string{"ws", "state/cache/other"} {
		mkdir(t, base+"/"+n)
	}
	w, err := Open(Config{Roots: []string{base + "/ws"}}, Env{Home: base, StateDir: base + "/state", Caches: []string{base + "/state/cache"}})
	if err != nil {
		t.Fatal(err)
	}
	p := base + "/state/cache/other/x"
	if got := w.Classify(p); got.Place != call.PlaceScratch {
		t.Errorf("a command: %+v", got)
	}
	got := w.ClassifyFile(p)
	if got.Place != call.PlaceSecret {
		t.Errorf("a file tool: %+v", got)
	}
	if _, err := w.WriteAtomic("s", got, []byte("x"), WriteOptions{}); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

// What leads git elsewhere is protected like its configuration, and a .git that
// is no folder as itself.
func TestProtectedPointers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, n := range []string{"worktrees/a/commondir", "worktrees/a/config.worktree", "commondir", "modules/libs/a/commondir"} {
		p := f.ws + "/.git/" + n
		mkdir(t, parent(p))
		write(t, p, "x")
		if !slices.Contains(f.ProtectedIn(f.ws), p) || !slices.Contains(f.GuardedIn(f.ws), p) {
			t.Errorf("%s is not found", p)
		}
		if f.Classify(p).Protected == "" {
			t.Errorf("%s is not protected", p)
		}
	}
	for _, put := range []func(string) error{
		func(p string) error { return os.WriteFile(p, []byte("gitdir: x"), 0o600) },
		func(p string) error { return os.Symlink("x", p) },
	} {
		root := t.TempDir()
		if err := put(root + "/.git"); err != nil {
			t.Fatal(err)
		}
		if got := f.ProtectedIn(root); !slices.Equal(got, []string{root + "/.git"}) {
			t.Errorf("%q", got)
		}
	}
}

func TestScratch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	a, err := f.Scratch("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Scratch("../../b")
	if err != nil {
		t.Fatal(err)
	}
	if a == b || !within(f.state, a) || !within(f.state, b) {
		t.Errorf("%s %s", a, b)
	}
	if info, err := os.Stat(a); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	host, err := f.HostPath("a", f.Resolve(f.ws, "/tmp/x/y", true))
	if err != nil || host != a+"/x/y" {
		t.Errorf("%s %v", host, err)
	}
	if host, err := f.HostPath("a", f.Resolve(f.ws, "file.txt", true)); err != nil || host != f.ws+"/file.txt" {
		t.Errorf("%s %v", host, err)
	}
	if _, err := f.HostPath("a", f.Resolve(f.ws, "~/.ssh/id", true)); err == nil {
		t.Error("a secret has a host path")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for path, want := range map[string][2]string{
		"flie.txt":        {"not_found", "did you mean file.txt?"},
		"sub/deeep/b.txt": {"not_found", "did you mean sub/deep?"},
		"sub/zzzzzzzz":    {"not_found", "find_path"},
		"sub":             {"is_folder", "list_directory"},
		"file.txt/x":      {"not_folder", "list_directory"},
		"/etc/shadow":     {"refused", "workspace"},
	} {
		p := f.ResolveFile(path, true)
		_, err := f.OpenFile("s", p, os.O_RDONLY, 0)
		var ce *call.Error
		if !errors.As(f.Explain("s", "path", p, err), &ce) {
			t.Fatalf("%s: %v", path, err)
		}
		if ce.Code != want[0] || ce.Field != "path" || !strings.Contains(ce.Suggestion, want[1]) || !strings.Contains(ce.Message, path) {
			t.Errorf("%s: %+v", path, ce)
		}
	}
	if err := f.Explain("s", "path", call.Path{}, io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestArgument(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, bad := range []string{"", "a\x00", strings.Repeat("x", 5000), "loop"} {
		var ce *call.Error
		if _, err := f.Argument("path", bad, true); !errors.As(err, &ce) || ce.Field != "path" || ce.Suggestion == "" {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
	if p, err := f.Argument("path", "link_in", true); err != nil || p.Path != f.ws+"/sub" {
		t.Errorf("%+v %v", p, err)
	}
}

func TestMayHoldSecrets(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for dir, want := range map[string]bool{f.ws: false, f.ws + "/sub": false, f.home: true, "/": true, "/etc": true} {
		if got := f.MayHoldSecrets(dir); got != want {
			t.Errorf("%s: %v", dir, got)
		}
	}
	denied := newFixture(t, func(c *Config) { c.DenyRead = []string{"**/.env"} })
	if !denied.MayHoldSecrets(denied.ws) {
		t.Error("deny_read is forgotten")
	}
}
