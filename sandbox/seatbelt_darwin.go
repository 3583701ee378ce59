package sandbox

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// lesserLevel is the most there is here.
const lesserLevel = LevelSeatbelt

// seatbeltExec puts a profile in force and becomes another program.
const seatbeltExec = "/usr/bin/sandbox-exec"

// anchor starts the commands of a session, each behind the session's profile.
type anchor struct {
	*direct
	abi   uint32       // there is none
	proxy net.Listener // that the gateway serves; nil = it needs none
}

// startAnchor writes the profile. Nothing runs before the first command.
func startAnchor(m *stage.Setup) (*anchor, error) {
	a := &anchor{direct: &direct{
		list: processes, marked: environmentOf, openFiles: m.NoFile, fileSize: m.FileSize, most: int(m.Processes), running: map[uint64]*kin{},
	}}
	if m.Open {
		return a, nil
	}
	if _, err := os.Stat(seatbeltExec); err != nil {
		return nil, &UnavailableError{Step: "look for Seatbelt", Cause: err}
	}
	var lo loopback
	for _, p := range m.Reach {
		lo.connect = append(lo.connect, int(p))
	}
	for _, s := range m.Sockets {
		if !s.Anywhere {
			lo.listen = append(lo.listen, int(s.Port))
			continue
		}
		lc := net.ListenConfig{}
		l, err := lc.Listen(context.Background(), "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, &UnavailableError{Step: "listen for the proxy", Cause: err}
		}
		a.proxy = l
		lo.connect = append(lo.connect, int(a.at().Port()))
	}
	profile, err := seatbelt(m, lo)
	if err != nil {
		return nil, errors.Join(&UnavailableError{
			Step: "write a Seatbelt profile", Cause: err, Fix: "rename what cannot be named, or let deny_read name folders instead of single files",
		}, a.shut())
	}
	a.before = []string{seatbeltExec, "-p", profile}
	return a, nil
}

// at is where the proxy listens.
func (a *anchor) at() netip.AddrPort {
	if t, ok := a.proxy.Addr().(*net.TCPAddr); ok {
		return t.AddrPort()
	}
	return netip.AddrPort{}
}

func (a *anchor) shut() error {
	if a.proxy == nil {
		return nil
	}
	return a.proxy.Close()
}

func (a *anchor) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

func (a *anchor) close() {
	a.direct.close()
	_ = a.shut()
}

func (*anchor) cause() error { return errRetired }

// dial is not needed: what a command serves on an exposed port is on the host's
// own loopback.
func (*anchor) dial(int) (net.Conn, error) { return nil, errRetired }

// network adds to a setup what the network needs: the ports that are reached
// and exposed, and a place for the proxy.
func (s *Sandbox) network(m *stage.Setup, n Network) {
	if m.Open {
		return
	}
	if m.HostNetwork = n.Mode == NetworkHost; m.HostNetwork {
		return
	}
	for _, p := range s.cfg.Reach {
		m.Reach = append(m.Reach, uint32(p))
	}
	for _, p := range s.cfg.Expose {
		m.Sockets = append(m.Sockets, stage.Socket{Port: uint16(p)})
	}
	if n.Mode == NetworkProxy {
		m.Sockets = append(m.Sockets, stage.Socket{Anywhere: true})
	}
}

// open has a gateway serve the proxy of a new session.
func (*Sandbox) open(n Network, a *anchor) (Gateway, error) {
	if a.proxy == nil {
		return nil, nil //nolint:nilnil // none is needed
	}
	g, err := n.Open()
	if err == nil {
		g.ServeProxy(a.proxy)
	}
	return g, err
}

// enter lets the gateway know of a command, and returns the environment with
// the way to it. Here all calls have the same.
func (r *Run) enter() []string {
	if r.ses.gate == nil {
		return r.cmd.Env
	}
	r.at = r.ses.gate.Enter(r.cmd.CallID, r.denied.add)
	return r.cmd.Network.environment(r.cmd.Env, r.ses.anchor.at())
}

// toldOf has nothing to tell: Seatbelt does not say what it denied.
func (*Run) toldOf([]stage.Denial, *Outcome) {}

// tryWalls runs the forbidden acts without walls, where they must work, and
// behind them, where they must not.
func (s *Sandbox) tryWalls(ctx context.Context, level int) (Report, error) {
	if level != LevelSeatbelt {
		return Report{}, &UnavailableError{
			Step: "look for namespaces", Cause: errors.New("macOS has none, and its Seatbelt was never tested with this program"),
			Fix: "run the server in a Linux container or virtual machine",
		}
	}
	dir, err := seatbeltBait(s.policy.StateDir)
	if err != nil {
		return Report{}, &UnavailableError{Step: "make a probe folder", Cause: err}
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a probe's leftovers harm nobody
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Report{}, &UnavailableError{Step: "make a probe folder", Cause: err}
	}
	lc := net.ListenConfig{}
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return Report{}, &UnavailableError{Step: "listen on loopback", Cause: err}
	}
	defer l.Close() //nolint:errcheck // nothing was written through it
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return Report{}, &UnavailableError{Step: "listen on loopback", Cause: err}
	}
	policy := s.policy.now(nil)
	policy.CacheDir, policy.StateDir = policy.cache(), filepath.Join(dir, "state")
	policy.Secrets = append(slices.Clone(policy.Secrets), filepath.Join(dir, "secret"), filepath.Join(dir, "closed"))
	terms := s.cfg.Terms(Workspace, nil)
	for _, walls := range []bool{false, true} {
		setup, _ := s.setup(policy, Command{Dir: "/", Scratch: filepath.Join(dir, "tmp"), Terms: terms}, level)
		setup.Open = !walls
		a, err := startAnchor(setup)
		if err != nil {
			return Report{}, err
		}
		r, err := s.tryScript(ctx, a, policy, dir, port, walls)
		a.close()
		if err != nil || walls {
			return r, err
		}
	}
	return Report{}, errRetired
}

// tryScript runs the acts once and judges what they say.
func (s *Sandbox) tryScript(ctx context.Context, a *anchor, policy Policy, dir, port string, walls bool) (Report, error) {
	cmd := Command{
		Argv: seatbeltProbe(dir, port), Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, MaxOutput: 16 << 10,
		Timeout: startLimit, Grace: time.Second,
	}
	r := s.newRun(&session{anchor: a, level: LevelSeatbelt, policy: policy}, cmd, func() {})
	if err := r.launch(); err != nil {
		return Report{}, err
	}
	out, err := r.attend(ctx)
	if err != nil {
		return Report{}, err
	}
	return judgeSeatbelt(string(out.Stdout.Head), out.Limits, walls)
}

// Control groups do not exist here.
type (
	group  struct{}
	groups struct{}
)

func (*groups) take(Config) *group      { return nil }
func (*groups) give(*group)             {}
func (*groups) files(*group) []int      { return nil }
func (*groups) close()                  {}
func (*group) holds() string            { return LimitsCounted }
func (*group) crowded() bool            { return false }
func (*group) outOfMemory() (_, _ bool) { return false, false }

// memoryLimit is what the operator says; nothing holds it here.
func (c Config) memoryLimit() int64 { return c.MaxMemory }

// processes lists those of this user.
func processes() []process {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Getuid())
	if err != nil {
		return nil
	}
	out := make([]process, 0, len(list))
	for i := range list {
		p := &list[i]
		if p.Proc.P_stat == 5 { // a zombie
			continue
		}
		out = append(out, process{
			pid: int(p.Proc.P_pid), parent: int(p.Eproc.Ppid), group: int(p.Eproc.Pgid), began: p.Proc.P_starttime.Nano(),
		})
	}
	return out
}

// environmentOf is the arguments and the environment of a process.
func environmentOf(pid int) string {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return ""
	}
	return string(b)
}

// makePipe makes one that no program inherits.
func makePipe(p *[2]int) error {
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return nil
}

// openFolder opens a folder that is reached through no link.
func openFolder(path string) (int, error) {
	return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW_ANY, 0)
}

// open lets the owner of a folder read, change and enter it.
func open(dir int) {
	var st unix.Stat_t
	if unix.Fstat(dir, &st) == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(dir, uint32(st.Mode)&0o7777|0o700)
	}
}

// openReal opens for reading what is reached through no link.
func openReal(path string) (int, error) {
	return unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NOFOLLOW_ANY, 0)
}

// renameNew renames in a folder, unless the new name is taken.
func renameNew(dir int, name, to string) error {
	return unix.RenameatxNp(dir, name, dir, to, unix.RENAME_EXCL)
}

// unavailable explains a failed step to a person.
func unavailable(step string, err error) error { return &UnavailableError{Step: step, Cause: err} }
