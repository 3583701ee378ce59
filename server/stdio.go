package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// eofGrace is how long calls may still run when the client has closed stdin,
// so that a script that pipes its requests in gets its answers.
const eofGrace = time.Second

// ServeStdio serves the one client on in and out until in ends, ctx ends or
// out breaks. Then running calls are cancelled, and it returns within five
// seconds whether or not they have ended. The end of in or of ctx is no error.
//
// One goroutine stays blocked in a read of in until in is closed.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &lineWriter{w: out, broken: stop}
	session := newStdioSession("stdio-"+rand.Text(), w)
	if err := s.mcp.RegisterSession(run, session); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	cleanup := context.WithoutCancel(ctx)
	defer s.mcp.UnregisterSession(cleanup, session.id)
	defer s.ended(cleanup, session.id)
	var pump sync.WaitGroup
	pump.Go(session.pump)
	t := &stdio{
		s: s, session: session, out: w, flights: newFlights(),
		client: newPeer(call.Caller{ID: "local", Transport: "stdio", Trust: call.TrustTrusted}),
	}

	ended := make(chan error, 1)
	go func() { ended <- t.read(run, in) }()
	var err error
	select {
	case err = <-ended:
		t.drain(run)
	case <-run.Done():
	}
	t.flights.stop()
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	left := make(chan struct{})
	go func() {
		<-t.flights.landed
		close(session.closed)
		pump.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-late.C:
		s.o.Log.WarnContext(cleanup, "calls did not end in time and were left behind")
	}
	if cause := context.Cause(run); ctx.Err() == nil && cause != nil {
		return cause // stdout broke
	}
	return err
}

// stdio is one client's stream of messages.
type stdio struct {
	s       *Server
	session *stdioSession
	client  *peer
	out     *lineWriter
	flights *flights
}

// drain gives running calls a moment to end by themselves.
func (t *stdio) drain(ctx context.Context) {
	deadline := time.NewTimer(eofGrace)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !t.flights.idle() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// read takes messages up to the end of in. It never waits for a call.
func (t *stdio) read(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(r, t.s.o.Config.MaxMessage)
		if stopped := ctx.Err() != nil; stopped {
			return nil //nolint:nilerr // a stop is no error, whatever the read ended with
		}
		switch {
		case long != nil:
			t.reply(fail(long.found(), mcp.INVALID_REQUEST, fmt.Sprintf("the message is longer than %d bytes", t.s.o.Config.MaxMessage)))
		case len(bytes.TrimSpace(line)) > 0:
			t.take(ctx, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("server: stdin: %w", err)
		}
	}
}

// readLine returns one line. Of a line that is too long nothing is kept but
// its id.
func readLine(r *bufio.Reader, limit int64) (line []byte, long *idFinder, err error) {
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case long != nil:
			long.feed(part)
		case int64(len(line)+len(part)) > limit:
			long = &idFinder{}
			long.feed(line)
			long.feed(part)
			line = nil
		default:
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// take begins what one message asks for.
func (t *stdio) take(ctx context.Context, raw []byte) {
	e, fault := parseEnvelope(raw)
	if fault != nil {
		t.reply(*fault)
		return
	}
	switch {
	case e.response():
		t.session.deliver(e)
	case e.Method == string(mcp.MethodNotificationCancelled) && len(e.ID) == 0:
		t.flights.cancel(flightKey{t.session.id, rpcID(e.target().RequestID)}, errClientCancelled)
	case e.request():
		t.begin(ctx, e, raw)
	case e.Method != "":
		t.dispatch(withConn(ctx, t.conn(nil)), raw)
	default:
		t.reply(fail(e.ID, mcp.INVALID_REQUEST, "the message is neither a request nor an answer"))
	}
}

func (t *stdio) conn(f *flight) *conn {
	return &conn{flight: f, client: t.client, session: t.session.id}
}

// begin registers a request before the next message is read, so that a
// cancellation always finds it, and starts answering it.
func (t *stdio) begin(ctx context.Context, e envelope, raw []byte) {
	ctx, f, err := t.flights.start(context.WithoutCancel(ctx), flightKey{t.session.id, rpcID(e.ID)})
	if err != nil {
		code := codeBusy
		if errors.Is(err, errDoubleID) {
			code = mcp.INVALID_REQUEST
		}
		t.reply(fail(e.ID, code, err.Error()))
		return
	}
	if quick(e.Method) {
		t.serve(ctx, f, e, raw)
		return
	}
	go t.serve(ctx, f, e, raw)
}

// quick reports whether a method answers from memory. Those are answered
// before the next message is read, which keeps initialize before what follows.
func quick(method string) bool {
	return !slices.Contains([]mcp.MCPMethod{mcp.MethodToolsCall, mcp.MethodSubscriptionsListen, mcp.MethodResourcesRead}, mcp.MCPMethod(method))
}

// serve answers one request.
func (t *stdio) serve(ctx context.Context, f *flight, e envelope, raw []byte) {
	defer t.flights.land(f)
	c := t.conn(f)
	ctx = withConn(ctx, c)
	answer := t.dispatch(ctx, raw)
	if failed, ok := answer.(mcp.JSONRPCError); ok && failed.Error.Code == mcp.INVALID_PARAMS {
		if to := e.target(); t.s.missing(e, to) {
			failed.Error.Message = t.s.unknownTool(ctx, c, to.Name)
			answer = failed
		}
	}
	if errors.Is(context.Cause(ctx), errClientCancelled) {
		return // who cancels a request wants no answer
	}
	if f.notified.Load() || e.Method == string(mcp.MethodSubscriptionsListen) {
		t.session.flush()
	}
	t.reply(answer)
}

// dispatch hands a message to the SDK. A panic's text stays here.
func (t *stdio) dispatch(ctx context.Context, raw []byte) (answer mcp.JSONRPCMessage) {
	defer func() {
		if p := recover(); p != nil {
			t.s.o.Log.ErrorContext(ctx, "a request panicked", "panic", fmt.Sprint(p))
			var e struct {
				ID json.RawMessage `json:"id"`
			}
			_ = json.Unmarshal(raw, &e) // it was parsed before
			answer = fail(e.ID, mcp.INTERNAL_ERROR, "internal error")
		}
	}()
	return t.s.mcp.HandleMessage(t.s.mcp.WithContext(ctx, t.session), raw)
}

// reply writes an answer; a broken stdout ends the server.
func (t *stdio) reply(answer mcp.JSONRPCMessage) {
	if answer == nil {
		return
	}
	if err := t.out.write(answer); err != nil {
		t.s.o.Log.Debug("stdout is broken", "error", err)
	}
}

// lineWriter writes messages, one a line, never mixed.
type lineWriter struct {
	mu     sync.Mutex
	w      io.Writer
	buf    bytes.Buffer
	broken context.CancelCauseFunc
}

// maxKept is how large a buffer may be to be used again.
const maxKept = 256 << 10

func (l *lineWriter) write(v any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Cap() > maxKept {
		l.buf = bytes.Buffer{}
	}
	l.buf.Reset()
	enc := json.NewEncoder(&l.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if _, err := l.w.Write(l.buf.Bytes()); err != nil {
		err = fmt.Errorf("server: stdout: %w", err)
		l.broken(err)
		return err
	}
	return nil
}
