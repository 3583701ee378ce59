//go:build trace

package shellast_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// elsewhere reports whether something that ran is no part of what the text of a
// command says: it stands in a file that a shell was told to read, or a program
// chose it by itself.
func (t *tracer) elsewhere(f call.Facts, ran []string) bool {
	return t.inFile(f, ran[0]) || compressor(f, ran)
}

// inFile reports whether a name is a word of a file that a shell reads: what is
// in a file is not part of the command, a program of the workspace is just a
// program. The command may have written it.
func (t *tracer) inFile(f call.Facts, name string) bool {
	word := regexp.MustCompile(`(^|[^\w.+-])` + regexp.QuoteMeta(name) + `($|[^\w.+-])`)
	return slices.ContainsFunc(f.Reads, func(p call.Path) bool {
		switch p.By {
		case "bash", "sh", "dash", "source", ".", "redirect", "BASH_ENV", "ENV":
		default:
			return false
		}
		text, err := os.ReadFile(p.Path)
		return err == nil && word.Match(text)
	})
}

// compressor reports whether tar started what an option of its own, or the name
// of the archive, makes it start.
func compressor(f call.Facts, ran []string) bool {
	if !slices.Contains([]string{"gzip", "bzip2", "xz", "zstd", "lzma", "lzip", "lzop", "compress"}, ran[0]) || len(ran) > 2 || len(ran) == 2 && ran[1] != "-d" {
		return false
	}
	return slices.ContainsFunc(f.Commands, func(c call.Command) bool {
		return filepath.Base(c.Argv[0]) == "tar" && slices.ContainsFunc(c.Argv[1:], func(a string) bool {
			return regexp.MustCompile(`^-?[A-Za-z]*[zjJZa]|^--(gzip|gunzip|ungzip|bzip2|xz|lzma|lzip|lzop|zstd|compress|uncompress|auto-compress)$|\.(tgz|t?[gxb]z2?|zst)$`).MatchString(a)
		})
	})
}

// homed is what the home of a user nobody has would be: such a word stays as it
// is written.
func homed(ran string) string {
	if rest, ok := strings.CutPrefix(ran, "~"); ok && rest != "" && rest[0] != '/' {
		return "/home/" + rest
	}
	return ran
}
