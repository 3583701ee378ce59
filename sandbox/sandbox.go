// Package sandbox runs commands confined. It is the only place that starts a
// process.
//
// Each session has one anchor: a small process of this same binary that is the
// first in namespaces of its own and builds the session's view of the file
// system once (see package stage). A command costs little more than starting
// it plainly, because the walls already stand. When they cannot be built, no
// command runs: nothing here falls back to less.
package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// The levels of confinement.
const (
	LevelNone     = 0 // not confined
	LevelSeatbelt = 1 // on macOS, untested: a Seatbelt profile, and processes told apart by looks
	LevelShared   = 2 // the host's namespaces: Landlock with what may be read listed, no capabilities, a longer filter
	LevelFull     = 3 // namespaces, read-only view, Landlock, no capabilities, system call filter
)

// What holds the limits on memory and processes.
const (
	LimitsGroup   = "cgroup v1" // a control group of each command: the kernel, exactly
	LimitsCounted = "count"     // of processes alone, looked at ten times a second
	LimitsWatched = "watchdog"  // looks at what each command takes, several times a second
)

// ErrUnavailable means that a command could not be confined and was not run.
var ErrUnavailable = errors.New("the sandbox is not available")

// ErrLost means that a session's processes ended while a command ran in it, so
// that its end is not known.
var ErrLost = errors.New("the sandbox session ended while a command was running")

// UnavailableError says why a command could not be confined. It is an
// [ErrUnavailable].
type UnavailableError struct {
	Step  string // what was being done
	Cause error
	Fix   string // what a person can do about it
}

// Error returns cause and fix in one line.
func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("%v: %s: %v", ErrUnavailable, e.Step, e.Cause)
	if e.Fix != "" {
		s += " (" + e.Fix + ")"
	}
	return s
}

// Is reports whether target is [ErrUnavailable].
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// StartError means that the sandbox stands but the program could not be
// started: it does not exist, or its folder does not.
type StartError struct {
	Step  string
	Cause error
}

// Error returns what could not be done and why.
func (e *StartError) Error() string { return fmt.Sprintf("%s: %v", e.Step, e.Cause) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Cause }

// Command is one program to run. It never gets an input.
type Command struct {
	Session string   // whose anchor runs it; "" is a session like any other
	Scratch string   // folder of the host that is /tmp inside; "" = a private one in memory
	Argv    []string // program and arguments; a bare name is looked up in Env's PATH
	Dir     string   // absolute
	Env     []string // all of the environment
	// Timeout ends the command and all it started; zero means the longest
	// allowed. Grace is the time between asking and forcing; zero means the
	// configured one.
	Timeout, Grace time.Duration
	MaxOutput      int64                              // bytes kept of each stream, half from each end; zero keeps none
	Spool          bool                               // what MaxOutput cuts out is kept on disk for [Run.Output]
	Progress       func(lastLine string, bytes int64) // at most once a second, from one goroutine; may be nil
	ExtraWrite     []string                           // more writable places, real paths that exist
	Network        Network                            // what can be reached
	Terms          Terms                              // without a profile: those of the configuration
	CallID         string                             // for the gateway
}

// Outcome is how a command ended.
type Outcome struct {
	ExitCode    int    // 128+n when signal n ended it
	Signal      string // name of that signal
	TimedOut    bool
	Cancelled   bool
	OutOfMemory bool // it failed, and the kernel ended a process for lack of memory meanwhile
	Stdout      Stream
	Stderr      Stream
	Combined    Stream // both, in the order they arrived
	Duration    time.Duration
	Killed      int    // processes it left behind, ended with it
	Survivors   int    // processes that could not be ended
	Level       int    // how it was confined
	Limits      string // what holds its limits: one of the constants above
	// Restored tells of what was put back or set aside, because something would
	// later have been run for it outside.
	Restored []string
	// Violations are what it was denied, as far as that is known; no more than 20.
	Violations []Violation
}

// Sandbox runs commands. It is safe for concurrent use.
type Sandbox struct {
	cfg    Config
	policy Policy
	log    *slog.Logger
	base   Terms // of a command that says nothing

	probing sync.Mutex
	report  *Report  // nil = not probed
	only    int      // the one level a test wants; 0 = the best there is
	maxABI  uint32   // newest Landlock a test wants used; 0 = what there is
	reach   []uint32 // ports of loopback that commands connect to at level 2

	buffers sync.Pool     // of arrays to read output into
	recheck time.Duration // between looks at what a command that takes long may have changed

	oom    oomCounter
	groups groups
	watch  watch // after what commands must not leave behind

	gates   sync.WaitGroup // gateways of sessions that may not all be gone, and what is exposed
	exposed exposed

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session   // those that take commands
	live     map[*session]struct{} // those whose processes may not all be gone
}

// New returns a sandbox. It starts nothing.
func New(cfg Config, policy Policy, log *slog.Logger) (*Sandbox, error) {
	if log == nil {
		return nil, errors.New("sandbox needs a logger")
	}
	if err := errors.Join(cfg.Validate(), policy.Validate()); err != nil {
		return nil, err
	}
	policy.Roots = slices.Clone(policy.Roots)
	policy.Git = slices.Clone(policy.Git)
	policy.Secrets = slices.Clone(policy.Secrets)
	policy.ReadOnly = slices.Clone(policy.ReadOnly)
	s := &Sandbox{
		cfg: cfg, policy: policy, log: log.With("component", "sandbox"), base: cfg.Terms(ProfileUnset, nil),
		sessions: map[string]*session{}, live: map[*session]struct{}{}, recheck: recheckEvery,
	}
	if find := policy.LookDeep; find != nil {
		s.watch.attend(func() []string {
			held := policy.readOnly(nil)
			return slices.DeleteFunc(find(), func(p string) bool { return slices.Contains(held, p) })
		})
	}
	return s, nil
}

// Confined reports whether commands are confined at all.
func (s *Sandbox) Confined() bool { return s.cfg.Mode != ModeOff }

// OwnProcesses reports whether commands are sure to be among processes of their
// own, whatever a probe finds: they may not be where level 2 is enough.
func (s *Sandbox) OwnProcesses() bool { return s.Confined() && s.cfg.MinLevel >= LevelFull }

// Terms returns what a profile comes to here; the zero profile is that of the
// configuration. hosts are those the operator opened.
func (s *Sandbox) Terms(p Profile, hosts []string) Terms { return s.cfg.Terms(p, hosts) }

// CacheDir is the folder for caches that commands may write. It exists once a
// command has run.
func (s *Sandbox) CacheDir() string { return s.policy.cache() }

func (s *Sandbox) check(cmd *Command) error {
	switch {
	case len(cmd.Argv) == 0 || cmd.Argv[0] == "":
		return errors.New("sandbox: no program to run")
	case !strings.HasPrefix(cmd.Dir, "/"):
		return fmt.Errorf("sandbox: working directory %q is not absolute", cmd.Dir)
	case cmd.MaxOutput < 0:
		return errors.New("sandbox: negative output limit")
	}
	for _, l := range [][]string{cmd.Argv, cmd.Env, {cmd.Dir, cmd.Scratch}} {
		for _, t := range l {
			if strings.ContainsRune(t, 0) {
				return errors.New("sandbox: a NUL character cannot be passed to a program")
			}
		}
	}
	for _, p := range append(slices.Clone(cmd.ExtraWrite), nonEmpty(cmd.Scratch)...) {
		if !clean(p) {
			return fmt.Errorf("sandbox: %q is not an absolute, clean path below /", p)
		}
	}
	if err := cmd.Network.check(); err != nil {
		return err
	}
	s.fill(cmd)
	return nil
}

// fill says what a command leaves open, and bounds what it asks for.
func (s *Sandbox) fill(cmd *Command) {
	if cmd.Terms.Profile == ProfileUnset {
		cmd.Terms = s.base
	}
	if cmd.Timeout <= 0 || cmd.Timeout > s.cfg.MaxTimeout {
		cmd.Timeout = s.cfg.MaxTimeout
	}
	if cmd.Grace <= 0 || cmd.Grace > s.cfg.KillGrace {
		cmd.Grace = s.cfg.KillGrace
	}
}
