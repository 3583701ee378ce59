package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
)

// terminal opens the terminal a person sits at: standard input when it is one,
// else the controlling terminal when standard error shows there is a person.
func terminal(s streams) (io.ReadWriteCloser, bool) {
	in, ok := s.in.(*os.File)
	if ok && isTerminal(in) {
		return struct {
			io.Reader
			io.Writer
			io.Closer
		}{in, s.err, io.NopCloser(in)}, true
	}
	if e, ok := s.err.(*os.File); !ok || !isTerminal(e) {
		return nil, false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return tty, err == nil
}

// askOn puts the question of a record to the person at a terminal. Anything
// but a clear yes is a no.
func askOn(ctx context.Context, t io.ReadWriter, rec approval.Record) approval.Answer {
	a := approval.Answer{ID: rec.ID, Digest: rec.Digest}
	fmt.Fprintf(t, "\n%s\n", rec.Summary)
	for _, r := range rec.Reasons {
		fmt.Fprintf(t, "  - %s\n", r.Text)
	}
	fmt.Fprint(t, "Run it once? [y/N] ")
	line := make(chan string, 1)
	go func() {
		s, err := bufio.NewReader(t).ReadString('\n')
		if err != nil {
			s = ""
		}
		line <- s
	}()
	select {
	case <-ctx.Done():
		a.How = "cancelled"
	case s := <-line:
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "y", "yes":
			a.Decision = approval.AllowOnce
		default:
			a.Decision, a.How = approval.DecisionDeny, "declined"
		}
	}
	return a
}
