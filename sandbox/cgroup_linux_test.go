package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// needGroups skips a test where no control groups can be made, which is for
// root only.
func needGroups(t *testing.T, w world) {
	t.Helper()
	w.need(t)
	if out := w.run(t, "true"); out.Limits != LimitsGroup {
		if os.Getuid() == 0 && ownGroups("") != nil && !errors.Is(syscall.Access(ownGroups("")[0], 2), syscall.EROFS) {
			t.Errorf("limits are held by %q", out.Limits)
		}
		t.Skip("no control groups of the first version can be made here")
	}
}

// Each command is in a group of its own, the anchor and the server are not, and
// nothing is left in the end.
func TestGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	needGroups(t, w)
	r := w.start(t, w.command("echo up; sleep 1030"))
	w.until(t, r, "up")
	base := filepath.Base(w.sb.groups.base[0])
	out := w.run(t, "grep -c "+base+" /proc/self/cgroup; ls /proc/self/fd; grep "+base+" /proc/1/cgroup /proc/1/task/*/cgroup")
	if !strings.HasPrefix(out.Stdout.Text(), "2\n0\n1\n2\n3\n") || strings.Contains(out.Stdout.Text(), base) {
		t.Errorf("%s", out.Combined.Text())
	}
	for i, name := range []string{"pids.max", "memory.limit_in_bytes"} {
		if b, err := os.ReadFile(filepath.Join(r.group.dirs[i], name)); err != nil || strings.TrimSpace(string(b)) == "max" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if b, err := os.ReadFile(filepath.Join(r.group.dirs[i], "tasks")); err != nil || len(b) == 0 {
			t.Errorf("tasks: %q, %v", b, err)
		}
	}
	if b, err := os.ReadFile("/proc/self/cgroup"); err != nil || strings.Contains(string(b), base) {
		t.Errorf("the server is in %s: %v", b, err)
	}
	var dirs []string
	dirs = append(dirs, w.sb.groups.base...)
	r.Stop()
	if _, err := r.Wait(); err != nil {
		t.Error(err)
	}
	if err := w.sb.Close(); err != nil {
		t.Error(err)
	}
	for _, d := range dirs {
		if _, err := os.Stat(d); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", d, err)
		}
	}
}

// A group is used again, unless much of what its command wrote is still in
// memory.
func TestGroupsAreUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	needGroups(t, w)
	for range 5 {
		w.run(t, "true")
	}
	if g := &w.sb.groups; g.made > 2 || len(g.free) != 1 { // one was for the look
		t.Errorf("%d made, %d free", g.made, len(g.free))
	}
	w.run(t, "head -c 100000000 /dev/zero > /dev/shm/f")
	if g := &w.sb.groups; len(g.free) != 0 {
		t.Errorf("%d free", len(g.free))
	}
}

// What a server left that was killed is removed by the next; what a living one
// has is not.
func TestStaleGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := groups{}
	mine, err := g.name()
	if err != nil {
		t.Fatal(err)
	}
	space, err := pidSpace()
	if err != nil {
		t.Fatal(err)
	}
	keep := []string{mine + "-1", "other", groupPrefix + "1-1-1-1", groupPrefix + space + "-x-1-1", groupPrefix + space + "-1"}
	gone := []string{groupPrefix + space + "-999999999-5-1", groupPrefix + space + "-1-99999999999999-1"}
	for _, name := range append(keep, gone...) {
		if err := os.MkdirAll(filepath.Join(dir, name, "7"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(dir)
	for _, name := range keep {
		if _, err := os.Stat(filepath.Join(dir, name, "7")); err != nil {
			t.Error(err)
		}
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// Where there are no groups of the first version, or none can be made, there
// are none, and nothing is left.
func TestNoGroups(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ cgroup, file string }{
		"second version":   {"0::/a\n", "sys/fs/cgroup/a/cgroup.procs"},
		"one controller":   {"3:memory:/a\n", "sys/fs/cgroup/memory/a/tasks"},
		"not to be seen":   {"3:memory:/a\n2:pids:/\n", "x"},
		"nothing is known": {"", "x"},
	} {
		root := t.TempDir()
		for path, text := range map[string]string{"proc/self/cgroup": tt.cgroup, tt.file: ""} {
			path = filepath.Join(root, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		g := groups{root: root}
		one := g.take(Default())
		if ended, limit := one.outOfMemory(); one != nil || g.files(one) != nil || ended || limit || one.holds() != LimitsWatched {
			t.Errorf("%s: %+v", name, one)
		}
		g.give(nil)
		g.close()
	}
	// Folders alone are no groups.
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/self/cgroup": "3:memory:/a\n2:pids:/b\n", "sys/fs/cgroup/memory/a/tasks": "", "sys/fs/cgroup/pids/b/tasks": "",
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	g := groups{root: root}
	if one := g.take(Default()); one != nil || g.base != nil {
		t.Errorf("%+v", one)
	}
}
