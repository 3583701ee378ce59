package stage

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The anchor is the trusted part: it has to stay small enough to be read in one
// sitting. What only level 2 and private sockets need is counted for itself.
func TestAnchorIsSmall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines, shared := 0, 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") || f == "probe_linux.go" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n := bytes.Count(b, []byte("\n"))
		if strings.HasPrefix(f, "shared_") || f == "broker_linux.go" {
			shared += n
		} else {
			lines += n
		}
	}
	if shared < 300 || shared > 800 {
		t.Errorf("%d lines for level 2", shared)
	}
	if lines < 1000 || lines > 3000 {
		t.Errorf("%d lines", lines)
	}
	t.Logf("%d lines, and %d for level 2", lines, shared)
}
