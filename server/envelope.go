package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
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

// parseEnvelope reads what the transports must know of a message. What could
// be read in two ways is refused: then nothing in front of this server can
// have seen another request than the one that is answered.
func parseEnvelope(raw []byte) (envelope, *failure) {
	var e envelope
	refuse := func(code int, err error) (envelope, *failure) {
		f := fail(e.ID, code, err.Error())
		return e, &f
	}
	switch t := bytes.TrimLeft(raw, " \t\r\n"); {
	case len(t) > 0 && t[0] == '[':
		return refuse(mcp.INVALID_REQUEST, errBatch)
	case len(t) == 0 || t[0] != '{':
		return refuse(mcp.INVALID_REQUEST, errNoObject)
	}
	err := json.Unmarshal(raw, &e)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return refuse(mcp.INVALID_REQUEST, fmt.Errorf("%s has the wrong type: it is %s", wrong.Field, article(wrong.Value)))
	}
	if err != nil {
		return refuse(mcp.PARSE_ERROR, errors.New("the message is not valid JSON"))
	}
	if err := checkMembers(raw, "", messageKind, "jsonrpc", "id", "method", "params", "result", "error"); err != nil {
		return refuse(mcp.INVALID_REQUEST, err)
	}
	if e.Method == "" {
		return e, nil
	}
	if len(e.ID) > 0 && rpcID(e.ID) == "" {
		return refuse(mcp.INVALID_REQUEST, errID)
	}
	if len(e.Params) > 0 && e.Params[0] == '{' {
		err = checkMembers(e.Params, "params.", paramKind, "name", "arguments", "_meta", "uri", "requestState", "inputResponses", "requestId", "level", "protocolVersion", "capabilities", "clientInfo", "cursor")
	}
	if err != nil {
		return refuse(mcp.INVALID_PARAMS, err)
	}
	return e, nil
}

var errID = errors.New("the id must be a string, or a whole number that fits 53 bits")

// messageKind and paramKind say how the value of a member starts; 0 = anyhow.
func messageKind(key string) byte {
	if key == "params" {
		return '{'
	}
	return 0
}

func paramKind(key string) byte {
	switch key {
	case "name", "uri", "requestState", "level", "protocolVersion", "cursor":
		return '"'
	case "_meta", "inputResponses", "capabilities", "clientInfo":
		return '{'
	}
	return 0
}

// checkMembers refuses an object that gives a member twice, writes a known one
// in other letters, or gives it a value of another kind. The object must be
// valid JSON.
func checkMembers(object []byte, at string, kind func(string) byte, known ...string) error {
	var seen []string
	for key, value := range members(object) {
		if slices.Contains(seen, key) {
			return fmt.Errorf("%s%s is given twice", at, clipped(key))
		}
		seen = append(seen, key)
		if len(seen) > maxMembers {
			return fmt.Errorf("%s there are more than %d members", strings.TrimSuffix(at, "."), maxMembers)
		}
		for _, k := range known {
			if k != key && strings.EqualFold(k, key) {
				return fmt.Errorf("%s%s: names are case-sensitive: write %s", at, clipped(key), k)
			}
		}
		want := kind(key)
		if want == 0 || value[0] == want || string(value) == "null" {
			continue
		}
		is, must := kindName(value[0]), kindName(want)
		return fmt.Errorf("%s%s must be %s, not %s", at, key, must, is)
	}
	return nil
}

// maxMembers is how many members a message, or its params, may have: many
// more than any has, and few enough to look for doubled ones.
const maxMembers = 64

func kindName(start byte) string {
	switch start {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func article(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

func clipped(key string) string {
	if len(key) > 64 {
		return strings.ToValidUTF8(key[:64], "") + "…"
	}
	return key
}

// members yields the members of an object that is valid JSON.
func members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		rest := bytes.TrimLeft(object, "{ \t\r\n")
		for len(rest) > 0 && rest[0] == '"' {
			n := valueLen(rest)
			var key string
			if json.Unmarshal(rest[:n], &key) != nil {
				return
			}
			rest = bytes.TrimLeft(rest[n:], ": \t\r\n")
			n = valueLen(rest)
			if n == 0 || !yield(key, rest[:n]) {
				return
			}
			rest = bytes.TrimLeft(rest[n:], ", \t\r\n")
		}
	}
}

// valueLen is the length of the JSON value that b starts with.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += textLen(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',', ' ', '\t', '\r', '\n', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth <= 0 {
			return i + min(depth, 0) + 1
		}
	}
	return len(b)
}

// textLen is the length of the JSON string that b starts with.
func textLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
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
// "\u0037" do not. It is empty when the text is no id, or a number that would
// not come back as it was sent.
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
	const most = 1<<53 - 1
	n, err := strconv.ParseFloat(string(t), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > most || !json.Valid(t) {
		return ""
	}
	return "n" + strconv.FormatInt(int64(n), 10)
}

// failure is a JSON-RPC error whose id is given back byte for byte.
type failure struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   rpcError        `json:"error"`
}

func fail(id json.RawMessage, code int, message string) failure {
	if len(id) == 0 || !strings.ContainsRune(`"-0123456789`, rune(id[0])) {
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
