package sandbox

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Stream is what was kept of one stream of output.
type Stream struct {
	Head        []byte // all of it, when nothing was cut
	Tail        []byte // the end, when the middle was cut out
	Total       int64  // bytes written
	Truncated   bool   // exactly when bytes are missing between Head and Tail
	Cut         int64  // how many are missing
	InvalidUTF8 int    // places in the kept bytes that were no text and were replaced
}

// Text returns the stream as text. A cut is announced where it was made.
func (s Stream) Text() string {
	if !s.Truncated {
		return string(s.Head) + string(s.Tail)
	}
	var b strings.Builder
	b.Write(s.Head)
	if len(s.Head) > 0 && s.Head[len(s.Head)-1] != '\n' {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[... %d of %d bytes cut here ...]\n", s.Cut, s.Total)
	b.Write(s.Tail)
	return b.String()
}

// keeper keeps the beginning and the end of what is written to it, in memory
// bounded by its limit whatever is written.
type keeper struct {
	head, ring       []byte
	headMax, ringMax int
	at               int // where the ring continues
	total            int64
}

func newKeeper(limit int64) *keeper {
	h := int(limit / 2)
	return &keeper{headMax: h, ringMax: int(limit) - h}
}

func (k *keeper) write(p []byte) {
	k.total += int64(len(p))
	if room := k.headMax - len(k.head); room > 0 {
		n := min(room, len(p))
		k.head = append(k.head, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 || k.ringMax == 0 {
		return
	}
	if len(p) > k.ringMax {
		p = p[len(p)-k.ringMax:]
	}
	if room := k.ringMax - len(k.ring); room > 0 {
		n := min(room, len(p))
		k.ring = append(k.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(k.ring[k.at:], p)
		k.at = (k.at + n) % k.ringMax
		p = p[n:]
	}
}

// last returns up to n of the newest bytes.
func (k *keeper) last(n int) []byte {
	tail := k.tail()
	if len(tail) == 0 {
		tail = k.head
	}
	return tail[max(0, len(tail)-n):]
}

func (k *keeper) tail() []byte {
	if k.at == 0 {
		return k.ring
	}
	out := make([]byte, 0, len(k.ring))
	return append(append(out, k.ring[k.at:]...), k.ring[:k.at]...)
}

// stream returns what was kept as valid text, cut between characters.
func (k *keeper) stream() Stream {
	s := Stream{Total: k.total}
	head, tail := k.head, k.tail()
	if int64(len(head)+len(tail)) == k.total {
		head, tail = append(slices.Clip(head), tail...), nil
	} else {
		s.Truncated = true
		head, tail = trimEnd(head), trimStart(tail)
		s.Cut = k.total - int64(len(head)+len(tail))
	}
	var n, m int
	s.Head, n = validText(head)
	s.Tail, m = validText(tail)
	s.InvalidUTF8 = n + m
	return s
}

// trimEnd drops a character that was cut in two at the end.
func trimEnd(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// trimStart drops the rest of a character that was cut in two at the start.
func trimStart(b []byte) []byte {
	for i := range min(utf8.UTFMax-1, len(b)) {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// validText replaces every byte that is no UTF-8 and counts them.
func validText(b []byte) ([]byte, int) {
	if utf8.Valid(b) {
		return b, 0
	}
	out := make([]byte, 0, len(b)+len(b)/8)
	n := 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		out = utf8.AppendRune(out, r)
		b = b[size:]
	}
	return out, n
}

// lastLine returns the newest line of text with something in it, short and
// printable, for a progress report.
func lastLine(b []byte) string {
	b = bytes.TrimRight(b, "\r\n \t")
	if i := bytes.LastIndexAny(b, "\r\n"); i >= 0 {
		b = b[i+1:]
	}
	b, _ = validText(trimStart(b))
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, string(b))
}
