package sandbox

import (
	"errors"
	"strings"
	"testing"
)

// Where there is no sandbox nothing runs, and a person is told why and what to
// do.
func TestOtherSystemsAreRefused(t *testing.T) {
	t.Parallel()
	for system, fix := range map[string]string{"windows": "WSL 2", "freebsd": "Linux container", "plan9": "virtual machine"} {
		err := refusal(system)
		if !errors.Is(err, ErrUnavailable) || err.Cause == nil || !strings.Contains(err.Fix, fix) {
			t.Errorf("%s: %v does not say that nothing runs, why, and to use %q", system, err, fix)
		}
		if !strings.Contains(strings.ToLower(err.Error()), system) {
			t.Errorf("%s: %v does not name the system", system, err)
		}
	}
}

func TestStrictIsRefusedOnWindows(t *testing.T) {
	t.Parallel()
	strict, off := Default(), Default()
	off.Mode = ModeOff
	for _, c := range []struct {
		name, system string
		cfg          Config
		refused      bool
	}{
		{"strict on Windows", "windows", strict, true},
		{"off on Windows", "windows", off, false},
		{"what a zero says", "windows", Config{}, true},
		{"strict on Linux", "linux", strict, false},
		{"strict on macOS: the probe decides", "darwin", strict, false},
	} {
		err := c.cfg.Refused(c.system)
		if errors.Is(err, ErrUnavailable) != c.refused || (err == nil) == c.refused {
			t.Errorf("%s: refused with %v, want refused %v", c.name, err, c.refused)
		}
	}
}
