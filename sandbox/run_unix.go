//go:build linux || darwin

package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

const (
	readSize      = 64 << 10
	drainLimit    = 500 * time.Millisecond // for output still in the pipes when nobody is left to write
	overdue       = 2 * time.Second        // after force was due, before the whole session is ended
	progressEvery = time.Second
)

// capture collects the output of one command. All reading happens under its
// lock, so that the order in which the streams' parts are joined is the order
// in which they were taken.
type capture struct {
	output
	buf     *[readSize]byte
	files   [2]*os.File // our ends
	raw     [2]syscall.RawConn
	reading sync.WaitGroup
}

// newCapture makes the pipes and returns the ends the command writes to.
func newCapture(limit int64, sp *spool) (*capture, [2]int, error) {
	c := &capture{output: newOutput(limit, sp)}
	var theirs [2]int
	for i := range c.files {
		var p [2]int
		err := makePipe(&p)
		if err == nil {
			_ = unix.SetNonblock(p[0], true) // only our end: what the command writes to has to wait for us
			c.files[i], theirs[i] = os.NewFile(uintptr(p[0]), "output"), p[1]
			c.raw[i], err = c.files[i].SyscallConn()
		}
		if err != nil {
			c.close()
			for _, fd := range theirs {
				if fd > 0 {
					_ = unix.Close(fd)
				}
			}
			return nil, theirs, fmt.Errorf("make a pipe: %w", err)
		}
	}
	return c, theirs, nil
}

func (c *capture) close() {
	for _, f := range c.files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (c *capture) start(buffers *sync.Pool) {
	b, ok := buffers.Get().(*[readSize]byte)
	if !ok {
		b = new([readSize]byte)
	}
	c.buf = b
	for i := range c.files {
		c.reading.Go(func() {
			for c.read(i) {
			}
		})
	}
}

// read takes the next part of one stream and reports whether there may be
// more.
func (c *capture) read(i int) (more bool) {
	err := c.raw[i].Read(func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if i == 1 {
			c.catchUp()
		}
		n, err := unix.Read(int(fd), c.buf[:])
		if n > 0 {
			c.add(i, c.buf[:n])
		}
		more = n > 0 || errors.Is(err, unix.EINTR)
		return !errors.Is(err, unix.EAGAIN)
	})
	return more && err == nil
}

// catchUp takes what waits on standard output before something of standard
// error is taken: of two parts that both wait, the error more often came last.
func (c *capture) catchUp() {
	_ = c.raw[0].Control(func(fd uintptr) {
		for range 4 {
			n, err := unix.Read(int(fd), c.buf[:])
			if err != nil || n <= 0 {
				return
			}
			c.add(0, c.buf[:n])
		}
	})
}

// finish waits for the rest of the output. Whatever still holds the other end
// open does not hold the caller up for long.
func (c *capture) finish(buffers *sync.Pool) {
	for _, f := range c.files {
		_ = f.SetReadDeadline(time.Now().Add(drainLimit))
	}
	c.reading.Wait()
	c.close()
	buffers.Put(c.buf)
}

// launch starts the command in its session.
func (r *Run) launch() error {
	var sp *spool
	if r.cmd.Spool && r.s.cfg.SpoolSize > 0 {
		sp = &spool{dir: filepath.Join(r.s.policy.StateDir, "spool"), quota: r.s.cfg.SpoolSize, log: r.s.log}
	}
	c, theirs, err := newCapture(r.cmd.MaxOutput, sp)
	if err != nil {
		return err
	}
	if r.s.Confined() {
		r.s.watch.begin(r.ses.policy.ReadOnly, r.cmd.ExtraWrite)
	}
	r.out, r.began = c, time.Now()
	start := &stage.Start{Argv: r.cmd.Argv, Env: r.ses.environment(r.enter()), Dir: r.cmd.Dir, Self: r.cmd.Argv[0] == stage.NameProbe}
	r.group = r.s.groups.take(r.s.cfg)
	ended, err := r.ses.anchor.run(start, append(theirs[:], r.s.groups.files(r.group)...)...)
	for _, fd := range theirs {
		_ = unix.Close(fd)
	}
	if err != nil {
		c.close()
		r.leave()
		r.s.groups.give(r.group)
		r.unwatch()
		return err
	}
	r.id = start.ID
	c.start(&r.s.buffers)
	go r.supervise(ended)
	return nil
}

// supervise brings the command to its end and says what it was.
func (r *Run) supervise(ended <-chan *stage.Exit) {
	var out Outcome
	end, err := r.await(ended, &out, func() { r.note(&out, r.lookAfter()) })
	r.out.finish(&r.s.buffers)
	r.leave()
	lack, ours := r.group.outOfMemory()
	r.s.groups.give(r.group)
	r.note(&out, r.unwatch())
	switch {
	case err != nil:
		r.err = err
	case end.Step != "":
		r.err = r.s.notStarted(end)
	default:
		out.Duration = time.Since(r.began)
		out.Killed, out.Survivors, out.Limits = int(end.Killed), int(end.Survivors), r.group.holds()
		r.out.fill(&out, false)
		out.Level = r.ses.level
		setExit(&out, syscall.WaitStatus(end.Status))
		r.toldOf(end.Denied, &out)
		r.overLimits(end, ours, &out)
		r.infer(&out)
		// Not ours, but the machine's: somebody's process was ended for it.
		failed := out.ExitCode != 0 && !out.TimedOut && !out.Cancelled && !r.over && r.group == nil
		out.OutOfMemory = out.OutOfMemory || lack || failed && r.s.oom.grew()
		out.Violations = r.denied.all()
		r.end = out
	}
	r.left()
	close(r.done)
}

// leave has the gateway forget a command.
func (r *Run) leave() {
	if r.at != (netip.Addr{}) {
		r.ses.gate.Leave(r.at)
		r.at = netip.Addr{}
	}
}

// unwatch looks after what no mount holds, once a command has ended.
func (r *Run) unwatch() []restored {
	if !r.s.Confined() {
		return nil
	}
	return r.s.watch.end(r.s.policy.readOnly(r.cmd.ExtraWrite))
}

// lookAfter does the same while commands still run.
func (r *Run) lookAfter() []restored {
	if !r.s.Confined() {
		return nil
	}
	return r.s.watch.check(r.s.policy.readOnly(r.cmd.ExtraWrite))
}

// notStarted sorts why a command was not started: a wall that could not be
// built is ours, a program that does not exist is the caller's.
func (s *Sandbox) notStarted(end *stage.Exit) error {
	switch end.Step {
	case "tag", "set no_new_privs", "restrict file access", "drop capabilities", "protect limits", "filter system calls",
		"restrict signals", "join control groups":
		return unavailable(end.Step, syscall.Errno(end.Errno))
	}
	return &StartError{Step: end.Step, Cause: syscall.Errno(end.Errno)}
}

// await waits for the command's end, and brings it about when it is due.
func (r *Run) await(ended <-chan *stage.Exit, out *Outcome, check func()) (*stage.Exit, error) {
	limit := time.NewTimer(r.cmd.Timeout)
	defer limit.Stop()
	pulse := time.NewTicker(pulseEvery)
	defer pulse.Stop()
	recheck := time.NewTicker(r.s.recheck)
	defer recheck.Stop()
	var report <-chan time.Time
	if r.cmd.Progress != nil {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		report = tick.C
	}
	asked := r.stop
	var giveUp <-chan time.Time
	stop := func(grace time.Duration) {
		r.ses.anchor.stop(r.id, grace)
		asked = nil
		limit.Stop()
		pulse.Stop()
		giveUp = time.After(grace + overdue)
	}
	for {
		select {
		case end := <-ended:
			if end != nil {
				return end, nil
			}
			if out.TimedOut || out.Cancelled || r.over {
				// The whole session had to go; nothing of it is left.
				return &stage.Exit{Status: uint32(syscall.SIGKILL)}, nil
			}
			return nil, fmt.Errorf("%w: %w", ErrLost, r.ses.anchor.cause())
		case <-asked:
			out.Cancelled = true
			stop(r.cmd.Grace)
		case <-limit.C:
			out.TimedOut = true
			stop(r.cmd.Grace)
		case <-giveUp:
			giveUp = nil
			r.s.log.Warn("a command could not be ended; its session is ended", "session", r.cmd.Session)
			go r.ses.anchor.close()
		case <-pulse.C:
			if r.overNow() {
				stop(0)
			}
		case <-report:
			r.cmd.Progress(r.out.total())
		case <-recheck.C:
			check()
		}
	}
}

// infer adds what standard error tells of.
func (r *Run) infer(out *Outcome) {
	if !r.s.Confined() {
		return // there is no policy that could have denied anything
	}
	view{
		policy: r.ses.policy, writes: r.cmd.Terms.Writes, extra: r.cmd.ExtraWrite, dir: r.cmd.Dir, scratch: r.cmd.Scratch,
		files: r.s.cfg.MaxOpenFiles, procs: r.s.cfg.MaxProcesses,
	}.infer(out.Stderr, r.denied.add)
}

func setExit(out *Outcome, ws syscall.WaitStatus) {
	if ws.Signaled() {
		out.ExitCode = 128 + int(ws.Signal())
		out.Signal = signalName(ws.Signal())
		return
	}
	out.ExitCode = ws.ExitStatus()
}

// signalName is never empty: some signals have only a number.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
