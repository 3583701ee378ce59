package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// The exit codes of the command line; docs and tests rely on them.
const (
	exitOK          = 0
	exitFailed      = 1  // a tool error, a broken chain, a degraded machine
	exitUsage       = 2  // bad flags, arguments or configuration
	exitRefused     = 3  // the sandbox cannot confine and may not be lowered
	exitNotApproved = 10 // a person must approve and did not
	exitDenied      = 20 // a gate refused
)

// codeError carries an exit code. With quiet set, everything has been said.
type codeError struct {
	code  int
	quiet bool
	err   error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

func usage(err error) error { return &codeError{code: exitUsage, err: err} }

func silent(code int) error {
	if code == exitOK {
		return nil
	}
	return &codeError{code: code, quiet: true}
}

// exitCode is the one place that turns an error into an exit code.
func exitCode(err error, w io.Writer) int {
	if err == nil {
		return exitOK
	}
	var (
		coded  *codeError
		denied *gates.DeniedError
		known  *call.Error
	)
	code := exitFailed
	switch {
	case errors.As(err, &coded):
		code = coded.code
		if coded.quiet {
			return code
		}
	case errors.Is(err, sandbox.ErrUnavailable):
		code = exitRefused
	case errors.As(err, &denied):
		code = exitDenied
	case errors.As(err, &known) && known.Category == call.CategoryConfirmationRequired:
		code = exitNotApproved
	case isUsage(err):
		code = exitUsage
	}
	fmt.Fprintln(w, "zeph-mcp-tools:", err)
	return code
}

// isUsage recognises what the command-line library itself refuses; it has no
// error type of its own for these.
func isUsage(err error) bool {
	for _, s := range []string{"unknown command", "unknown flag", "unknown shorthand", "accepts ", "requires at least", "flag needs an argument", "invalid argument"} {
		if strings.HasPrefix(err.Error(), s) {
			return true
		}
	}
	return false
}
