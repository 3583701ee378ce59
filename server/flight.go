package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Why a call was cancelled.
var (
	errClientCancelled = errors.New("cancelled by the client")
	errStopping        = errors.New("the server is stopping")
	errSessionEnded    = errors.New("the session has ended")
)

// flight is one request that was read and not yet answered. It exists from the
// moment the request was read, so that a cancellation read right behind it is
// never lost.
type flight struct {
	ctx      context.Context // ends when the request is to stop; see context.Cause
	cancel   context.CancelCauseFunc
	key      flightKey
	notified atomic.Bool // a notification was sent that must not come after the answer
}

type flightKey struct{ session, id string }

// flights are the requests of one server.
type flights struct {
	mu      sync.Mutex
	flying  map[flightKey]*flight
	stopped bool
	landed  chan struct{} // closed when stopped and empty
}

// maxFlights is how many requests may wait or run at a time.
const maxFlights = 1024

var (
	errDoubleID = errors.New("a request with this id is being answered already")
	errTooMany  = errors.New("the server is busy: too many requests are waiting")
)

func newFlights() *flights {
	return &flights{flying: make(map[flightKey]*flight), landed: make(chan struct{})}
}

// start registers a request. Its context is a child of parent.
func (fs *flights) start(parent context.Context, key flightKey) (context.Context, *flight, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	switch {
	case fs.stopped:
		return parent, nil, errStopping
	case len(fs.flying) >= maxFlights:
		return parent, nil, errTooMany
	}
	if _, ok := fs.flying[key]; ok {
		return parent, nil, errDoubleID
	}
	ctx, cancel := context.WithCancelCause(parent)
	f := &flight{ctx: ctx, cancel: cancel, key: key}
	fs.flying[key] = f
	return ctx, f, nil
}

// land ends a request.
func (fs *flights) land(f *flight) {
	f.cancel(nil)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if _, ok := fs.flying[f.key]; !ok {
		return
	}
	delete(fs.flying, f.key)
	fs.settle()
}

// cancel stops one request.
func (fs *flights) cancel(key flightKey, why error) {
	fs.mu.Lock()
	f := fs.flying[key]
	fs.mu.Unlock()
	if f != nil {
		f.cancel(why)
	}
}

// cancelSession stops every request of a session.
func (fs *flights) cancelSession(session string, why error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for k, f := range fs.flying {
		if k.session == session {
			f.cancel(why)
		}
	}
}

// stop refuses further requests and cancels the running ones.
func (fs *flights) stop() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.stopped {
		return
	}
	fs.stopped = true
	for _, f := range fs.flying {
		f.cancel(errStopping)
	}
	fs.settle()
}

// settle closes landed once nothing flies any more. The caller holds mu.
func (fs *flights) settle() {
	if fs.stopped && len(fs.flying) == 0 {
		close(fs.landed)
	}
}

// idle reports whether nothing is being answered.
func (fs *flights) idle() bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(fs.flying) == 0
}

// bind returns a context with the values of ctx that ends with the flight
// alone. What the SDK hands to a handler ends with the connection, which in
// the revisions before 2026-07-28 is no reason to stop.
func (f *flight) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })
	return bound, func() { release(); cancel(nil) }
}

type connKey struct{}

// conn is what a transport knows of the sender of one request.
type conn struct {
	flight  *flight
	client  *peer
	session string // what quotas and grants are counted by; "" = decided by the request's _meta
}

func withConn(ctx context.Context, c *conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
