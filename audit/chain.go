package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
)

// Kinds of lines the chain writes itself.
const (
	kindRecovered = "recovered" // goes on after a last line that is not intact
	kindContinued = "continued" // first line of a file that took the place of ours, or after lines of ours were cut off
)

// reserve is how much space beyond the end of the file is proven to be there
// before a call begins: sixteen records of the largest size. Half of it is
// never used up before more is proven.
const reserve = 16 * MaxLine

// chain is the file and the place in it where the next line goes.
type chain struct {
	path  string
	flush bool
	space func(f *os.File, from, size int64) error // proves space; provided by the platform

	mu       sync.Mutex
	file     *os.File // nil after close
	end      int64    // size of the file when last is its last line
	last     link
	start    int64 // end when the log was opened
	reserved int64 // up to here space is proven
	buf      []byte
}

func openChain(path string, flush bool) (*chain, error) {
	c := &chain{path: path, flush: flush, space: proveSpace}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.open(); err != nil {
		return nil, err
	}
	c.start = c.end
	return c, nil
}

// open opens the file at the path and finds its last line.
func (c *chain) open() error {
	f, err := os.OpenFile(c.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|posix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := own(f); err != nil {
		return errors.Join(err, f.Close())
	}
	c.file, c.end, c.last, c.reserved = f, 0, link{hash: genesis()}, 0
	if err := c.locked(func() error { return nil }); err != nil {
		c.file = nil
		return errors.Join(err, f.Close())
	}
	return nil
}

// own makes sure that the file is a regular one of ours that nobody else reads.
func own(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.Name())
	}
	var st posix.Stat_t
	if err := posix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("find out whose %s is: %w", f.Name(), err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to the user that runs this program", f.Name(), st.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return f.Chmod(0o600)
	}
	return nil
}

func (c *chain) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}

var errClosed = errors.New("the audit log is closed")

// prove makes sure that one more record can be written now.
func (c *chain) prove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, err := c.current()
	if err != nil {
		return err
	}
	if size+reserve/2 <= c.reserved {
		return nil
	}
	if err := c.space(c.file, size, reserve); err != nil {
		return fmt.Errorf("no space for one more record: %w", err)
	}
	c.reserved = size + reserve
	return nil
}

// append writes one line with one write.
func (c *chain) append(at time.Time, kind string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.current(); err != nil {
		return err
	}
	return c.locked(func() error { return c.write(at, kind, body) })
}

// current makes sure that the open file is the one at the path, and returns
// its size. A file that was moved or removed is replaced by a new one whose
// first line names the last line of the old one.
func (c *chain) current() (int64, error) {
	if c.file == nil {
		return 0, errClosed
	}
	var ours, named posix.Stat_t
	if err := posix.Fstat(int(c.file.Fd()), &ours); err != nil {
		return 0, err
	}
	if err := posix.Lstat(c.path, &named); err == nil && named.Dev == ours.Dev && named.Ino == ours.Ino {
		return ours.Size, nil
	}
	return c.replace()
}

func (c *chain) replace() (int64, error) {
	file, end, last, reserved := c.file, c.end, c.last, c.reserved
	if err := c.open(); err != nil {
		c.file, c.end, c.last, c.reserved = file, end, last, reserved
		return 0, fmt.Errorf("the audit log is gone from its path and cannot be made again: %w", err)
	}
	c.start = 0
	if err := file.Close(); err != nil {
		return 0, err
	}
	if c.last.seq > 0 {
		return c.end, nil
	}
	err := c.locked(func() error { return c.continued(last) })
	return c.end, err
}

// continued writes the line that names a last line that is no longer there.
func (c *chain) continued(gone link) error {
	body := fmt.Appendf(nil, `{"event":{"previous_seq":%d,"previous_hash":"%s"}}`, gone.seq, gone.hash)
	return c.write(time.Now(), kindContinued, body)
}

// locked runs do while no other process writes, with the last line known.
func (c *chain) locked(do func() error) (err error) {
	fd := int(c.file.Fd())
	if err := flock(fd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, posix.Unlock(fd)) }()
	if err := c.catchUp(); err != nil {
		return err
	}
	return do()
}

// flock waits for the lock, but not for ever: a process that was stopped while
// it held the lock must not hang this one.
func flock(fd int) error {
	for wait, left := time.Millisecond/4, 5*time.Second; ; {
		taken, err := posix.TryLock(fd)
		switch {
		case err != nil:
			return fmt.Errorf("lock the audit log: %w", err)
		case taken:
			return nil
		case left <= 0:
			return errors.New("another process has kept the audit log locked for 5 seconds")
		}
		time.Sleep(wait)
		left -= wait
		wait = min(2*wait, 20*time.Millisecond)
	}
}

// write appends the next line. A line that could not be written whole is taken
// back, so that a full disk leaves no torn line.
func (c *chain) write(at time.Time, kind string, body []byte) error {
	line, next := appendLine(c.buf[:0], c.last, at, kind, body)
	if err := c.put(line); err != nil {
		return err
	}
	c.last = next
	if cap(line) <= MaxLine/4 {
		c.buf = line
	}
	return nil
}

func (c *chain) put(line []byte) error {
	n, err := c.file.Write(line)
	if err == nil && c.flush {
		err = c.file.Sync()
	}
	if err != nil {
		if n > 0 {
			err = errors.Join(err, c.file.Truncate(c.end))
		}
		return err
	}
	c.end += int64(n)
	return nil
}

// catchUp reads the last line again when the file is not as this process left
// it.
func (c *chain) catchUp() error {
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	size, known := info.Size(), c.last
	if size == c.end {
		return nil
	}
	cut := size < c.end
	if err := c.readLast(size); err != nil {
		return err
	}
	if cut { // by somebody else: say what was there
		c.reserved = 0
		return c.continued(known)
	}
	return nil
}

// readLast finds the last line of a file of that size.
func (c *chain) readLast(size int64) error {
	if size == 0 {
		c.end, c.last = 0, link{hash: genesis()}
		return nil
	}
	tail := make([]byte, min(size, 2*MaxLine))
	if _, err := c.file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	body := bytes.TrimSuffix(tail, []byte("\n"))
	lastLine := tail[bytes.LastIndexByte(body, '\n')+1:]
	if h, err := parseLine(lastLine); err == nil {
		c.end, c.last = size, link{seq: h.Seq, hash: h.Hash}
		return nil
	}
	if h, err := parseLine(append(lastLine, '\n')); err == nil { // all but the newline was written
		c.end = size
		if err := c.put([]byte("\n")); err != nil {
			return err
		}
		c.last = link{seq: h.Seq, hash: h.Hash}
		return nil
	}
	return c.recover(size)
}

// recover goes on after a last line that is torn or damaged. Nothing is
// removed: the new record says what it follows and what it leaves behind.
func (c *chain) recover(size int64) error {
	last, rest, err := lastIntact(io.NewSectionReader(c.file, 0, size))
	if err != nil {
		return err
	}
	torn := rest.bytes > 0 && !rest.ended
	body := fmt.Appendf(nil, `{"event":{"torn":%t,"bytes":%d,"sha256":"%s"}}`, torn, rest.bytes, rest.sum)
	line, next := appendLine(nil, last, time.Now(), kindRecovered, body)
	if torn {
		line = append([]byte("\n"), line...)
	}
	c.end = size
	if err := c.put(line); err != nil {
		return err
	}
	c.last = next
	return nil
}

// remains describes the last line of a file when it is not intact.
type remains struct {
	bytes int64
	sum   string
	ended bool // by a newline
}

// lastIntact returns the place of the last intact line and the last line after
// it, its newline not counted.
func lastIntact(r io.Reader) (link, remains, error) {
	last, rest := link{hash: genesis()}, remains{}
	br := bufio.NewReaderSize(r, 2*MaxLine)
	for {
		line, err := br.ReadSlice('\n')
		if h, bad := parseLine(line); bad == nil {
			last, rest = link{seq: h.Seq, hash: h.Hash}, remains{}
		} else if len(line) > 0 {
			sum, size := sha256.New(), int64(0)
			for ; errors.Is(err, bufio.ErrBufferFull); line, err = br.ReadSlice('\n') {
				size += int64(len(line))
				sum.Write(line)
			}
			text := bytes.TrimSuffix(line, []byte("\n"))
			sum.Write(text)
			rest = remains{bytes: size + int64(len(text)), sum: hex.EncodeToString(sum.Sum(nil)), ended: len(text) < len(line)}
		}
		if errors.Is(err, io.EOF) {
			return last, rest, nil
		}
		if err != nil {
			return link{}, remains{}, err
		}
	}
}
