// Command zeph-mcp-tools gives an AI agent a shell, files and the web over the
// Model Context Protocol: every call judged on what it means, confined by the
// kernel, and written down.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// version is set by the linker.
var version = "dev"

// streams are the three standard streams, passed on so that tests run the
// commands in-process. Only serve and the commands that print a result write
// to out; under stdio it is the protocol stream.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

func main() {
	runtime.LockOSThread() // the main thread stays ours: no throw-away thread may land on it
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run runs one command line and returns the exit code.
func run(args []string, s streams) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup a closed terminal is no reason to stop
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	root := newRoot(s)
	root.SetArgs(args)
	return exitCode(root.ExecuteContext(ctx), s.err)
}
