package approval

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names in the folder of sockets: "<pid>-<random>" with one of these endings.
const (
	sockListening = ".sock"
	sockMaking    = ".new" // bound, not listening yet
)

// How much of the folder is looked at, and when a half-made socket is one that
// nobody will finish.
const (
	maxSockets = 1024
	abandoned  = time.Minute
)

// runDir is the folder of sockets, held open: whatever happens to its path
// meanwhile, all names are looked up in the folder that was checked. It also
// makes room for long paths, of which a socket's address takes only 107 bytes.
type runDir struct {
	f     *os.File
	owner int
}

// openRunDir opens the folder and refuses one that others could put something
// into. A server makes it, and it has to be the server's own; root may ask the
// servers of anybody.
func openRunDir(dir string, server bool) (*runDir, error) {
	if server {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of sockets: %w", err)
		}
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the folder of sockets: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(fmt.Errorf("look at %s: %w", dir, err), f.Close())
	}
	d := &runDir{f: f, owner: int(st.Uid)}
	us := os.Geteuid()
	if d.owner != us && (server || us != 0) {
		return nil, errors.Join(fmt.Errorf("%s belongs to another user (%d)", dir, d.owner), f.Close())
	}
	if st.Mode&0o077 != 0 {
		return nil, errors.Join(fmt.Errorf("%s is open to other users: chmod 700 it", dir), f.Close())
	}
	return d, nil
}

func (d *runDir) close() { _ = d.f.Close() }

func (d *runDir) addr(name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.f.Fd(), name)}
}

// listen makes a fresh socket. It gets the name that others look for only when
// it listens and has its mode, so a socket of that name that refuses is one of
// a server that is gone. Remove takes it away, and nothing else that may be in
// its place by then.
func (d *runDir) listen() (l *net.UnixListener, remove func(), err error) {
	base := fmt.Sprintf("%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:16]))
	making, name := base+sockMaking, base+sockListening
	if l, err = net.ListenUnix("unix", d.addr(making)); err != nil {
		return nil, nil, err
	}
	l.SetUnlinkOnClose(false) // by path; see remove
	fd := int(d.f.Fd())
	var st unix.Stat_t
	err = unix.Fchmodat(fd, making, 0o600, 0)
	if err == nil {
		err = unix.Fstatat(fd, making, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil {
		err = unix.Renameat2(fd, making, fd, name, unix.RENAME_NOREPLACE)
	}
	if err != nil {
		return nil, nil, errors.Join(err, unix.Unlinkat(fd, making, 0), l.Close())
	}
	return l, func() {
		var now unix.Stat_t
		if unix.Fstatat(fd, name, &now, unix.AT_SYMLINK_NOFOLLOW) == nil && now.Dev == st.Dev && now.Ino == st.Ino {
			_ = unix.Unlinkat(fd, name, 0)
		}
	}, nil
}

// sockets lists the sockets of the folder's owner; whatever else lies there is
// left alone.
func (d *runDir) sockets() ([]string, error) {
	names, err := d.f.Readdirnames(maxSockets)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list the folder of sockets: %w", err)
	}
	var out []string
	for _, n := range names {
		if pidOf(n) == "" {
			continue
		}
		if _, ok := d.stat(n); ok {
			out = append(out, n)
		}
	}
	return out, nil
}

// stat looks at a socket of the folder's owner.
func (d *runDir) stat(name string) (unix.Stat_t, bool) {
	var st unix.Stat_t
	err := unix.Fstatat(int(d.f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK && int(st.Uid) == d.owner
}

// removeStale takes away a socket nobody listens on.
func (d *runDir) removeStale(name string) {
	st, ok := d.stat(name)
	if !ok || strings.HasSuffix(name, sockMaking) && time.Since(time.Unix(st.Mtim.Unix())) < abandoned {
		return
	}
	_ = unix.Unlinkat(int(d.f.Fd()), name, 0)
}

// pidOf returns the process a socket's name tells of, or "" when the name is
// none of ours.
func pidOf(name string) string {
	base, ok := strings.CutSuffix(name, sockListening)
	if !ok {
		base, ok = strings.CutSuffix(name, sockMaking)
	}
	pid, random, dash := strings.Cut(base, "-")
	if n, err := strconv.Atoi(pid); !ok || !dash || random == "" || err != nil || n <= 0 {
		return ""
	}
	return pid
}

// peerOf asks the kernel who made the connection.
func peerOf(conn *net.UnixConn) (peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *unix.Ucred
	var fault error
	if err := raw.Control(func(fd uintptr) {
		cred, fault = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return peer{}, err
	}
	if fault != nil {
		return peer{}, fmt.Errorf("ask who is there: %w", fault)
	}
	return peer{uid: int(cred.Uid), pid: int(cred.Pid)}, nil
}

// admit says why a peer may not answer a question.
func (p peer) admit() error {
	if us := os.Geteuid(); p.uid != us && p.uid != 0 {
		return fmt.Errorf("it belongs to user %d", p.uid)
	}
	if p.pid <= 0 {
		return errors.New("its process cannot be seen from here")
	}
	ours, err := startedBy(p.pid, os.Getpid(), parent)
	switch {
	case err != nil:
		return err
	case ours:
		return errors.New("it was started by this server: a person has to answer from a terminal of theirs")
	}
	return nil
}

// maxAncestors is more than any chain of processes has.
const maxAncestors = 4096

// startedBy reports whether process pid descends from process from. The
// sandbox keeps commands from the socket; this holds where it is switched off,
// as long as a command's processes stay below the server, which adopts them.
func startedBy(pid, from int, parent func(int) (int, error)) (bool, error) {
	hidden := 0
	for at, n := pid, 0; n < maxAncestors; n++ {
		up, err := parent(at)
		switch {
		case err != nil && at == pid:
			return false, errors.New("it is gone or cannot be seen")
		case err != nil && at == hidden:
			return false, nil // of another user, behind hidepid; this server's are all visible
		case err != nil:
			// It may have ended since its child named it; then the child has
			// another parent now.
			hidden, at = at, pid
			continue
		case up == from:
			return true, nil
		case up <= 1:
			return false, nil
		}
		at = up
	}
	return false, errors.New("where it comes from cannot be told")
}

// parent returns the parent of a process; 0 when that is outside our view.
func parent(pid int) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in brackets may hold anything, so look behind the last one.
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/stat has another form", pid)
	}
	return strconv.Atoi(fields[1])
}
