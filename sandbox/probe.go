package sandbox

import (
	"context"
	"errors"
	"time"
)

// Report is what a probe of the sandbox found.
type Report struct {
	Level       int      // confinement a command gets
	Mode        string   // strict, off
	LandlockABI int      // 0 = none
	Limits      string   // what holds the limits on memory and processes; "" = not known
	Held        []string // walls that were tried and stand
	Missing     []string // walls that do not stand
	Fix         string   // what a person can do about it
	Err         error    // an [ErrUnavailable] when no command will run; nil otherwise
	Took        time.Duration
}

// Probe finds out whether commands are really confined: it starts an anchor
// with the policy in force and, inside, tries what must not work. The first
// answer is kept.
func (s *Sandbox) Probe(ctx context.Context) Report {
	s.probing.Lock()
	defer s.probing.Unlock()
	if s.report != nil {
		return *s.report
	}
	began := time.Now()
	r := s.probe(ctx)
	r.Took = time.Since(began)
	if mode, err := s.cfg.Mode.MarshalText(); err == nil {
		r.Mode = string(mode)
	}
	if ctx.Err() == nil {
		s.report = &r
	}
	return r
}

func (s *Sandbox) probe(ctx context.Context) Report {
	if !s.Confined() {
		return Report{
			Level: LevelNone, Missing: []string{"everything"},
			Fix: "commands run unconfined because tools.sandbox.mode is \"off\"",
		}
	}
	r, err := s.tryWalls(ctx)
	if err == nil {
		return r
	}
	r.Level, r.Err = LevelNone, err
	if u, ok := errors.AsType[*UnavailableError](err); ok {
		r.Fix = u.Fix
		if len(r.Missing) == 0 {
			r.Missing = []string{u.Step}
		}
	}
	return r
}
