package workspace

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

func TestGitlinks(t *testing.T) {
	t.Parallel()
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, b)
		}
	}
	for _, tt := range []struct {
		name, format string
		then         []string
	}{
		{"version 2", "sha1", nil},
		{"version 3", "sha1", []string{"add", "--intent-to-add", "later"}},
		{"version 4", "sha1", []string{"update-index", "--index-version", "4"}},
		{"split", "sha1", []string{"update-index", "--split-index"}},
		{"the longer hash", "sha256", nil},
		{"the longer hash, version 4", "sha256", []string{"update-index", "--index-version", "4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			git(root, "init", "-q", "--object-format="+tt.format, ".")
			for _, n := range []string{"a", "aa", "b/c.txt", "zz/file-with-a-longer-name", "later"} {
				mkdir(t, parent(root+"/"+n))
				write(t, root+"/"+n, "x")
			}
			for _, n := range []string{"in", "zz/deep/er"} {
				mkdir(t, root+"/"+n)
				git(root+"/"+n, "init", "-q", "--object-format="+tt.format, ".")
				git(root+"/"+n, "commit", "-q", "--allow-empty", "-m", "x")
			}
			mkdir(t, root+"/in/inner") // one within one within
			git(root+"/in/inner", "init", "-q", "--object-format="+tt.format, ".")
			git(root+"/in/inner", "commit", "-q", "--allow-empty", "-m", "x")
			git(root+"/in", "add", "inner")
			git(root, "add", "a", "aa", "b", "zz", "in")
			if tt.then != nil {
				git(root, tt.then...)
			}
			w := &Workspace{}
			for range 2 {
				got := slices.DeleteFunc(w.gitlinks(root+"/.git"), func(n string) bool { return !exists(root + "/" + n) })
				if !slices.Equal(got, []string{"in", "zz/deep/er"}) {
					t.Fatalf("%q", got)
				}
			}
			if got := w.ProtectedIn(root); !slices.Contains(got, root+"/zz/deep/er/.git/config") || !slices.Contains(got, root+"/in/.git/hooks") ||
				!slices.Contains(got, root+"/in/inner/.git/config") {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestGitdirOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"gitdir: ../.git/modules/a\n": parent(dir) + "/.git/modules/a", "gitdir: /x/y": "/x/y", "other": "", "": "",
	} {
		write(t, dir+"/f", text)
		if got := gitdirOf(dir + "/f"); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if err := unix.Mkfifo(dir+"/index", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{dir, dir + "/none", "/dev/zero", dir + "/index"} {
		if got := gitdirOf(p); got != "" {
			t.Errorf("%s: %q", p, got)
		}
	}
	if got := (&Workspace{}).gitlinks(dir); got != nil {
		t.Errorf("%q", got)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Add(append([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x02"), make([]byte, 200)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range parseIndex(b) {
			if !localName([]byte(l)) {
				t.Error(l)
			}
		}
	})
}

// A .git file leads outside only where the repository there names the worktree
// in return.
func TestRepositories(t *testing.T) {
	t.Parallel()
	base := workspacetest.Base(t)
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", base, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if b, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, b)
		}
	}
	git("init", "-q", "main")
	git("-C", "main", "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", "main", "worktree", "add", "-q", "../tree")
	git("init", "-q", "--bare", "bare.git")
	git("-C", "main", "push", "-q", "../bare.git", "HEAD:refs/heads/b")
	git("-C", "bare.git", "worktree", "add", "-q", "../second", "b")
	pointer := func(dir string) string {
		b, err := os.ReadFile(base + "/" + dir + "/.git")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for dir, text := range map[string]string{
		"forged": pointer("tree"), "plain": "gitdir: ../main/.git\n", "none": "gitdir: nowhere\n", "evil": "gitdir: ../made/worktrees/x\n",
	} {
		if err := errors.Join(os.Mkdir(base+"/"+dir, 0o700), os.WriteFile(base+"/"+dir+"/.git", []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		roots []string
		want  []string
	}{
		{[]string{"tree"}, []string{base + "/main/.git"}},
		{[]string{"second"}, []string{base + "/bare.git"}},
		{[]string{"tree", "second"}, []string{base + "/bare.git", base + "/main/.git"}},
		{[]string{"tree", "main"}, nil},
		{[]string{"main"}, nil},
		{[]string{"forged"}, nil},
		{[]string{"plain"}, nil},
		{[]string{"none"}, nil},
		{[]string{"evil"}, nil},
	} {
		var roots []string
		for _, r := range tt.roots {
			roots = append(roots, base+"/"+r)
		}
		w, err := Open(Config{Roots: roots}, Env{Home: base + "/home", UID: os.Getuid()})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, w.Repositories()); d != "" {
			t.Errorf("%v (-want +got):\n%s", tt.roots, d)
		}
	}
	w, err := Open(Config{Roots: []string{base + "/tree"}}, Env{Home: base + "/home", UID: os.Getuid()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/main/.git/hooks", "/main/.git/config", "/main/.git/worktrees/tree/commondir", "/tree/.git"} {
		if got := w.ProtectedIn(base + "/tree"); !slices.Contains(got, base+want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
}
