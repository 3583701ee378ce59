package bash

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// maxStages bounds what is read of the file the shell leaves behind.
const maxStages = 4 << 10

// withStages lets the shell that runs a plain pipeline say how each stage
// ended, by a line after it, and returns the function that reads it. The line
// writes into the session's private /tmp and leaves with the pipeline's own
// status. Where there is any doubt nothing is added.
//
// tmp is where the command finds its private /tmp.
func withStages(cmd *sandbox.Command, tmp, command string) func() []int {
	if cmd.Scratch == "" || strings.ContainsFunc(tmp, special) || !shellast.PlainPipeline(command) || slices.ContainsFunc(cmd.Env, changesShell) {
		return func() []int { return nil }
	}
	name := ".stages-" + rand.Text()
	cmd.Argv[len(cmd.Argv)-1] = command + "\n" +
		`set -- "${PIPESTATUS[@]}"; { printf '%s ' "$@" >` + tmp + `/` + name + `; } 2>/dev/null; exit "${!#}"`
	return sync.OnceValue(func() []int { return readStages(filepath.Join(cmd.Scratch, name)) })
}

// special reports whether a character of a path means something to a shell.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-", r)
}

// changesShell reports whether a variable changes how the shell itself works.
func changesShell(env string) bool {
	name, _, _ := strings.Cut(env, "=")
	return slices.Contains([]string{"SHELLOPTS", "BASHOPTS", "BASH_ENV", "BASH_COMPAT", "POSIXLY_CORRECT", "IFS", "LD_PRELOAD"}, name) ||
		strings.HasPrefix(name, "BASH_FUNC_")
}

// readStages reads and removes the file. It lies where commands can write, so
// it may be anything.
func readStages(path string) []int {
	defer os.Remove(path) //nolint:errcheck // it is not there when the shell was ended
	f, err := os.OpenFile(path, os.O_RDONLY|posix.O_NOFOLLOW|posix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxStages))
	if err != nil {
		return nil
	}
	var out []int
	for text := range strings.FieldsSeq(string(b)) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 255 {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// differing returns the stages when they did not all end the same way.
func differing(stages []int) []int {
	for _, s := range stages {
		if s != stages[0] {
			return stages
		}
	}
	return nil
}
