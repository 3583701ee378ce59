package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// envelope is what the transports must know of a message before the SDK sees
// it: which request it is, which call it cancels, which era it belongs to.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
	Params json.RawMessage `json:"params"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// target is the part of params that the transports look at.
type target struct {
	Name      string          `json:"name"`
	RequestID json.RawMessage `json:"requestId"`
	Meta      map[string]any  `json:"_meta"`
}

var (
	errBatch    = errors.New("batches of messages are not supported: send one message at a time")
	errNoObject = errors.New("a message must be a JSON object")
)

func parseEnvelope(raw []byte) (envelope, error) {
	var e envelope
	switch t := bytes.TrimLeft(raw, " \t\r\n"); {
	case len(t) > 0 && t[0] == '[':
		return e, errBatch
	case len(t) == 0 || t[0] != '{':
		return e, errNoObject
	}
	err := json.Unmarshal(raw, &e)
	return e, err
}

func (e envelope) request() bool { return e.Method != "" && len(e.ID) > 0 }
func (e envelope) response() bool {
	return e.Method == "" && len(e.ID) > 0 && (len(e.Result) > 0 || e.Error != nil)
}

// target reads the part of params the transports look at; a fault there is
// left to the SDK to report.
func (e envelope) target() target {
	var t target
	_ = json.Unmarshal(e.Params, &t) // what does not parse names nothing
	return t
}

// version is the protocol version a message declares for itself, as clients
// since 2026-07-28 do.
func (t target) version() string {
	v, _ := t.Meta[mcp.MetaKeyProtocolVersion].(string)
	return v
}

// rpcID is a JSON-RPC id in one form, so that 7 and "7" differ and "7" and
// "\u0037" do not. It is empty when the text is no id.
func rpcID(raw json.RawMessage) string {
	t := bytes.TrimSpace(raw)
	if len(t) == 0 {
		return ""
	}
	if t[0] == '"' {
		var s string
		if json.Unmarshal(t, &s) != nil {
			return ""
		}
		return "s" + s
	}
	var n json.Number
	if json.Unmarshal(t, &n) != nil || n == "" {
		return ""
	}
	return "n" + n.String()
}

// failure is a JSON-RPC error whose id is given back byte for byte.
type failure struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   rpcError        `json:"error"`
}

func fail(id json.RawMessage, code int, message string) failure {
	if rpcID(id) == "" {
		id = json.RawMessage("null")
	}
	return failure{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: rpcError{Code: code, Message: message}}
}

// codeBusy is the JSON-RPC code (from the range for servers) of a request that
// was not taken on.
const codeBusy = -32000

// idFinder finds the id of a message that is too long to be kept. It reads the
// message piece by piece and remembers nothing but the id.
type idFinder struct {
	depth   int
	inText  bool
	escaped bool
	key     strings.Builder // text of the last string at depth 1
	id      strings.Builder
	taking  bool
	done    bool
}

// maxID is how long an id may be to be given back.
const maxID = 128

func (f *idFinder) feed(b []byte) {
	for _, c := range b {
		if f.done {
			return
		}
		f.step(c)
	}
}

// step reads one byte.
func (f *idFinder) step(c byte) {
	if f.taking {
		if !f.inText && (c == ',' || c == '}') {
			f.taking, f.done = false, true
			return
		}
		if f.id.Len() < maxID {
			f.id.WriteByte(c)
		}
	}
	switch {
	case f.inText:
		f.text(c)
	case c == '"':
		f.inText = true
		if f.depth == 1 {
			f.key.Reset()
		}
	case c == '{' || c == '[':
		f.depth++
	case c == '}' || c == ']':
		f.depth--
	case c == ':' && f.depth == 1:
		f.taking = f.key.String() == "id"
	}
}

// text reads one byte of a string.
func (f *idFinder) text(c byte) {
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\':
		f.escaped = true
	case c == '"':
		f.inText = false
		return
	}
	if f.depth == 1 && f.key.Len() < 8 {
		f.key.WriteByte(c)
	}
}

// found returns the id, or nil when there was none that can be given back.
func (f *idFinder) found() json.RawMessage {
	if id := json.RawMessage(strings.TrimSpace(f.id.String())); rpcID(id) != "" {
		return id
	}
	return nil
}
