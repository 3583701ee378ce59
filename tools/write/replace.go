package write

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// The bounds of the help for a text that is not there.
const (
	shownLines  = 8
	manyPlaces  = 100
	missedLines = 50_000 // no nearest place is looked for in more
)

func notThere() error { return fs.ErrNotExist }

// replace makes the edit. Where the file ends its lines with CRLF and the
// arguments do not, they are read as if they did. Nothing but the text that was
// asked for changes.
func replace(text string, a editArgs) (string, int, error) {
	old, repl := a.OldString, a.NewString
	if ends := strings.Count(text, "\r\n"); ends > 0 {
		pure := ends == strings.Count(text, "\n")
		if pure || !strings.Contains(text, old) {
			old, repl = crlf(old), crlf(repl)
		}
	}
	at := occurrences(text, old)
	switch {
	case len(at) == 0:
		return "", 0, miss(text, a.OldString)
	case len(at) > 1 && !a.ReplaceAll:
		return "", 0, ambiguous(text, at)
	case len(at) > 1:
		return strings.ReplaceAll(text, old, repl), strings.Count(text, old), nil
	}
	return text[:at[0]] + repl + text[at[0]+len(old):], 1, nil
}

// crlf gives every line a CRLF end.
func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// occurrences returns where old starts in text, overlapping places included,
// up to manyPlaces.
func occurrences(text, old string) []int {
	var at []int
	for from := 0; len(at) < manyPlaces; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + 1
	}
	return at
}

// ambiguous is the error for a text that is there more than once.
func ambiguous(text string, at []int) error {
	var numbers []string
	for _, i := range at[:min(len(at), 10)] {
		numbers = append(numbers, fmt.Sprint(lineAt(text, i)))
	}
	if len(at) > len(numbers) {
		numbers = append(numbers, "…")
	}
	times := fmt.Sprint(len(at))
	if len(at) == manyPlaces {
		times = "at least " + times
	}
	e := call.Failure("not_unique", fmt.Sprintf("old_string is there %s times, at lines %s", times, strings.Join(numbers, ", ")),
		"quote more lines around the right place, or set replace_all to true")
	e.Field, e.Details = "old_string", map[string]any{"count": len(at)}
	return e
}

func lineAt(text string, i int) int { return strings.Count(text[:i], "\n") + 1 }

// miss is the error for a text that is not there. It shows the place that was
// probably meant.
func miss(text, old string) error {
	e := call.Failure("no_match", "old_string is not in the file", "read the file again and quote the lines exactly")
	e.Field = "old_string"
	if numbered(old) {
		e.Suggestion = "leave out the line numbers and the tab after them: they are not part of the file"
		return e
	}
	lines := strings.Split(text, "\n")
	want := strings.Split(strings.Trim(old, "\r\n"), "\n")
	if len(lines) > missedLines {
		return e
	}
	if at := sameButBlanks(lines, want); at >= 0 {
		e.Message += fmt.Sprintf(", but line %d differs from it only in blanks", at+1)
		e.Suggestion = "quote these lines exactly:\n" + excerpt(lines, at, len(want))
		return e
	}
	if at := nearest(lines, want[0]); at >= 0 {
		e.Suggestion = "the nearest place is:\n" + excerpt(lines, at, len(want))
	}
	return e
}

// numbered reports whether every line starts as the lines that read shows.
func numbered(old string) bool {
	ok, err := regexp.MatchString(`^( *\d+\t[^\n]*(\n|$))+$`, old)
	return err == nil && ok
}

// sameButBlanks finds the first place where the wanted lines stand, blanks not
// counted.
func sameButBlanks(lines, want []string) int {
	bare := func(list []string) []string {
		out := make([]string, len(list))
		for i, l := range list {
			out[i] = strings.Join(strings.Fields(l), "")
		}
		return out
	}
	have, need := bare(lines), bare(want)
	if strings.Join(need, "") == "" {
		return -1
	}
	for i := 0; i+len(need) <= len(have); i++ {
		if slices.Equal(have[i:i+len(need)], need) {
			return i
		}
	}
	return -1
}

// nearest finds the line that shares most of its words with the wanted one.
func nearest(lines []string, want string) int {
	need := words(want)
	best, at := len(need)/2, -1 // less than half is no help
	for i, l := range lines {
		score := 0
		have := words(l)
		for w := range need {
			if have[w] {
				score++
			}
		}
		if score > best {
			best, at = score, i
		}
	}
	return at
}

func words(line string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(line[:min(len(line), 1000)], func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	}) {
		out[w] = true
	}
	return out
}

// excerpt shows lines with their numbers, as read does.
func excerpt(lines []string, at, n int) string {
	var b strings.Builder
	for i := at; i < min(at+min(n, shownLines), len(lines)); i++ {
		l := strings.TrimSuffix(lines[i], "\r")
		if r := []rune(l); len(r) > 200 {
			l = string(r[:200]) + "…"
		}
		fmt.Fprintf(&b, "%4d\t%s\n", i+1, l)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
