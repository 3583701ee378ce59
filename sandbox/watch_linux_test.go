package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	honestConfig = "[user]\n\tname = me\n"
	evilConfig   = "[alias]\n\tst = !evil\n"
)

// watched is a watch over a folder with a configuration of git, as before a
// command.
func watched(t *testing.T, names ...string) (w *watch, git string, paths []string) {
	t.Helper()
	git = filepath.Join(emptyFolder(t), ".git")
	if err := os.Mkdir(git, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, git+"/config", honestConfig)
	for _, n := range names {
		paths = append(paths, filepath.Join(git, n))
	}
	w = &watch{}
	w.begin(paths, nil)
	return w, git, paths
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a command puts in place while the one before it is being judged is not
// taken for good.
func TestExchangedWhileJudged(t *testing.T) {
	t.Parallel()
	w, git, paths := watched(t, "config")
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		for i := 0; !stop.Load(); i++ {
			from := fmt.Sprintf("%s/new%d", git, i%2)
			if err := os.WriteFile(from, fmt.Appendf(nil, "%s# %d\n", evilConfig, i), 0o600); err != nil {
				done <- err
				return
			}
			if err := os.Rename(from, git+"/config"); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 2000 {
		w.check(paths)
	}
	stop.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if w.end(paths); readText(t, git+"/config") != honestConfig {
		t.Errorf("left: %s", readText(t, git+"/config"))
	}
}

// A folder of hooks that a command makes is looked into each time.
func TestHooksComeLater(t *testing.T) {
	t.Parallel()
	w, git, paths := watched(t, "hooks")
	if err := os.Mkdir(git+"/hooks", 0o700); err != nil {
		t.Fatal(err)
	}
	if out := w.check(paths); out != nil {
		t.Errorf("an empty folder: %q", out)
	}
	write(t, git+"/hooks/pre-commit.sample", "")
	write(t, git+"/hooks/pre-commit", "evil")
	if out := w.end(paths); len(out) != 1 || !strings.Contains(out[0].text, "set aside") {
		t.Errorf("%q", out)
	}
	if left, err := os.ReadDir(git + "/hooks"); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// Nothing a command prepares keeps what it did from being undone.
func TestUndoingCannotBePrevented(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, git string)
	}{
		{"the names of what is set aside are taken", func(t *testing.T, git string) {
			t.Helper()
			for i := range 200 {
				name := "/hooks/pre-commit" + quarantine
				if i > 0 {
					name = fmt.Sprintf("%s-%d", name, i)
				}
				write(t, git+name, "")
			}
		}},
		{"the name of what is put back is taken", func(t *testing.T, git string) {
			t.Helper()
			if err := os.MkdirAll(git+"/config.zeph-restore/x", 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"a folder that nothing may be changed in", func(t *testing.T, git string) {
			t.Helper()
			for _, d := range []string{git + "/hooks", git} {
				if err := os.Chmod(d, 0o500); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"a folder that nobody may enter", func(t *testing.T, git string) {
			t.Helper()
			if err := os.Chmod(git, 0); err != nil {
				t.Fatal(err)
			}
		}},
		{"folders that nobody may enter", func(t *testing.T, git string) {
			t.Helper()
			for _, d := range []string{git + "/hooks", git, filepath.Dir(git)} {
				if err := os.Chmod(d, 0); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, git, paths := watched(t, "config", "hooks")
			if err := os.Mkdir(git+"/hooks", 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, git+"/hooks/pre-commit", "evil")
			write(t, git+"/config", evilConfig)
			tt.prepare(t, git)
			out := w.end(paths)
			if len(out) != 2 || strings.Contains(out[0].text+out[1].text, "failed") {
				t.Errorf("%q", out)
			}
			if got := readText(t, git+"/config"); got != honestConfig {
				t.Errorf("the configuration is %q", got)
			}
			if _, err := os.Lstat(git + "/hooks/pre-commit"); !os.IsNotExist(err) {
				t.Error("the hook is there")
			}
		})
	}
}
