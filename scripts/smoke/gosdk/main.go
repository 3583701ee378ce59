// Command smoke drives the server through the official Go SDK's client, over
// stdio and HTTP.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: smoke BIN WORKSPACE URL")
		os.Exit(2)
	}
	bin, ws, url := os.Args[1], os.Args[2], os.Args[3]
	for name, t := range map[string]mcp.Transport{
		"go-sdk stdio": &mcp.CommandTransport{Command: exec.Command(bin, "--workspace", ws)},
		"go-sdk http":  &mcp.StreamableClientTransport{Endpoint: url},
	} {
		if err := session(t, ws); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		fmt.Println("ok", name)
	}
}

func session(t mcp.Transport, ws string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	decision := "deny"
	client := mcp.NewClient(&mcp.Implementation{Name: "smoke", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if decision == "deny" {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
		},
	})
	s, err := client.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	call := func(tool string, args map[string]any) (string, bool, error) {
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			return "", false, err
		}
		var b strings.Builder
		for _, c := range r.Content {
			if tc, ok := c.(*mcp.TextContent); ok {
				b.WriteString(tc.Text)
			}
		}
		return b.String(), r.IsError, nil
	}
	list, err := s.ListTools(ctx, nil)
	if err != nil || len(list.Tools) < 10 {
		return fmt.Errorf("tools/list: %v", err)
	}
	victim := filepath.Join(ws, "victim-go.txt")
	if err := os.WriteFile(victim, []byte("x"), 0o600); err != nil {
		return err
	}
	for _, c := range []struct {
		tool, decision, has string
		args                map[string]any
		isError, victim     bool
	}{
		{"bash", "deny", "hi", map[string]any{"command": "echo hi"}, false, true},
		{"bash", "deny", "blocked_command", map[string]any{"command": "sudo id"}, true, true},
		{"read", "deny", "x", map[string]any{"path": "victim-go.txt"}, false, true},
		{"bash", "deny", "declined", map[string]any{"command": "rm victim-go.txt"}, true, true},
		{"bash", "allow_once", "", map[string]any{"command": "rm victim-go.txt"}, false, false},
	} {
		decision = c.decision
		text, isError, err := call(c.tool, c.args)
		if err != nil {
			return fmt.Errorf("%v: %w", c.args, err)
		}
		_, gone := os.Stat(victim)
		if isError != c.isError || !strings.Contains(text, c.has) || errors.Is(gone, os.ErrNotExist) == c.victim {
			return fmt.Errorf("%v: isError %v, victim %v: %s", c.args, isError, gone == nil, text)
		}
	}
	return nil
}
