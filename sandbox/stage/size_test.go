package stage

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The anchor is the trusted part: it has to stay small enough to be read in one
// sitting.
func TestAnchorIsSmall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") || f == "probe_linux.go" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(b, []byte("\n"))
	}
	if lines < 1000 || lines > 3000 {
		t.Errorf("%d lines", lines)
	}
	t.Logf("%d lines", lines)
}
