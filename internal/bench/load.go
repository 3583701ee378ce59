package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bigOutput lets commands print 100 MB and 1 GB.
func (b *bench) bigOutput() error {
	for _, tt := range []struct {
		name           string
		bytes          int
		seconds, limit float64 // the targets; a peak in MiB
	}{
		{"100 MB", 100e6, 0.8, 48},
		{"1 GB", 1e9, 8, 32},
	} {
		var took []time.Duration
		var peak int64
		for range 3 {
			d, rss, err := b.oneFlood(tt.bytes)
			if err != nil {
				return err
			}
			took, peak = append(took, d), max(peak, rss)
		}
		b.report.atMost(tt.name+" of output, seconds, p50", median(took).Seconds(), tt.seconds, "")
		b.report.atMost(tt.name+" of output, peak resident memory, MiB", mib(peak), tt.limit, "")
	}
	return nil
}

func (b *bench) oneFlood(bytes int) (time.Duration, int64, error) {
	c, err := dial(b.ctx, b.ours, b.dir, b.env)
	if err != nil {
		return 0, 0, err
	}
	if _, err := c.call("bash", map[string]any{"command": "true"}); err != nil {
		return 0, 0, err
	}
	d, err := c.call("bash", map[string]any{"command": fmt.Sprintf("head -c %d /dev/zero", bytes)})
	if err != nil {
		return 0, 0, err
	}
	return d, c.memory("VmHWM:"), c.close()
}

// sleepers asks for 64 commands at once that each take a second.
func (b *bench) sleepers() error {
	c, err := dial(b.ctx, b.ours, b.dir, b.env)
	if err != nil {
		return err
	}
	const n = 64
	failed := make([]error, n)
	began := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, failed[i] = c.call("bash", map[string]any{"command": "sleep 1"}) })
	}
	all.Wait()
	took := time.Since(began)
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	b.report.atMost(fmt.Sprintf("%d concurrent `sleep 1`, seconds", n), took.Seconds(), 3, "")
	return c.close()
}

// judging has the benchmark of all gates tell what judging a command costs.
func (b *bench) judging() error {
	cmd := exec.CommandContext(b.ctx, "go", "test", "-run=^$", "-bench=^BenchmarkCommand$", "-benchtime=2s", "./gates/standard")
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var ns, bytes float64
	fields := strings.Fields(string(out))
	for i := 1; i < len(fields); i++ {
		n, err := strconv.ParseFloat(fields[i-1], 64)
		if err != nil {
			continue
		}
		switch fields[i] {
		case "p50-ns":
			ns = n
		case "B/op":
			bytes = n
		}
	}
	if ns == 0 {
		return fmt.Errorf("no figure in what the benchmark printed: %s", out)
	}
	b.report.atMost("judging a command of 200 characters by all gates, µs, p50", ns/1000, 200, "")
	b.report.atMost("judging it, KiB allocated", bytes/1024, 64, "")
	return nil
}
