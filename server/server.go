// Package server speaks MCP over stdio and streamable HTTP. It turns requests
// into calls of the pipeline and what comes back into results, asks the person
// behind a client, and decides nothing itself.
//
// The SDK dispatches methods and knows the protocol's revisions. The
// transports in front of it are ours where the SDK's lose cancellations, let
// one client cancel another's call, know no limits or never stop.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/mark3labs/mcp-go/server"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

// Caller carries out calls. [pipeline.Pipeline] is the one that counts.
type Caller interface {
	Call(ctx context.Context, r pipeline.Request) pipeline.Response
	Tools() []call.Spec
}

// Options is what a server is made of.
type Options struct {
	Calls     Caller            // required
	Approvals *approval.Service // required; signs what clients carry back
	Log       *slog.Logger      // required
	Config    Config            // validated by New; the zero Config is refused

	Name         string // shown to clients; empty = zeph-mcp-tools
	Version      string // shown to clients; empty = dev
	Instructions string // what a model should know about the server; empty = none

	// Status is the content of zeph://status, a JSON object; nil = there is
	// no such resource.
	Status func(context.Context) (json.RawMessage, error)
	// AuditRecent is the content of zeph://audit/recent, newest last; nil =
	// there is no such resource.
	AuditRecent func(context.Context) ([]json.RawMessage, error)
	// Ready says why the server cannot take calls yet; nil, or a nil error,
	// means it can.
	Ready func() error
	// SessionEnded is told the name of a session that will not come back;
	// nil = nobody wants to know.
	SessionEnded func(session string)
}

// stopWithin is how long a stopping server may take. Everything is told to
// stop at once; what has not ended by then is left behind.
const stopWithin = 4500 * time.Millisecond

// Server serves one pipeline. It is safe for concurrent use.
type Server struct {
	o     Options
	mcp   *sdk.MCPServer
	names map[string]struct{}
	slots chan struct{} // one per running call

	mu       sync.Mutex
	sessions map[string]*peer // by SDK session id; see remember
}

// New returns a server. It opens, starts and reads nothing.
func New(o Options) (*Server, error) {
	if o.Calls == nil || o.Approvals == nil || o.Log == nil {
		return nil, errors.New("server: calls, approvals and log must be given")
	}
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = "zeph-mcp-tools"
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	s := &Server{
		o: o, names: make(map[string]struct{}), slots: make(chan struct{}, o.Config.MaxCalls),
		sessions: make(map[string]*peer),
	}
	hooks := &sdk.Hooks{}
	hooks.AddAfterInitialize(s.remember)
	s.mcp = sdk.NewMCPServer(o.Name, o.Version,
		sdk.WithToolCapabilities(false),
		sdk.WithResourceCapabilities(false, false),
		sdk.WithPromptCapabilities(false), // there are none, and asking for them is no error
		sdk.WithLogging(),
		sdk.WithInstructions(o.Instructions),
		sdk.WithTitle("Zeph MCP tools"),
		sdk.WithDescription("A shell, files and the web for agents: judged, confined, recorded."),
		sdk.WithIcons(mcp.Icon{Src: icon, MIMEType: "image/svg+xml", Sizes: []string{"any"}}),
		sdk.WithHooks(hooks),
	)
	s.addTools()
	s.addResources()
	return s, nil
}

// icon is a prompt sign. Clients since 2026-07-28 get it with every result, so
// it is small.
const icon = "data:image/svg+xml;base64," +
	"PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA5IDkiPjxwYXRoIGQ9Im0yIDIgMyAzLTMgM2g1IiBmaWxsPSJub25lIiBzdHJva2U9IiM0NjgiLz48L3N2Zz4="

// peer is what is known of the one who talks over a connection or session.
type peer struct {
	caller call.Caller
	name   string        // of the HTTP session; empty = there is none
	asking chan struct{} // holds one: a person gets one question at a time

	mu   sync.Mutex
	caps mcp.ClientCapabilities // from initialize; revisions since 2026-07-28 send them with every request
	used time.Time
}

func newPeer(c call.Caller) *peer { return &peer{caller: c, asking: make(chan struct{}, 1)} }

func (c *peer) capabilities() mcp.ClientCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

// remember keeps the capabilities of initialize. The SDK's own copy can be
// overwritten by a request of a newer revision on the same connection.
func (s *Server) remember(ctx context.Context, _ any, request *mcp.InitializeRequest, _ *mcp.InitializeResult) {
	c := connOf(ctx)
	if c == nil {
		return
	}
	who := c.client
	if session := sdk.ClientSessionFromContext(ctx); session != nil && session.SessionID() != "" {
		if known := s.session(session.SessionID()); known != nil {
			who = known
		}
	}
	who.mu.Lock()
	defer who.mu.Unlock()
	who.caps = request.Params.Capabilities
}

func (s *Server) session(id string) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// ended forgets a session.
func (s *Server) ended(ctx context.Context, session string) {
	s.o.Approvals.Forget(ctx, session)
	if s.o.SessionEnded != nil {
		s.o.SessionEnded(session)
	}
}
