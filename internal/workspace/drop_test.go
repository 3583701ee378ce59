package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDropScratchTakesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	w := &Workspace{stateDir: t.TempDir()}
	a, err := w.Scratch("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.Scratch("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.DropScratch("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(a); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	if _, err := os.Stat(b); err != nil {
		t.Errorf("took another session's: %v", err)
	}
	if err := (&Workspace{}).DropScratch("a"); err == nil {
		t.Error("no state folder is no error")
	}
}
