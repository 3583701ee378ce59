package server

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/mark3labs/mcp-go/server"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

// questionID names the one question of an input_required result.
const questionID = "approval"

// decisionField is the one field of the form.
const decisionField = "decision"

// tickEvery is how often a client that waits for its person hears that the
// call is alive.
const tickEvery = 15 * time.Second

// answer brings one request to its end or to a question. Clients since
// 2026-07-28 get the question as a result and come back with the person's
// answer in a second request; older ones are asked while the request is open.
func (s *Server) answer(
	ctx context.Context, c *conn, request mcp.CallToolRequest, r pipeline.Request, report *reporter,
) pipeline.Response {
	modern := sdk.IsModernRequest(ctx)
	if modern && request.Params.RequestState != "" {
		return s.resume(ctx, request, r)
	}
	resp := s.run(ctx, r)
	if resp.Pending == nil || modern {
		return resp
	}
	a := s.askNow(ctx, c, *resp.Pending, report)
	if a.How != "" {
		// Nothing will run, but the record of the call must be written even
		// when the client has cancelled it meanwhile.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
	}
	r.Answer, r.Resume = &a, resp.CallID
	return s.second(ctx, r)
}

// second is the pass that brings the answer. It cannot lead to another
// question.
func (s *Server) second(ctx context.Context, r pipeline.Request) pipeline.Response {
	call := s.run
	if r.Answer.How != "" {
		call = s.o.Calls.Call // nothing will run, so there is no turn to wait for
	}
	resp := call(ctx, r)
	if resp.Pending != nil {
		resp.Pending, resp.Err = nil, errors.New("asked again after the answer")
		s.o.Log.ErrorContext(ctx, "a call was asked about twice", "call_id", resp.CallID, "tool", r.Tool)
	}
	return resp
}

// resume takes up a call whose client came back with its person's answer.
func (s *Server) resume(ctx context.Context, request mcp.CallToolRequest, r pipeline.Request) pipeline.Response {
	t, err := s.o.Approvals.Open(ctx, r.Session, request.Params.RequestState)
	if err != nil {
		r.Refused = err // it leaves its record like any other call
		return s.o.Calls.Call(ctx, r)
	}
	if _, ok := request.Params.InputResponses[questionID]; !ok {
		// The client brought the state and no answer: ask again.
		rec, err := s.o.Approvals.Pending(ctx, t.ID)
		if err != nil {
			r.Resume, r.Refused = t.CallID, err
			return s.o.Calls.Call(ctx, r)
		}
		return pipeline.Response{CallID: t.CallID, Pending: &rec}
	}
	a := read(sdk.ElicitationResponse(request.Params.InputResponses, questionID))
	a.ID, a.Digest = t.ID, t.Digest
	r.Answer, r.Resume = &a, t.CallID
	return s.second(ctx, r)
}

// askLater is the result that makes a client since 2026-07-28 ask its person.
func (s *Server) askLater(ctx context.Context, resp pipeline.Response) (*mcp.CallToolResult, error) {
	state, err := s.o.Approvals.Sign(ctx, *resp.Pending)
	if err != nil {
		return errorResult(resp.CallID, err), nil
	}
	out := sdk.NewInputRequestBuilder(state).Elicit(questionID, form(*resp.Pending, mcp.LATEST_PROTOCOL_VERSION)).ToolResult()
	out.Content = []mcp.Content{}
	return out, nil
}

// askNow asks the person behind a client before 2026-07-28 and waits, but not
// for ever. A person gets one question at a time.
func (s *Server) askNow(ctx context.Context, c *conn, rec approval.Record, report *reporter) approval.Answer {
	a := approval.Answer{ID: rec.ID, Digest: rec.Digest}
	wait, cancel := context.WithTimeout(ctx, min(s.o.Approvals.Wait(), time.Until(rec.Expires)))
	defer cancel()
	defer s.keepAlive(wait, report)()
	select {
	case c.client.asking <- struct{}{}:
		defer func() { <-c.client.asking }()
	case <-wait.Done():
		a.How = unanswered(ctx)
		return a
	}
	c.flight.notified.Store(true)
	result, err := s.mcp.RequestElicitation(wait, mcp.ElicitationRequest{
		Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)},
		Params:  form(rec, sdk.RequestProtocolVersion(ctx)),
	})
	if err != nil {
		s.o.Log.InfoContext(ctx, "a question was not answered", "approval", rec.ID, "error", err)
		a.How = approval.HowFailed
		if wait.Err() != nil {
			a.How = unanswered(ctx)
		}
		return a
	}
	got := read(result)
	a.Decision, a.How = got.Decision, got.How
	return a
}

// unanswered says why there is no answer: the call was cancelled, or nobody
// gave one in time.
func unanswered(ctx context.Context) string {
	if ctx.Err() != nil {
		return approval.HowCancelled
	}
	return approval.HowTimeout
}

// keepAlive reports progress while a person thinks, so that the client does
// not give the call up. It stops when the returned function is called.
func (s *Server) keepAlive(ctx context.Context, report *reporter) (stop func()) {
	if !report.wanted() {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(tickEvery)
		defer ticker.Stop()
		for {
			report.tick("waiting for a person's approval")
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// canAsk reports whether the client says it can show forms. Clients since
// 2026-07-28 say so with every request, older ones said so in initialize.
func canAsk(ctx context.Context, c *peer) bool {
	caps := c.capabilities().Elicitation
	if info := sdk.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		caps = nil
		if info.ClientCapabilities != nil {
			caps = info.ClientCapabilities.Elicitation
		}
	}
	// An empty object means forms; one that names only url does not.
	return caps != nil && (caps.Form != nil || caps.URL == nil)
}

type choice struct {
	decision approval.Decision
	title    string
}

// form is the question as a client shows it.
func form(rec approval.Record, version string) mcp.ElicitationParams {
	choices := []choice{{approval.AllowOnce, "Allow once"}}
	if rec.Grantable() {
		choices = append(choices, choice{approval.AllowSession, "Allow this kind for this session"})
	}
	choices = append(choices, choice{approval.DecisionDeny, "Do not allow"})

	field := map[string]any{"type": "string", "title": "Decision"}
	params := mcp.ElicitationParams{Message: rec.Question()}
	if version >= mcp.ProtocolVersion20251125 {
		params.Mode = mcp.ElicitationModeForm
		var options []map[string]any
		for _, c := range choices {
			options = append(options, map[string]any{"const": c.decision.String(), "title": c.title})
		}
		field["oneOf"] = options
	} else {
		var values, titles []string
		for _, c := range choices {
			values, titles = append(values, c.decision.String()), append(titles, c.title)
		}
		field["enum"], field["enumNames"] = values, titles
	}
	params.RequestedSchema = map[string]any{
		"type": "object", "properties": map[string]any{decisionField: field}, "required": []string{decisionField},
	}
	return params
}

// read turns what a client brought back into an answer. Only an accepted form
// with one of the choices is a decision.
func read(r *mcp.ElicitationResult) approval.Answer {
	if r == nil {
		return approval.Answer{How: approval.HowMalformed}
	}
	switch r.Action {
	case mcp.ElicitationResponseActionDecline:
		return approval.Answer{How: approval.HowDeclined}
	case mcp.ElicitationResponseActionCancel:
		return approval.Answer{How: approval.HowCancelled}
	case mcp.ElicitationResponseActionAccept:
		content, _ := r.Content.(map[string]any)
		text, _ := content[decisionField].(string)
		if d, ok := approval.ParseDecision(text); ok {
			return approval.Answer{Decision: d}
		}
	}
	return approval.Answer{How: approval.HowMalformed}
}
