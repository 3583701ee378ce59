package approval

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Ticket is what a signed state says once it was accepted.
type Ticket struct {
	ID     string // of the record
	Digest string
	CallID string // of the call's first pass
}

// stateTag starts every state, so that a later format cannot be mistaken for
// this one.
const (
	stateTag = "zeph-state/1"
	maxState = 4096 // characters
)

// errState is any fault in the form or signature of a state.
var errState = errors.New("state is not one of ours")

// Sign returns the state a client carries back with its answer. It is bound to
// the record, its digest, its session and its expiry, and is accepted once; a
// newer one for the same record replaces it.
func (s *Service) Sign(ctx context.Context, r Record) (string, error) {
	ticket := rand.Text()
	if err := s.store.SetTicket(ctx, r.ID, ticket); err != nil {
		return "", s.gone(err)
	}
	return s.encode([5]string{r.ID, r.Digest, r.CallID, sessionHash(r.Session), ticket}, r.Expires), nil
}

// Open accepts a state that comes back from the given session, once. Whatever
// is wrong with it, nothing runs; a state of another session is refused
// without using it up.
func (s *Service) Open(ctx context.Context, session, state string) (Ticket, error) {
	f, expires, err := s.parse(state)
	if err != nil {
		return Ticket{}, &call.Error{
			Category: call.CategoryConfirmationRequired, Code: "invalid_state", Phase: call.PhaseSetup, Retryable: true,
			Message:    "the request state is not one this server gave out",
			Suggestion: "make the call again without request state, so that the person is asked anew",
			Cause:      err,
		}
	}
	id, digest, callID, owner, ticket := f[0], f[1], f[2], f[3], f[4]
	if !same(owner, sessionHash(session)) || !time.Now().Before(expires) {
		return Ticket{}, s.gone(ErrNotFound)
	}
	e, err := s.store.TakeTicket(ctx, id, ticket)
	if err != nil {
		return Ticket{}, s.gone(err)
	}
	if !same(e.Record.Digest, digest) {
		return Ticket{}, s.gone(ErrNotFound)
	}
	return Ticket{ID: id, Digest: digest, CallID: callID}, nil
}

func (s *Service) encode(fields [5]string, expires time.Time) string {
	payload := appendField(nil, stateTag)
	for _, f := range fields {
		payload = appendField(payload, f)
	}
	payload = binary.BigEndian.AppendUint64(payload, uint64(expires.UnixNano()))
	return base64.RawURLEncoding.EncodeToString(append(s.mac(payload), payload...))
}

// parse checks a state's signature before it reads anything else of it.
func (s *Service) parse(state string) (fields [5]string, expires time.Time, err error) {
	if len(state) > maxState || strings.ContainsAny(state, "\r\n") { // the decoder skips line ends
		return fields, expires, errState
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil || len(raw) < sha256.Size {
		return fields, expires, errState
	}
	payload := raw[sha256.Size:]
	if !hmac.Equal(raw[:sha256.Size], s.mac(payload)) {
		return fields, expires, errState
	}
	tag, payload, ok := cutField(payload)
	if !ok || tag != stateTag {
		return fields, expires, errState
	}
	for i := range fields {
		if fields[i], payload, ok = cutField(payload); !ok {
			return fields, expires, errState
		}
	}
	if len(payload) != 8 {
		return fields, expires, errState
	}
	return fields, time.Unix(0, int64(binary.BigEndian.Uint64(payload))), nil
}

func (s *Service) mac(payload []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write(payload)
	return m.Sum(nil)
}

// sessionHash keeps session ids, which are credentials over HTTP, out of a
// text that clients may log.
func sessionHash(session string) string {
	d := newDigest("zeph-session/1")
	d.text(session)
	return d.sum()
}

func appendField(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func cutField(b []byte) (field string, rest []byte, ok bool) {
	if len(b) < 4 {
		return "", nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}
