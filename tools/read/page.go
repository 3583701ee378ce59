package read

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/tools"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// The bounds that keep one page cheap whatever the file is.
const (
	bufferBytes = 64 << 10
	countBytes  = 64 << 20 // lines behind the page are counted in files up to this size
	skipBytes   = 64 << 20 // a line longer than this is not walked to its end
)

// source is a file as a stream of UTF-8 text without a byte order mark.
type source struct {
	r    *bufio.Reader
	kind kind
	size int64
}

func newSource(f *os.File, size int64) (*source, error) {
	r := bufio.NewReaderSize(f, int(min(max(size, 4096)+16, bufferBytes)))
	head, err := r.Peek(int(min(sniffBytes, int64(r.Size()))))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s := &source{r: r, kind: sniff(head), size: size}
	if _, err := r.Discard(s.kind.bom); err != nil {
		return nil, err
	}
	if s.kind.utf16 != "" {
		end := unicode.LittleEndian
		if s.kind.utf16 == "be" {
			end = unicode.BigEndian
		}
		s.r = bufio.NewReader(transform.NewReader(r, unicode.UTF16(end, unicode.IgnoreBOM).NewDecoder()))
	}
	return s, nil
}

// pager takes one page out of a source.
type pager struct {
	src                  *source
	offset, limit        int
	pageBytes, lineBytes int

	lines   []string
	bytes   int
	cut     int  // lines that were cut
	seen    int  // lines passed or shown so far
	passed  int  // lines taken from the source so far
	more    bool // there is text behind the page
	total   int  // -1 = not counted
	endless bool // a line too long to walk
}

// run fills the page.
func (p *pager) run(ctx context.Context) error {
	p.total = -1
	for !p.endless {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.seen >= p.offset && (len(p.lines) >= p.limit || p.bytes >= p.pageBytes) {
			_, err := p.src.r.Peek(1)
			p.more = err == nil
			break
		}
		line, length, err := p.line(p.seen >= p.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if length == 0 && err != nil {
			break
		}
		p.passed++
		if fault := p.take(line, length); fault != nil {
			return fault
		}
		if err != nil || p.more {
			break
		}
	}
	return p.count(ctx)
}

// take adds one line to the page, unless the page is full before it.
func (p *pager) take(line []byte, length int64) error {
	if p.seen < p.offset {
		p.seen++
		return nil
	}
	text, err := p.shown(line, length)
	if err != nil {
		return err
	}
	need := len(text) + 8
	if len(p.lines) > 0 && p.bytes+need > p.pageBytes {
		p.more = true
		return nil
	}
	p.lines, p.bytes, p.seen = append(p.lines, text), p.bytes+need, p.seen+1
	return nil
}

// line reads one line with its end. Only its start is kept, and nothing when
// keep is false; length is the whole.
func (p *pager) line(keep bool) (kept []byte, length int64, err error) {
	room := p.lineBytes + utf8.UTFMax + 2
	for {
		part, err := p.src.r.ReadSlice('\n')
		length += int64(len(part))
		if keep && len(kept) < room {
			kept = append(kept, part[:min(len(part), room-len(kept))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) && length < skipBytes {
			continue
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			p.endless, err = true, nil
		}
		return kept, length, err
	}
}

// shown makes a line presentable: its end goes, and so does what is too long.
func (p *pager) shown(line []byte, length int64) (string, error) {
	whole := int64(len(line)) == length
	if whole {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	}
	cut := len(line) > p.lineBytes
	if cut {
		n := p.lineBytes
		for n > 0 && !utf8.RuneStart(line[n]) {
			n--
		}
		line = line[:n]
	}
	if !utf8.Valid(line) {
		return "", notText(line, p.seen, p.src.size)
	}
	if !cut {
		return string(line), nil
	}
	p.cut++
	return fmt.Sprintf("%s… [line cut: %d of %d bytes]", line, len(line), length), nil
}

// notText is the error for bytes that are no UTF-8.
func notText(line []byte, number int, size int64) error {
	at := 0
	for at < len(line) {
		r, n := utf8.DecodeRune(line[at:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	e := call.Failure("binary", fmt.Sprintf("binary, %d bytes, not UTF-8 in line %d at byte %d", size, number+1, at+1),
		"if it is text in another encoding, convert it with bash: iconv -f latin1 -t utf-8 FILE")
	e.Field = "path"
	return e
}

// count finds how many lines the file has, unless that would cost too much.
func (p *pager) count(ctx context.Context) error {
	if !p.more {
		if !p.endless {
			p.total = p.passed
		}
		return nil
	}
	if p.src.size > countBytes {
		return nil
	}
	total, last := p.passed, byte('\n')
	for {
		part, err := p.src.r.ReadSlice('\n')
		if n := len(part); n > 0 {
			last = part[n-1]
		}
		switch {
		case err == nil:
			total++
		case errors.Is(err, io.EOF):
			if last != '\n' {
				total++
			}
			p.total = total
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// result writes the page for the model and for programs.
func (p *pager) result(size int64) (call.Result, error) {
	out := readResult{
		Content: strings.Join(p.lines, "\n"), Lines: len(p.lines), Encoding: p.src.kind.name,
		Truncated: p.more || p.cut > 0 || p.endless,
	}
	if p.total >= 0 {
		out.TotalLines = &p.total
	}
	next := p.offset + len(p.lines)
	if p.more {
		out.NextOffset = &next
	}
	structured, err := tools.EncodeResult(out)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{
		Text: p.text(next), Structured: structured,
		Outcome: call.Outcome{RawBytes: size, Truncated: out.Truncated},
	}, nil
}

func (p *pager) text(next int) string {
	var b strings.Builder
	b.Grow(p.bytes + 64)
	for i, l := range p.lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		number(&b, p.offset+i+1)
		b.WriteString(l)
	}
	switch {
	case p.endless:
		b.WriteString("\n\n[stopped: a line is too long to be read to its end]")
	case len(p.lines) == 0 && p.total == 0:
		b.WriteString("(empty file)")
	case len(p.lines) == 0:
		fmt.Fprintf(&b, "(no lines at offset %d: the file has %d)", p.offset, max(p.total, 0))
	case p.more && p.total >= 0:
		fmt.Fprintf(&b, "\n\n[lines %d-%d of %d; go on with offset %d]", p.offset+1, next, p.total, next)
	case p.more:
		fmt.Fprintf(&b, "\n\n[lines %d-%d of a file of %d bytes; go on with offset %d]", p.offset+1, next, p.src.size, next)
	}
	return b.String()
}

// number writes a line number, right-aligned to four places, and a tab.
func number(b *strings.Builder, n int) {
	s := strconv.Itoa(n)
	for i := len(s); i < 4; i++ {
		b.WriteByte(' ')
	}
	b.WriteString(s)
	b.WriteByte('\t')
}
