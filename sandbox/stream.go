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
	HeadBytes   int64  // how many of them Head stands for: what is no text is longer replaced
	Truncated   bool   // exactly when bytes are missing between Head and Tail
	Cut         int64  // how many are missing
	InvalidUTF8 int    // bytes in Head and Tail that were no text and were replaced
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

// whole reports whether everything that was written is kept.
func (k *keeper) whole() bool { return k.total <= int64(k.headMax+k.ringMax) }

// stream returns what was kept as valid text, cut between characters. The text
// is bounded like what is kept. While more may come, a character that is not
// all there yet is left to it.
func (k *keeper) stream(more bool) Stream {
	s := Stream{Total: k.total}
	head, tail := k.head, k.tail()
	if k.whole() {
		all := append(slices.Clip(head), tail...)
		if more {
			all = trimEnd(all)
		}
		text, used, bad := validText(all, k.headMax+k.ringMax)
		if used == len(all) {
			s.Head, s.HeadBytes, s.InvalidUTF8 = text, int64(used), bad
			return s
		}
		head, tail = all, all
	}
	// What is no text gets longer, so the text of what was kept whole may still
	// have to be cut.
	s.Truncated = true
	var used, left, n, m int
	s.Head, used, n = validText(trimEnd(head), k.headMax)
	s.Tail, left, m = validEnd(trimStart(tail), k.ringMax)
	s.HeadBytes, s.InvalidUTF8 = int64(used), n+m
	s.Cut = k.total - int64(used+left)
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

// validText replaces every byte that is no UTF-8, as long as the text is not
// longer than limit. It returns the text, how many of the bytes it stands for,
// and how many of those were replaced.
func validText(b []byte, limit int) (text []byte, used, replaced int) {
	if len(b) <= limit && utf8.Valid(b) {
		return b, len(b), 0
	}
	text = make([]byte, 0, min(limit, len(b)+len(b)/8))
	for used < len(b) {
		r, size := utf8.DecodeRune(b[used:])
		if len(text)+utf8.RuneLen(r) > limit {
			break
		}
		if r == utf8.RuneError && size == 1 {
			replaced++
		}
		text = utf8.AppendRune(text, r)
		used += size
	}
	return text, used, replaced
}

// validEnd is validText from the end.
func validEnd(b []byte, limit int) (text []byte, used, replaced int) {
	from, room := len(b), limit
	for from > 0 {
		r, size := utf8.DecodeLastRune(b[:from])
		if room -= utf8.RuneLen(r); room < 0 {
			break
		}
		from -= size
	}
	return validText(b[from:], limit)
}

// lastLine returns the newest line of text with something in it, short and
// printable, for a progress report.
func lastLine(b []byte) string {
	b = bytes.TrimRight(b, "\r\n \t")
	if i := bytes.LastIndexAny(b, "\r\n"); i >= 0 {
		b = b[i+1:]
	}
	b, _, _ = validText(trimStart(b), 4*len(b))
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, string(b))
}
