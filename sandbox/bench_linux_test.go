package sandbox

import (
	"bytes"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkSpawn runs a program plainly and confined in turns, so that both
// see the same noise, and reports the middle of each.
func BenchmarkSpawn(b *testing.B) {
	w := newWorld(b, nil)
	for name, argv := range map[string][]string{
		"true": {"/bin/true"},
		"bash": {"/bin/bash", "--noprofile", "--norc", "-c", "echo hi"},
	} {
		b.Run(name, func(b *testing.B) { w.spawn(b, argv) })
	}
}

func (w world) spawn(b *testing.B, argv []string) {
	b.Helper()
	cmd := Command{
		Session: "s", Scratch: w.scratch, Argv: argv, Dir: w.root,
		Env: []string{"PATH=/usr/bin:/bin"}, MaxOutput: 1 << 10,
	}
	if _, err := w.sb.Run(b.Context(), cmd); err != nil {
		b.Skip(err)
	}
	var plain, confined []time.Duration
	for b.Loop() {
		var out, errOut bytes.Buffer
		began := time.Now()
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir, c.Env, c.Stdout, c.Stderr = cmd.Dir, cmd.Env, &out, &errOut
		if err := c.Run(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(began))
		began = time.Now()
		if _, err := w.sb.Run(b.Context(), cmd); err != nil {
			b.Fatal(err)
		}
		confined = append(confined, time.Since(began))
	}
	slices.Sort(plain)
	slices.Sort(confined)
	p, c := plain[len(plain)/2], confined[len(confined)/2]
	b.ReportMetric(float64(p.Microseconds()), "plain-µs")
	b.ReportMetric(float64(c.Microseconds()), "confined-µs")
	b.ReportMetric(float64(c)/float64(p), "ratio")
}
