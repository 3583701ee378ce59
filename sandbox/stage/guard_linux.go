package stage

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	guardEvery = 250 * time.Millisecond
	guardSoon  = 50 * time.Millisecond // when more than half of a limit is used up
	guardTries = 20                    // to end a command that makes processes faster than they are ended
	patience   = time.Second           // as long may all processes there may be exist
	niceAfter  = time.Second           // so that what is over at once is not slowed down
	niceness   = 5
)

// usage is what the processes of one command take together.
type usage struct {
	pids    []int
	threads uint64
	rss     uint64 // bytes; what processes share is counted for each
}

// guard looks after what no limit of the kernel holds for several processes
// together, while there are commands. The anchor's lock is held by who starts
// it.
func (a *anchor) guard() {
	a.spare.Do(spareThreads)
	wait, last := guardSoon, time.Now()
	for looks := 0; ; looks++ {
		time.Sleep(wait)
		if looks%20 == 0 {
			a.collect()
		}
		a.mu.Lock()
		if len(a.byID) == 0 {
			a.guarding = false
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		wait = guardEvery
		now := time.Now()
		passed := min(now.Sub(last), 2*guardEvery) // it may have been held up
		last = now
		all, crowd := a.tally()
		for c, u := range all {
			if a.setup.Memory > 0 && u.rss > a.setup.Memory/2 || a.setup.Processes > 0 && u.threads > a.setup.Processes/2 {
				wait = guardSoon
			}
			c.soften(u, now)
			switch {
			case c.tooLarge(u, a.setup.Memory, now):
				go a.exceed(c, OverMemory)
			case c.tooMany(u.threads, crowd, a.setup.Processes, passed):
				go a.exceed(c, OverProcesses)
			}
		}
	}
}

// spareThreads has the runtime make threads that it keeps: when a command has
// used up all there may be, no more can be made, and the runtime would give up.
func spareThreads() {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			long := unix.Timespec{Nsec: int64(30 * time.Millisecond)}
			_ = unix.Nanosleep(&long, nil) // each takes a thread of its own
		})
	}
	all.Wait()
}

// crowd is what there is in all of a session: what lives, and with it what has
// ended and was not collected, for the kernel counts that too.
type crowd struct{ living, all uint64 }

// tally counts what each command takes.
func (a *anchor) tally() (map[*command]*usage, crowd) {
	byTag := map[uint64]*command{}
	var only *command
	a.mu.Lock()
	for _, c := range a.byID {
		byTag[c.tagInode], only = c, c
	}
	a.mu.Unlock()
	pids := processes
	alone := a.setup.Open || a.setup.Shared // a session without namespaces has one command at a time
	if alone {
		pids = func() []int { return descendants(os.Getpid()) }
	}
	out := map[*command]*usage{}
	var sum crowd
	for _, pid := range pids() {
		sum.all++
		c := only
		if !alone {
			c = byTag[tagOf(pid)]
		}
		own := pid == os.Getpid()
		if c == nil && !own {
			continue
		}
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		threads, pages, ok := parseStat(b)
		if !ok {
			continue
		}
		sum.all += threads - min(threads, 1)
		if own {
			continue // its threads are counted as everybody's, and are nobody's
		}
		u := out[c]
		if u == nil {
			u = &usage{}
			out[c] = u
		}
		u.pids = append(u.pids, pid)
		u.threads += threads
		sum.living += threads
		u.rss += pages * uint64(os.Getpagesize())
	}
	return out, sum
}

// soften lets others go first once a command takes its time.
func (c *command) soften(u *usage, now time.Time) {
	if c.soft || now.Sub(c.began) < niceAfter {
		return
	}
	c.soft = true
	for _, pid := range u.pids {
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness)
	}
}

// tooLarge decides whether a command takes more memory than it may. Memory that
// processes share is counted for each at first, because that is cheap; before
// anything follows from it, it is divided among them.
func (c *command) tooLarge(u *usage, limit uint64, now time.Time) bool {
	if limit == 0 || u.rss <= limit || now.Before(c.weigh) {
		return false
	}
	var own uint64
	for _, pid := range u.pids {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
		if err == nil {
			own += ownMemory(b)
		}
	}
	// It takes a while where there is much; no more than a twentieth of the time.
	c.weigh = now.Add(20 * time.Since(now))
	return own > limit
}

// tooMany decides whether a command makes processes without end: it has more
// than there may be, or it is the one that uses them up, and not just for a
// moment. Who has a control group of its own is looked after by the server.
func (c *command) tooMany(own uint64, all crowd, limit uint64, passed time.Duration) bool {
	switch {
	case limit == 0:
		return false
	case own > limit:
		return true
	case c.grouped || 2*own < all.living || own < limit/8 || all.all < limit-limit/16:
		c.full = max(0, c.full-passed/2)
	default:
		c.full += passed
	}
	return c.full >= patience
}

// exceed ends a command for what it took too much of.
func (a *anchor) exceed(c *command, what byte) {
	a.mu.Lock()
	if c.stopping || a.byID[c.id] != c {
		a.mu.Unlock()
		return
	}
	c.over, c.stopping, c.force = what, true, time.Now()
	a.mu.Unlock()
	for range guardTries {
		if a.kill(c) == 0 {
			return
		}
	}
	if !a.setup.Open && !a.setup.Shared {
		unix.Exit(1) // nothing that is left outlives the first process
	}
}

// parseStat reads the number of threads and of resident pages from a process's
// stat. Its name may hold anything.
func parseStat(b []byte) (threads, pages uint64, ok bool) {
	end := len(b) - 1
	for end >= 0 && b[end] != ')' {
		end--
	}
	const numThreads, resident = 20, 24 // see proc(5)
	field := 2
	for i := end + 1; end >= 0 && i < len(b); i++ {
		if b[i] != ' ' {
			continue
		}
		field++
		if field != numThreads && field != resident {
			continue
		}
		n, digits := number(b[i+1:])
		if digits == 0 {
			return 0, 0, false
		}
		if field == resident {
			return threads, n, true
		}
		threads = n
	}
	return 0, 0, false
}

// ownMemory adds up what a process takes for itself alone, and its share of
// what it has in common with others, from its smaps_rollup. Files do not count:
// the kernel can give their memory back.
func ownMemory(b []byte) uint64 {
	var sum uint64
	for len(b) > 0 {
		line := b
		b = nil
		for i, c := range line {
			if c == '\n' {
				line, b = line[:i], line[i+1:]
				break
			}
		}
		for _, name := range []string{"Pss_Anon:", "Pss_Shmem:", "SwapPss:"} {
			if len(line) <= len(name) || string(line[:len(name)]) != name {
				continue
			}
			v := line[len(name):]
			for len(v) > 0 && v[0] == ' ' {
				v = v[1:]
			}
			n, _ := number(v)
			sum += n << 10
		}
	}
	return sum
}

// number reads the decimal number at the start of b, and how many digits it
// has.
func number(b []byte) (n uint64, digits int) {
	for digits < len(b) && digits < 18 && b[digits] >= '0' && b[digits] <= '9' {
		n = 10*n + uint64(b[digits]-'0')
		digits++
	}
	return n, digits
}
