package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrBroken is wrapped by [Report.Err] when the chain does not hold.
var ErrBroken = errors.New("the audit log's chain is broken")

// Report is what [Verify] found.
type Report struct {
	Lines     int       `json:"lines"`
	Records   int       `json:"records"`   // intact lines
	Recovered []int     `json:"recovered"` // lines torn by a crash and accounted for by the record after them
	Problems  []Problem `json:"problems"`  // the first hundred
	Broken    int       `json:"broken"`    // number of all problems
	FirstSeq  uint64    `json:"first_seq"`
	LastSeq   uint64    `json:"last_seq"`
	Continues string    `json:"continues,omitempty"` // last hash of the file this one took the place of
	LastHash  string    `json:"last_hash"`           // note it elsewhere to find lines dropped from the end
}

// Problem is one place where the chain does not hold.
type Problem struct {
	Line int    `json:"line"` // counts from 1
	Kind string `json:"kind"` // altered, malformed, torn, missing, doubled, moved or unlinked
	Text string `json:"text"`
}

const maxProblems = 100

// verifier walks a log line by line.
type verifier struct {
	rep  Report
	last link
	bad  *badLine // the line before, when it is not intact
}

// badLine is a line that is not intact and may yet be accounted for.
type badLine struct {
	number int
	kind   string
	text   string
	bytes  int64
	sum    string
}

// Err returns nil when the chain holds, else an error that wraps [ErrBroken]
// and names the first line that was altered, removed, doubled, moved or cut.
func (r Report) Err() error {
	if r.Broken == 0 {
		return nil
	}
	p := r.Problems[0]
	return fmt.Errorf("%w: line %d %s", ErrBroken, p.Line, p.Text)
}

// Verify reads a whole log. The error says only that r cannot be read; whether
// the chain holds is in the report, see [Report.Err]. Lines dropped from the
// end in whole leave a chain that holds: compare [Report.LastHash].
func Verify(r io.Reader) (Report, error) {
	v := &verifier{last: link{hash: genesis()}}
	br := bufio.NewReaderSize(r, 2*MaxLine)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			v.rep.Lines++
			v.line(line, &err, br)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return v.rep, fmt.Errorf("verify audit log: %w", err)
		}
	}
	v.settle()
	v.rep.LastSeq, v.rep.LastHash = v.last.seq, v.last.hash
	return v.rep, nil
}

// line judges one line. A line longer than any record is read to its end.
func (v *verifier) line(line []byte, err *error, br *bufio.Reader) {
	h, bad := parseLine(line)
	if bad == nil {
		v.intact(h, line)
		return
	}
	sum, size := sha256.New(), int64(0)
	for ; errors.Is(*err, bufio.ErrBufferFull); line, *err = br.ReadSlice('\n') {
		size += int64(len(line))
		sum.Write(line)
	}
	text := bytes.TrimSuffix(line, []byte("\n"))
	sum.Write(text)
	v.settle()
	v.bad = &badLine{
		number: v.rep.Lines, kind: "altered", text: bad.Error(),
		bytes: size + int64(len(text)), sum: hex.EncodeToString(sum.Sum(nil)),
	}
	switch {
	case len(text) == len(line):
		v.bad.kind, v.bad.text = "torn", "is cut off: the file does not end with a whole line"
	case errors.Is(bad, errMalformed):
		v.bad.kind = "malformed"
	}
}

// intact judges where an intact line stands.
func (v *verifier) intact(h header, line []byte) {
	v.rep.Records++
	if v.rep.Records == 1 {
		v.rep.FirstSeq = h.Seq
	}
	linked := h.Prev == v.last.hash && h.Seq == v.last.seq+1
	switch {
	case v.bad != nil && linked && h.Kind == kindRecovered && v.accounts(line):
		v.rep.Recovered = append(v.rep.Recovered, v.bad.number)
		v.bad = nil
	case v.bad != nil:
		v.settle() // one problem; this line is taken as the new start
	case linked && h.Kind == kindContinued:
		v.continued(line)
	case linked:
	default:
		v.misplaced(h)
	}
	v.last = link{seq: h.Seq, hash: h.Hash}
}

// misplaced says how an intact line does not follow the line before it.
func (v *verifier) misplaced(h header) {
	switch {
	case h.Seq == v.last.seq && h.Hash == v.last.hash:
		v.problem(v.rep.Lines, "doubled", fmt.Sprintf("repeats record %d", h.Seq))
	case h.Seq <= v.last.seq:
		v.problem(v.rep.Lines, "moved", fmt.Sprintf("holds record %d, but stands after record %d", h.Seq, v.last.seq))
	case h.Seq == v.last.seq+1:
		v.problem(v.rep.Lines, "unlinked", fmt.Sprintf("holds record %d, which does not follow the line before it", h.Seq))
	default:
		v.problem(v.rep.Lines, "missing", fmt.Sprintf("holds record %d, but record %d is missing before it", h.Seq, v.last.seq+1))
	}
}

// accounts reports whether a recovered record describes the torn line before
// it to the byte.
func (v *verifier) accounts(line []byte) bool {
	var rec struct {
		Event struct {
			Torn   bool   `json:"torn"`
			Bytes  int64  `json:"bytes"`
			SHA256 string `json:"sha256"`
		} `json:"event"`
	}
	err := json.Unmarshal(line, &rec)
	return err == nil && rec.Event.Torn && rec.Event.Bytes == v.bad.bytes && rec.Event.SHA256 == v.bad.sum
}

// continued judges a record that names a last line which is not before it.
func (v *verifier) continued(line []byte) {
	var rec struct {
		Event struct {
			Seq  uint64 `json:"previous_seq"`
			Hash string `json:"previous_hash"`
		} `json:"event"`
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		v.problem(v.rep.Lines, "malformed", "does not say what it continues")
		return
	}
	if v.rep.Records == 1 {
		v.rep.Continues = rec.Event.Hash
		return
	}
	v.problem(v.rep.Lines, "missing", fmt.Sprintf("says that the log reached record %d before lines were cut off", rec.Event.Seq))
}

// settle turns a bad line that nothing accounts for into a problem.
func (v *verifier) settle() {
	if v.bad != nil {
		v.problem(v.bad.number, v.bad.kind, v.bad.text)
		v.bad = nil
	}
}

func (v *verifier) problem(line int, kind, text string) {
	v.rep.Broken++
	if len(v.rep.Problems) < maxProblems {
		v.rep.Problems = append(v.rep.Problems, Problem{Line: line, Kind: kind, Text: text})
	}
}
