package server

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	sdk "github.com/mark3labs/mcp-go/server"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// sessionIDs makes and knows the ids of HTTP sessions of revisions before
// 2026-07-28. An id belongs to the principal that made it; to anybody else,
// and after its end, it does not exist.
type sessionIDs struct {
	s       *Server
	flights *flights
	caller  call.Caller // the principal that asks; zero = the server itself
}

// ResolveSessionIdManager implements [sdk.SessionIdManagerResolver]. The
// request is nil when the SDK ends an idle session.
func (ids sessionIDs) ResolveSessionIdManager(r *http.Request) sdk.SessionIdManager {
	if r != nil {
		if c := connOf(r.Context()); c != nil {
			ids.caller = c.client.caller
		}
	}
	return ids
}

// Generate implements [sdk.SessionIdManager].
func (ids sessionIDs) Generate() string {
	id := rand.Text()
	c := newPeer(ids.caller)
	// The id is a credential. What is written down and shown is a name that
	// opens nothing.
	c.name, c.used = "http-"+rand.Text()[:12], time.Now()
	ids.s.mu.Lock()
	defer ids.s.mu.Unlock()
	ids.s.sessions[id] = c
	return id
}

var errNoSession = errors.New("no such session")

// Validate implements [sdk.SessionIdManager].
func (ids sessionIDs) Validate(id string) (isTerminated bool, err error) {
	if ids.find(id) == nil {
		return false, errNoSession
	}
	return false, nil
}

// Terminate implements [sdk.SessionIdManager].
func (ids sessionIDs) Terminate(id string) (isNotAllowed bool, err error) {
	if ids.caller != (call.Caller{}) && ids.find(id) == nil {
		return false, errNoSession
	}
	ids.s.mu.Lock()
	c := ids.s.sessions[id]
	delete(ids.s.sessions, id)
	ids.s.mu.Unlock()
	if c != nil {
		ids.flights.cancelSession(c.name, errSessionEnded)
		ids.s.ended(context.Background(), c.name)
	}
	return false, nil
}

// find returns the client of a session that belongs to the asking principal.
func (ids sessionIDs) find(id string) *peer {
	c := ids.s.session(id)
	if c == nil || c.caller.ID != ids.caller.ID {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = time.Now()
	return c
}

// full reports whether no further session can be made.
func (ids sessionIDs) full() bool {
	ids.s.mu.Lock()
	defer ids.s.mu.Unlock()
	return len(ids.s.sessions) >= ids.s.o.Config.MaxSessions
}
