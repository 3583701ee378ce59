// Package page writes docs/benchmarks.md, of which each program that measures
// something owns a section.
package page

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

const preamble = "# Benchmarks\n\n" +
	"Made by `make bench` and `make bench-sandbox`; do not edit. What is compared ran in one run, in turns, " +
	"on a machine with other work on it: read the ratios, not the single times.\n"

// Write puts a section into the page at path, in the place of the one with the
// same title or at the end, and leaves the others.
func Write(path, title, body string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(With(string(old), title, body)), 0o644)
}

// With is the page with that section.
func With(page, title, body string) string {
	section := "## " + title + "\n\n" + strings.TrimSpace(body) + "\n"
	var b strings.Builder
	b.WriteString(preamble)
	_, rest, _ := strings.Cut("\n"+page, "\n## ")
	placed := false
	for s := range strings.SplitSeq(rest, "\n## ") {
		switch {
		case s == "":
			continue
		case strings.HasPrefix(s, title+"\n"):
			b.WriteString("\n" + section)
			placed = true
		default:
			b.WriteString("\n## " + strings.TrimSpace(s) + "\n")
		}
	}
	if !placed {
		b.WriteString("\n" + section)
	}
	return b.String()
}

// Machine says in a line what was measured on, and when.
func Machine() string {
	return fmt.Sprintf("%s, %s/%s, %d processors, %s.", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		time.Now().UTC().Format("2006-01-02"))
}
