package sandbox

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// recheckEvery is how long a harmful configuration of git can stand while the
// command that wrote it goes on.
const recheckEvery = 10 * time.Second

// Run is a command that was started. It is safe for concurrent use.
type Run struct {
	s     *Sandbox
	ses   *session
	cmd   Command
	out   *capture
	id    uint64
	began time.Time
	left  func() // called when the session is no longer used

	denied violations
	at     netip.Addr // where the gateway knows it
	group  *group     // nil = it has no control group of its own
	flood  bool       // it printed too much
	crowd  int        // looks at which it had as many processes as there may be
	over   bool       // it is being ended for a limit

	asked sync.Once
	stop  chan struct{} // closed when the end was asked for
	done  chan struct{} // closed when the next two are set
	end   Outcome
	err   error
}

// Start starts a command and does not wait for it. The context is that of the
// start alone: the command ends by itself, by its time limit, by [Run.Stop], or
// with the sandbox. An error means that nothing runs.
func (s *Sandbox) Start(ctx context.Context, cmd Command) (*Run, error) {
	if err := s.check(&cmd); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	report := s.Probe(ctx)
	if report.Err != nil {
		return nil, report.Err
	}
	if report.Level == LevelShared && cmd.Network.Mode != NetworkOff {
		return nil, &UnavailableError{
			Step: "serve the network", Cause: errors.New("without user namespaces commands have none"),
			Fix: "run it without network; level 3 has one",
		}
	}
	if err := cmd.Terms.heldAt(report.Level); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		ses, err := s.acquire(ctx, cmd, report.Level)
		if err != nil {
			return nil, err
		}
		r := s.newRun(ses, cmd, func() { s.release(ses) })
		if err = r.launch(); err == nil {
			return r, nil
		}
		r.left()
		if !errors.Is(err, errRetired) || try == 3 {
			return nil, err
		}
		// It ended between being found and being used; nothing ran.
	}
}

// Run runs a command to its end and ends everything it started. A command that
// fails is an Outcome; an error means it did not run ([ErrUnavailable], a
// [StartError], a cancelled context) or its end is not known.
func (s *Sandbox) Run(ctx context.Context, cmd Command) (Outcome, error) {
	cmd.Spool = false // nobody could read it
	r, err := s.Start(ctx, cmd)
	if err != nil {
		return Outcome{}, err
	}
	return r.attend(ctx)
}

func (s *Sandbox) newRun(ses *session, cmd Command, left func()) *Run {
	return &Run{s: s, ses: ses, cmd: cmd, left: left, stop: make(chan struct{}), done: make(chan struct{})}
}

// attend waits for the end, which is that of the context at the latest.
func (r *Run) attend(ctx context.Context) (Outcome, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		r.Stop()
	}
	return r.Wait()
}

// Done is closed when the command and all it started have ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Wait waits for the end. The results are those of [Sandbox.Run].
func (r *Run) Wait() (Outcome, error) {
	<-r.done
	return r.end, r.err
}

// Stop asks the command and all it started to end, and has them forced after
// the grace. It does not wait. A command that had not ended by itself is told
// as Cancelled.
func (r *Run) Stop() { r.asked.Do(func() { close(r.stop) }) }

// Limit is the time limit in force.
func (r *Run) Limit() time.Duration { return r.cmd.Timeout }

// Snapshot is what the outcome would be if the command printed nothing more,
// without an end.
func (r *Run) Snapshot() Outcome {
	out := Outcome{Duration: time.Since(r.began), Level: r.ses.level, Violations: r.denied.all()}
	r.out.fill(&out, true)
	return out
}

// Output returns up to limit bytes of what was printed, from a place on.
func (r *Run) Output(from, limit int64) (Part, error) { return r.out.part(from, limit) }

// Last is the newest line printed, fit for a progress report, and how many
// bytes were printed.
func (r *Run) Last() (line string, bytes int64) { return r.out.total() }

// Spooled reports whether more of the output than an outcome tells can be read.
func (r *Run) Spooled() bool { return r.out.spooled() }

// Discard gives back the file that holds the whole output. What is kept in
// memory stays.
func (r *Run) Discard() { r.out.drop() }
