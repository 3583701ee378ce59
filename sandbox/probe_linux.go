package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// lesserLevel is the best there is where level 3 cannot be had.
const lesserLevel = LevelShared

// tryWalls runs the probing stage. It has an anchor of its own, so that the
// bait it must not reach is in no session's view.
func (s *Sandbox) tryWalls(ctx context.Context, level int) (Report, error) {
	var r Report
	fail := func(step string, err error) (Report, error) {
		return r, &UnavailableError{Step: step, Cause: err}
	}
	if err := os.MkdirAll(s.policy.StateDir, 0o700); err != nil {
		return fail("make the state folder", err)
	}
	dir, err := os.MkdirTemp(s.policy.StateDir, "probe-")
	if err != nil {
		return fail("make a probe folder", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a probe's leftovers harm nobody
	p := stage.Probe{
		Secret: filepath.Join(dir, "secret"), Outside: filepath.Join(dir, "outside", "file"),
		UnixSockets: s.cfg.UnixSockets != UnixSocketsNone,
		Shared:      level == LevelShared, Server: os.Getpid(), Tmp: "/tmp",
	}
	if p.Shared {
		p.Tmp = filepath.Join(dir, "tmp")
		if err := os.Mkdir(p.Tmp, 0o700); err != nil {
			return fail("make a probe folder", err)
		}
	}
	err = errors.Join(os.WriteFile(p.Secret, []byte("secret\n"), 0o600),
		os.Mkdir(filepath.Dir(p.Outside), 0o700), os.WriteFile(p.Outside, nil, 0o600))
	if err != nil {
		return fail("make a probe file", err)
	}
	if p.PIDNamespace, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return fail("look at the own namespace", err)
	}
	lc := net.ListenConfig{}
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fail("listen on loopback", err)
	}
	defer l.Close() //nolint:errcheck // nothing was written through it
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		p.Port = a.Port
	}
	return s.runProbe(ctx, p, level)
}

func (s *Sandbox) runProbe(ctx context.Context, p stage.Probe, level int) (Report, error) {
	var r Report
	// The state folder is left open here, or it would hide the bait and prove
	// nothing; nothing but the probe sees it so.
	policy := s.policy.now(nil)
	policy.CacheDir = policy.cache()
	policy.StateDir = filepath.Join(filepath.Dir(p.Secret), "state")
	policy.Secrets = slices.DeleteFunc(slices.Clone(policy.Secrets), func(secret string) bool { return below(p.Secret, secret) })
	policy.Secrets = append(policy.Secrets, p.Secret)
	cmd := Command{
		Argv: p.Args(), Dir: "/", MaxOutput: 64 << 10, Timeout: startLimit, Grace: time.Second, Terms: s.cfg.Terms(Workspace, nil),
	}
	if p.Shared {
		cmd.Scratch = p.Tmp
	}
	places, err := lookAt(policy, cmd)
	if err != nil {
		return r, err
	}
	setup, _ := s.setup(policy, cmd, level)
	a, err := startAnchor(setup)
	if err != nil {
		return r, err
	}
	defer a.close()
	r.LandlockABI = int(a.abi)
	run := s.newRun(&session{anchor: a, level: level, places: places, policy: policy}, cmd, func() {})
	if err := run.launch(); err != nil {
		return r, err
	}
	out, err := run.attend(ctx)
	if err != nil {
		return r, err
	}
	r.Limits = out.Limits
	for line := range strings.Lines(string(out.Stdout.Head)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "ok "); ok {
			r.Held = append(r.Held, name)
		} else {
			r.Missing = append(r.Missing, strings.TrimPrefix(line, "open "))
		}
	}
	if out.ExitCode != 0 || len(r.Held) == 0 {
		return r, &UnavailableError{
			Step: "probe the walls", Cause: fmt.Errorf("the probe ended with %d: %s", out.ExitCode, out.Combined.Text()),
		}
	}
	if len(r.Missing) > 0 {
		return r, &UnavailableError{
			Step: "probe the walls", Cause: fmt.Errorf("not confined: %s", strings.Join(r.Missing, "; ")),
			Fix: "report this: the kernel accepted every step and still lets these through",
		}
	}
	r.Level = level
	if level == LevelShared {
		r.Missing = gaps()
	}
	if s.base.Trace {
		r.Missing = append(r.Missing, untraceable()...)
	}
	return r, nil
}

// untraceable says what keeps commands from tracing what they start, although
// their profile lets them.
func untraceable() []string {
	b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if scope := strings.TrimSpace(string(b)); err == nil && scope > "1" {
		return []string{"tracing: kernel.yama.ptrace_scope is " + scope + ", which lets no command trace"}
	}
	return nil
}
