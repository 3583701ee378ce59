package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/bench/page"
)

// report collects rows of the table in docs/benchmarks.md.
type report struct{ rows []string }

func (r *report) row(what, ours, beside, target string, met bool) {
	mark := "yes"
	if !met {
		mark = "**no**"
	}
	if target == "" {
		mark = ""
	}
	r.rows = append(r.rows, fmt.Sprintf("| %s | %s | %s | %s | %s |", what, ours, beside, target, mark))
}

func (r *report) ratio(what string, ours, bare time.Duration, most float64) {
	q := ours.Seconds() / bare.Seconds()
	r.row(what, ours.Round(10*time.Microsecond).String(), fmt.Sprintf("%v (%.2fx)", bare.Round(10*time.Microsecond), q), fmt.Sprintf("≤ %.2fx", most), q <= most)
}

func (r *report) atMost(what string, ours, most float64, beside string) {
	figure := fmt.Sprintf("%.3g", ours)
	if ours >= 100 {
		figure = fmt.Sprintf("%.0f", ours)
	}
	r.row(what, figure, beside, fmt.Sprintf("≤ %g", most), ours <= most)
}

func (r *report) atLeast(what string, ours, bare, least float64) {
	q := ours / bare
	r.row(what, fmt.Sprintf("%.0f", ours), fmt.Sprintf("%.0f (%.2fx)", bare, q), fmt.Sprintf("≥ %.2fx", least), q >= least)
}

func (r *report) info(what, ours string) { r.row(what, ours, "", "", true) }

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(page.Machine() + "\n\n")
	b.WriteString("\"Bare\" is the same MCP SDK with one tool that runs `bash -c` and one that echoes: no gates, no sandbox, no audit.\n\n")
	b.WriteString("| what | here | bare | target | met |\n|---|---|---|---|---|\n")
	b.WriteString(strings.Join(r.rows, "\n"))
	b.WriteString("\n")
	return b.String()
}
