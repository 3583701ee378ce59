package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestProtectedNamesAreFoundAnew plays what a command could do to have a new
// protected name overlooked: make it right after a look, or set the folder's
// time back.
func TestProtectedNamesAreFoundAnew(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	w := &Workspace{}
	old := time.Now().Add(-time.Hour)
	for i, name := range []string{".envrc", ".mcp.json", ".vscode", ".git/hooks", ".git/config"} {
		before := w.ProtectedIn(root)
		if len(before) != i {
			t.Fatalf("%v before %s", before, name)
		}
		if got := w.ProtectedIn(root); !slices.Equal(got, before) {
			t.Errorf("a second look sees %v, the first %v", got, before)
		}
		p := filepath.Join(root, name)
		if err := os.MkdirAll(p, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{filepath.Dir(p), root} {
			if err := os.Chtimes(d, old, old); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.ProtectedIn(root); !slices.Contains(got, p) {
			t.Errorf("%s is not seen: %v", name, got)
		}
	}
}

func TestQuietFoldersAreNotReadAgain(t *testing.T) {
	t.Parallel()
	w := &Workspace{}
	// The folder has to have been quiet for a while, so one of the system's.
	w.ProtectedIn("/usr")
	if at := w.folderTimes("/usr"); !at.quiet {
		t.Fatalf("/usr is not quiet: %+v", at)
	}
	w.seen.in["/usr"] = protectedThere{at: w.folderTimes("/usr"), paths: []string{"/usr/remembered"}}
	if got := w.ProtectedIn("/usr"); !slices.Equal(got, []string{"/usr/remembered"}) {
		t.Errorf("read again: %v", got)
	}
}

// An index can be written in place, which no folder's time tells of.
func TestAnIndexWrittenInPlaceIsSeen(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	mkdir(t, root+"/.git")
	mkdir(t, root+"/in/.git")
	write(t, root+"/in/.git/config", "")
	entry := make([]byte, 72)
	entry[26], entry[61] = 0xe0, 2
	copy(entry[62:], "in")
	full := append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"), entry...)
	write(t, root+"/.git/index", string(make([]byte, len(full))))
	w := &Workspace{}
	if got := w.ProtectedIn(root); len(got) != 0 {
		t.Fatalf("%q", got)
	}
	if f, err := os.OpenFile(root+"/.git/index", os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	} else if _, err := f.Write(full); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if got := w.ProtectedIn(root); !slices.Contains(got, root+"/in/.git/config") {
		t.Errorf("%q", got)
	}
}
