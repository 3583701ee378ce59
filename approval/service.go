package approval

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// Service asks, remembers and answers. It is safe for concurrent use.
type Service struct {
	cfg    Config
	store  Store
	key    []byte
	log    *slog.Logger
	grants grants
}

// New returns a service over the given store.
func New(cfg Config, store Store, log *slog.Logger) (*Service, error) {
	if store == nil || log == nil {
		return nil, errors.New("approval: a store and a logger must be given")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	key, err := cfg.secret()
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, store: store, key: key, log: log}, nil
}

// Wait is how long a call may wait for an answer of a client that is asked
// while the call is open.
func (s *Service) Wait() time.Duration { return min(s.cfg.Wait, s.cfg.TTL) }

// Propose stores the question whether this very call may run.
func (s *Service) Propose(ctx context.Context, c call.Call, reasons []Reason, limits call.Limits, fingerprint string) (Record, error) {
	r := newRecord(c, reasons, limits, fingerprint)
	r.ID, r.Created = rand.Text(), time.Now()
	r.Expires = r.Created.Add(s.cfg.TTL)
	var err error
	if r.Binding, err = r.bind(); err != nil {
		return Record{}, fmt.Errorf("approval: %w", err)
	}
	r.Digest = r.seal()
	if len(r.Question()) > maxQuestion {
		return Record{}, &call.Error{
			Category: call.CategoryConfirmationRequired, Code: "too_long_to_review", Phase: call.PhaseSetup,
			Message:    "a person must approve this call, and it is too long to be shown whole",
			Suggestion: "split it into smaller calls, or write the long part to a file first",
		}
	}
	switch err := s.store.Put(ctx, r); {
	case err == nil:
		return r, nil
	case errors.Is(err, ErrFull), errors.Is(err, ErrSessionFull):
		return Record{}, &call.Error{
			Category: call.CategoryConfirmationRequired, Code: "too_many_pending", Phase: call.PhaseSetup, Retryable: true,
			Message:    err.Error(),
			Suggestion: "wait until the person has answered the open questions, or until they expire",
			RetryAfter: s.cfg.TTL, Cause: err,
		}
	default:
		return Record{}, fmt.Errorf("approval: %w", err)
	}
}

// Resolve returns nil when the answer is a person's yes to exactly this call,
// and then only once. Everything the question was bound to is derived again
// from the call as it is now. A decline ends the question; a question that was
// closed, not answered or answered with nonsense stays open, so that the
// person can still approve it another way.
func (s *Service) Resolve(ctx context.Context, c call.Call, reasons []Reason, limits call.Limits, fingerprint string, a Answer) error {
	e, err := s.store.Get(ctx, a.ID)
	if err != nil {
		return s.gone(err)
	}
	if e.Record.Session != c.Session || e.Record.Caller != c.Caller.ID {
		return s.gone(ErrNotFound) // a stranger learns nothing and burns nothing
	}
	if how, no := a.refuses(e.Record); no {
		if how == HowDeclined {
			if err := s.store.Reject(ctx, a.ID); err != nil && !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("approval: %w", err)
			}
		}
		return s.refusal(e.Record, how)
	}
	if e, err = s.store.Consume(ctx, a.ID); err != nil {
		return s.gone(err)
	}
	if !same(e.Record.Digest, a.Digest) {
		return changed("the answer belongs to another question")
	}
	if err := s.verify(e.Record, c, reasons, limits, fingerprint); err != nil {
		return err
	}
	if a.Decision == AllowSession {
		s.grants.add(c.Session, fingerprint, reasons)
	}
	return nil
}

// refuses says how an answer that is no yes ended the question. The empty how
// stands for an answer without a choice.
func (a Answer) refuses(r Record) (how string, no bool) {
	switch {
	case a.How != "":
		return a.How, true
	case a.Decision == DecisionDeny:
		return HowDeclined, true
	case a.Decision == AllowSession && !r.Grantable():
		return HowMalformed, true
	}
	return "", a.Decision != AllowOnce && a.Decision != AllowSession
}

// Approved returns nil when a person approved this very call out of band. The
// approval is used up.
func (s *Service) Approved(ctx context.Context, c call.Call, reasons []Reason, limits call.Limits, fingerprint string) error {
	now := newRecord(c, reasons, limits, fingerprint)
	binding, err := now.bind()
	if err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	e, err := s.store.ConsumeApproved(ctx, binding)
	if err != nil {
		return s.gone(err)
	}
	if !e.Approved {
		return s.gone(ErrNotFound)
	}
	return s.verify(e.Record, c, reasons, limits, fingerprint)
}

// verify checks a consumed record against the call as it is now.
func (s *Service) verify(r Record, c call.Call, reasons []Reason, limits call.Limits, fingerprint string) error {
	if r.Expired(time.Now()) {
		return s.gone(ErrExpired)
	}
	if r.PolicyFingerprint != fingerprint {
		return &call.Error{
			Category: call.CategoryConfirmationRequired, Code: "policy_changed", Phase: call.PhaseSetup, Retryable: true,
			Message: "the policy changed after the person was asked", Suggestion: "make the call again, so that the person is asked anew",
		}
	}
	now := newRecord(c, reasons, limits, fingerprint)
	binding, err := now.bind()
	if err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	now.ID, now.Expires, now.Binding = r.ID, r.Expires, binding
	if !same(now.seal(), r.Digest) {
		return changed("what would run is not what the person was asked about")
	}
	return nil
}

// Granted reports whether a person allowed every one of these reasons' kinds
// for the session, under the policy in force.
func (s *Service) Granted(session, fingerprint string, reasons []Reason) bool {
	return s.grants.covers(session, fingerprint, reasons)
}

// Pending returns an open question.
func (s *Service) Pending(ctx context.Context, id string) (Record, error) {
	e, err := s.store.Get(ctx, id)
	if err != nil {
		return Record{}, s.gone(err)
	}
	return e.Record, nil
}

// List returns the open questions, oldest first.
func (s *Service) List(ctx context.Context) ([]Entry, error) { return s.store.List(ctx) }

// Approve is a person's yes out of band: the same call may run once. Only a
// way that a person alone can reach may lead here.
func (s *Service) Approve(ctx context.Context, id string) error { return s.store.Approve(ctx, id) }

// Deny is a person's no out of band.
func (s *Service) Deny(ctx context.Context, id string) error { return s.store.Reject(ctx, id) }

// Forget drops the grants and open questions of a session that has ended.
func (s *Service) Forget(ctx context.Context, session string) {
	s.grants.forget(session)
	if err := s.store.Forget(ctx, session); err != nil {
		s.log.WarnContext(ctx, "approvals of an ended session stay until they expire", "error", err)
	}
}

// refusal tells the model how a question ended.
func (s *Service) refusal(r Record, how string) error {
	e := &call.Error{
		Category: call.CategoryConfirmationRequired, Phase: call.PhaseSetup,
		Details: map[string]any{"approval_id": r.ID},
	}
	later := fmt.Sprintf("the question stays open until it expires: the person can run `zeph-mcp-tools approvals approve %s`, then make exactly the same call again", r.ID)
	switch how {
	case HowDeclined:
		e.Code, e.Message = "declined", "declined by the person, or this client cannot show questions; nothing ran"
		e.Suggestion, e.Details = "do not try it another way; ask the person how to go on", nil
	case HowCancelled:
		e.Code, e.Message, e.Suggestion = "cancelled", "the question was closed without an answer; nothing ran", later
	case HowTimeout:
		e.Code, e.Suggestion = "expired", later
		e.Message = fmt.Sprintf("nobody answered within %s, or this client cannot show questions; nothing ran", s.Wait())
	case HowFailed:
		e.Code, e.Message, e.Suggestion = "not_asked", "the client failed to put the question to a person; nothing ran", later
	case HowMalformed:
		e.Code, e.Message, e.Suggestion = "malformed", "the answer has none of the choices the form offers; nothing ran", later
	default:
		e.Code, e.Message, e.Suggestion = "not_approved", "nobody approved this call; nothing ran", later
	}
	return e
}

// gone is the one answer for an unknown, used, expired or foreign question:
// which of them it was is nobody's business but the log's.
func (s *Service) gone(err error) error {
	if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrExpired) {
		return fmt.Errorf("approval: %w", err)
	}
	return &call.Error{
		Category: call.CategoryConfirmationRequired, Code: "expired", Phase: call.PhaseSetup, Retryable: true,
		Message: "there is no such open question: it was answered, used or has expired; nothing ran", Suggestion: "make the call again, so that the person is asked anew",
		Cause: err,
	}
}

func changed(message string) error {
	return &call.Error{
		Category: call.CategoryConfirmationRequired, Code: "changed", Phase: call.PhaseSetup, Retryable: true,
		Message: message + "; nothing ran", Suggestion: "make the call again, so that the person is asked anew",
	}
}
