package stage

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reap collects every process that ends: the commands and, as their first
// ancestor that is left, whatever they abandoned.
func (a *anchor) reap() {
	for {
		// Look without taking: a process may be taken only under the lock, when
		// it is known whose it is.
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.ECHILD) {
			<-a.born
			continue
		}
		if err != nil {
			continue
		}
		var ws syscall.WaitStatus
		a.mu.Lock()
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if err == nil && ws.Stopped() {
			// It offered itself to whoever started it for tracing, and is held.
			_ = unix.Kill(pid, unix.SIGKILL)
			a.mu.Unlock()
			continue
		}
		c := a.byPID[pid]
		if err != nil || pid <= 0 {
			c = nil
		}
		delete(a.byPID, pid)
		a.mu.Unlock()
		if c == nil {
			continue
		}
		if left := len(a.left(c)); left == 0 {
			a.end(c, ws, 0)
		} else {
			go a.cleanUp(c, ws)
		}
	}
}

func (a *anchor) end(c *command, ws syscall.WaitStatus, survivors int) {
	a.mu.Lock()
	delete(a.byID, c.id)
	m := &Exit{ID: c.id, Status: uint32(ws), Killed: c.killed, Survivors: uint32(survivors), Over: c.over}
	a.mu.Unlock()
	c.told.Lock()
	m.Denied = slices.Clone(c.denied)
	c.told.Unlock()
	if c.tag >= 0 {
		_ = unix.Close(c.tag)
	}
	a.send(m)
}

// cleanUp ends what a command left behind: a moment to finish, then force.
func (a *anchor) cleanUp(c *command, ws syscall.WaitStatus) {
	began := time.Now()
	wait := time.Millisecond
	for {
		left := a.left(c)
		until := began.Add(leftoverGrace)
		if slices.ContainsFunc(left, busy) {
			until = began.Add(leftoverBusy)
		}
		a.mu.Lock()
		if c.stopping {
			until = c.force
		}
		a.mu.Unlock()
		if len(left) == 0 || time.Now().After(until) {
			break
		}
		time.Sleep(min(wait, time.Until(until)))
		wait = min(2*wait, 20*time.Millisecond)
	}
	a.end(c, ws, a.kill(c))
}

// stop asks a command and all it started to end, and forces them after the
// grace.
func (a *anchor) stop(m *Stop) {
	// The threads take messages side by side: this one may have overtaken the
	// start it is about.
	var c *command
	for try := 0; ; try++ {
		a.mu.Lock()
		if c = a.byID[m.ID]; c != nil || try == 10 {
			break
		}
		a.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	if c == nil || c.stopping {
		a.mu.Unlock()
		return
	}
	c.stopping = true
	c.force = time.Now().Add(time.Duration(m.GraceMS) * time.Millisecond)
	started := c.pid > 0
	a.mu.Unlock()
	if started {
		a.terminate(c)
	}
}

// terminate carries out a stop of a command that has been started.
func (a *anchor) terminate(c *command) {
	if wait := time.Until(c.force); wait > 0 {
		for _, pid := range a.left(c) {
			_ = unix.Kill(pid, unix.SIGTERM)
			_ = unix.Kill(pid, unix.SIGCONT)
		}
		time.Sleep(time.Until(c.force))
	}
	a.mu.Lock()
	running := a.byID[c.id] == c
	a.mu.Unlock()
	if running {
		a.kill(c)
	}
}

// kill ends everything a command started and reports what is still there when
// the time is up. New processes made meanwhile are found by the next look.
func (a *anchor) kill(c *command) int {
	until := time.Now().Add(sweepLimit)
	seen := map[int]bool{}
	for {
		left := a.left(c)
		a.mu.Lock() // the count has to be right when the reaper sees the end
		if c.tag < 0 && a.byID[c.id] != c {
			a.mu.Unlock()
			return 0 // it has ended, and what is there now is another's
		}
		for _, pid := range left {
			if !seen[pid] && pid != c.pid {
				seen[pid] = true
				c.killed++
			}
		}
		// A whole group at once first: nothing in it can make another process
		// meanwhile. Groups do not reach over commands.
		groups := map[int]bool{}
		for _, pid := range left {
			if g, err := unix.Getpgid(pid); err == nil && g > 1 && !groups[g] && !a.setup.Open {
				groups[g] = true
				_ = unix.Kill(-g, unix.SIGKILL)
			}
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		a.mu.Unlock()
		if len(left) == 0 || time.Now().After(until) {
			return len(left)
		}
		a.strike(c.id)
		time.Sleep(500 * time.Microsecond)
	}
}

// left lists the live processes a command started, itself included. They are
// recognised by the namespace they were born in, which nothing inside can
// leave; a process that hides it (a program its user may run but not read) by
// its session.
func (a *anchor) left(c *command) []int {
	if c.tag < 0 {
		if alone() {
			return nil // which is found out sooner than by looking at all there are
		}
		return descendants(os.Getpid())
	}
	want := "uts:[" + strconv.FormatUint(c.tagInode, 10) + "]"
	var out []int
	buf := make([]byte, 64)
	for _, pid := range processes() {
		if pid == 1 {
			continue
		}
		n, err := unix.Readlink("/proc/"+strconv.Itoa(pid)+"/ns/uts", buf)
		switch {
		case err == nil && string(buf[:n]) == want:
			out = append(out, pid)
		case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
			if a.owns(c, pid) {
				out = append(out, pid)
			}
		}
	}
	return out
}

// owns decides on a process that cannot be looked into.
func (a *anchor) owns(c *command, pid int) bool {
	if sid, err := unix.Getsid(pid); err == nil && sid == c.pid {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byID) == 1
}

func processes() []int {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	var names []string
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	var out []int
	for _, n := range names {
		if n[0] < '0' || n[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// killDescendants ends everything below an anchor without walls, whose end
// would not end them.
func (a *anchor) killDescendants() {
	until := time.Now().Add(sweepLimit)
	for time.Now().Before(until) {
		left := descendants(os.Getpid())
		if len(left) == 0 {
			return
		}
		a.strike(everything)
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
}

// busy reports whether a process runs, or would if there were a processor, and
// does not just wait.
func busy(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := len(b) - 1
	for end >= 0 && b[end] != ')' {
		end--
	}
	return err == nil && end >= 0 && end+2 < len(b) && (b[end+2] == 'R' || b[end+2] == 'D')
}

// descendants lists the live processes below root.
func descendants(root int) []int {
	children := map[int][]int{}
	for _, pid := range processes() {
		if ppid, live := parentOf(pid); live {
			children[ppid] = append(children[ppid], pid)
		}
	}
	var out []int
	todo := []int{root}
	for len(todo) > 0 {
		next := children[todo[0]]
		todo = append(todo[1:], next...)
		out = append(out, next...)
	}
	return out
}

// parentOf reads a process's parent; live is false for one that has ended. A
// process whose first thread has ended looks like one that has, while its other
// threads go on.
func parentOf(pid int) (ppid int, live bool) {
	of := status(pid, "PPid", "State", "Threads")
	ppid, err := strconv.Atoi(of[0])
	return ppid, err == nil && of[1] != "X" && (of[1] != "Z" || of[2] != "1")
}

// status returns the first words of lines of a process's status, "" for those
// that are not there, as when the process is gone.
func status(pid int, labels ...string) []string {
	out := make([]string, len(labels))
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for len(b) > 0 {
		end := max(0, slices.Index(b, '\n'))
		line := string(b[:end])
		b = b[end+1:]
		for i, l := range labels {
			if n := len(l) + 2; len(line) > n && line[:n] == l+":\t" {
				end := slices.IndexFunc([]byte(line[n:]), func(c byte) bool { return c <= ' ' })
				if end < 0 {
					end = len(line) - n
				}
				out[i] = line[n : n+end]
			}
		}
	}
	return out
}
