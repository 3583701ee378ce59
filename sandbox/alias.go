package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mount is a line of the kernel's list of mounts.
type mount struct {
	device string // of the file system
	root   string // what of the file system appears
	point  string // where
}

// mounts reads the list in the order in which later ones cover earlier ones.
func mounts() []mount {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseMounts(string(b))
}

func parseMounts(text string) []mount {
	var out []mount
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[3], "/") {
			continue
		}
		out = append(out, mount{device: f[2], root: plain.Replace(f[3]), point: plain.Replace(f[4])})
	}
	return out
}

// aliases lists the other names under which places are reached, because a file
// system, or a part of it, is mounted more than once: a home that is a bind
// mount, a volume that is mounted whole and in parts.
func aliases(all []mount, places []string) []string {
	// Where a path really is: the last mount on the longest point above it.
	holder := func(path string) int {
		best := -1
		for i, m := range all {
			if below(path, m.point) && (best < 0 || len(m.point) >= len(all[best].point)) {
				best = i
			}
		}
		return best
	}
	var out []string
	for _, p := range places {
		at := holder(p)
		if at < 0 {
			continue
		}
		inside := filepath.Join(all[at].root, strings.TrimPrefix(p, all[at].point))
		for i, m := range all {
			if i == at || m.device != all[at].device {
				continue
			}
			alias := m.point // what is mounted lies in the place
			if !below(m.root, inside) {
				if !below(inside, m.root) {
					continue
				}
				alias = filepath.Join(m.point, strings.TrimPrefix(inside, m.root))
			}
			if alias != p && !below(alias, p) && holder(alias) == i {
				out = append(out, alias)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// everywhere adds to the secrets the other names they are reached by. A name
// that holds a writable place stays: it was opened on purpose.
func (p Policy) everywhere() Policy {
	for _, a := range aliases(mounts(), append(slices.Clone(p.Secrets), p.StateDir)) {
		holds := func(w string) bool { return below(w, a) }
		if !clean(a) || slices.ContainsFunc(p.Roots, holds) || slices.ContainsFunc(p.Git, holds) || below(p.cache(), a) {
			continue
		}
		if _, err := os.Lstat(a); err == nil {
			p.Secrets = append(slices.Clip(p.Secrets), a)
		}
	}
	return p
}
