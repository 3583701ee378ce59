package read

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// The bounds of a search.
const (
	chunkBytes   = 4 << 20  // a file is searched in pieces of whole lines
	countedBytes = 64 << 20 // how much is still searched to count, once enough is shown
	matchBytes   = 500      // a longer line of a match is cut, visibly
)

// match is one entry of the structured result. Which fields it has depends on
// the output mode.
type match struct {
	Path   string   `json:"path"`
	Line   int      `json:"line,omitempty"`
	Text   string   `json:"text,omitempty"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
	Count  int      `json:"count,omitempty"`
}

// search collects the matches of one call.
type search struct {
	re      *regexp.Regexp
	literal []byte // every match starts with it; nil = nothing known
	whole   bool   // the literal is the whole expression
	mode    string
	context int
	most    int
	page    int

	buf      []byte
	text     strings.Builder
	matches  []match
	hits     int // matching lines
	files    int // files with one
	full     bool
	counting int64 // bytes searched since it is full
	stopped  bool  // not everything was counted

	binary, unreadable, secrets int
}

func newSearch(re *regexp.Regexp, a grepArgs, most int, cfg Config) *search {
	prefix, whole := re.LiteralPrefix()
	s := &search{re: re, whole: whole, mode: a.Output, context: a.Context, most: most, page: cfg.PageBytes, matches: []match{}}
	if s.mode == "" {
		s.mode = "content"
	}
	if prefix != "" && !strings.Contains(prefix, "\n") {
		s.literal = []byte(prefix)
	}
	return s
}

// file searches one open file. It returns errEnough when the whole search is
// over.
func (s *search) file(ctx context.Context, f *os.File, path string) error {
	fs := fileSearch{search: s, path: path, line: 1}
	kept := 0 // start of a line that the last piece cut
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.buf == nil {
			s.buf = make([]byte, 64<<10)
		}
		n, last := s.fill(f, kept)
		data := s.buf[:kept+n]
		if first && sniff(data[:min(len(data), sniffBytes)]).notSearchable() {
			s.binary++
			return nil
		}
		cut := len(data)
		if !last {
			if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
				cut = i + 1
			}
		}
		fs.piece(data[:cut])
		if s.full {
			if s.counting += int64(cut); s.counting > countedBytes {
				s.stopped = true
				return errEnough
			}
		}
		kept = copy(s.buf, data[cut:])
		if last || fs.done {
			break
		}
	}
	fs.finish()
	return nil
}

func (k kind) notSearchable() bool { return k.binary || k.utf16 != "" }

// fill reads on behind kept bytes, up to a piece. The second result is true at
// the end of the file, or where it cannot be read on.
func (s *search) fill(f *os.File, kept int) (int, bool) {
	n := 0
	for {
		if kept+n == len(s.buf) {
			if len(s.buf) >= chunkBytes {
				return n, false
			}
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		m, err := f.Read(s.buf[kept+n:])
		n += m
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.unreadable++
			}
			return n, true
		}
	}
}

// fileSearch is the search of one file.
type fileSearch struct {
	*search
	path  string
	line  int // number of the line the piece starts with
	hits  int
	done  bool // the mode needs no more of this file
	shown int  // number of the last line written; 0 = none
}

// piece searches whole lines.
func (f *fileSearch) piece(data []byte) {
	at, number := 0, f.line // number is that of the line at
	printed := 0            // end of the last line written in this piece
	after := 0              // context lines still owed
	for at < len(data) && !f.done {
		from, to, ok := f.next(data, at)
		if after > 0 {
			printed, after = f.behind(data, printed, at, from, number, after)
		}
		if !ok {
			break
		}
		number += bytes.Count(data[at:from], []byte("\n"))
		before := len(f.matches)
		f.hit(data, printed, from, to, number)
		if len(f.matches) > before {
			printed, after = to, f.context
		}
		at, number = to, number+1
	}
	f.line += bytes.Count(data, []byte("\n"))
}

// next finds the first matching line from at on, with its end.
func (f *fileSearch) next(data []byte, at int) (from, to int, ok bool) {
	for at < len(data) {
		from = at
		if f.literal != nil {
			i := bytes.Index(data[at:], f.literal)
			if i < 0 {
				return len(data), len(data), false
			}
			from = at + i
			if j := bytes.LastIndexByte(data[at:from], '\n'); j >= 0 {
				from = at + j + 1
			} else {
				from = at
			}
		}
		to = len(data)
		if i := bytes.IndexByte(data[from:], '\n'); i >= 0 {
			to = from + i + 1
		}
		if f.literal != nil && f.whole || f.re.Match(bare(data[from:to])) {
			return from, to, true
		}
		at = to
	}
	return len(data), len(data), false
}

// bare is a line without its end.
func bare(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// hit records one matching line.
func (f *fileSearch) hit(data []byte, printed, from, to, number int) {
	f.hits++
	f.search.hits++
	switch f.mode {
	case "files":
		f.done = true
		return
	case "count":
		return
	}
	if f.full {
		return
	}
	m := match{Path: f.path, Line: number, Text: clip(bare(data[from:to]))}
	start := from // of the context before
	for range f.context {
		if start <= printed {
			break
		}
		start = bytes.LastIndexByte(data[printed:start-1], '\n') + printed + 1
	}
	first := number - bytes.Count(data[start:from], []byte("\n"))
	if f.context > 0 && f.text.Len() > 0 && (f.shown == 0 || first > f.shown+1) {
		f.text.WriteString("--\n")
	}
	for i, l := range lines(data[start:from]) {
		m.Before = append(m.Before, l)
		f.write(first+i, '-', l)
	}
	f.write(number, ':', m.Text)
	f.matches = append(f.matches, m)
	f.full = len(f.matches) >= f.most || f.text.Len() >= f.page
}

// behind writes the context after the last match, up to the next one.
func (f *fileSearch) behind(data []byte, printed, at, next, number, owed int) (end, still int) {
	m := &f.matches[len(f.matches)-1]
	for owed > 0 && at < next {
		to := next
		if i := bytes.IndexByte(data[at:next], '\n'); i >= 0 {
			to = at + i + 1
		}
		l := clip(bare(data[at:to]))
		m.After = append(m.After, l)
		f.write(number, '-', l)
		at, printed, number, owed = to, to, number+1, owed-1
	}
	return printed, owed
}

// lines cuts whole lines apart.
func lines(data []byte) []string {
	var out []string
	for l := range bytes.Lines(data) {
		out = append(out, clip(bare(l)))
	}
	return out
}

func (f *fileSearch) write(number int, mark byte, text string) {
	fmt.Fprintf(&f.text, "%s%c%d%c %s\n", f.path, mark, number, mark, text)
	f.shown = number
}

// finish records a file for the modes that count files.
func (f *fileSearch) finish() {
	if f.hits == 0 {
		return
	}
	f.files++
	if f.full {
		return
	}
	switch f.mode {
	case "files":
		f.matches = append(f.matches, match{Path: f.path})
		f.text.WriteString(f.path + "\n")
	case "count":
		f.matches = append(f.matches, match{Path: f.path, Count: f.hits})
		fmt.Fprintf(&f.text, "%s: %d\n", f.path, f.hits)
	default:
		return
	}
	f.full = len(f.matches) >= f.most || f.text.Len() >= f.page
}

// clip makes one line presentable.
func clip(line []byte) string {
	if len(line) <= matchBytes {
		return strings.ToValidUTF8(string(line), "\ufffd")
	}
	n := matchBytes
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return fmt.Sprintf("%s… [line cut: %d of %d bytes]", strings.ToValidUTF8(string(line[:n]), "\ufffd"), n, len(line))
}

// grepResult is the structured result.
type grepResult struct {
	Matches   []match `json:"matches"`
	Total     int     `json:"total,omitempty"` // when more was found than is shown
	Truncated bool    `json:"truncated"`
}

func (s *search) result(a grepArgs) (call.Result, error) {
	total := s.files
	if s.mode == "content" {
		total = s.hits
	}
	out := grepResult{Matches: s.matches, Truncated: s.stopped || total > len(s.matches)}
	var notes []string
	switch {
	case total == 0:
		notes = append(notes, "No matches for: "+a.Pattern)
	case s.stopped:
		notes = append(notes, fmt.Sprintf("... (showing the first %d; there are at least %d)", len(s.matches), total))
	case out.Truncated:
		out.Total = total
		notes = append(notes, fmt.Sprintf("... (showing the first %d of %d)", len(s.matches), total))
	}
	for _, n := range []struct {
		count int
		text  string
	}{
		{s.binary, "binary files were skipped"},
		{s.unreadable, "files or folders could not be read"},
		{s.secrets, "entries are closed to tools and were left out"},
	} {
		if n.count > 0 {
			notes = append(notes, fmt.Sprintf("(%d %s)", n.count, n.text))
		}
	}
	structured, err := tools.EncodeResult(out)
	return call.Result{
		Text: strings.TrimSuffix(s.text.String()+strings.Join(notes, "\n"), "\n"), Structured: structured,
		Outcome: call.Outcome{Truncated: out.Truncated, RawBytes: int64(s.text.Len())},
	}, err
}
