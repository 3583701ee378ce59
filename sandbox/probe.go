package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Report is what a probe of the sandbox found.
type Report struct {
	Level       int      // confinement a command gets
	Mode        string   // strict, off
	LandlockABI int      // 0 = none
	Limits      string   // what holds the limits on memory and processes; "" = not known
	Held        []string // walls that were tried and stand
	Missing     []string // walls that do not stand, or what this level does not stop
	Fix         string   // what a person can do about it
	Err         error    // an [ErrUnavailable] when no command will run; nil otherwise
	Took        time.Duration
}

// Probe finds out whether commands are really confined: it starts an anchor
// with the policy in force and, inside, tries what must not work. The first
// answer is kept. Level 2 is tried where level 3 cannot be had: to be used
// where the configuration allows it, to be offered where it does not.
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
		s.watch.bare = r.Level == LevelShared
		s.report = &r
	}
	return r
}

func (s *Sandbox) probe(ctx context.Context) Report {
	if !s.Confined() {
		return Report{
			Level: LevelNone, Missing: []string{"everything"},
			Fix: "commands run unconfined because the server was started with --unconfined",
		}
	}
	if s.only == LevelShared {
		return s.probeLevel(ctx, LevelShared)
	}
	r := s.probeLevel(ctx, LevelFull)
	if r.Err == nil || s.only != 0 || ctx.Err() != nil {
		return r
	}
	less := s.probeLevel(ctx, lesserLevel)
	switch {
	case less.Err != nil && lesserLevel == LevelSeatbelt && s.cfg.MinLevel <= lesserLevel:
		return less
	case less.Err != nil:
	case s.base.heldAt(lesserLevel) != nil:
		r.offer(fmt.Sprintf("level %d would stand here, but cannot hold the profile %v", lesserLevel, s.base.Profile))
	case s.cfg.MinLevel <= lesserLevel:
		less.Fix = "for level 3: " + r.Err.Error()
		return less
	default:
		r.offer(fmt.Sprintf("or set tools.sandbox.min_level = %d, which would work here and stops less", lesserLevel))
	}
	return r
}

// probeLevel tries the walls of one level.
func (s *Sandbox) probeLevel(ctx context.Context, level int) Report {
	r, err := s.tryWalls(ctx, level)
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

// offer says what there is beside the fix: the walls that need no namespaces.
func (r *Report) offer(or string) {
	r.Fix = strings.TrimPrefix(r.Fix+"; "+or, "; ")
	if u, ok := errors.AsType[*UnavailableError](r.Err); ok {
		r.Err = &UnavailableError{Step: u.Step, Cause: u.Cause, Fix: r.Fix}
	}
}
