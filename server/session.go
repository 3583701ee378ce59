package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/mark3labs/mcp-go/server"
)

// stdioSession is the SDK's view of the one client on stdin and stdout.
type stdioSession struct {
	id            string
	out           *lineWriter
	notifications chan mcp.JSONRPCNotification
	flushes       chan chan struct{}
	closed        chan struct{}

	initialized atomic.Bool
	level       atomic.Value // mcp.LoggingLevel
	info        atomic.Value // mcp.Implementation
	caps        atomic.Value // mcp.ClientCapabilities, of whatever request came last
	version     atomic.Value // string

	mu      sync.Mutex
	nextID  int64
	waiting map[string]chan envelope // our requests to the client, by id
}

var (
	_ sdk.SessionWithLogging         = (*stdioSession)(nil)
	_ sdk.SessionWithClientInfo      = (*stdioSession)(nil)
	_ sdk.SessionWithElicitation     = (*stdioSession)(nil)
	_ sdk.SessionWithProtocolVersion = (*stdioSession)(nil)
)

func newStdioSession(id string, out *lineWriter) *stdioSession {
	return &stdioSession{
		id: id, out: out, notifications: make(chan mcp.JSONRPCNotification, 256),
		flushes: make(chan chan struct{}), closed: make(chan struct{}), waiting: make(map[string]chan envelope),
	}
}

// SessionID implements [sdk.ClientSession].
func (s *stdioSession) SessionID() string { return s.id }

// NotificationChannel implements [sdk.ClientSession].
func (s *stdioSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notifications }

// Initialize implements [sdk.ClientSession].
func (s *stdioSession) Initialize() { s.initialized.Store(true) }

// Initialized implements [sdk.ClientSession].
func (s *stdioSession) Initialized() bool { return s.initialized.Load() }

// SetLogLevel implements [sdk.SessionWithLogging].
func (s *stdioSession) SetLogLevel(l mcp.LoggingLevel) { s.level.Store(l) }

// GetLogLevel implements [sdk.SessionWithLogging].
func (s *stdioSession) GetLogLevel() mcp.LoggingLevel {
	if l, ok := s.level.Load().(mcp.LoggingLevel); ok {
		return l
	}
	return mcp.LoggingLevelError
}

// SetClientInfo implements [sdk.SessionWithClientInfo].
func (s *stdioSession) SetClientInfo(i mcp.Implementation) { s.info.Store(i) }

// GetClientInfo implements [sdk.SessionWithClientInfo].
func (s *stdioSession) GetClientInfo() mcp.Implementation {
	i, _ := s.info.Load().(mcp.Implementation)
	return i
}

// SetClientCapabilities implements [sdk.SessionWithClientInfo].
func (s *stdioSession) SetClientCapabilities(c mcp.ClientCapabilities) { s.caps.Store(c) }

// GetClientCapabilities implements [sdk.SessionWithClientInfo].
func (s *stdioSession) GetClientCapabilities() mcp.ClientCapabilities {
	c, _ := s.caps.Load().(mcp.ClientCapabilities)
	return c
}

// SetProtocolVersion is called by the SDK after initialize.
func (s *stdioSession) SetProtocolVersion(v string) { s.version.Store(v) }

// ProtocolVersion implements [sdk.SessionWithProtocolVersion].
func (s *stdioSession) ProtocolVersion() string {
	v, _ := s.version.Load().(string)
	return v
}

// errNoAnswer is a client's JSON-RPC error in answer to our question.
var errNoAnswer = errors.New("the client answered with an error")

// RequestElicitation implements [sdk.SessionWithElicitation]. When the wait
// ends first, the client is told that the question is off.
func (s *stdioSession) RequestElicitation(ctx context.Context, request mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	id, answer := s.expect()
	defer s.forget(id)
	err := s.out.write(map[string]any{
		"jsonrpc": mcp.JSONRPC_VERSION, "id": id, "method": mcp.MethodElicitationCreate, "params": request.Params,
	})
	if err != nil {
		return nil, err
	}
	select {
	case e := <-answer:
		if e.Error != nil {
			return nil, fmt.Errorf("%w: %d", errNoAnswer, e.Error.Code)
		}
		var result mcp.ElicitationResult
		if err := json.Unmarshal(e.Result, &result); err != nil {
			return nil, errNoAnswer
		}
		return &result, nil
	case <-ctx.Done():
		// Whether or not the client hears of it, nothing waits any more.
		_ = s.out.write(map[string]any{
			"jsonrpc": mcp.JSONRPC_VERSION, "method": string(mcp.MethodNotificationCancelled),
			"params": map[string]any{"requestId": id, "reason": "no answer is needed any more"},
		})
		return nil, context.Cause(ctx)
	}
}

func (s *stdioSession) expect() (int64, chan envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	answer := make(chan envelope, 1)
	s.waiting[fmt.Sprintf("n%d", s.nextID)] = answer
	return s.nextID, answer
}

func (s *stdioSession) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, fmt.Sprintf("n%d", id))
}

// deliver hands an answer of the client to whoever asked.
func (s *stdioSession) deliver(e envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := rpcID(e.ID)
	if answer, ok := s.waiting[id]; ok {
		delete(s.waiting, id)
		answer <- e
	}
}

// pump writes notifications in the order they were queued, until the session
// is closed.
func (s *stdioSession) pump() {
	for {
		select {
		case n := <-s.notifications:
			s.put(n)
		case done := <-s.flushes:
			s.drain()
			close(done)
		case <-s.closed:
			s.drain()
			return
		}
	}
}

func (s *stdioSession) drain() {
	for {
		select {
		case n := <-s.notifications:
			s.put(n)
		default:
			return
		}
	}
}

func (s *stdioSession) put(n mcp.JSONRPCNotification) {
	_ = s.out.write(n) // a broken stdout is seen by the next answer
}

// flush returns when everything queued so far is written.
func (s *stdioSession) flush() {
	done := make(chan struct{})
	select {
	case s.flushes <- done:
		<-done
	case <-s.closed:
	}
}
