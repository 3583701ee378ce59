package sandbox

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// What a program prints when the kernel has denied it something. The first
// that a line holds counts.
const (
	saysReadOnly = "read-only file system"
	saysDenied   = "permission denied"
	saysPerm     = "operation not permitted"
	saysFiles    = "too many open files"
	saysProcs    = "resource temporarily unavailable"
)

const (
	maxErrorLines = 2000 // of each end of what was kept of standard error
	maxErrorLine  = 1000 // bytes of one
)

// view is what the policy was for one command.
type view struct {
	policy   Policy
	writes   Places
	extra    []string // writable for this command alone
	dir      string   // where it started
	files    int      // open files a process may have
	procs    int      // processes a session may have
	scratch  string   // folder that is /tmp
	writable []string
}

// infer reads standard error for complaints about a path that the policy itself
// would have denied, and about limits. A complaint about anything else is the
// program's own affair: a keyword alone says nothing.
func (v view) infer(stderr Stream, add func(Violation)) {
	v.writable = slices.Concat(v.policy.writable(v.writes, v.extra), []string{"/tmp", "/dev"}, nonEmpty(v.scratch))
	for _, part := range [][]byte{stderr.Head, stderr.Tail} {
		n := 0
		for line := range bytes.Lines(part) {
			if n++; n > maxErrorLines {
				break
			}
			if len(line) <= maxErrorLine {
				v.inferLine(strings.TrimRight(string(line), "\r\n"), add)
			}
		}
	}
}

func (v view) inferLine(line string, add func(Violation)) {
	small := strings.ToLower(line)
	limit := func(op, rule string, most int, hint string) {
		add(Violation{
			Kind: call.ViolationLimit, Op: op, Target: fmt.Sprint(most), Rule: "limit." + rule, Source: call.SourceInferred, Hint: hint,
		})
	}
	for _, says := range []string{saysReadOnly, saysDenied, saysPerm, saysFiles, saysProcs} {
		at := strings.Index(small, says)
		switch {
		case at < 0 || len(small) != len(line): // a letter that changes its length
			continue
		case says == saysFiles:
			limit("open files", "open_files", v.files, "close what is not needed (the operator's limit is max_open_files)")
		case says == saysProcs:
			if strings.Contains(small[:at], "fork") || strings.Contains(small[:at], "thread") {
				limit("processes", "processes", v.procs, "start fewer at once, threads included (the operator's limit is max_processes)")
			}
		default:
			v.inferPath(line, small, says, at, add)
		}
		return
	}
}

// inferPath looks for the path that a complaint is about.
func (v view) inferPath(line, small, says string, at int, add func(Violation)) {
	for _, p := range candidates(line, at) {
		if !filepath.IsAbs(p) {
			p = filepath.Join(v.dir, p)
		}
		p = filepath.Clean(p)
		out := Violation{Kind: call.ViolationFS, Op: "write", Target: p, Rule: v.rule(p), Source: call.SourceInferred}
		switch out.Rule {
		case "":
			continue
		case "fs.secret":
			out.Op, out.Hint = "read", "keys, tokens and the server's own state are closed to commands; nothing a call says opens them"
		case "fs.protected":
			out.Hint = "something would be run for it outside the sandbox; a person has to make this change"
		default:
			out.Hint = "outside the workspace; ask for allow_write"
			if slices.ContainsFunc(v.policy.Roots, func(r string) bool { return below(p, r) }) {
				out.Hint = "this profile changes nothing in the workspace"
			} else if says != saysReadOnly && !writes(small) {
				out.Op, out.Hint = "open", "outside the workspace: to write there, ask for allow_write; or the file's own permissions say no"
			}
		}
		add(out)
		return
	}
}

// rule names what of the policy denies a path, "" for nothing. Of places within
// each other the innermost counts.
func (v view) rule(path string) string {
	if strings.HasPrefix(path, "/proc/") {
		return ""
	}
	deepest := func(list []string) int {
		n := 0
		for _, d := range list {
			if below(path, d) {
				n = max(n, len(d))
			}
		}
		return n
	}
	open := deepest(v.writable)
	secret := deepest(slices.Concat(v.policy.Secrets, []string{v.policy.StateDir}, nonEmpty(v.policy.RuntimeDir)))
	switch {
	case secret > open:
		return "fs.secret"
	case open > 0 && deepest(v.policy.ReadOnly) >= open:
		return "fs.protected"
	case open == 0:
		return "fs.write"
	}
	return ""
}

// writes reports whether a complaint is about changing something.
func writes(line string) bool {
	return slices.ContainsFunc([]string{
		"creat", "touch", "remov", "mov", "mkdir", "unlink", "rename", "rmdir", "link", "chmod", "chown", "writ", "chang", "set", "copy", "sav",
	}, func(w string) bool { return strings.Contains(line, w) })
}

// candidates are what may be the path in a complaint: what stands in quotes, and
// what stands right before the complaint itself.
func candidates(line string, at int) []string {
	var out []string
	for _, q := range [][2]string{{"'", "'"}, {`"`, `"`}, {"`", "'"}, {"‘", "’"}} {
		rest := line
		for len(out) < 8 {
			_, after, ok := strings.Cut(rest, q[0])
			if !ok {
				break
			}
			in, next, ok := strings.Cut(after, q[1])
			if !ok {
				break
			}
			if rest = next; in != "" && len(in) < 500 {
				out = append(out, in)
			}
		}
	}
	before := strings.TrimRight(line[:at], " (:,[")
	if i := strings.LastIndex(before, ": "); i >= 0 {
		before = before[i+2:]
	}
	if i := strings.LastIndexByte(before, ' '); i >= 0 && strings.Contains(before[i:], "/") {
		out = append(out, before[i+1:])
	}
	if before != "" {
		out = append(out, before)
	}
	return out
}
