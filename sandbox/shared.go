package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// grants is the plan for walls without namespaces: nothing can be covered there,
// only opened, and what is opened is open with all below it. So everything is
// opened but what holds something hidden, whose entries are gone through
// instead. In the workspace such a folder itself can be listed and not changed:
// a new name in it could be one for what is hidden, a link to it or it moved,
// and would be open in the next plan. It returns those folders too: what comes to be in one of them is not
// open until the plan is made anew. entries lists the names in a folder that
// are no links.
func (p Policy) grants(writes Places, scratch string, extra []string, entries func(dir string) []string) (ms []stage.Mount, opened []string) {
	g := granter{entries: entries}
	g.hidden = slices.Concat(p.Secrets, []string{p.StateDir, "/dev", "/proc", "/run", "/tmp"}, nonEmpty(p.RuntimeDir))
	g.walk("/", stage.OpRead, stage.OpUnset)
	g.ms = append(g.ms, stage.Mount{Op: stage.OpRead, Path: "/proc"}, stage.Mount{Op: stage.OpRead, Path: "/run/current-system"})
	writable := append(p.writable(writes, extra), nonEmpty(scratch)...)
	for _, w := range writable {
		// What is opened although it lies in a hidden place has only what is below
		// it hidden.
		g.hidden = slices.DeleteFunc(append(slices.Clone(p.Secrets), p.StateDir), func(h string) bool { return h == w || !below(h, w) })
		switch {
		case slices.Contains(p.Secrets, w):
		case g.holds(w):
			g.ms = append(g.ms, stage.Mount{Op: stage.OpList, Path: w})
			g.walk(w, stage.OpWrite, stage.OpList)
		default:
			g.ms = append(g.ms, stage.Mount{Op: stage.OpWrite, Path: w})
		}
	}
	sortPlan(g.ms)
	return slices.Compact(g.ms), g.opened
}

// granter collects what is opened.
type granter struct {
	entries func(dir string) []string
	hidden  []string
	ms      []stage.Mount
	opened  []string
}

func (g *granter) holds(dir string) bool {
	return slices.ContainsFunc(g.hidden, func(h string) bool { return h != dir && below(h, dir) })
}

// walk opens what is in a folder but what is hidden: with op, or with part
// where something hidden is below.
func (g *granter) walk(dir string, op, part stage.Op) {
	g.opened = append(g.opened, dir)
	for _, name := range g.entries(dir) {
		path := filepath.Join(dir, name)
		switch {
		case slices.ContainsFunc(g.hidden, func(h string) bool { return below(path, h) }):
		case g.holds(path):
			if part != stage.OpUnset {
				g.ms = append(g.ms, stage.Mount{Op: part, Path: path})
			}
			g.walk(path, op, part)
		default:
			g.ms = append(g.ms, stage.Mount{Op: op, Path: path})
		}
	}
}

// realEntries lists the names in a folder that are no links: what a link leads
// to is opened where it is.
func realEntries(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		if e.Type()&os.ModeSymlink == 0 && !strings.ContainsRune(e.Name(), 0) {
			out = append(out, e.Name())
		}
	}
	return out
}

// gaps is what walls without namespaces do not stop, for a person to read.
func gaps() []string {
	return []string{
		"chmod, chown, utimes and attributes of files outside the workspace that belong to this user",
		"changes to protected names such as .git/hooks: they are undone after the command, not prevented",
		"the command lines of this user's other processes can be read",
		"nothing can be made, renamed or deleted right in a folder of the workspace that holds a secret",
		"a command has no loopback of its own: no server and client in it, no pseudo-terminal and no /dev/shm",
		"a command has no network at all: what network, allow_domains, reach and expose ask for is refused",
		"/tmp is closed: temporary files go where TMPDIR says",
	}
}
