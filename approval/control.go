package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/canonjson"
)

// Bounds of the control socket.
const (
	maxControlRequest = 64 << 10 // bytes
	maxControlReply   = 32 << 20 // bytes: [maxPending] questions of [maxQuestion]
	maxControlConns   = 16       // served at once; the others wait in the kernel's queue
	controlWithin     = 5 * time.Second
	maxControlID      = 128 // characters
)

// Op is what a person asks of a running server.
type Op string

// The operations.
const (
	OpList    Op = "list"    // every open question
	OpShow    Op = "show"    // one question
	OpApprove Op = "approve" // yes, once
	OpDeny    Op = "deny"    // no; also takes back a yes that was not used yet
)

// View is what a person is shown of an open question. No text in it can act on
// a terminal.
type View struct {
	ID       string    `json:"id"`
	Tool     string    `json:"tool"`
	Caller   string    `json:"caller"`
	Session  string    `json:"session"` // tells sessions apart; it is not the session's id, which may be a credential
	Summary  string    `json:"summary"`
	Question string    `json:"question"`
	Approved bool      `json:"approved"` // by a person, and not used yet
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
}

// Act is a person's answer out of band, as it is written down.
type Act struct {
	ID  string
	Op  Op
	UID int
	PID int
}

func newView(e Entry) View {
	r := e.Record
	return View{
		ID: r.ID, Tool: r.Tool, Caller: r.Caller, Session: sessionHash(r.Session)[:12], Summary: r.Summary,
		Question: r.Question(), Approved: e.Approved, Created: r.Created, Expires: r.Expires,
	}.harmless()
}

// harmless escapes everything that could act on a terminal. Text that is
// escaped already stays as it is.
func (v View) harmless() View {
	for _, s := range []*string{&v.ID, &v.Tool, &v.Caller, &v.Session, &v.Summary} {
		*s = visible(*s)
	}
	lines := strings.Split(v.Question, "\n")
	for i, l := range lines {
		lines[i] = visible(l)
	}
	v.Question = strings.Join(lines, "\n")
	return v
}

type controlRequest struct {
	Op Op     `json:"op"`
	ID string `json:"id,omitempty"`
}

// status says how a request ended. The zero value is no answer.
type status string

const (
	statusOK       status = "ok"
	statusUnknown  status = "unknown"  // no open question has this id
	statusApproved status = "approved" // somebody said yes before
	statusFailed   status = "failed"
)

type controlReply struct {
	Status status `json:"status"`
	Error  string `json:"error,omitempty"`
	Views  []View `json:"views,omitempty"`
}

// parseControl reads a request: one JSON object with exactly the known keys,
// spelled exactly so.
func parseControl(raw []byte) (controlRequest, error) {
	if len(raw) > maxControlRequest {
		return controlRequest{}, fmt.Errorf("the request is longer than %d bytes", maxControlRequest)
	}
	canon, err := canonjson.Canon(raw)
	if err != nil {
		return controlRequest{}, fmt.Errorf("the request is no JSON object: %w", err)
	}
	var fields map[string]string // no struct: its keys would match in any case
	if err := json.Unmarshal(canon, &fields); err != nil {
		return controlRequest{}, errors.New("the request has a value that is no string")
	}
	r := controlRequest{Op: Op(fields["op"]), ID: fields["id"]}
	delete(fields, "op")
	delete(fields, "id")
	if len(fields) > 0 {
		return controlRequest{}, errors.New("the request has a key other than op and id")
	}
	return r, r.check()
}

func (r controlRequest) check() error {
	switch r.Op {
	case OpList:
		if r.ID != "" {
			return errors.New("list takes no id")
		}
		return nil
	case OpShow, OpApprove, OpDeny:
	default:
		return errors.New("the operation is none of list, show, approve and deny")
	}
	odd := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_'
	}
	if r.ID == "" || len(r.ID) > maxControlID || strings.ContainsFunc(r.ID, odd) {
		return errors.New("that is not the id of an approval: ids are made of letters, digits, - and _")
	}
	return nil
}

// control answers the people of one running server.
type control struct {
	s      *Service
	record func(Act) error
	within time.Duration
	peerOf func(*net.UnixConn) (peer, error)
	ready  func() // tests learn that the socket is there
}

// peer is who is at the other end of a socket, as the kernel says.
type peer struct{ uid, pid int }

// ServeControl lets the person this server runs for answer out of band. It
// listens on a fresh socket in dir, which is made when it is not there, until
// ctx ends, and takes the socket away then. Only processes of the same user,
// or of root, are answered, and none that this server started: a command of an
// agent must not be able to approve itself. Record is called before an answer
// counts; when it fails, the answer does not count.
func (s *Service) ServeControl(ctx context.Context, dir string, record func(Act) error) error {
	if record == nil {
		return errors.New("approval: answers must be recorded")
	}
	c := &control{s: s, record: record, within: controlWithin, peerOf: peerOf, ready: func() {}}
	return c.serve(ctx, dir)
}

func (c *control) serve(ctx context.Context, dir string) error {
	d, err := openRunDir(dir, true)
	if err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	defer d.close()
	d.sweep()
	l, remove, err := d.listen()
	if err != nil {
		return fmt.Errorf("approval: listen in %s: %w", dir, err)
	}
	defer remove()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer func() {
		if stop() {
			_ = l.Close()
		}
	}()
	c.ready()

	var conns sync.WaitGroup
	defer conns.Wait()
	room := make(chan struct{}, maxControlConns)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.AcceptUnix()
		if err != nil {
			<-room
			if ctx.Err() != nil {
				return nil
			}
			if !passing(err) {
				return fmt.Errorf("approval: control socket: %w", err)
			}
			pause(ctx, c.within/10)
			continue
		}
		conns.Go(func() {
			defer func() { <-room }()
			c.handle(ctx, conn)
		})
	}
}

// passing reports whether a server may accept again after this error.
func passing(err error) bool {
	return errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EMFILE) ||
		errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// handle serves one connection: one request, one reply.
func (c *control) handle(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close() //nolint:errcheck // the peer has its reply or is gone
	if conn.SetReadDeadline(time.Now().Add(c.within)) != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	rep := c.reply(ctx, conn)
	if rep.Status == "" || conn.SetWriteDeadline(time.Now().Add(c.within)) != nil || ctx.Err() != nil {
		return
	}
	if err := json.NewEncoder(conn).Encode(rep); err != nil {
		c.s.log.DebugContext(ctx, "control socket lost a reply", "error", err)
	}
}

func (c *control) reply(ctx context.Context, conn *net.UnixConn) controlReply {
	p, err := c.peerOf(conn)
	if err == nil {
		err = p.admit()
	}
	if err != nil {
		c.s.log.WarnContext(ctx, "control socket refused a process", "uid", p.uid, "pid", p.pid, "error", err)
		return controlReply{Status: statusFailed, Error: "this process may not answer: " + err.Error()}
	}
	raw, err := io.ReadAll(io.LimitReader(conn, maxControlRequest+1))
	if err != nil {
		return controlReply{Status: statusFailed, Error: "the request did not come whole in time"}
	}
	if len(raw) == 0 {
		return controlReply{} // another server looked whether we are alive
	}
	r, err := parseControl(raw)
	if err != nil {
		return controlReply{Status: statusFailed, Error: err.Error()}
	}
	return c.do(ctx, r, p)
}

// do carries out a request of a peer that may make it.
func (c *control) do(ctx context.Context, r controlRequest, p peer) controlReply {
	if r.Op == OpList {
		es, err := c.s.List(ctx)
		if err != nil {
			return c.failed(ctx, r, err)
		}
		views := make([]View, len(es))
		for i, e := range es {
			views[i] = newView(e)
		}
		return controlReply{Status: statusOK, Views: views}
	}
	e, err := c.s.store.Get(ctx, r.ID)
	if err != nil {
		return c.failed(ctx, r, err)
	}
	if r.Op == OpApprove && e.Approved {
		return c.failed(ctx, r, ErrApproved)
	}
	if r.Op != OpShow {
		if err := c.record(Act{ID: r.ID, Op: r.Op, UID: p.uid, PID: p.pid}); err != nil {
			return c.failed(ctx, r, fmt.Errorf("an answer that cannot be recorded does not count: %w", err))
		}
		answer := c.s.Deny
		if r.Op == OpApprove {
			answer = c.s.Approve
		}
		if err := answer(ctx, r.ID); err != nil {
			return c.failed(ctx, r, err)
		}
		c.s.log.InfoContext(ctx, "question answered out of band", "approval", r.ID, "op", string(r.Op), "uid", p.uid, "pid", p.pid)
		e.Approved = r.Op == OpApprove
	}
	return controlReply{Status: statusOK, Views: []View{newView(e)}}
}

func (c *control) failed(ctx context.Context, r controlRequest, err error) controlReply {
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrExpired):
		return controlReply{Status: statusUnknown}
	case errors.Is(err, ErrApproved):
		return controlReply{Status: statusApproved}
	}
	c.s.log.ErrorContext(ctx, "control request failed", "op", string(r.Op), "error", err)
	return controlReply{Status: statusFailed, Error: err.Error()}
}
