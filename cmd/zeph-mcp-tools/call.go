package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
	"github.com/zeph-tools/zeph-mcp-tools/server"
)

func newCall(s streams, f *flags) *cobra.Command {
	var asJSON, yes bool
	cmd := &cobra.Command{
		Use:   "call TOOL ARGS-JSON|-",
		Short: "make one call through the very same pipeline",
		Long: "Make one call through the very same pipeline. When a person must approve, the question is asked on the terminal;\n" +
			"--yes answers yes; without a terminal and without --yes the call is not approved.\n\n" +
			"Exit status: 0 ok, 1 tool error, 10 not approved, 20 denied, 2 bad usage.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(errors.New("call takes TOOL and ARGS-JSON, for example: call read '{\"path\":\"README.md\"}'"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			raw := json.RawMessage(args[1])
			if args[1] == "-" {
				b, err := io.ReadAll(io.LimitReader(s.in, 2<<20))
				if err != nil {
					return fmt.Errorf("read arguments: %w", err)
				}
				raw = b
			}
			return f.call(cmd.Context(), s, args[0], raw, yes, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the MCP CallToolResult")
	cmd.Flags().BoolVar(&yes, "yes", false, "answer yes when a person must approve; never lifts a refusal")
	return cmd
}

func (f *flags) call(ctx context.Context, s streams, tool string, raw json.RawMessage, yes, asJSON bool) (err error) {
	e, err := f.engine(s)
	if err != nil {
		return err
	}
	// Each call is a session of its own, so that nothing of one is left in the
	// private /tmp of another.
	session := "cli-" + rand.Text()
	defer func() { err = errors.Join(err, e.Close(), e.workspace.DropScratch(session)) }()
	r := pipeline.Request{Tool: tool, Args: raw, Session: session, Caller: localCaller("cli"), CanAsk: true}
	resp := e.pipeline.Call(ctx, r)
	if resp.Pending != nil {
		a, asked := answer(ctx, s, *resp.Pending, yes)
		if !asked {
			fmt.Fprintf(s.err, "%s\n\nThere is no terminal to ask on: run it on one, or give --yes.\n\n", resp.Pending.Question())
		}
		r.Answer, r.Resume = &a, resp.CallID
		resp = e.pipeline.Call(ctx, r)
	}
	if err := printResponse(s, resp, asJSON); err != nil {
		return err
	}
	return silent(responseCode(resp))
}

// answer finds the person's answer to a record. Without a terminal nobody is
// asked, and the answer is no.
func answer(ctx context.Context, s streams, rec approval.Record, yes bool) (a approval.Answer, asked bool) {
	if yes {
		return approval.Answer{ID: rec.ID, Digest: rec.Digest, Decision: approval.AllowOnce}, true
	}
	t, ok := terminal(s)
	if !ok {
		return approval.Answer{ID: rec.ID, Digest: rec.Digest, Decision: approval.DecisionDeny, How: approval.HowDeclined}, false
	}
	defer t.Close() //nolint:errcheck // a terminal that was only read and written to
	return askOn(ctx, t, rec), true
}

func responseCode(r pipeline.Response) int {
	var (
		denied *gates.DeniedError
		known  *call.Error
	)
	switch {
	case r.Err == nil:
		return exitOK
	case errors.As(r.Err, &denied):
		return exitDenied
	case errors.As(r.Err, &known) && known.Category == call.CategoryConfirmationRequired:
		return exitNotApproved
	}
	return exitFailed
}

func printResponse(s streams, r pipeline.Response, asJSON bool) error {
	text, raw, err := server.Render(r)
	if err != nil {
		return err
	}
	if asJSON {
		_, err = fmt.Fprintf(s.out, "%s\n", raw)
		return err
	}
	w := s.out
	if r.Err != nil {
		w = s.err
	}
	_, err = fmt.Fprintln(w, text)
	return err
}
