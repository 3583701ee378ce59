package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// groupPrefix begins the name of every folder of control groups that is ours.
const groupPrefix = "zeph-mcp-tools-"

// Groups that have held a command are kept for the next one: a few, and only
// those that hold little of what the last one left (files in memory stay
// charged to whoever wrote them).
const (
	maxFreeGroups = 8
	maxLeftMemory = 64 << 20
)

// groups makes control groups for commands, where this process may: with the
// first version of them, each command has its own, which a starting thread
// enters before it starts the command. It holds processes and memory exactly,
// and the kernel does the work. Nothing is made before the first command.
type groups struct {
	mu     sync.Mutex
	root   string  // of the file system; "" = /
	limits []int64 // of each controller
	looked bool
	base   []string   // our folders, one a controller: pids, memory; nil = there are none
	home   []*os.File // where threads come back to
	made   int
	free   []*group
}

// group is the control group of one command at a time.
type group struct {
	dirs  []string
	enter []*os.File
	oom   *os.File // counts the processes that were ended for lack of memory
	peak  *os.File // the most that was ever in use
	usage *os.File
	count *os.File // processes and threads, those that have ended and were not collected included
	limit []int64  // of processes, of memory
	was   int64    // how many were ended when the command came
}

// take returns a group for a command, nil where there can be none.
func (g *groups) take(cfg Config) *group {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.looked {
		g.looked = true
		g.limits = []int64{int64(cfg.MaxProcesses), cfg.memoryLimit()}
		if err := g.look(); err != nil {
			g.base = nil
		}
	}
	if g.base == nil {
		return nil
	}
	for len(g.free) > 0 {
		one := g.free[len(g.free)-1]
		g.free = g.free[:len(g.free)-1]
		if one.begin() {
			return one
		}
		one.remove()
	}
	one, err := g.new()
	if err != nil {
		return nil
	}
	return one
}

// give takes a group back whose command has ended.
func (g *groups) give(one *group) {
	if one == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if left := number(one.usage); left >= 0 && left < maxLeftMemory && !one.wasFull() && len(g.free) < maxFreeGroups && g.base != nil {
		g.free = append(g.free, one)
		return
	}
	one.remove()
}

// close removes all there is. What a process still holds is removed by the next
// server.
func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.free {
		one.remove()
	}
	for _, d := range g.base {
		removeGroup(d)
	}
	for _, f := range g.home {
		_ = f.Close()
	}
	g.free, g.base, g.home = nil, nil, nil
}

// look finds out whether groups can be made, by making one and going there and
// back.
func (g *groups) look() error {
	own := ownGroups(g.root)
	if own == nil {
		return errors.New("no control groups of the first version")
	}
	name, err := g.name()
	if err != nil {
		return err
	}
	for _, dir := range own {
		removeStale(dir)
	}
	for i, dir := range own {
		if i == 0 {
			dir, err = os.MkdirTemp(dir, name+"-")
			name = filepath.Base(dir)
		} else {
			dir = filepath.Join(dir, name)
			err = os.Mkdir(dir, 0o755)
		}
		if err != nil {
			break
		}
		g.base = append(g.base, dir)
	}
	var back []*os.File
	if err == nil {
		back, err = openAll(own, "tasks", os.O_WRONLY)
	}
	if err == nil {
		g.home = back
		err = g.try()
	}
	if err != nil {
		for _, d := range g.base {
			removeGroup(d)
		}
		closeFiles(g.home)
		g.base, g.home = nil, nil
	}
	return err
}

// try moves a thread into a new group and back.
func (g *groups) try() error {
	one, err := g.new()
	if err != nil {
		return err
	}
	defer one.remove()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		there := move(one.enter)
		back := move(g.home)
		if back == nil {
			runtime.UnlockOSThread() // otherwise the thread ends with this
		}
		result <- errors.Join(there, back)
	}()
	return <-result
}

// move puts the calling thread into groups.
func move(tasks []*os.File) error {
	for _, f := range tasks {
		if _, err := f.WriteString("0"); err != nil {
			return err
		}
	}
	return nil
}

// new makes a group with its limits set. The caller holds the lock.
func (g *groups) new() (*group, error) {
	g.made++
	one := &group{limit: g.limits}
	for i, base := range g.base {
		dir := filepath.Join(base, strconv.Itoa(g.made))
		if err := os.Mkdir(dir, 0o755); err != nil {
			one.remove()
			return nil, err
		}
		one.dirs = append(one.dirs, dir)
		if err := setLimit(dir, []string{"pids.max", "memory.limit_in_bytes"}[i], g.limits[i]); err != nil {
			one.remove()
			return nil, err
		}
	}
	mem := one.dirs[1]
	// Not to be got round by swapping; not every kernel counts that.
	_ = setLimit(mem, "memory.memsw.limit_in_bytes", g.limits[1])
	var err error
	if one.enter, err = openAll(one.dirs, "tasks", os.O_WRONLY); err == nil {
		if one.oom, err = os.Open(filepath.Join(mem, "memory.oom_control")); err == nil {
			one.usage, err = os.Open(filepath.Join(mem, "memory.usage_in_bytes"))
		}
	}
	if err == nil {
		one.peak, err = os.Open(filepath.Join(mem, "memory.max_usage_in_bytes"))
	}
	if err == nil {
		one.count, err = os.Open(filepath.Join(one.dirs[0], "pids.current"))
	}
	if err == nil && !one.begin() {
		err = errors.New("the kernel does not count what it ends")
	}
	if err != nil {
		one.remove()
		return nil, err
	}
	return one, nil
}

func setLimit(dir, name string, n int64) error {
	return os.WriteFile(filepath.Join(dir, name), strconv.AppendInt(nil, n, 10), 0o600)
}

// holds names what holds the limits of a command.
func (g *group) holds() string {
	if g == nil {
		return LimitsWatched
	}
	return LimitsGroup
}

// files are what a starting thread needs to enter the group and to come back.
func (g *groups) files(one *group) []int {
	if one == nil {
		return nil
	}
	var out []int
	for _, f := range append(slices.Clip(one.enter), g.home...) {
		out = append(out, int(f.Fd()))
	}
	return out
}

// begin notes what was before a command.
func (g *group) begin() bool {
	g.was = g.killed()
	return g.was >= 0
}

// outOfMemory reports whether the kernel has ended a process of this command
// for lack of memory, and whether it was the command's limit that lacked, and
// not the machine.
func (g *group) outOfMemory() (ended, limit bool) {
	if g == nil || g.killed() <= g.was {
		return false, false
	}
	return true, g.wasFull()
}

// killed is how many were ended so, -1 when that cannot be read.
func (g *group) killed() int64 {
	var buf [256]byte
	n, _ := g.oom.ReadAt(buf[:], 0)
	for line := range strings.Lines(string(buf[:n])) {
		if text, ok := strings.CutPrefix(line, "oom_kill "); ok {
			if v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// crowded reports whether there are as many processes as there may be, or
// nearly.
func (g *group) crowded() bool {
	return g != nil && number(g.count) >= g.limit[0]-g.limit[0]/16
}

// wasFull reports whether the limit was reached once, as near as the kernel
// counts. Such a group is not used again. (The kernel also counts how often the
// limit was in the way, but not every one does.)
func (g *group) wasFull() bool { return number(g.peak) >= g.limit[1]-g.limit[1]/64 }

// number reads a file that holds one, -1 when it does not.
func number(f *os.File) int64 {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0)
	v, err := strconv.ParseInt(strings.TrimSpace(string(buf[:n])), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

func (g *group) remove() {
	closeFiles(g.enter)
	closeFiles([]*os.File{g.oom, g.peak, g.usage, g.count})
	for _, d := range g.dirs {
		removeGroup(d)
	}
}

// removeGroup removes a group and those in it, unless something runs there. A
// process that has just been ended may keep it for a moment.
func removeGroup(dir string) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		if e.IsDir() {
			removeGroup(filepath.Join(dir, e.Name()))
		}
	}
	for try := range 20 {
		if err := syscall.Rmdir(dir); !errors.Is(err, syscall.EBUSY) {
			return
		}
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
}

// ownGroups are the folders of the groups this process is in: pids, memory. It
// is nil where those are not of the first version, or not to be seen.
func ownGroups(root string) []string {
	b, err := os.ReadFile(filepath.Join("/", root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controller, path, _ := strings.Cut(rest, ":")
		found[controller] = path
	}
	var out []string
	for _, c := range []string{"pids", "memory"} {
		path, ok := found[c]
		if !ok {
			return nil
		}
		dir := filepath.Join("/", root, "sys/fs/cgroup", c, path)
		if _, err := os.Stat(filepath.Join(dir, "tasks")); err != nil {
			return nil
		}
		out = append(out, dir)
	}
	return out
}

// name says whose groups these are: a process, in its namespace, and when it
// began, since numbers come back.
func (g *groups) name() (string, error) {
	space, err := pidSpace()
	if err != nil {
		return "", err
	}
	began, ok := beganAt(os.Getpid())
	if !ok {
		return "", errors.New("the start of this process is not known")
	}
	return fmt.Sprintf("%s%s-%d-%s", groupPrefix, space, os.Getpid(), began), nil
}

func pidSpace() (string, error) {
	space, err := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSuffix(strings.TrimPrefix(space, "pid:["), "]"), err
}

// beganAt is when a process began, as the kernel counts.
func beganAt(pid int) (string, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 {
		return "", false
	}
	return fields[19], true
}

// removeStale removes what servers left in a folder that were killed.
func removeStale(dir string) {
	space, err := pidSpace()
	if err != nil {
		return
	}
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		rest, ours := strings.CutPrefix(e.Name(), groupPrefix+space+"-")
		part := strings.Split(rest, "-")
		if !ours || len(part) != 3 {
			continue
		}
		pid, err := strconv.Atoi(part[0])
		if err != nil {
			continue
		}
		if began, lives := beganAt(pid); !lives || began != part[1] {
			removeGroup(filepath.Join(dir, e.Name()))
		}
	}
}

func openAll(dirs []string, name string, flag int) ([]*os.File, error) {
	var out []*os.File
	for _, d := range dirs {
		f, err := os.OpenFile(filepath.Join(d, name), flag, 0)
		if err != nil {
			closeFiles(out)
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
