package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// ErrNoScratch is returned when a session has no private /tmp.
var ErrNoScratch = errors.New("there is no private /tmp: the server has no state directory")

// Scratch returns the host directory that is /tmp for a session, making it if
// needed. Only the server's user may enter it.
func (w *Workspace) Scratch(session string) (string, error) {
	if w.stateDir == "" {
		return "", ErrNoScratch
	}
	sum := sha256.Sum256([]byte(session))
	base := w.stateDir + "/scratch"
	dir := base + "/" + hex.EncodeToString(sum[:12])
	if info, err := os.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm() == 0o700 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("private /tmp: %w", err)
	}
	for _, d := range []string{base, dir} {
		info, err := os.Lstat(d)
		if err != nil {
			return "", fmt.Errorf("private /tmp: %w", err)
		}
		if !info.IsDir() {
			return "", fmt.Errorf("private /tmp: %s is not a directory", d)
		}
		if info.Mode().Perm() != 0o700 {
			if err := os.Chmod(d, 0o700); err != nil {
				return "", fmt.Errorf("private /tmp: %w", err)
			}
		}
	}
	return dir, nil
}

// HostPath returns where the server itself finds p: the session's own
// directory for what commands see as /tmp, p's path otherwise.
func (w *Workspace) HostPath(session string, p call.Path) (string, error) {
	base, rel, err := w.anchor(session, p)
	if err != nil {
		return "", err
	}
	if rel == "" {
		return base, nil
	}
	if base == "/" {
		return "/" + rel, nil
	}
	return base + "/" + rel, nil
}
