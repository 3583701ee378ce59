// Package approval keeps the questions put to a person and the answers.
//
// A call that a gate wants confirmed becomes a [Record], bound by a digest to
// exactly that call. Only a person's answer turns it into leave to run, once:
// the record is taken out of the store before anything about it is checked, so
// two answers can never both win. Holding a record's id is no authority.
package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Decision is what a person chose. The zero value is no choice and approves
// nothing.
type Decision uint8

// The decisions.
const (
	DecisionUnset Decision = iota
	DecisionDeny
	AllowOnce
	AllowSession
)

// String returns the word used in forms, config and audit records.
func (d Decision) String() string {
	switch d {
	case DecisionDeny:
		return "deny"
	case AllowOnce:
		return "allow_once"
	case AllowSession:
		return "allow_session"
	case DecisionUnset:
		return "unset"
	}
	return "unset"
}

// ParseDecision reads a decision. Any other text is [DecisionUnset] and false.
func ParseDecision(s string) (Decision, bool) {
	for _, d := range []Decision{DecisionDeny, AllowOnce, AllowSession} {
		if d.String() == s {
			return d, true
		}
	}
	return DecisionUnset, false
}

// How a question ended when it was not answered with a decision.
const (
	HowDeclined  = "declined"  // the client said decline
	HowCancelled = "cancelled" // the person closed the question without a choice
	HowMalformed = "malformed" // an answer came but it is none the form allows
	HowTimeout   = "timeout"   // nobody answered in time
	HowFailed    = "failed"    // the client could not ask
)

// Answer is what came back to a question. It approves only when How is empty
// and Decision allows.
type Answer struct {
	ID       string
	Digest   string
	Decision Decision
	How      string
}

// Reason is why a person is asked. Kind names what "allow this kind for the
// session" would cover; an empty Kind cannot be granted for a session.
type Reason struct {
	Gate string `json:"gate"`
	Code string `json:"code"`
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"`
}

// Record is one question. It holds everything the answer is bound to.
type Record struct {
	ID                string          `json:"id"`
	CallID            string          `json:"call_id"`
	Session           string          `json:"session"`
	Caller            string          `json:"caller"`
	Tool              string          `json:"tool"`
	Args              json.RawMessage `json:"args"`
	Facts             call.Facts      `json:"facts"`
	Cwd               string          `json:"cwd,omitempty"`
	Reasons           []Reason        `json:"reasons"`
	Limits            call.Limits     `json:"limits"`
	PolicyFingerprint string          `json:"policy_fingerprint"`
	Binding           string          `json:"binding"` // of the call alone: the same for every question about the very same call
	Digest            string          `json:"digest"`  // of the binding, the id and the expiry
	Created           time.Time       `json:"created"`
	Expires           time.Time       `json:"expires"`
	Summary           string          `json:"summary"`
}

// Expired reports whether the record is dead at now. The boundary is
// exclusive: at its expiry a record is dead already.
func (r Record) Expired(now time.Time) bool { return !now.Before(r.Expires) }

// Grantable reports whether the question may offer "allow this kind for this
// session": every reason has a kind.
func (r Record) Grantable() bool { return grantable(r.Reasons) }

func grantable(rs []Reason) bool {
	for _, r := range rs {
		if r.Kind == "" {
			return false
		}
	}
	return len(rs) > 0
}

// maxQuestion is how long a question may be. A longer one is refused rather
// than shortened: nobody can review what is not shown.
const maxQuestion = 8 << 10

// Question is the text a person is shown: what will happen, why they are
// asked, and how the record is called. Every character that could make the
// text look like another one is escaped.
func (r Record) Question() string {
	var b strings.Builder
	b.WriteString("Allow this? ")
	b.WriteString(visible(r.Summary))
	b.WriteString("\n\nWhy you are asked:\n")
	for _, why := range r.Reasons {
		fmt.Fprintf(&b, "- %s\n", visible(why.Text))
	}
	whole(&b, r)
	if r.Cwd != "" {
		fmt.Fprintf(&b, "\nFolder: %s%s", visible(r.Cwd), visible(elsewhere(r.Facts)))
	}
	for _, t := range touched(r.Facts) {
		fmt.Fprintf(&b, "\n%s: %s", t.what, visible(few(t.names)))
	}
	fmt.Fprintf(&b, "\nTool %s, approval %s, expires %s", r.Tool, r.ID, r.Expires.UTC().Format("15:04:05 UTC"))
	return b.String()
}

// whole shows a command of which the first line says only a part.
func whole(b *strings.Builder, r Record) {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(r.Args, &a) != nil {
		return
	}
	text := strings.TrimSpace(a.Command)
	lines := strings.Split(text, "\n")
	if len(lines) == 1 && strings.HasSuffix(r.Summary, text) {
		return
	}
	b.WriteString("\nThe whole command:\n")
	from := b.Len()
	for i, l := range lines {
		if i == maxLines || b.Len()-from > maxWhole {
			fmt.Fprintf(b, "… (%d more lines)\n", len(lines)-i)
			break
		}
		cut := ""
		if c := []rune(l); len(c) > maxLine {
			l, cut = string(c[:maxLine]), fmt.Sprintf("… (%d more characters)", len(c)-maxLine)
		}
		fmt.Fprintf(b, "| %s%s\n", visible(l), cut)
	}
}

// touch is a line about what a call touches.
type touch struct {
	what  string
	names []string
}

// touched is what a call changes, and what it reads or reaches beyond what it
// may without asking.
func touched(f call.Facts) []touch {
	changes, reads, reaches := touch{what: "Changes"}, touch{what: "Reads"}, touch{what: "Reaches"}
	open := touch{what: "Paths that are not known before it runs"}
	for _, u := range f.Unknown {
		if u.Op != "" && u.Op != "test" {
			open.names = append(open.names, u.Text+" of "+u.By)
		}
	}
	for _, p := range f.Writes {
		if p.Place != call.PlaceDevice {
			changes.names = append(changes.names, cmp.Or(p.Path, p.Text))
		}
	}
	for _, p := range f.Reads {
		if !p.Place.Readable() || p.HoldsDeny != "" && p.Recursive {
			reads.names = append(reads.names, cmp.Or(p.Path, p.Text))
		}
	}
	for _, u := range f.URLs {
		reaches.names = append(reaches.names, u.URL)
	}
	return slices.DeleteFunc([]touch{changes, reads, open, reaches}, func(t touch) bool { return len(t.names) == 0 })
}

// few joins names, each once, and says how many more there are.
func few(names []string) string {
	var out []string
	for _, n := range names {
		if r := []rune(n); len(r) > maxShown {
			n = string(r[:maxShown]) + "…"
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	if more := len(out) - maxNamed; more > 0 {
		out = append(out[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// elsewhere names the commands that run in another folder than the call.
func elsewhere(f call.Facts) string {
	var out []string
	for _, c := range f.Commands {
		where := c.Dir
		switch {
		case c.Dir == "" || c.Name == "":
			continue
		case c.Dir == call.DirUnknown:
			where = "a folder that is not known before it runs"
		}
		if s := "; " + c.Name + " in " + where; !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if more := len(out) - maxNamed; more > 0 {
		out = append(out[:maxNamed], fmt.Sprintf("; and %d more elsewhere", more))
	}
	return strings.Join(out, "")
}

const (
	maxNamed = 8   // of a kind that a question names
	maxShown = 200 // characters of one

	// Of a command whose first line says only a part. What is left out is said.
	maxLines = 40
	maxLine  = 300 // characters
	maxWhole = 3 << 10
)

// visible escapes control, format, private-use and unassigned characters,
// letters that draw nothing, and every space but the plain one.
func visible(s string) string {
	const blank = "\u115F\u1160\u2800\u3164\uFFA0"
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(s, "\uFFFD") {
		if c == ' ' || unicode.IsGraphic(c) && !unicode.IsSpace(c) && !strings.ContainsRune(blank, c) {
			b.WriteRune(c)
			continue
		}
		q := strconv.QuoteRuneToASCII(c)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// newRecord fills in everything but id, times and digest.
func newRecord(c call.Call, reasons []Reason, limits call.Limits, fingerprint string) Record {
	return Record{
		CallID: c.ID, Session: c.Session, Caller: c.Caller.ID, Tool: c.Spec.Name,
		Args: append(json.RawMessage(nil), c.Args...), Facts: c.Facts.Clone(), Cwd: c.Facts.Cwd.Path,
		Reasons: append([]Reason(nil), reasons...), Limits: limits, PolicyFingerprint: fingerprint,
		Summary: summary(c),
	}
}

func summary(c call.Call) string {
	if c.Facts.Summary != "" {
		return c.Facts.Summary
	}
	return fmt.Sprintf("run the tool %s with %s", c.Spec.Name, c.Args)
}

// bind computes the binding of a record: one hash over everything that says
// what will happen and for whom.
func (r Record) bind() (string, error) {
	facts, err := json.Marshal(r.Facts)
	if err != nil {
		return "", fmt.Errorf("facts: %w", err)
	}
	d := newDigest("zeph-approval-call/1")
	d.text(r.Session)
	d.text(r.Caller)
	d.text(r.Tool)
	d.text(string(r.Args))
	d.text(string(facts))
	d.text(places(r.Facts))
	d.text(r.Cwd)
	d.number(int64(r.Limits.Timeout))
	d.number(r.Limits.MaxOutput)
	d.text(r.PolicyFingerprint)
	d.number(int64(len(r.Reasons)))
	for _, why := range r.Reasons {
		d.text(why.Gate)
		d.text(why.Code)
		d.text(why.Text)
		d.text(why.Kind)
	}
	return d.sum(), nil
}

// places keeps where each path lay: the JSON of facts leaves that out.
func places(f call.Facts) string {
	var b strings.Builder
	for _, ps := range [][]call.Path{f.Reads, f.Writes} {
		for _, p := range ps {
			b.WriteByte(byte('0' + p.Place))
		}
		b.WriteByte('/')
	}
	return b.String()
}

// seal computes the digest the answer is bound to.
func (r Record) seal() string {
	d := newDigest("zeph-approval/1")
	d.text(r.ID)
	d.number(r.Expires.UnixNano())
	d.text(r.Binding)
	return d.sum()
}

// digest is SHA-256 over length-prefixed fields, so no two different lists of
// fields have the same encoding.
type digest struct{ h hash.Hash }

func newDigest(tag string) digest {
	d := digest{sha256.New()}
	d.text(tag)
	return d
}

func (d digest) text(s string) {
	d.number(int64(len(s)))
	d.h.Write([]byte(s))
}

func (d digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	d.h.Write(b[:])
}

func (d digest) sum() string { return hex.EncodeToString(d.h.Sum(nil)) }
