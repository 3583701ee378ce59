package call

import (
	"encoding/json"
	"fmt"
	"time"
)

// Result is what a tool made of a permitted call. A command's non-zero exit is
// a Result, not an error.
type Result struct {
	Text       string          // what the model reads
	Structured json.RawMessage // an object valid for the tool's output schema; nil = {}
	Images     []Image         // image content, if any
	Untrusted  bool            // the text came from outside this machine
	Outcome    Outcome
}

// Image is one image of a result.
type Image struct {
	MIME string
	Data []byte
}

// Outcome is what the audit record keeps of a result.
type Outcome struct {
	ExitCode  *int  // of a command; nil when there was none
	TimedOut  bool  // ended by its time limit
	Cancelled bool  // ended by the client or the server's stop
	Truncated bool  // something was cut
	RawBytes  int64 // before any cut
	Sandbox   int   // level a command ran at; 0 = no command ran
	// Violations are what the sandbox denied a command.
	Violations []Violation
}

// Category sorts errors by what the model can do about them.
type Category string

// The categories.
const (
	CategoryToolNotFound         Category = "tool_not_found"
	CategoryInvalidParameters    Category = "invalid_parameters"
	CategoryTypeMismatch         Category = "type_mismatch"
	CategoryPolicyBlocked        Category = "policy_blocked"
	CategoryConfirmationRequired Category = "confirmation_required"
	CategoryPermanentFailure     Category = "permanent_failure"
	CategoryCancelled            Category = "cancelled"
	CategoryRateLimited          Category = "rate_limited"
	CategoryServerError          Category = "server_error"
	CategoryNetworkError         Category = "network_error"
	CategoryTimeout              Category = "timeout"
	CategoryQuotaBlocked         Category = "quota_blocked"
)

// Phase says where in a call's life an error arose.
type Phase string

// The phases.
const (
	PhaseSetup                Phase = "setup"
	PhaseParamHandling        Phase = "param_handling"
	PhaseExecution            Phase = "execution"
	PhaseResultInterpretation Phase = "result_interpretation"
)

// Error is an error the model can act on. Anything else that reaches the
// server is a fault of ours and is shown as an internal error with the call's
// id only.
type Error struct {
	Category   Category
	Code       string // stable snake_case
	Phase      Phase
	Field      string // argument at fault, "" when none
	Message    string
	Suggestion string
	Retryable  bool
	RetryAfter time.Duration  // 0 = not stated
	Details    map[string]any // extra structured fields, small
	Cause      error          // for log and audit, never shown
}

// Error returns the message the model may see.
func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: %s", e.Field, e.Message)
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ArgError returns the error for an argument that is wrong in a way other than
// its type. Code and category are invalid_parameters.
func ArgError(field, message, suggestion string) *Error {
	return &Error{
		Category: CategoryInvalidParameters, Code: "invalid_parameters", Phase: PhaseParamHandling,
		Field: field, Message: message, Suggestion: suggestion,
	}
}

// TypeError returns the error for an argument of the wrong JSON type.
func TypeError(field, message, suggestion string) *Error {
	return &Error{
		Category: CategoryTypeMismatch, Code: "type_mismatch", Phase: PhaseParamHandling,
		Field: field, Message: message, Suggestion: suggestion,
	}
}

// Failure returns a final failure during execution.
func Failure(code, message, suggestion string) *Error {
	return &Error{
		Category: CategoryPermanentFailure, Code: code, Phase: PhaseExecution,
		Message: message, Suggestion: suggestion,
	}
}
