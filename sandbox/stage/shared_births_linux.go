package stage

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// births are the calls that make a process or a thread.
func births() []uint32 { return append([]uint32{unix.SYS_CLONE}, birthsHere()...) }

// isBirth reports whether a call makes a process where its caller is. Where
// clone has flags the other calls have no argument, and anything may stand.
func (n notice) isBirth() bool {
	return slices.Contains(births(), n.call) && (n.call != unix.SYS_CLONE || n.args[0]&newNamespaces == 0)
}

// nursery counts the processes that commands make where nothing in the kernel
// holds their number: without namespaces, and without a control group. A look
// now and then would come too late for a command that doubles them.
type nursery struct {
	mu     sync.Mutex
	room   uint64 // how many more may be made before they are counted again
	full   bool   // when they were, there were as many as there may be
	looked time.Time
}

// fullFor is how long a full nursery stays so without a look. Counting takes
// time, and those that are told to come again would have nothing else done.
const fullFor = 10 * time.Millisecond

// bear answers a call that makes a process: the kernel carries it out if there
// is room.
//
// The starting thread asks too, in the middle of making a process of its own,
// and holds the anchor's lock, a processor of the runtime, and up whatever
// stops all threads. So no answer takes that lock, there are more processors
// than it can hold, and memory is collected under that lock and at no other
// time (see [anchor.collect]).
func (a *anchor) bear(n notice) answer {
	if n.pid == a.starter || a.mayBear() {
		return answer{goesOn: true}
	}
	return answer{errno: unix.EAGAIN}
}

func (a *anchor) mayBear() bool {
	limit := a.setup.Processes
	if c := a.current.Load(); limit == 0 || c != nil && c.grouped {
		return true // the kernel counts
	}
	return a.nursery.take(limit, population, time.Now())
}

// take takes room for one more.
func (n *nursery) take(limit uint64, population func() uint64, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.room == 0 {
		if n.full && now.Sub(n.looked) < fullFor {
			return false
		}
		// Half of what is left: some that were let go on are not there yet.
		n.room = (limit - min(limit, population()) + 1) / 2
		n.full, n.looked = n.room == 0, now
	}
	if n.full {
		return false
	}
	n.room--
	return true
}

// population counts processes and threads below this one.
func population() (n uint64) {
	for _, pid := range descendants(os.Getpid()) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		threads, _, _ := parseStat(b)
		n += max(1, threads) // one that has ended and was not collected still takes a number
	}
	return n
}

// collect frees memory, which in an anchor whose starting thread can be held
// up must not happen at any time.
func (a *anchor) collect() {
	if !a.setup.Shared {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	runtime.GC()
}
