package gates

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// ErrNotAuthorized is returned by [Authorized.Decode] when the value was not
// sealed by a [Chain].
var ErrNotAuthorized = errors.New("call is not authorized")

// seal marks an Authorized made by a chain. Its identity, not its content,
// carries the meaning; it is unexported so that no other package can make one.
type seal struct{ _ byte }

// Authorized is a permitted call. Its zero value carries nothing and yields no
// arguments.
type Authorized struct {
	seal   *seal
	call   call.Call
	limits call.Limits
}

// Sealed reports whether a chain made this value.
func (a Authorized) Sealed() bool { return a.seal != nil }

// Decode reads the canonical arguments into v, which must be a pointer to a
// struct. Unknown fields are an error. It returns [ErrNotAuthorized] for a
// value no chain has sealed.
func (a Authorized) Decode(v any) error {
	if a.seal == nil {
		return ErrNotAuthorized
	}
	d := json.NewDecoder(bytes.NewReader(a.call.Args))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// Tool is the name of the tool that was permitted; "" when not sealed.
func (a Authorized) Tool() string { return a.call.Spec.Name }

// CallID is the correlation id of the call; "" when not sealed.
func (a Authorized) CallID() string { return a.call.ID }

// Session is the session the call belongs to; "" when not sealed.
func (a Authorized) Session() string { return a.call.Session }

// Caller is who made the call; the zero Caller when not sealed.
func (a Authorized) Caller() call.Caller { return a.call.Caller }

// Facts are the facts the call was permitted on.
func (a Authorized) Facts() call.Facts { return a.call.Facts }

// Limits are the limits all gates left.
func (a Authorized) Limits() call.Limits { return a.limits }

// Progress reports progress to the client, if it asked for any.
func (a Authorized) Progress(p call.Progress) {
	if a.call.Progress != nil {
		a.call.Progress(p)
	}
}

// WantsProgress reports whether anybody listens to [Authorized.Progress].
func (a Authorized) WantsProgress() bool { return a.call.Progress != nil }
