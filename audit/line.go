package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// One line is
//
//	{"v":1,"seq":N,"time":"…","kind":"call","prev":"<64 hex>",…,"hash":"<64 hex>"}
//
// with hash = SHA-256 over every byte before `,"hash":`, the previous line's
// hash included as prev. The form is fixed to the byte, so no byte of a line is
// without cover.

const (
	hashLen  = 2 * sha256.Size
	headRoom = 512 // of a line, for what surrounds the record

	hashKey = `,"hash":"`
	lineEnd = `"}` + "\n"
)

// genesis is the prev of a first line.
func genesis() string { return string(bytes.Repeat([]byte("0"), hashLen)) }

// link is the place in the chain that a new line hangs on.
type link struct {
	seq  uint64
	hash string
}

// appendLine appends to out the line that follows prev and holds the members
// of body, which must be a JSON object, and returns the place of the new line.
func appendLine(out []byte, prev link, at time.Time, kind string, body []byte) ([]byte, link) {
	start, next := len(out), link{seq: prev.seq + 1}
	out = append(out, `{"v":1,"seq":`...)
	out = strconv.AppendUint(out, next.seq, 10)
	out = append(out, `,"time":"`...)
	out = at.UTC().AppendFormat(out, time.RFC3339Nano)
	out = append(out, `","kind":"`...)
	out = append(out, kind...)
	out = append(out, `","prev":"`...)
	out = append(out, prev.hash...)
	out = append(out, '"')
	if members := bytes.TrimSuffix(bytes.TrimPrefix(body, []byte("{")), []byte("}")); len(members) > 0 {
		out = append(out, ',')
		out = append(out, members...)
	}
	sum := sha256.Sum256(out[start:])
	next.hash = hex.EncodeToString(sum[:])
	out = append(out, hashKey...)
	out = append(out, next.hash...)
	return append(out, lineEnd...), next
}

// header is the part of a line that places it in the chain.
type header struct {
	V    int    `json:"v"`
	Seq  uint64 `json:"seq"`
	Kind string `json:"kind"`
	Prev string `json:"prev"`
	Hash string `json:"hash"`
}

var errMalformed = errors.New("is not a complete record")

// parseLine reads one line, its newline included, and checks it against
// itself: form and hash. It says nothing about its neighbours.
func parseLine(line []byte) (header, error) {
	tail := len(hashKey) + hashLen + len(lineEnd)
	at := len(line) - tail
	if at < 1 || !bytes.HasPrefix(line[at:], []byte(hashKey)) || !bytes.HasSuffix(line, []byte(lineEnd)) {
		return header{}, errMalformed
	}
	hash := line[at+len(hashKey) : at+len(hashKey)+hashLen]
	sum := sha256.Sum256(line[:at])
	if want := hex.EncodeToString(sum[:]); want != string(hash) {
		return header{}, errors.New("was altered: its hash does not match its content")
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return header{}, fmt.Errorf("is not valid JSON: %w", err)
	}
	if h.V != 1 || h.Seq == 0 || len(h.Prev) != hashLen || h.Kind == "" {
		return header{}, errors.New("is not a record of a known version")
	}
	return h, nil
}
