package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	sdk "github.com/mark3labs/mcp-go/server"
)

// How much is kept for clients that lost their connection.
const (
	maxEvents      = 256      // of one session
	maxEventBytes  = 4 << 20  // of one session
	maxEventsTotal = 64 << 20 // bytes of all sessions
)

// events keeps the latest messages of each session, so that a client of a
// revision before 2026-07-28 can take up a broken stream. The oldest are
// dropped when there are too many; a client that comes back later than that
// is told that the event is unknown.
type events struct {
	mu       sync.Mutex
	seq      int64
	total    int
	sessions map[string]*eventLog
}

type eventLog struct {
	events []event
	bytes  int
}

type event struct {
	seq     int64
	stream  string
	message json.RawMessage
}

var _ sdk.EventStore = (*events)(nil)

func newEvents() *events { return &events{sessions: make(map[string]*eventLog)} }

// StoreEvent implements [sdk.EventStore].
func (e *events) StoreEvent(_ context.Context, session, stream string, message json.RawMessage) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.sessions[session]
	if l == nil {
		l = &eventLog{}
		e.sessions[session] = l
	}
	e.seq++
	l.events = append(l.events, event{e.seq, stream, append(json.RawMessage(nil), message...)})
	l.bytes += len(message)
	e.total += len(message)
	for len(l.events) > 1 && (len(l.events) > maxEvents || l.bytes > maxEventBytes || e.total > maxEventsTotal) {
		n := len(l.events[0].message)
		l.events[0] = event{}
		l.events = l.events[1:]
		l.bytes -= n
		e.total -= n
	}
	return strconv.FormatInt(e.seq, 10), nil
}

// ReplayEventsAfter implements [sdk.EventStore].
func (e *events) ReplayEventsAfter(
	_ context.Context, session, last string, send func(id string, message json.RawMessage) error,
) (string, error) {
	stream, tail, err := e.after(session, last)
	if err != nil {
		return "", err
	}
	for _, ev := range tail {
		if err := send(strconv.FormatInt(ev.seq, 10), ev.message); err != nil {
			return "", err
		}
	}
	return stream, nil
}

func (e *events) after(session, last string) (stream string, tail []event, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	if l := e.sessions[session]; l != nil {
		for _, ev := range l.events {
			switch {
			case found && ev.stream == stream:
				tail = append(tail, ev)
			case strconv.FormatInt(ev.seq, 10) == last:
				found, stream = true, ev.stream
			}
		}
	}
	if !found {
		return "", nil, fmt.Errorf("%w: %s", sdk.ErrUnknownEventID, last)
	}
	return stream, tail, nil
}

// PurgeSession implements [sdk.EventStore].
func (e *events) PurgeSession(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.sessions[session]; l != nil {
		e.total -= l.bytes
		delete(e.sessions, session)
	}
	return nil
}
