package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

var (
	errRetired = errors.New("the session's processes have ended")
	errClosed  = errors.New("the sandbox is closed")
)

const startLimit = 10 * time.Second // for an anchor to stand

// session is an anchor, wanted or standing, for one view of the file system.
type session struct {
	key    string
	level  int           // of its walls
	tmp    string        // where private temporary files go, when that is not /tmp
	drop   bool          // tmp is this session's alone, and goes with it
	single bool          // for one command only
	ready  chan struct{} // closed when anchor or err is set
	anchor *anchor
	gate   Gateway // nil = it needs none
	err    error
	places []place // what the view was made of
	policy Policy
	looked time.Time // when the covered places were looked at last; below the sandbox's lock

	// Below the sandbox's lock.
	uses int
	used time.Time
	idle *time.Timer
}

// place is the identity of a folder or file. Copies taken of it, and what
// covers it, do not follow when somebody puts another in its place.
type place struct {
	path    string
	info    os.FileInfo // nil = it was not there
	covered bool
	listed  bool // what is in it was gone through, so that nothing may come or go
}

// lookEvery is how often a session looks whether what it covers was exchanged.
const lookEvery = 100 * time.Millisecond

// acquire returns the session for cmd with a standing anchor, making one when
// there is none or the folders it was made of were exchanged.
func (s *Sandbox) acquire(ctx context.Context, cmd Command, level int) (*session, error) {
	single := !s.Confined() || len(cmd.ExtraWrite) > 0
	key := strings.Join([]string{cmd.Session, cmd.Scratch, cmd.Network.key(), cmd.Terms.key()}, "\x00")
	readOnly := s.policy.readOnly(cmd.ExtraWrite)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	if level == LevelShared {
		key = s.free(key)
	}
	ses := s.sessions[key]
	if single {
		ses, key = nil, fmt.Sprintf("%s\x00%p", key, &key)
	}
	if ses != nil && s.stale(ses, readOnly) {
		s.retire(ses)
		ses = nil
	}
	if ses == nil {
		if err := s.room(); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		ses = &session{key: key, level: level, single: single, ready: make(chan struct{})}
		s.sessions[key], s.live[ses] = ses, struct{}{}
		go s.start(ses, cmd)
	}
	ses.uses++
	if ses.idle != nil {
		ses.idle.Stop()
	}
	s.mu.Unlock()

	select {
	case <-ses.ready:
	case <-ctx.Done():
		s.release(ses)
		return nil, ctx.Err()
	}
	if ses.err != nil {
		s.release(ses)
		return nil, ses.err
	}
	return ses, nil
}

// free returns the key of a session that runs no command: without namespaces,
// each has an anchor to itself while it runs. The caller holds the lock.
func (s *Sandbox) free(key string) string {
	for n := 0; ; n++ {
		k := key + "\x00" + strconv.Itoa(n)
		if ses := s.sessions[k]; ses == nil || ses.uses == 0 {
			return k
		}
	}
}

// stale reports whether a session cannot be used any more: its anchor is gone,
// or its view is not what would be built now. The caller holds the lock.
func (s *Sandbox) stale(ses *session, readOnly []string) bool {
	select {
	case <-ses.ready:
	default:
		return false // still being made
	}
	if ses.err != nil || ses.anchor.ended() || !slices.Equal(ses.policy.ReadOnly, readOnly) {
		return true
	}
	all := time.Since(ses.looked) >= lookEvery
	if all {
		ses.looked = time.Now()
		if s.policy.LookSecrets != nil && !slices.Equal(ses.policy.Secrets, s.policy.LookSecrets()) {
			return true
		}
	}
	return slices.ContainsFunc(ses.places, func(p place) bool { return (all || !p.covered) && p.exchanged() })
}

// exchanged reports whether something else is there now.
func (p place) exchanged() bool {
	now, err := os.Lstat(p.path)
	if err != nil || p.info == nil {
		return err == nil || p.info != nil
	}
	return !os.SameFile(now, p.info) || p.listed && !now.ModTime().Equal(p.info.ModTime())
}

// room makes sure that one more session may stand, giving up the one that was
// idle longest. The caller holds the lock.
func (s *Sandbox) room() error {
	if len(s.sessions) < s.cfg.MaxSessions {
		return nil
	}
	var oldest *session
	for _, ses := range s.sessions {
		if ses.uses == 0 && (oldest == nil || ses.used.Before(oldest.used)) {
			oldest = ses
		}
	}
	if oldest == nil {
		return &UnavailableError{
			Step:  "make a session",
			Cause: fmt.Errorf("all %d sessions are running commands", len(s.sessions)),
			Fix:   "wait for a command to end, or raise tools.sandbox.max_sessions",
		}
	}
	s.retire(oldest)
	return nil
}

// retire forgets a session and ends its processes once nobody uses it. The
// caller holds the lock.
func (s *Sandbox) retire(ses *session) {
	if s.sessions[ses.key] == ses {
		delete(s.sessions, ses.key)
	}
	if ses.idle != nil {
		ses.idle.Stop()
	}
	switch {
	case ses.err != nil:
		delete(s.live, ses)
	case ses.uses == 0 && ses.anchor != nil:
		go s.end(ses)
	}
}

// end ends a session's processes and forgets it.
func (s *Sandbox) end(ses *session) {
	ses.anchor.close()
	ses.dropTmp()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, ses)
}

func (s *Sandbox) release(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses.uses--
	ses.used = time.Now()
	if ses.uses > 0 {
		return
	}
	select {
	case <-ses.ready:
	default:
		return // start looks again when it is done
	}
	if s.closed || ses.single || s.sessions[ses.key] != ses || ses.anchor.ended() {
		s.retire(ses)
		return
	}
	if ses.idle == nil {
		ses.idle = time.AfterFunc(s.cfg.IdleTimeout, func() { s.expire(ses) })
		return
	}
	ses.idle.Reset(s.cfg.IdleTimeout)
}

func (s *Sandbox) expire(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ses.uses == 0 && time.Since(ses.used) >= s.cfg.IdleTimeout {
		s.retire(ses)
	}
}

// start makes a session's anchor.
func (s *Sandbox) start(ses *session, cmd Command) {
	s.oom.grew() // what was before does not count
	policy := s.policy.now(cmd.ExtraWrite)
	var a *anchor
	places, err := lookAt(policy, cmd)
	if err == nil {
		err = s.makeTmp(ses, &cmd)
	}
	if err == nil {
		var opened []place
		setup, dirs := s.setup(policy, cmd, ses.level)
		if opened, err = listed(policy, dirs); err == nil {
			places = append(places, opened...)
			a, err = startAnchor(setup)
		}
	}
	if err != nil {
		ses.dropTmp()
	}
	var g Gateway
	if err == nil && ses.level != LevelShared {
		if g, err = s.open(cmd.Network, a); err != nil {
			a.close()
			err = &UnavailableError{Step: "serve the network", Cause: err}
		}
	}
	if err == nil && ses.level == LevelFull && cmd.Network.Mode != NetworkHost {
		s.exposed.once.Do(s.expose)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g != nil {
		s.gates.Go(func() { s.shut(a, g) })
	}
	ses.anchor, ses.gate, ses.err, ses.places, ses.policy, ses.looked = a, g, err, places, policy, time.Now()
	close(ses.ready)
	if err != nil || ses.uses == 0 {
		s.retire(ses)
	}
}

// ownTmp reports whether temporary files lie elsewhere than at /tmp, where
// nothing can be put in its place.
func ownTmp(level int) bool { return level == LevelShared || level == LevelSeatbelt }

// makeTmp finds the session a place for temporary files where /tmp cannot be
// one.
func (s *Sandbox) makeTmp(ses *session, cmd *Command) error {
	if !ownTmp(ses.level) {
		return nil
	}
	if cmd.Scratch == "" {
		dir, err := os.MkdirTemp(s.policy.StateDir, "tmp-")
		if err != nil {
			return &UnavailableError{Step: "make a folder for temporary files", Cause: err}
		}
		cmd.Scratch, ses.drop = dir, true
	}
	ses.tmp = cmd.Scratch
	return nil
}

func (ses *session) dropTmp() {
	if ses.drop {
		_ = os.RemoveAll(ses.tmp)
	}
}

// environment adds to a command's environment where temporary files go.
func (ses *session) environment(env []string) []string {
	if ses.tmp == "" {
		return env
	}
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return e == "TMPDIR=/tmp" })
	if !slices.ContainsFunc(out, func(e string) bool { return strings.HasPrefix(e, "TMPDIR=") }) {
		out = append(out, "TMPDIR="+ses.tmp)
	}
	return out
}

// Tmp is where a command finds what Scratch names: at /tmp, or where it is when
// nothing can be put there.
func (s *Sandbox) Tmp(ctx context.Context, scratch string) string {
	if scratch != "" && ownTmp(s.Probe(ctx).Level) {
		return scratch
	}
	return "/tmp"
}

// setup tells the anchor what to build. The folders are those whose content was
// gone through for that.
func (s *Sandbox) setup(p Policy, cmd Command, level int) (*stage.Setup, []string) {
	m := &stage.Setup{
		Open:        !s.Confined(),
		Shared:      level == LevelShared,
		Reach:       s.reach,
		MaxLandlock: s.maxABI,
		UnixSockets: cmd.Terms.Unix != UnixSocketsNone,
		Private:     cmd.Terms.Unix == UnixSocketsPrivate,
		Trace:       cmd.Terms.Trace,
		NoFile:      uint64(s.cfg.MaxOpenFiles),
		FileSize:    uint64(s.cfg.MaxFileSize),
		Processes:   uint64(s.cfg.MaxProcesses),
		Memory:      uint64(s.cfg.memoryLimit()),
		TmpfsBytes:  uint64(s.cfg.TmpfsSize),
	}
	var opened []string
	switch {
	case m.Open:
	case m.Shared:
		m.Mounts, opened = p.everywhere().grants(cmd.Terms.Writes, cmd.Scratch, cmd.ExtraWrite, realEntries)
		if self, err := os.Executable(); err == nil { // it may lie where nothing else is open
			m.Mounts = append(m.Mounts, stage.Mount{Op: stage.OpRead, Path: self})
		}
	case level == LevelSeatbelt:
		home, err := os.UserHomeDir()
		if err != nil {
			home = "" // nothing in it is opened
		}
		m.Mounts = p.seatbeltPlan(home, cmd.Terms.Writes, cmd.Scratch, cmd.ExtraWrite)
	default:
		m.Mounts = p.everywhere().plan(cmd.Terms.Writes, cmd.Scratch, cmd.ExtraWrite)
	}
	if !m.Shared {
		s.network(m, cmd.Network)
	}
	return m, opened
}

// listed notes the folders whose content was gone through. Below a root that
// matters to the very next command; elsewhere it is looked at now and then.
func listed(p Policy, dirs []string) ([]place, error) {
	var out []place
	for _, d := range dirs {
		info, err := os.Lstat(d)
		if err != nil {
			return nil, &UnavailableError{Step: "look at " + d, Cause: err}
		}
		inRoot := slices.ContainsFunc(slices.Concat(p.Roots, p.Git), func(r string) bool { return below(d, r) })
		out = append(out, place{path: d, info: info, listed: true, covered: !inRoot})
	}
	return out, nil
}

// lookAt makes the cache, and notes what the view is made of and what it covers.
func lookAt(p Policy, cmd Command) ([]place, error) {
	if err := os.MkdirAll(p.cache(), 0o700); err != nil {
		return nil, &UnavailableError{Step: "make the cache folder", Cause: err}
	}
	var out []place
	for _, path := range slices.Concat(p.Roots, p.Git, nonEmpty(cmd.Scratch)) {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, &UnavailableError{Step: "look at the workspace", Cause: err, Fix: "the folder has to exist"}
		}
		out = append(out, place{path: path, info: info})
	}
	for _, path := range slices.Concat(p.Secrets, p.ReadOnly, []string{p.StateDir}) {
		if verified(path) {
			continue // not covered, and exchanged whenever it is written
		}
		info, err := os.Lstat(path)
		if err != nil {
			info = nil
		}
		out = append(out, place{path: path, info: info, covered: true})
	}
	return out, nil
}

// shut ends a gateway when its session has ended.
func (s *Sandbox) shut(a *anchor, g Gateway) {
	a.wait()
	if err := g.Close(); err != nil {
		s.log.Warn("the network of a session did not end as it should", "error", err)
	}
}

// Close ends every command and every anchor, and waits for them to be gone.
func (s *Sandbox) Close() error {
	s.watch.close()
	s.mu.Lock()
	s.closed = true
	for _, l := range s.exposed.list {
		_ = l.Close()
	}
	all := make([]*session, 0, len(s.live))
	for ses := range s.live {
		if ses.idle != nil {
			ses.idle.Stop()
		}
		all = append(all, ses)
	}
	s.mu.Unlock()
	for _, ses := range all {
		<-ses.ready
		if ses.anchor != nil {
			ses.anchor.close()
			ses.dropTmp()
		}
	}
	s.gates.Wait()
	s.groups.close()
	return nil
}
