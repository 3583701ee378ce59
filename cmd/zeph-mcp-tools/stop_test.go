package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

// However the server ends in the middle of a command, none of the command's
// processes outlives it, and its audit log still verifies.
func TestNothingOutlivesTheServer(t *testing.T) {
	t.Parallel()
	// Run under nohup this process ignores SIGHUP, and so would the server:
	// what is caught here is not ignored there.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, os.Interrupt)
	t.Cleanup(func() { signal.Stop(caught) })
	for i, tt := range []struct {
		name       string
		end        func(p *os.Process, in io.Closer) error
		clean      bool
		background bool
	}{
		{"end of input", func(_ *os.Process, in io.Closer) error { return in.Close() }, true, false},
		{"terminate", func(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGTERM) }, true, false},
		{"interrupt", func(p *os.Process, _ io.Closer) error { return p.Signal(os.Interrupt) }, true, false},
		{"hang up", func(p *os.Process, _ io.Closer) error { return p.Signal(syscall.SIGHUP) }, true, false},
		{"kill", func(p *os.Process, _ io.Closer) error { return p.Kill() }, false, false},
		{"end of input, in the background", func(_ *os.Process, in io.Closer) error { return in.Close() }, true, true},
		{"kill, in the background", func(p *os.Process, _ io.Closer) error { return p.Kill() }, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := workspacetest.Base(t)
			mark := fmt.Sprintf("3%07d%d", os.Getpid(), i) // seconds no other sleep has
			cmd := start(t, base)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			script := fmt.Sprintf(`trap '' TERM HUP INT; (setsid sleep %[1]s &); sleep %[1]s & sleep %[1]s`, mark)
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":%q,"background":%t}}}`+"\n", script, tt.background)
			eventually(t, "the command runs", func() bool { return count(t, mark) == 3 })
			began := time.Now()
			if err := tt.end(cmd.Process, in); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); (err == nil) != tt.clean || time.Since(began) > 10*time.Second { // five, and some for a busy machine
				t.Errorf("ended with %v after %s", err, time.Since(began))
			}
			// The kernel ends what a killed server leaves, but not at once.
			eventually(t, "nothing is left", func() bool { return count(t, mark) == 0 })
			log, err := os.Open(filepath.Join(base, "state/zeph-mcp-tools/audit.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			if rep, err := audit.Verify(log); err != nil || rep.Err() != nil {
				t.Errorf("audit log: %v, %v", err, rep.Err())
			}
		})
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it never came that " + what)
		}
	}
}

// count returns how many processes sleep for so long.
func count(t *testing.T, seconds string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.HasPrefix(b, []byte("sleep\x00"+seconds)) {
			n++
		}
	}
	return n
}
