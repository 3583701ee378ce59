package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/server"
)

// instructions is what a model should know before its first call.
const instructions = "Commands and files are confined to the workspace; bash reaches only hosts that were allowed, and has private /tmp and caches. " +
	"Use fetch or web_scrape for the web. A refusal says why and what to do instead: do not try to get around it. " +
	"Some calls wait for a person to approve; after a decline do not repeat the call."

func newServe(s streams, f *flags) *cobra.Command {
	var transport, listen string
	cmd := &cobra.Command{
		Use: "serve", Short: "serve MCP on stdin and stdout, or over HTTP", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if transport != "stdio" && transport != "http" {
				return usage(fmt.Errorf("--transport must be stdio or http, not %q", transport))
			}
			if transport == "stdio" && cmd.Flags().Changed("listen") {
				return usage(errors.New("--listen goes with --transport http"))
			}
			return f.serve(cmd.Context(), s, transport, listen)
		},
	}
	cmd.Flags().StringVar(&transport, "transport", "stdio", "stdio or http")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8765", "address for HTTP; loopback only; port 0 picks a free one")
	return cmd
}

// probeAfter is how long the probe of the sandbox leaves the processors to the
// handshake. A call does not wait for it: it probes itself.
const probeAfter = 25 * time.Millisecond

// gcPercent lets the heap grow further between collections than the runtime's
// default: the live heap is a few MiB, so collecting often costs more than the
// memory is worth.
const gcPercent = 300

// serve runs the server until the client or a signal ends it. The sandbox is
// probed beside it, so the first answer does not wait; when it refuses, the
// server ends before any call has run.
func (f *flags) serve(ctx context.Context, s streams, transport, listen string) (err error) {
	debug.SetGCPercent(gcPercent)
	e, err := f.engine(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.announce(ctx, transport); err != nil {
		return err
	}
	srv, err := e.server()
	if err != nil {
		return usage(err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { e.probe(ctx, stop) })
	beside.Go(func() {
		if err := e.control(ctx); err != nil {
			e.log.WarnContext(ctx, "nobody can approve out of band", "error", err)
		}
	})
	if transport == "http" {
		err = srv.ListenHTTP(ctx, listen, func(url string) { fmt.Fprintf(s.err, "listening url=%s\n", url) })
	} else {
		err = srv.ServeStdio(ctx, s.in, s.out)
	}
	cause := context.Cause(ctx)
	stop(nil)
	beside.Wait()
	switch {
	case errors.Is(cause, sandbox.ErrUnavailable):
		return cause
	case errors.Is(err, server.ErrListenAddress):
		return usage(err)
	}
	return err
}

// announce records the start and prints what is less safe than the default.
func (e *engine) announce(ctx context.Context, transport string) error {
	if err := e.audit.Event("start", map[string]any{
		"version": version, "transport": transport, "workspace": e.workspace.Roots(), "policy": e.fingerprint(), "warnings": e.warnings,
	}); err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	for _, w := range e.warnings {
		e.log.WarnContext(ctx, "unsafe setting", "setting", w)
	}
	for _, n := range e.notes {
		e.log.WarnContext(ctx, "setting without effect", "setting", n)
	}
	return nil
}

func (e *engine) server() (*server.Server, error) {
	return server.New(server.Options{
		Calls: e.pipeline, Approvals: e.approvals, Log: e.log, Config: e.cfg.Server,
		Version: version, Instructions: instructions,
		Status:       func(ctx context.Context) (json.RawMessage, error) { return json.Marshal(e.status(ctx)) },
		AuditRecent:  func(context.Context) ([]json.RawMessage, error) { return e.audit.Recent(50), nil },
		Ready:        e.ready,
		SessionEnded: e.endSession,
	})
}

// probe finds out whether commands can be confined, and ends the server when
// they cannot.
func (e *engine) probe(ctx context.Context, stop context.CancelCauseFunc) {
	select {
	case <-time.After(probeAfter):
	case <-ctx.Done():
		return
	}
	r := e.sandbox.Probe(ctx)
	switch {
	case ctx.Err() != nil:
	case r.Err != nil:
		stop(r.Err)
	case e.sandbox.Confined() && r.Level < sandbox.LevelFull:
		e.log.WarnContext(ctx, "commands are confined, with fewer walls", "level", r.Level, "missing", r.Missing, "fix", r.Fix)
	default:
		e.log.InfoContext(ctx, "commands run", "level", r.Level)
	}
}
