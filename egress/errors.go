package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func blocked(code, reason string) *call.Error {
	return &call.Error{
		Category: call.CategoryPolicyBlocked, Code: code, Phase: call.PhaseExecution,
		Message: reason, Suggestion: "use a public https:// address that the user or an earlier result named",
	}
}

func failure(code, message string) *call.Error {
	return call.Failure(code, message, "try another URL")
}

func network(code, message string, retryable bool, cause error) *call.Error {
	return &call.Error{
		Category: call.CategoryNetworkError, Code: code, Phase: call.PhaseExecution,
		Message: message, Retryable: retryable, Cause: cause,
		Suggestion: "check the URL, or try again later",
	}
}

func ended(ctx context.Context, limit time.Duration) *call.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &call.Error{
			Category: call.CategoryTimeout, Code: "timeout", Phase: call.PhaseExecution, Retryable: true,
			Message:    fmt.Sprintf("no complete answer within %s", limit.Round(time.Millisecond)),
			Suggestion: "try again later, or another URL",
		}
	}
	return &call.Error{
		Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution,
		Message: "the call was cancelled",
	}
}

// classify turns a transport error into one that names the host and nothing
// else. The original stays as its cause, for the log.
func classify(ctx context.Context, host string, limit time.Duration, err error) *call.Error {
	if e, ok := errors.AsType[*call.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return ended(ctx, limit)
	}
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &certificate):
		return network("tls", "the certificate of "+host+" is not valid", false, err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return &call.Error{
			Category: call.CategoryTimeout, Code: "timeout", Phase: call.PhaseExecution, Retryable: true,
			Message: host + " did not answer in time", Suggestion: "try again later, or another URL", Cause: err,
		}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return network("connect", "cannot connect to "+host, true, err)
	}
	return network("transport", "the exchange with "+host+" failed", true, err)
}

// StatusError returns the error for a status outside 2xx, nil inside it. It
// holds nothing of the body.
func (r *Response) StatusError() *call.Error {
	if r.Status >= 200 && r.Status <= 299 {
		return nil
	}
	e := &call.Error{
		Category: call.CategoryPermanentFailure, Code: "http_status", Phase: call.PhaseExecution,
		Message:    fmt.Sprintf("the server answered %d %s", r.Status, http.StatusText(r.Status)),
		Suggestion: "check the URL",
		Details:    map[string]any{"status": r.Status},
	}
	switch {
	case r.Status == http.StatusBadRequest, r.Status == http.StatusUnprocessableEntity:
		e.Category = call.CategoryInvalidParameters
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		e.Category, e.Suggestion = call.CategoryPolicyBlocked, "the site does not give this page to anonymous readers; use another source"
	case r.Status == http.StatusTooManyRequests:
		e.Category, e.Suggestion, e.Retryable = call.CategoryRateLimited, "wait before asking this site again", true
	case r.Status >= 500:
		e.Category, e.Suggestion, e.Retryable = call.CategoryServerError, "try again later", true
	}
	if e.Retryable {
		e.RetryAfter = RetryAfter(r.Header)
	}
	return e
}

// RetryAfter reads the Retry-After header, in seconds or as a date; 0 when it
// is absent or senseless. It is never more than an hour.
func RetryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil {
		return time.Second * time.Duration(min(max(n, 0), 3600))
	}
	if t, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(t), 0), time.Hour).Round(time.Second)
	}
	return 0
}
