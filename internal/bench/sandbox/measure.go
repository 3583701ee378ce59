package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/bench/page"
)

// The targets.
const (
	mostRatio    = 2.0              // of a plain start
	mostOver     = time.Millisecond // over a plain start
	leastFaster  = 4.0              // than bubblewrap
	mostSession  = 20 * time.Millisecond
	mostHeap     = 1.3 // of the small server's figure
	warmUp       = 20
	sessionCount = 100
	heapMiB      = 1024
)

// table collects rows.
type table struct {
	n           int
	rows, notes []string
	command     time.Duration // p50 of a confined one
}

func (t *table) row(what string, took []time.Duration, beside, target string, met bool) {
	mark := ""
	if target != "" {
		mark = "yes"
		if !met {
			mark = "**no**"
		}
	}
	t.rows = append(t.rows, fmt.Sprintf("| %s | %v | %v | %s | %s | %s |", what, at(took, 50), at(took, 95), beside, target, mark))
}

// at is a percentile, rounded for reading.
func at(took []time.Duration, percent int) time.Duration {
	s := slices.Sorted(slices.Values(took))
	return s[len(s)*percent/100].Round(10 * time.Microsecond)
}

func times(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }

// timed runs something in turns with others: each of them once, n times over.
func timed(n int, subjects ...func() error) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(subjects))
	for round := range warmUp + n {
		for i, s := range subjects {
			began := time.Now()
			if err := s(); err != nil {
				return nil, err
			}
			if round >= warmUp {
				took[i] = append(took[i], time.Since(began))
			}
		}
	}
	return took, nil
}

// starts compares single starts.
func (t *table) starts(ctx context.Context, p places) error {
	s, err := p.sandbox(ctx)
	if err != nil {
		return err
	}
	subjects := []func() error{p.plain, func() error {
		_, err := s.Run(ctx, p.command("s"))
		return err
	}}
	wrap := find("bwrap")
	if wrap != "" {
		subjects = append(subjects, p.bubblewrap(wrap))
		if err := subjects[2](); err != nil {
			return fmt.Errorf("bubblewrap: %w", err)
		}
	}
	took, err := timed(t.n, subjects...)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	plain, full := at(took[0], 50), at(took[1], 50)
	t.command = full
	ratio, over := times(full, plain), full-plain
	t.row("plain start of `/bin/true`", took[0], "", "", true)
	t.row("level 3", took[1], fmt.Sprintf("%.2fx plain, %v over it", ratio, over),
		fmt.Sprintf("≤ %.1fx and ≤ %v over", mostRatio, mostOver), ratio <= mostRatio && over <= mostOver)
	if wrap == "" {
		t.rows = append(t.rows, "| bubblewrap, same view | absent | | | | |")
		t.notes = append(t.notes, "bubblewrap is not installed here: `apt-get install bubblewrap`, and run this again.")
		return nil
	}
	wrapped := at(took[2], 50)
	t.row("bubblewrap, same view", took[2], fmt.Sprintf("%.1fx plain, %.1fx level 3", times(wrapped, plain), times(wrapped, full)),
		fmt.Sprintf("level 3 ≥ %.0fx faster", leastFaster), times(wrapped, full) >= leastFaster)
	return nil
}

// find looks a program up, "" when there is none.
func find(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// sessions measures making a session: its first command, less what a command
// takes.
func (t *table) sessions(ctx context.Context, p places) error {
	s, err := p.sandbox(ctx)
	if err != nil {
		return err
	}
	i := 0
	took, err := timed(min(t.n, sessionCount), func() error {
		i++
		name := strconv.Itoa(i)
		_, err := s.Run(ctx, p.command(name))
		s.End(name)
		return err
	})
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	t.row("first command of a session, level 3", took[0], fmt.Sprintf("the session itself %v", at(took[0], 50)-t.command),
		fmt.Sprintf("≤ %v", mostSession), at(took[0], 50) <= mostSession)
	return nil
}

// heaps compares a server with a large heap to one with a small.
func (t *table) heaps(ctx context.Context) error {
	var subjects []func() error
	for _, mib := range []int{0, heapMiB} {
		w, err := startWorker(ctx, mib)
		if err != nil {
			return err
		}
		defer w.stop()
		subjects = append(subjects, w.turn)
	}
	took, err := timed(t.n, subjects...)
	if err != nil {
		return err
	}
	ratio := times(at(took[1], 50), at(took[0], 50))
	t.row("level 3, asked of another process with a small heap", took[0], "", "", true)
	t.row(fmt.Sprintf("level 3, asked of one with a heap of %d MiB", heapMiB), took[1], fmt.Sprintf("%.2fx the small heap", ratio),
		fmt.Sprintf("≤ %.1fx", mostHeap), ratio <= mostHeap)
	return nil
}

// worker is another process of this program, which starts a command whenever
// it is sent a line.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startWorker(ctx context.Context, mib int) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, self, "-worker", strconv.Itoa(mib))}
	w.cmd.Stderr = os.Stderr
	w.in, err = w.cmd.StdinPipe()
	out, e := w.cmd.StdoutPipe()
	if err := errors.Join(err, e); err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	return w, w.cmd.Start()
}

func (w *worker) turn() error {
	if _, err := io.WriteString(w.in, "\n"); err != nil {
		return err
	}
	_, err := w.out.ReadString('\n')
	return err
}

func (w *worker) stop() {
	_ = w.in.Close()
	_ = w.cmd.Wait()
}

// work is the life of a worker.
func work(ctx context.Context, mib int) error {
	heap := make([]byte, mib<<20)
	for i := 0; i < len(heap); i += 4096 {
		heap[i] = 1
	}
	p, err := newPlaces()
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.base) //nolint:errcheck // a scratch folder
	s, err := p.sandbox(ctx)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if _, err := s.Run(ctx, p.command("s")); err != nil {
			return errors.Join(err, s.Close())
		}
		if _, err := os.Stdout.WriteString("\n"); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if len(heap) > 0 && heap[len(heap)-4096] != 1 {
		return errors.New("the heap went away")
	}
	return s.Close()
}

func (t *table) markdown() string {
	who := "an ordinary user"
	if os.Getuid() == 0 {
		who = "root"
	}
	lines := []string{
		fmt.Sprintf("%s %d starts of each, in turns, as %s.", page.Machine(), t.n, who), "",
		"A plain start is fork, exec and wait, nothing else; level 3 includes the pipes and collecting the output. " +
			"Bubblewrap gets the same namespaces and binds, and no system call filter.", "",
		"| what | p50 | p95 | beside | target | met |", "|---|---|---|---|---|---|",
	}
	lines = append(lines, t.rows...)
	for _, n := range t.notes {
		lines = append(lines, "", n)
	}
	return strings.Join(lines, "\n") + "\n"
}
