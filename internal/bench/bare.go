package main

import (
	"bytes"
	"context"
	"os/exec"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// serveBare is the server to compare with: the same SDK, nothing else.
func serveBare() error {
	s := server.NewMCPServer("bare", "1")
	s.AddTool(mcp.NewTool("bash", mcp.WithString("command", mcp.Required())),
		func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			cmd := exec.CommandContext(ctx, "bash", "-c", r.GetString("command", ""))
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(out.String()), nil
		})
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(r.GetString("text", "")), nil
		})
	return server.ServeStdio(s)
}
