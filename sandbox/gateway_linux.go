package sandbox

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// resolvConf is where programs look for their name server.
const resolvConf = "/etc/resolv.conf"

// network adds to a setup what the network needs.
func (s *Sandbox) network(m *stage.Setup, n Network) {
	if m.Open {
		return
	}
	m.HostNetwork = n.Mode == NetworkHost
	m.Names = n.Mode == NetworkProxy
	for _, r := range s.roles(n) {
		m.Sockets = append(m.Sockets, r.Socket)
	}
	if n.Mode == NetworkOff {
		return
	}
	// The file itself, which may lie in a place that is emptied.
	real, err := filepath.EvalSymlinks(resolvConf)
	if err != nil {
		return // without it programs ask 127.0.0.1
	}
	op := stage.OpNames
	if m.HostNetwork {
		op = stage.OpKeep
		if !below(real, "/run") {
			return
		}
	}
	m.Mounts = append(m.Mounts, stage.Mount{Op: op, Path: real})
}

// open has a gateway serve the sockets of a new session.
func (s *Sandbox) open(n Network, a *anchor) (Gateway, error) {
	roles := s.roles(n)
	socks := a.made
	a.made = nil
	defer closeAll(socks)
	if len(roles) == 0 {
		return nil, nil //nolint:nilnil // none is needed
	}
	if n.Open == nil || len(roles) != len(socks) {
		return nil, errors.New("there is nobody to serve the network")
	}
	g, err := n.Open()
	if err != nil {
		return nil, err
	}
	for i, r := range roles {
		if err := hand(g, r, socks[i]); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// hand gives one socket to the gateway.
func hand(g Gateway, r role, fd int) error {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(dup), "inside")
	defer f.Close() //nolint:errcheck // what is served is a copy
	if r.Datagrams {
		c, err := net.FilePacketConn(f)
		if err == nil {
			g.ServeNames(c)
		}
		return err
	}
	l, err := net.FileListener(f)
	if err == nil {
		r.serve(g, l)
	}
	return err
}

// enter lets the gateway know of a command, and returns the environment with
// the way to it.
func (r *Run) enter() []string {
	if r.ses.gate == nil {
		return r.cmd.Env
	}
	r.at = r.ses.gate.Enter(r.cmd.CallID, r.denied.add)
	return r.cmd.Network.environment(r.cmd.Env, netip.AddrPortFrom(r.at, proxyPort))
}

// dial connects to a port of the session's loopback.
func (a *anchor) dial(port int) (net.Conn, error) {
	fd, err := a.socket()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "inside")
	defer f.Close() //nolint:errcheck // the connection is a copy
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// socket asks the anchor for a socket of its network.
func (a *anchor) socket() (int, error) {
	ch := make(chan int, 1)
	a.mu.Lock()
	if a.why != nil {
		a.mu.Unlock()
		return -1, errRetired
	}
	a.next++
	id := a.next
	a.asked[id] = ch
	a.mu.Unlock()
	defer a.forget(id, ch)
	if err := a.send(&stage.Connect{ID: id}); err != nil {
		return -1, err
	}
	limit := time.NewTimer(leaveLimit)
	defer limit.Stop()
	select {
	case fd := <-ch:
		if fd < 0 {
			return -1, errRetired
		}
		return fd, nil
	case <-a.done:
		return -1, errRetired
	case <-limit.C:
		return -1, os.ErrDeadlineExceeded
	}
}

// give hands a socket to whoever asked for it.
func (a *anchor) give(c *stage.Connected, fds []int) {
	fd := -1
	if c.Errno == 0 && len(fds) == 1 {
		fd, fds = fds[0], nil
	}
	closeAll(fds)
	a.mu.Lock()
	defer a.mu.Unlock()
	if ch := a.asked[c.ID]; ch != nil {
		delete(a.asked, c.ID)
		ch <- fd // there is room for one
	} else if fd >= 0 {
		_ = unix.Close(fd)
	}
}

// forget takes back a question that nobody waits for any more.
func (a *anchor) forget(id uint64, ch chan int) {
	a.mu.Lock()
	delete(a.asked, id)
	a.mu.Unlock()
	select {
	case fd := <-ch:
		closeAll([]int{fd})
	default:
	}
}
