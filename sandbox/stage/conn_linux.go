package stage

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// conn is the anchor's end of the control socket. Each frame is one packet.
type conn struct {
	fd   int
	mu   sync.Mutex
	gone func() // before leaving because the other end is gone; may be nil
}

// leave ends the process. The caller holds the lock, so that nothing is told of
// what is ended for that.
func (c *conn) leave() {
	if c.gone != nil {
		c.gone()
	}
	unix.Exit(0)
}

// send writes one frame. When the other end is gone there is nobody left to
// work for.
func (c *conn) send(m Message) { c.sendWith(m, nil) }

// handOut writes one frame with descriptors, which are the other end's then.
func (c *conn) handOut(m Message, fds []int) {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	c.sendWith(m, oob)
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func (c *conn) sendWith(m Message, oob []byte) {
	b, err := Encode(m)
	if err != nil {
		unix.Exit(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		err := unix.Sendmsg(c.fd, b, oob, nil, unix.MSG_NOSIGNAL)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENOBUFS) {
			c.leave()
		}
	}
}

func (c *conn) fail(step string, err error) {
	c.send(&Fail{Step: step, Errno: errnoOf(err)})
}

// recv reads one frame and the descriptors that came with it. It ends the
// process when the other end is gone or sends what is no frame.
func (c *conn) recv(buf, oob []byte) (Message, []int) {
	for {
		n, oobn, flags, _, err := unix.Recvmsg(c.fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			c.mu.Lock()
			c.leave()
		}
		if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			unix.Exit(1)
		}
		m, err := Decode(buf[:n])
		if err != nil {
			unix.Exit(1)
		}
		return m, rights(oob[:oobn])
	}
}

func rights(oob []byte) []int {
	if len(oob) == 0 {
		return nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		unix.Exit(1)
	}
	var fds []int
	for i := range msgs {
		got, err := unix.ParseUnixRights(&msgs[i])
		if err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}
