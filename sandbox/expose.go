package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
)

// maxExposed is how many connections to exposed ports there can be at a time.
const maxExposed = 128

// exposed are the listeners on the host's loopback that lead to what commands
// serve.
type exposed struct {
	once  sync.Once
	list  []net.Listener // below the sandbox's lock
	slots chan struct{}
}

// expose opens the ports once there is a session that they can lead to.
func (s *Sandbox) expose() {
	s.exposed.slots = make(chan struct{}, maxExposed)
	for _, port := range s.cfg.Expose {
		lc := net.ListenConfig{}
		l, err := lc.Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			s.log.Warn("a port cannot be exposed", "port", port, "error", err)
			continue
		}
		s.mu.Lock()
		closed := s.closed
		if closed {
			_ = l.Close()
		} else {
			s.exposed.list = append(s.exposed.list, l)
			s.gates.Go(func() { s.takeExposed(l, port) })
		}
		s.mu.Unlock()
	}
}

func (s *Sandbox) takeExposed(l net.Listener, port int) {
	for {
		s.exposed.slots <- struct{}{}
		c, err := l.Accept()
		if err != nil {
			<-s.exposed.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		s.gates.Go(func() {
			s.lead(c, port)
			<-s.exposed.slots
		})
	}
}

// lead connects a client to the session that was used last of those in which
// something listens.
func (s *Sandbox) lead(c net.Conn, port int) {
	defer c.Close() //nolint:errcheck // there is nobody to tell
	for _, a := range s.anchors() {
		in, err := a.dial(port)
		if err != nil {
			continue
		}
		join(c, in)
		return
	}
}

// anchors lists those of the sessions that stand, the one used last first.
func (s *Sandbox) anchors() []*anchor {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*session
	for _, ses := range s.sessions {
		if ses.standing() {
			all = append(all, ses)
		}
	}
	slices.SortFunc(all, func(a, b *session) int {
		return cmp.Or(cmp.Compare(b.uses, a.uses), b.used.Compare(a.used))
	})
	out := make([]*anchor, len(all))
	for i, ses := range all {
		out[i] = ses.anchor
	}
	return out
}

// standing reports whether a session can be connected to. The caller holds the
// sandbox's lock.
func (ses *session) standing() bool {
	select {
	case <-ses.ready:
		return ses.err == nil && !ses.anchor.ended()
	default:
		return false
	}
}

// join passes on what both say until both are done.
func join(a, b net.Conn) {
	defer b.Close() //nolint:errcheck // there is nobody to tell
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, err := io.Copy(way[0], way[1])
			if w, ok := way[0].(interface{ CloseWrite() error }); ok && err == nil {
				_ = w.CloseWrite()
				return
			}
			_ = a.Close()
			_ = b.Close()
		})
	}
	both.Wait()
}
