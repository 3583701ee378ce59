// Package workspacetest finds a place for test workspaces. Below /tmp, which is
// writable, or /var, which is readable, every test about ".." and links out of
// the workspace would prove nothing.
package workspacetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Base makes an empty folder in a place that is neither readable nor writable
// by default, and removes it when the test ends. ZEPH_TEST_BASE overrides where
// it looks first; then come the package's testdata, the home and "/".
func Base(tb testing.TB) string {
	tb.Helper()
	var tried []string
	for _, dir := range []string{os.Getenv("ZEPH_TEST_BASE"), "testdata", os.Getenv("HOME"), "/srv", "/"} {
		abs, err := filepath.Abs(dir)
		if dir == "" || err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		if readable(abs) {
			continue
		}
		base, err := os.MkdirTemp(abs, "ws-*") //nolint:usetesting // t.TempDir is below /tmp, which is what this avoids
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		tb.Cleanup(func() {
			if err := os.RemoveAll(base); err != nil {
				tb.Error(err)
			}
		})
		return base
	}
	tb.Fatalf("no place for a test workspace (set ZEPH_TEST_BASE): %s", strings.Join(tried, "; "))
	return ""
}

// readable reports whether dir lies where commands may read by default.
func readable(dir string) bool {
	for _, p := range []string{"/tmp", "/var", "/usr", "/opt", "/etc", "/run", "/dev", "/proc", "/sys", "/lib", "/boot"} {
		if dir == p || strings.HasPrefix(dir, p+"/") {
			return true
		}
	}
	for _, p := range []string{"/.cache/", "/.local/", "/go/"} { // toolchains and caches of a home
		if strings.Contains(dir+"/", p) && strings.HasPrefix(dir, os.Getenv("HOME")+"/") {
			return true
		}
	}
	return false
}
