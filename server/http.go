package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/mark3labs/mcp-go/server"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// How long the peer of an HTTP connection may take.
const (
	headerWithin = 10 * time.Second
	bodyWithin   = 30 * time.Second
	writeWithin  = 30 * time.Second // each write
	idleWithin   = 2 * time.Minute
)

// ListenHTTP serves MCP on addr, endpoint /mcp, until ctx ends; then it
// returns within five seconds. When it listens it calls ready, if given, with
// the endpoint's URL. An address other than loopback is refused as long as
// there is no authentication: whoever reaches the port is the local user.
func (s *Server) ListenHTTP(ctx context.Context, addr string, ready func(url string)) error {
	if err := loopbackOnly(addr); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	h := newHTTP(s)
	hs := &http.Server{
		Handler: h, ReadHeaderTimeout: headerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(l) }()
	if ready != nil {
		ready("http://" + l.Addr().String() + "/mcp")
	}
	select {
	case err := <-served:
		h.stop(base)
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}
	within, cancel := context.WithTimeout(base, stopWithin)
	defer cancel()
	h.stop(within)
	if err := hs.Shutdown(within); err != nil {
		s.o.Log.WarnContext(base, "requests did not end in time and were cut off", "error", err)
		cut()
		return ignoreClosed(hs.Close())
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// ErrListenAddress is returned for an address the server must not listen on.
var ErrListenAddress = errors.New("listen address")

// loopbackOnly refuses an address that others than this machine could reach.
func loopbackOnly(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%w %q: give host:port, such as 127.0.0.1:8765", ErrListenAddress, addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%w %q: the port must be a number up to 65535", ErrListenAddress, addr)
	}
	if !loopback(host) {
		return fmt.Errorf("%w %q: only a loopback address is allowed, because there is no authentication yet: use 127.0.0.1:%s", ErrListenAddress, addr, port)
	}
	return nil
}

// loopback reports whether a host, without a port, names this machine and
// nothing else.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback() && ip.Zone() == ""
}

// httpServer serves one listener.
type httpServer struct {
	s        *Server
	sdk      *sdk.StreamableHTTPServer
	ids      sessionIDs
	flights  *flights
	seq      atomic.Int64 // names requests that have no session
	origins  []string
	stopping atomic.Bool
}

func newHTTP(s *Server) *httpServer {
	h := &httpServer{s: s, flights: newFlights(), origins: s.o.Config.AllowedOrigins}
	h.ids = sessionIDs{s: s, flights: h.flights}
	h.sdk = sdk.NewStreamableHTTPServer(s.mcp,
		sdk.WithSessionIdManagerResolver(h.ids),
		sdk.WithSessionIdleTTL(s.o.Config.SessionIdle),
		sdk.WithEventStore(newEvents()),
		sdk.WithStreamableHTTPLogger(quiet(s.o.Log)),
	)
	return h
}

// stop cancels every call, waits for the answers to be written and ends what
// would stay open for ever.
func (h *httpServer) stop(ctx context.Context) {
	h.stopping.Store(true)
	h.flights.stop()
	select {
	case <-h.flights.landed:
	case <-ctx.Done():
	}
	if err := h.sdk.Shutdown(ctx); err != nil {
		h.s.o.Log.WarnContext(ctx, "sessions did not end in time", "error", err)
	}
}

// ServeHTTP implements [http.Handler].
func (h *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.recovered(w, r)
	if !h.local(r) {
		h.s.o.Log.WarnContext(r.Context(), "a request from a foreign page was refused", "host", r.Host, "origin", r.Header.Get("Origin"))
		http.Error(w, "forbidden: this server answers its own host and origin only", http.StatusForbidden)
		return
	}
	switch r.URL.Path {
	case "/mcp":
		h.mcp(w, r)
	case "/healthz":
		h.health(w, nil)
	case "/readyz":
		h.health(w, h.ready())
	default:
		http.NotFound(w, r)
	}
}

// recovered keeps a panic's text here. It must be deferred itself.
func (h *httpServer) recovered(w http.ResponseWriter, r *http.Request) {
	if p := recover(); p != nil {
		h.s.o.Log.ErrorContext(r.Context(), "a request panicked", "panic", fmt.Sprint(p))
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
}

// local guards against pages that reach this server through a browser on this
// machine: under a name that resolves here, or from another origin.
func (h *httpServer) local(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !loopback(host) {
		return false
	}
	if _, sent := r.Header["Origin"]; !sent {
		return true
	}
	origin := r.Header.Get("Origin")
	if slices.Contains(h.origins, origin) {
		return true
	}
	return strings.EqualFold(origin, "http://"+r.Host)
}

func (h *httpServer) ready() error {
	if h.stopping.Load() {
		return errStopping
	}
	if h.s.o.Ready != nil {
		return h.s.o.Ready()
	}
	return nil
}

func (h *httpServer) health(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// mcp serves the endpoint.
func (h *httpServer) mcp(w http.ResponseWriter, r *http.Request) {
	c := &conn{client: newPeer(call.Caller{ID: "local", Transport: "http", Trust: call.TrustTrusted})}
	ids := h.ids
	ids.caller = c.client.caller
	hr := &sdk.HTTPRequest{Method: r.Method, URL: r.URL, Header: r.Header, Context: withConn(r.Context(), c)}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, hr, c, ids)
	case http.MethodGet, http.MethodDelete:
		if !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) && h.known(w, r, c, ids) == nil {
			return
		}
		h.sdk.Handle(newResponse(w), hr)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// known returns the session a request names, or answers the request when there
// is none.
func (h *httpServer) known(w http.ResponseWriter, r *http.Request, c *conn, ids sessionIDs) *peer {
	id := r.Header.Get(sdk.HeaderKeySessionID)
	if id == "" {
		writeJSON(w, http.StatusBadRequest, fail(nil, mcp.INVALID_REQUEST, "the header "+sdk.HeaderKeySessionID+" is missing: send initialize first"))
		return nil
	}
	who := ids.find(id)
	if who == nil {
		writeJSON(w, http.StatusNotFound, fail(nil, codeNoSession, "there is no such session: send initialize again"))
		return nil
	}
	c.client, c.session = who, who.name
	return who
}

// codeNoSession is the JSON-RPC code of a request in a session that has ended.
const codeNoSession = -32001

// post serves one message.
func (h *httpServer) post(w http.ResponseWriter, r *http.Request, hr *sdk.HTTPRequest, c *conn, ids sessionIDs) {
	body, ok := h.body(w, r)
	if !ok {
		return
	}
	hr.Body = body
	e, fault := parseEnvelope(body)
	if fault != nil {
		writeJSON(w, http.StatusBadRequest, *fault)
		return
	}
	to := e.target()
	modern := mcp.IsModernProtocol(to.version()) || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
	initialize := !modern && e.Method == string(mcp.MethodInitialize)
	switch {
	case modern:
	case initialize && ids.full():
		writeJSON(w, http.StatusServiceUnavailable, fail(e.ID, codeBusy, "too many sessions are open"))
		return
	case !initialize && h.known(w, r, c, ids) == nil:
		return
	}
	if e.Method == string(mcp.MethodNotificationCancelled) {
		// In the revisions with sessions the id is one of the session's own.
		// Without sessions an id says nothing about whose request is meant:
		// those clients cancel by closing the stream.
		if !modern {
			h.flights.cancel(flightKey{c.session, rpcID(to.RequestID)}, errClientCancelled)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !e.request() {
		h.sdk.Handle(newResponse(w), hr)
		return
	}
	h.request(hr.Context, w, hr, c, e, to)
}

// request serves one request to its end.
func (h *httpServer) request(connection context.Context, w http.ResponseWriter, hr *sdk.HTTPRequest, c *conn, e envelope, to target) {
	parent, key := connection, flightKey{c.session, rpcID(e.ID)}
	if c.session != "" {
		parent = context.WithoutCancel(connection) // a lost connection is no cancellation
	} else {
		key.id = strconv.FormatInt(h.seq.Add(1), 10)
	}
	flying, f, err := h.flights.start(parent, key)
	if err != nil {
		status, code := http.StatusServiceUnavailable, codeBusy
		if errors.Is(err, errDoubleID) {
			status, code = http.StatusBadRequest, mcp.INVALID_REQUEST
		}
		writeJSON(w, status, fail(e.ID, code, err.Error()))
		return
	}
	defer h.flights.land(f)
	c.flight = f
	if e.Method == string(mcp.MethodSubscriptionsListen) {
		hr.Context = withConn(flying, c) // ends when the server stops, too
	}
	if !h.s.missing(e, to) {
		h.sdk.Handle(newResponse(w), hr)
		return
	}
	held := &heldResponse{header: make(http.Header)}
	h.sdk.Handle(held, hr)
	held.send(w, func(message string) string {
		if strings.HasPrefix(message, "tool '") {
			return h.s.unknownTool(connection, c, to.Name)
		}
		return message
	})
}

// body reads a message of bounded length in bounded time.
func (h *httpServer) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	limit := h.s.o.Config.MaxMessage
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyWithin)) // a writer without deadlines has none to set
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	_ = rc.SetReadDeadline(time.Time{})
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		writeJSON(w, http.StatusRequestEntityTooLarge, fail(nil, mcp.INVALID_REQUEST, fmt.Sprintf("the message is longer than %d bytes", limit)))
		return nil, false
	case err != nil:
		writeJSON(w, http.StatusBadRequest, fail(nil, mcp.PARSE_ERROR, "the message could not be read"))
		return nil, false
	}
	return raw, true
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

// response is what the SDK writes to. A client that does not read is given up
// after a while.
type response struct {
	http.ResponseWriter
	rc *http.ResponseController
}

var _ sdk.HTTPResponseWriter = (*response)(nil)

func newResponse(w http.ResponseWriter) *response {
	return &response{w, http.NewResponseController(w)}
}

// Write implements [sdk.HTTPResponseWriter].
func (r *response) Write(p []byte) (int, error) {
	_ = r.rc.SetWriteDeadline(time.Now().Add(writeWithin)) // a writer without deadlines has none to set
	return r.ResponseWriter.Write(p)
}

// Flush implements [sdk.HTTPResponseWriter].
func (r *response) Flush() {
	_ = r.rc.Flush() // the next write will tell
}

// CanStream implements [sdk.HTTPResponseWriter].
func (r *response) CanStream() bool { return true }

// heldResponse keeps an answer back so that its error can be put in our words.
type heldResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

var _ sdk.HTTPResponseWriter = (*heldResponse)(nil)

// Header implements [sdk.HTTPResponseWriter].
func (r *heldResponse) Header() http.Header { return r.header }

// WriteHeader implements [sdk.HTTPResponseWriter].
func (r *heldResponse) WriteHeader(status int) { r.status = status }

// Write implements [sdk.HTTPResponseWriter].
func (r *heldResponse) Write(p []byte) (int, error) { return r.body.Write(p) }

// Flush implements [sdk.HTTPResponseWriter].
func (r *heldResponse) Flush() {}

// CanStream implements [sdk.HTTPResponseWriter].
func (r *heldResponse) CanStream() bool { return false }

// send passes the answer on, with the message of an invalid-params error
// rewritten.
func (r *heldResponse) send(w http.ResponseWriter, rewrite func(string) string) {
	maps.Copy(w.Header(), r.header)
	raw := r.body.Bytes()
	var f failure
	if json.Unmarshal(raw, &f) == nil && f.Error.Code == mcp.INVALID_PARAMS {
		f.Error.Message = rewrite(f.Error.Message)
		if again, err := json.Marshal(f); err == nil {
			raw = append(again, '\n')
		}
	}
	if r.status != 0 {
		w.WriteHeader(r.status)
	}
	_, _ = w.Write(raw) // the client is gone
}

// quiet passes on only what the SDK's transport has to complain about.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(quietHandler{log.Handler()}) }

type quietHandler struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (q quietHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}
