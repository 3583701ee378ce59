package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func TestOpenFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	if err := unix.Mkfifo(f.ws+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path string
		flag int
		want error
	}{
		{"file.txt", os.O_RDONLY, nil},
		{"link_in/deep/b.txt", os.O_RDONLY, nil},
		{"link_file", os.O_RDONLY, nil}, // outside: the gates have asked
		{"/etc/hostname", os.O_RDONLY, nil},
		{"fifo", os.O_RDONLY, ErrNotRegular},
		{"fifo", os.O_WRONLY, ErrNotRegular},
		{"sub", os.O_RDONLY, unix.EISDIR},
		{".", os.O_RDONLY, unix.EISDIR},
		{"missing", os.O_RDONLY, fs.ErrNotExist},
		{"file.txt/x", os.O_RDONLY, unix.ENOTDIR},
		{"/etc/shadow", os.O_RDONLY, ErrRefused},
		{"link_ssh/id", os.O_RDONLY, ErrRefused},
		{"/dev/zero", os.O_RDONLY, ErrRefused},
		{"loop", os.O_RDONLY, ErrRefused},
		{"link_file", os.O_WRONLY, ErrRefused},
		{"/etc/x", os.O_WRONLY | os.O_CREATE, ErrRefused},
		{".git/config", os.O_RDWR, ErrRefused},
		{strings.Repeat("x", 300), os.O_RDONLY, unix.ENAMETOOLONG},
	}
	for _, tt := range tests {
		t.Run(tt.path[:min(len(tt.path), 20)], func(t *testing.T) {
			t.Parallel()
			file, err := f.OpenFile("s", f.ResolveFile(tt.path, true), tt.flag, 0o600)
			if !errors.Is(err, tt.want) {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
			if err == nil {
				file.Close()
			}
		})
	}
}

func TestOpenRefusesALinkThatAppeared(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	file, dir := f.ResolveFile("file.txt", true), f.ResolveFile("sub/deep/b.txt", true)
	for _, p := range []string{"/file.txt", "/sub"} {
		if err := os.Rename(f.ws+p, f.ws+p+".old"); err != nil {
			t.Fatal(err)
		}
	}
	// The new links stay inside the root, where a plain os.Root would follow them.
	for name, target := range map[string]string{"/file.txt": ".git/config", "/sub": ".git"} {
		if err := os.Symlink(target, f.ws+name); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []call.Path{file, dir} {
		if _, err := f.OpenFile("s", p, os.O_RDONLY, 0); !errors.Is(err, ErrLink) {
			t.Errorf("read %s: %v", p.Text, err)
		}
		if _, err := f.OpenFile("s", p, os.O_WRONLY|os.O_TRUNC, 0); !errors.Is(err, ErrLink) {
			t.Errorf("write %s: %v", p.Text, err)
		}
		if _, err := f.WriteAtomic("s", p, []byte("x"), WriteOptions{}); !errors.Is(err, ErrLink) {
			t.Errorf("replace %s: %v", p.Text, err)
		}
	}
}

func TestWriteAtomic(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	at := func(p string) call.Path { return f.ResolveFile(p, true) }
	if old, err := f.WriteAtomic("s", at("new.txt"), []byte("one"), WriteOptions{MustNotExist: true}); err != nil || old != nil {
		t.Fatalf("%v %v", old, err)
	}
	if _, err := f.WriteAtomic("s", at("new.txt"), []byte("two"), WriteOptions{MustNotExist: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("overwritten: %v", err)
	}
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o640} {
		if err := os.Chmod(f.ws+"/new.txt", mode); err != nil {
			t.Fatal(err)
		}
		old, err := f.WriteAtomic("s", at("new.txt"), []byte("three"), WriteOptions{Sync: true})
		if err != nil || old.Mode().Perm() != mode {
			t.Fatalf("%v %v", old, err)
		}
		if info, err := os.Stat(f.ws + "/new.txt"); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode %v, want %v", info.Mode(), mode)
		}
		if _, err := f.WriteAtomic("s", at("new.txt"), nil, WriteOptions{Expect: old}); !errors.Is(err, ErrStale) {
			t.Errorf("a stale write passed: %v", err)
		}
	}
	if err := os.Chmod(f.ws+"/new.txt", 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAtomic("s", at("new.txt"), []byte("x"), WriteOptions{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a read-only file was replaced: %v", err)
	}
	for path, want := range map[string]error{
		"sub": unix.EISDIR, ".git/hooks/pre-commit": ErrRefused, "link_file": ErrRefused, "no/dir/x": fs.ErrNotExist,
		"/etc/zeph": ErrRefused, ".": unix.EISDIR,
	} {
		if _, err := f.WriteAtomic("s", at(path), []byte("x"), WriteOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if left, err := filepath.Glob(f.ws + "/.zeph-*"); err != nil || len(left) > 0 {
		t.Errorf("temporary files stay: %v %v", left, err)
	}
}

func TestWriteToPrivateTmp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	p := f.ResolveFile("/tmp/a/b/c.txt", true)
	dir := f.ResolveFile("/tmp/a/b", true)
	if err := f.MkdirAll("s", dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAtomic("s", p, []byte("x"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	scratch, err := f.Scratch("s")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(scratch + "/a/b/c.txt"); err != nil || string(text) != "x" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := f.OpenFile("another", p, os.O_RDONLY, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another session sees it: %v", err)
	}
	if err := os.Symlink("/etc/hostname", scratch+"/link"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.OpenFile("s", f.ResolveFile("/tmp/link", true), os.O_RDONLY, 0); !errors.Is(err, ErrLink) {
		t.Errorf("a link out of /tmp: %v", err)
	}
}

func TestDirWalk(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d, err := f.OpenDir("s", f.ResolveFile(".", true))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Dir("link_out"); !errors.Is(err, ErrLink) {
		t.Errorf("a linked folder opens: %v", err)
	}
	if _, err := d.Open("link_file"); !errors.Is(err, ErrLink) {
		t.Errorf("a linked file opens: %v", err)
	}
	if target, err := d.Readlink("link_out"); err != nil || target != "../outside" {
		t.Errorf("%q %v", target, err)
	}
	sub, err := d.Dir("sub")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if sub.Join("x") != f.ws+"/sub/x" {
		t.Error(sub.Join("x"))
	}
	if info, err := sub.Lstat("up"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v %v", info, err)
	}
	if list, err := f.ReadDir("s", f.ResolveFile("sub", true)); err != nil || len(list) != 2 || list[0].Name() != "deep" {
		t.Errorf("%v %v", list, err)
	}
	if err := f.Mkdir("s", f.ResolveFile("sub/new", true), 0o755); err != nil {
		t.Error(err)
	}
	if err := f.MkdirAll("s", f.ResolveFile("link_out/x", true), 0o755); !errors.Is(err, ErrRefused) {
		t.Errorf("a folder outside: %v", err)
	}
}
