package write

import (
	"bytes"
	"fmt"

	godiff "github.com/rogpeppe/go-internal/diff"
)

// diff returns a unified diff of one file, cut at line ends when it is longer
// than limit.
func diff(name string, before, after []byte, limit int) string {
	out := godiff.Diff("a/"+name, before, "b/"+name, after)
	if i := bytes.IndexByte(out, '\n'); i >= 0 { // the line "diff a b" says nothing new
		out = out[i+1:]
	}
	out = bytes.TrimSuffix(out, []byte("\n"))
	if len(out) <= limit {
		return string(out)
	}
	cut := max(bytes.LastIndexByte(out[:limit], '\n'), 0)
	return fmt.Sprintf("%s\n[diff cut: %d of %d bytes]", bytes.ToValidUTF8(out[:cut], []byte("\ufffd")), cut, len(out))
}
