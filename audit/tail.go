package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
)

// maxTailBytes bounds what is read to show the end of a log.
const maxTailBytes = 8 << 20

// Tail returns the last n lines of the log at path, oldest first. A line that
// is not valid JSON is returned as a JSON string of its text.
func Tail(path string, n int) ([]json.RawMessage, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	lines, err := tail(f, 0, n)
	return lines, errors.Join(err, f.Close())
}

// Recent returns the last n records since this log was opened, oldest first.
// It returns none when nothing is recorded or the file cannot be read.
func (l *Log) Recent(n int) []json.RawMessage {
	if l.chain == nil {
		return nil
	}
	l.chain.mu.Lock()
	start := l.chain.start
	l.chain.mu.Unlock()
	f, err := os.Open(l.chain.path)
	if err != nil {
		return nil
	}
	lines, err := tail(f, start, n)
	if errors.Join(err, f.Close()) != nil {
		return nil
	}
	return lines
}

// tail reads the last n lines of f that lie after offset from.
func tail(f *os.File, from int64, n int) ([]json.RawMessage, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var data []byte
	at := info.Size()
	for at > from && bytes.Count(data, []byte("\n")) <= n && len(data) < maxTailBytes {
		size := min(at-from, 64<<10)
		at -= size
		block := make([]byte, size)
		if _, err := f.ReadAt(block, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		data = slices.Concat(block, data)
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if len(data) == 0 || n <= 0 {
		return nil, nil
	}
	if at > from { // the first line is only the end of one
		lines = lines[1:]
	}
	var out []json.RawMessage
	for _, line := range lines[max(0, len(lines)-n):] {
		if !json.Valid(line) {
			text, err := marshal(string(bytes.ToValidUTF8(line, []byte("�"))))
			if err != nil {
				return nil, err
			}
			line = text
		}
		out = append(out, slices.Clip(line))
	}
	return out, nil
}
