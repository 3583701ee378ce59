package bash

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// maxKept is how many runs that have ended can still be read. Of those whose
// end nobody has been told, as many more are kept as may run at a time.
const maxKept = 16

// RunRecord is how a background run ended, for the audit log.
type RunRecord struct {
	CallID, RunID, Session string
	ExitCode               int
	Signal                 string
	TimedOut, Stopped      bool
	Bytes                  int64
	Duration               time.Duration
	Survivors              int
	Violations             []sandbox.Violation
	Err                    error // its end is not known
}

// run is one command that can be asked about by its id.
type run struct {
	id, session, callID string
	job
	recorded chan struct{} // closed when its end was recorded; nil for a foreground run

	mu   sync.Mutex
	next int64 // where reading goes on when the call does not say
	seen bool  // nothing is left to be told that the model does not know of
}

// runs are the background runs of one server, and those whose output was too
// long for their result.
type runs struct {
	most  int
	ended func(RunRecord)

	mu       sync.Mutex
	closed   bool
	active   int
	byID     map[string]*run
	kept     []*run         // those that have ended, oldest first
	watching sync.WaitGroup // one for each active run
}

func newRuns(most int, ended func(RunRecord)) *runs {
	return &runs{most: most, ended: ended, byID: map[string]*run{}}
}

// reserve makes sure that one more run may go on in the background. It is
// followed by track or release.
func (rs *runs) reserve() error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return call.Failure("stopping", "the server is stopping", "")
	}
	if rs.active >= rs.most {
		return &call.Error{
			Category: call.CategoryQuotaBlocked, Code: "too_many_runs", Phase: call.PhaseSetup, Retryable: true,
			Message:    fmt.Sprintf("%d background runs are going on, and no more may (tools.shell.max_background_runs = %d)", rs.active, rs.most),
			Suggestion: "wait for one with bash_output, or end one with bash_stop",
		}
	}
	rs.active++
	rs.watching.Add(1)
	return nil
}

// release gives back a place that was not used.
func (rs *runs) release() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.active--
	rs.watching.Done()
}

func newRun(session, callID string, j job) *run {
	return &run{id: "r-" + strings.ToLower(rand.Text()[:16]), session: session, callID: callID, job: j}
}

// track makes a started command a background run, in a place that was reserved.
func (rs *runs) track(r *run) {
	r.recorded = make(chan struct{})
	rs.mu.Lock()
	rs.byID[r.id] = r
	closed := rs.closed
	rs.mu.Unlock()
	if closed {
		r.box.Stop()
	}
	go rs.watch(r)
}

// watch waits for a run's end and records it.
func (rs *runs) watch(r *run) {
	defer rs.watching.Done()
	out, err := r.box.Wait()
	r.stages() // before the session's /tmp may go
	_, bytes := r.box.Last()
	rs.ended(RunRecord{
		CallID: r.callID, RunID: r.id, Session: r.session, ExitCode: out.ExitCode, Signal: out.Signal, TimedOut: out.TimedOut,
		Stopped: out.Cancelled, Bytes: bytes, Duration: time.Since(r.began).Round(time.Millisecond), Survivors: out.Survivors, Violations: out.Violations, Err: err,
	})
	rs.mu.Lock()
	rs.active--
	if rs.byID[r.id] == r {
		rs.retain(r)
	}
	rs.mu.Unlock()
	close(r.recorded)
}

// keep lets the output of a command that has ended be read on.
func (rs *runs) keep(r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.byID[r.id] = r
	rs.retain(r)
}

// retain counts a run among those that have ended, and forgets the oldest of
// them, first of those that were read to their end. The caller holds the lock.
func (rs *runs) retain(r *run) {
	rs.kept = append(rs.kept, r)
	for len(rs.kept) > maxKept {
		i := slices.IndexFunc(rs.kept[:len(rs.kept)-1], (*run).told)
		switch {
		case i < 0 && len(rs.kept) <= maxKept+rs.most:
			return
		case i < 0:
			i = 0
		}
		old := rs.kept[i]
		rs.kept = slices.Delete(rs.kept, i, i+1)
		delete(rs.byID, old.id)
		old.box.Discard()
	}
}

// mark notes whether nothing is left to be told.
func (r *run) mark(seen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = seen
}

// told reports whether nothing about the run is left to be told.
func (r *run) told() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// find returns a run of a session. Runs of others do not exist for it.
func (rs *runs) find(session, id string) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.byID[id]; r != nil && r.session == session {
		return r, nil
	}
	e := call.Failure("run_not_found", "this session has no such run", "use the run_id that bash gave; only the newest runs that have ended are kept")
	e.Field = "run_id"
	return nil, e
}

// end ends the runs of a session, waits for them, and forgets them.
func (rs *runs) end(session string) {
	var gone []*run
	rs.mu.Lock()
	for id, r := range rs.byID {
		if r.session == session {
			gone = append(gone, r)
			delete(rs.byID, id)
		}
	}
	var kept []*run
	for _, r := range rs.kept {
		if r.session != session {
			kept = append(kept, r)
		}
	}
	rs.kept = kept
	rs.mu.Unlock()
	for _, r := range gone {
		r.box.Stop()
	}
	for _, r := range gone {
		_, _ = r.box.Wait()
		if r.recorded != nil {
			<-r.recorded
		}
		r.box.Discard()
	}
}

// close ends every run and waits until the last one's end is recorded.
func (rs *runs) close() {
	rs.mu.Lock()
	rs.closed = true
	var all []*run
	for _, r := range rs.byID {
		all = append(all, r)
	}
	rs.mu.Unlock()
	for _, r := range all {
		r.box.Stop()
	}
	rs.watching.Wait()
	for _, r := range all {
		r.box.Discard()
	}
}

// job is a started command with what is said about it at its end.
type job struct {
	box    *sandbox.Run
	cmd    sandbox.Command
	set    setting
	began  time.Time
	stages func() []int // read once, after the end
	full   bool         // its call's time was up and no place in the background was free
}
