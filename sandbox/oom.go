package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// oomCounter tells whether the kernel has ended a process for lack of memory.
// It counts those of the server's own control group, which is that of all it
// starts.
type oomCounter struct {
	mu     sync.Mutex
	looked bool
	path   string // "" = there is no such counter
	seen   int64
}

// grew reports whether it happened since the last look. The first look tells
// nothing.
func (c *oomCounter) grew() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.looked
	if first {
		c.looked = true
		if c.path == "" {
			c.path = oomFile("/")
		}
	}
	now, ok := readOOM(c.path)
	if !ok {
		return false
	}
	more := !first && now > c.seen
	c.seen = now
	return more
}

// oomFile finds the counter of this process's control group, in the second
// version of control groups or the first.
func oomFile(root string) string {
	b, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		file := ""
		switch {
		case !ok:
		case controllers == "":
			file = filepath.Join(root, "sys/fs/cgroup", group, "memory.events")
		case controllers == "memory":
			file = filepath.Join(root, "sys/fs/cgroup/memory", group, "memory.oom_control")
		}
		if _, ok := readOOM(file); ok {
			return file
		}
	}
	return ""
}

func readOOM(path string) (int64, bool) {
	if path == "" {
		return 0, false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
