package workspace

import (
	"fmt"
	"os"
)

// DropScratch removes the private /tmp of a session that will not come back.
func (w *Workspace) DropScratch(session string) error {
	dir, err := w.Scratch(session)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("private /tmp: %w", err)
	}
	return nil
}
