// Package tools is the contract of a tool and the registry that holds them.
//
// A tool is reached only through the registry, and the registry runs a tool
// only with a sealed [gates.Authorized]. Tools are never handed out, so
// nothing can assert on one, wrap one or call one past the gates.
package tools

import (
	"context"
	"encoding/json"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// Tool is one tool. All three methods are required; there are no optional
// interfaces, and nothing may use a type assertion on a Tool.
type Tool interface {
	// Spec says what the tool is. It is called once, at registration.
	Spec() call.Spec
	// Facts says what a call with these canonical arguments means. It changes
	// nothing, starts nothing and reaches no network. An error is an argument
	// fault ([*call.Error]).
	Facts(args json.RawMessage) (call.Facts, error)
	// Run carries out a permitted call. It is called concurrently.
	Run(ctx context.Context, a gates.Authorized) (call.Result, error)
}
