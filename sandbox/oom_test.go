package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOOMCounter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ group, file string }{
		"second version": {"0::/a/b\n", "sys/fs/cgroup/a/b/memory.events"},
		"first version":  {"9:name=systemd:/\n4:memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.oom_control"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write := func(path, text string) {
				t.Helper()
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/self/cgroup", tt.group)
			if got := oomFile(root); got != "" {
				t.Errorf("found %s, which is not there", got)
			}
			write(tt.file, "low 0\noom 9\noom_kill 3\n")
			c := oomCounter{path: oomFile(root)}
			if c.path != filepath.Join(root, tt.file) || c.grew() || c.grew() {
				t.Errorf("%+v", &c)
			}
			write(tt.file, "oom_kill 4\n")
			if !c.grew() || c.grew() {
				t.Errorf("%+v", &c)
			}
			write(tt.file, "garbage\n")
			if c.grew() {
				t.Error("it grew without a number")
			}
		})
	}
}
