package sandbox

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"unicode/utf8"
)

// output is what a command has printed so far: of each stream and of both
// together the beginning and the end in memory, and once that is less than all
// of it, the whole in a file.
type output struct {
	mu       sync.Mutex
	streams  [2]*keeper
	combined *keeper
	spool    *spool // nil = the whole is not kept
}

func newOutput(limit int64, sp *spool) output {
	return output{streams: [2]*keeper{newKeeper(limit), newKeeper(limit)}, combined: newKeeper(limit), spool: sp}
}

// add takes what came from one stream. The caller holds the lock.
func (o *output) add(i int, p []byte) {
	if o.spool != nil {
		o.spool.add(o.combined, p)
	}
	o.streams[i].write(p)
	o.combined.write(p)
}

func (o *output) total() (string, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return lastLine(o.combined.last(512)), o.combined.total
}

// printed is how many bytes were printed so far.
func (o *output) printed() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.combined.total
}

// fill puts what was kept into an outcome, to which more may come.
func (o *output) fill(out *Outcome, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out.Stdout, out.Stderr, out.Combined = o.streams[0].snapshot(more), o.streams[1].snapshot(more), o.combined.snapshot(more)
}

// Part is a piece of what a command printed, both streams as they arrived.
type Part struct {
	Text    string // valid UTF-8
	Next    int64  // where the next part begins
	Total   int64  // bytes printed so far
	Skipped int64  // bytes asked for that were not kept
	Invalid int    // bytes that were no UTF-8 and were replaced
}

// part returns up to limit bytes of text from a place on. What is neither in
// memory nor in the file any more is skipped.
func (o *output) part(from, limit int64) (Part, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	total := o.combined.total
	from = max(0, min(from, total))
	p := Part{Next: from, Total: total}
	if limit <= 0 || from == total {
		return p, nil
	}
	b, at, err := o.at(from, limit)
	if err != nil {
		return p, err
	}
	if whole := trimEnd(b); len(whole) > 0 {
		b = whole // a character that is not all there waits for the next part
	}
	_, used, _ := validText(b, int(max(limit, utf8.UTFMax)))
	b = b[:used]
	if i := bytes.LastIndexByte(b, '\n'); at+int64(len(b)) < total && i >= len(b)/2 {
		b = b[:i+1] // so does a line
	}
	text, _, bad := validText(b, len(b)*utf8.UTFMax)
	p.Text, p.Next, p.Skipped, p.Invalid = string(text), at+int64(len(b)), at-from, bad
	return p, nil
}

// at returns up to limit of the bytes that are kept from a place on, and where
// they begin. The caller holds the lock.
func (o *output) at(from, limit int64) ([]byte, int64, error) {
	if o.spool.holds() > from {
		b, err := o.spool.read(from, limit)
		return b, from, err
	}
	k := o.combined
	head, tail := k.head, k.tail()
	if rest := k.total - int64(len(tail)); rest > int64(len(head)) && from >= int64(len(head)) {
		from = max(from, rest)
		tail = tail[from-rest:]
	} else if rest > int64(len(head)) {
		tail = head[from:] // as far as the gap
	} else {
		tail = slices.Concat(head, tail)[from:]
	}
	return slices.Clone(tail[:min(limit, int64(len(tail)))]), from, nil
}

func (o *output) spooled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spool.holds() > 0 || o.combined.whole()
}

// drop gives back the file.
func (o *output) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool != nil {
		o.spool.close()
	}
}

// snapshot is stream for what is still being written to.
func (k *keeper) snapshot(more bool) Stream {
	c := *k
	c.ring = slices.Clone(k.ring)
	return c.stream(more)
}

// spool holds the whole of one command's output in a file, up to a quota. The
// file is made when the output outgrows memory, only its owner may read it, and
// it has no name: whatever becomes of the server, it is gone with it.
type spool struct {
	dir    string
	quota  int64
	log    *slog.Logger
	file   *os.File
	size   int64
	closed bool
}

// add takes the next bytes. k is what was kept before them.
func (s *spool) add(k *keeper, p []byte) {
	if s.closed {
		return
	}
	if s.file == nil {
		if k.total+int64(len(p)) <= int64(k.headMax+k.ringMax) {
			return // all of it is still in memory
		}
		if err := s.open(); err != nil {
			s.fail(err)
			return
		}
		s.put(k.head)
		s.put(k.tail())
	}
	s.put(p)
}

func (s *spool) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, "output-") // for its owner alone
	if err != nil {
		return err
	}
	s.file = f
	return os.Remove(f.Name())
}

// put appends what the quota leaves room for.
func (s *spool) put(p []byte) {
	if s.closed || s.size >= s.quota {
		return
	}
	n, err := s.file.Write(p[:min(int64(len(p)), s.quota-s.size)])
	s.size += int64(n)
	if err != nil {
		s.fail(err)
	}
}

// fail goes on without the file: the command is not to suffer for it.
func (s *spool) fail(err error) {
	s.log.Warn("the whole output of a command cannot be kept", "error", err)
	s.close()
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	s.file, s.size, s.closed = nil, 0, true
}

func (s *spool) holds() int64 {
	if s == nil {
		return 0
	}
	return s.size
}

func (s *spool) read(from, limit int64) ([]byte, error) {
	b := make([]byte, min(limit, s.size-from))
	if n, err := s.file.ReadAt(b, from); n < len(b) {
		return nil, fmt.Errorf("read a command's output: %w", err)
	}
	return b, nil
}
