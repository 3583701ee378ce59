package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// errPending ends the first pass of a call that waits for a person. It never
// leaves the package: [Response.Pending] is set instead.
var errPending = errors.New("waiting for a person")

// approver resolves the confirms of one pass: by a grant a person gave for the
// session, by an approval given out of band, by the answer the transport
// brought back, and else by asking.
type approver struct {
	p       *Pipeline
	r       Request
	pending *approval.Record
	how     string // for the audit record
}

// Approve implements [gates.Approver].
func (a *approver) Approve(ctx context.Context, c call.Call, why []gates.Finding) error {
	s, fp := a.p.o.Approvals, a.p.o.Fingerprint
	reasons, limits := toReasons(why)
	if a.r.Answer != nil {
		err := s.Resolve(ctx, c, reasons, limits, fp, *a.r.Answer)
		a.how = answered(a.r.Answer, err)
		return err
	}
	if s.Granted(c.Session, fp, reasons) {
		a.how = "session_grant"
		return nil
	}
	if err := s.Approved(ctx, c, reasons, limits, fp); err == nil {
		a.how = "out_of_band"
		return nil
	}
	rec, err := s.Propose(ctx, c, reasons, limits, fp)
	if err != nil {
		return err
	}
	if a.r.CanAsk {
		a.pending = &rec
		return errPending
	}
	a.how = "approval_required " + rec.ID
	return approvalRequired(rec)
}

func answered(a *approval.Answer, err error) string {
	if err == nil {
		return fmt.Sprintf("%s %s", a.Decision, a.ID)
	}
	if ce, ok := errors.AsType[*call.Error](err); ok {
		return fmt.Sprintf("%s %s", ce.Code, a.ID)
	}
	return "failed " + a.ID
}

// approvalRequired is the answer to a client that cannot put a question to a
// person. It names the way that is left.
func approvalRequired(rec approval.Record) error {
	return &call.Error{
		Category: call.CategoryConfirmationRequired, Code: "approval_required", Phase: call.PhaseSetup, Retryable: true,
		Message:    "a person must approve this call and this client cannot show the question: " + rec.Summary,
		Suggestion: fmt.Sprintf("ask the person to run `zeph-mcp-tools approvals approve %s`, then make exactly the same call again", rec.ID),
		Details: map[string]any{
			"approval_id": rec.ID, "expires_at": rec.Expires.UTC().Format("2006-01-02T15:04:05Z"),
			"reasons": reasonTexts(rec.Reasons),
		},
	}
}

func reasonTexts(rs []approval.Reason) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.Text
	}
	return out
}

func toReasons(why []gates.Finding) ([]approval.Reason, call.Limits) {
	var limits call.Limits
	out := make([]approval.Reason, len(why))
	for i, f := range why {
		out[i] = approval.Reason{Gate: f.Gate, Code: f.Code, Text: f.Reason, Kind: f.Kind}
		limits = limits.Tighten(f.Limits)
	}
	return out, limits
}
