//go:build linux || darwin

package sandbox

import (
	"fmt"
	"syscall"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// pulseEvery is how often a running command is looked at from here.
const pulseEvery = 250 * time.Millisecond

// crowdLooks is at how many of these looks there may be as many processes as
// there may be. A burst is told "temporarily unavailable" and goes on.
const crowdLooks = 4

// overNow reports whether a command has to be ended: it printed more than it
// may, it stays at all the processes there may be, or the kernel has begun to
// end it for the memory it takes.
func (r *Run) overNow() bool {
	_, full := r.group.outOfMemory()
	r.flood = r.out.printed() > r.s.cfg.MaxOutputSize
	if r.group.crowded() {
		r.crowd++
	} else {
		r.crowd = max(0, r.crowd-1)
	}
	r.over = r.flood || full || r.crowd >= crowdLooks
	return r.over
}

// overLimits tells of the limits a command ran into, and whether it was ended
// for memory.
func (r *Run) overLimits(end *stage.Exit, lack bool, out *Outcome) {
	over := func(op, target, rule, hint string, source call.ViolationSource) {
		v := Violation{Kind: call.ViolationLimit, Op: op, Target: target, Rule: "limit." + rule, Source: source, Hint: hint}
		if rule == "memory" || rule == "processes" {
			v.By = r.group.holds()
		}
		r.denied.add(v)
	}
	switch {
	case end.Over == stage.OverMemory || lack:
		out.OutOfMemory = true
		over("memory", size(r.s.cfg.memoryLimit()), "memory",
			"its processes together took more, so all were ended; do it in smaller parts (the operator's limit is max_memory)", call.SourceExact)
	case end.Over == stage.OverProcesses || r.crowd >= crowdLooks:
		over("processes", fmt.Sprint(r.s.cfg.MaxProcesses), "processes",
			"it made as many as there may be, threads included, so all were ended; start fewer at once (the operator's limit is max_processes)",
			call.SourceExact)
	}
	if r.flood {
		over("output", size(r.s.cfg.MaxOutputSize), "output",
			"it was ended; write to a file, or print less (the operator's limit is max_output_size)", call.SourceExact)
	}
	if tooBig := 128 + int(syscall.SIGXFSZ); out.ExitCode == tooBig {
		source := call.SourceInferred // a shell tells of a signal by this number, and any program can
		if out.Signal != "" {
			source = call.SourceExact
		}
		over("bytes in one file", size(r.s.cfg.MaxFileSize), "file_size",
			"the program was ended; write several files (the operator's limit is max_file_size)", source)
	}
}

// size is a number of bytes for people.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
