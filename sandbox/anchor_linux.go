package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// anchor is the server's end of a session's anchor.
type anchor struct {
	abi    uint32
	stands bool
	pid    int
	ctl    *os.File
	raw    syscall.RawConn
	stderr *os.File
	done   chan struct{} // closed when the anchor is gone and was collected

	sending sync.Mutex
	mu      sync.Mutex
	why     error // once it is gone
	next    uint64
	waiting map[uint64]chan *stage.Exit
	asked   map[uint64]chan int // for sockets
	made    []int               // sockets that were made with the walls
}

const leaveLimit = time.Second // for an anchor to end by itself

const pipeSize = 256 << 10

// makePipe makes one that no program inherits. A bigger one means fewer turns;
// it is fine not to get it.
func makePipe(p *[2]int) error {
	err := unix.Pipe2(p[:], unix.O_CLOEXEC)
	if err == nil {
		_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, pipeSize)
	}
	return err
}

// startAnchor starts an anchor and waits until its walls stand.
func startAnchor(setup *stage.Setup) (*anchor, error) {
	a := &anchor{done: make(chan struct{}), waiting: map[uint64]chan *stage.Exit{}, asked: map[uint64]chan int{}}
	if err := a.launch(setup); err != nil {
		return nil, unavailable("start the first process", err)
	}
	if err := a.greet(setup); err != nil {
		a.meet()
		a.abandon()
		return nil, err
	}
	go a.listen()
	return a, nil
}

// launch starts the process that will make the namespaces.
func (a *anchor) launch(setup *stage.Setup) error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	a.ctl = os.NewFile(uintptr(ends[0]), "anchor")
	theirs := os.NewFile(uintptr(ends[1]), "anchor end")
	defer theirs.Close() //nolint:errcheck // handed over
	if err := unix.SetNonblock(ends[1], false); err != nil {
		return errors.Join(err, a.ctl.Close())
	}
	for _, fd := range ends {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 2*stage.MaxFrame)
	}
	if a.raw, err = a.ctl.SyscallConn(); err != nil {
		return errors.Join(err, a.ctl.Close())
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return errors.Join(err, a.ctl.Close())
	}
	defer null.Close() //nolint:errcheck // handed over
	errOut, errIn, err := os.Pipe()
	if err != nil {
		return errors.Join(err, a.ctl.Close())
	}
	defer errIn.Close() //nolint:errcheck // handed over
	a.stderr = errOut
	argv := []string{stage.NameLaunch}
	switch {
	case setup.Open:
		argv = append(argv, stage.ModeOpen)
	case setup.Shared:
		argv = append(argv, stage.ModeShared)
	case setup.HostNetwork:
		argv = append(argv, stage.ModeHostNetwork)
	}
	p, err := os.StartProcess("/proc/self/exe", argv, &os.ProcAttr{
		Env:   []string{"GOMAXPROCS=1"},
		Files: []*os.File{null, null, errIn, theirs},
	})
	if err != nil {
		return errors.Join(err, a.ctl.Close(), a.stderr.Close())
	}
	go func() { _, _ = p.Wait() }() // it leaves as soon as the anchor runs
	return nil
}

// greet sends the setup and waits for the answers.
func (a *anchor) greet(setup *stage.Setup) error {
	if err := a.ctl.SetReadDeadline(time.Now().Add(startLimit)); err != nil {
		return unavailable("wait for the first process", err)
	}
	// One that has failed already is not there to be told, but has said why.
	unsaid := a.send(setup)
	buf := make([]byte, 4<<10)
	// The launcher and the anchor answer each for itself, in any order.
	for a.pid == 0 || !a.stands {
		m, fds, err := a.recv(buf)
		a.made = append(a.made, fds...)
		switch {
		case err != nil && unsaid != nil:
			return unavailable("tell the first process what to build", a.lastWords(unsaid))
		case err != nil:
			return unavailable("wait for the first process", a.lastWords(err))
		}
		switch m := m.(type) {
		case *stage.Launched:
			a.pid = int(m.PID)
		case *stage.Fail:
			return unavailable(m.Step, syscall.Errno(m.Errno))
		case *stage.Ready:
			a.abi, a.stands = m.LandlockABI, true
		default:
			return unavailable("wait for the first process", stage.ErrMalformed)
		}
	}
	return a.ctl.SetReadDeadline(time.Time{})
}

// meet learns the process of an anchor that failed before its launcher had
// told, so that its remains can be taken.
func (a *anchor) meet() {
	_ = a.ctl.SetReadDeadline(time.Now().Add(leaveLimit))
	buf := make([]byte, 4<<10)
	for a.pid == 0 {
		m, fds, err := a.recv(buf)
		closeAll(fds)
		if err != nil {
			return
		}
		if l, ok := m.(*stage.Launched); ok {
			a.pid = int(l.PID)
		}
	}
}

// lastWords adds what a broken anchor said to its standard error.
func (a *anchor) lastWords(err error) error {
	_ = a.stderr.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	said, _ := io.ReadAll(io.LimitReader(a.stderr, 2<<10))
	if said = bytes.TrimSpace(said); len(said) > 0 {
		return fmt.Errorf("%w: %q", err, said)
	}
	return err
}

func (a *anchor) send(m stage.Message, fds ...int) error {
	b, err := stage.Encode(m)
	if err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	a.sending.Lock()
	defer a.sending.Unlock()
	var sent error
	err = a.raw.Write(func(fd uintptr) bool {
		for {
			sent = unix.Sendmsg(int(fd), b, oob, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			if !errors.Is(sent, unix.EINTR) {
				return !errors.Is(sent, unix.EAGAIN)
			}
		}
	})
	return errors.Join(err, sent)
}

func (a *anchor) recv(buf []byte) (stage.Message, []int, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxSockets))
	var n, oobn int
	var got error
	err := a.raw.Read(func(fd uintptr) bool {
		for range 3 {
			n, oobn, _, _, got = unix.Recvmsg(int(fd), buf, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			// A peer that left without reading everything is told of once, before
			// what it wrote last: why it left.
			if !errors.Is(got, unix.EINTR) && !errors.Is(got, unix.ECONNRESET) {
				break
			}
		}
		return !errors.Is(got, unix.EAGAIN)
	})
	switch {
	case err != nil:
		return nil, nil, err
	case got != nil:
		return nil, nil, got
	case n == 0:
		return nil, nil, io.EOF
	}
	fds := passed(oob[:oobn])
	m, err := stage.Decode(buf[:n])
	if err != nil {
		closeAll(fds)
		return nil, nil, err
	}
	return m, fds, nil
}

// maxSockets is how many descriptors come with one message at most.
const maxSockets = 64

// passed are the descriptors that came with a message.
func passed(oob []byte) []int {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var out []int
	for i := range msgs {
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			out = append(out, fds...)
		}
	}
	return out
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// listen hands out the ends of commands until the anchor is gone.
func (a *anchor) listen() {
	buf := make([]byte, 16<<10) // nothing but ends of commands comes
	var why error
	for {
		m, fds, err := a.recv(buf)
		if err != nil {
			why = err
			break
		}
		if c, ok := m.(*stage.Connected); ok {
			a.give(c, fds)
			continue
		}
		closeAll(fds) // nothing else brings any
		end, ok := m.(*stage.Exit)
		if !ok {
			why = stage.ErrMalformed
			break
		}
		a.mu.Lock()
		ch := a.waiting[end.ID]
		delete(a.waiting, end.ID)
		a.mu.Unlock()
		if ch != nil {
			ch <- end
		}
	}
	why = a.lastWords(why)
	a.collect()
	a.mu.Lock()
	a.why = why
	for id, ch := range a.waiting {
		delete(a.waiting, id)
		close(ch)
	}
	a.mu.Unlock()
	close(a.done)
}

// collect makes sure the anchor has ended, and everything with it, and takes
// its remains.
func (a *anchor) collect() {
	_ = a.ctl.Close()
	if a.pid > 0 {
		_ = syscall.Kill(a.pid, syscall.SIGKILL)
		for {
			_, err := syscall.Wait4(a.pid, nil, 0, nil)
			if !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
	_ = a.stderr.Close()
}

// abandon is collect for an anchor that never stood.
func (a *anchor) abandon() {
	a.collect()
	close(a.done)
}

// close ends the anchor and waits until it and all its processes are gone.
func (a *anchor) close() {
	// It sees the end of what we say, ends what it started, and leaves; if it
	// does not, we stop listening and it is killed.
	_ = unix.Shutdown(a.fd(), unix.SHUT_WR)
	force := time.AfterFunc(leaveLimit, func() { _ = unix.Shutdown(a.fd(), unix.SHUT_RDWR) })
	<-a.done
	force.Stop()
}

// wait waits until it is gone.
func (a *anchor) wait() { <-a.done }

func (a *anchor) fd() int {
	fd := -1
	_ = a.raw.Control(func(f uintptr) { fd = int(f) })
	return fd
}

func (a *anchor) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// run starts a command and returns where its end will be told. The channel is
// closed without a value when the anchor is gone.
func (a *anchor) run(m *stage.Start, fds ...int) (<-chan *stage.Exit, error) {
	ch := make(chan *stage.Exit, 1)
	a.mu.Lock()
	if a.why != nil {
		a.mu.Unlock()
		return nil, errRetired
	}
	a.next++
	m.ID = a.next
	a.waiting[m.ID] = ch
	a.mu.Unlock()
	err := a.send(m, fds...)
	if err == nil {
		return ch, nil
	}
	a.mu.Lock()
	delete(a.waiting, m.ID)
	a.mu.Unlock()
	if errors.Is(err, stage.ErrTooLong) {
		return nil, &StartError{
			Step: "run " + m.Argv[0], Cause: fmt.Errorf("command line and environment are longer than 192 KiB: %w", unix.E2BIG),
		}
	}
	return nil, errRetired
}

func (a *anchor) stop(id uint64, grace time.Duration) {
	_ = a.send(&stage.Stop{ID: id, GraceMS: uint32(grace.Milliseconds())})
}

// cause is why an anchor is gone.
func (a *anchor) cause() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == nil {
		return errors.New("it is not known why")
	}
	return a.why
}

// unavailable explains a failed step to a person.
func unavailable(step string, err error) error {
	return &UnavailableError{Step: step, Cause: err, Fix: fixFor(step, err)}
}

func fixFor(step string, err error) string {
	switch {
	case step == "make namespaces" && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS)):
		return "raise the limits with: sysctl -w user.max_user_namespaces=15000 user.max_pid_namespaces=15000 user.max_net_namespaces=15000"
	case step == "make namespaces":
		return "user namespaces are forbidden here: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile " +
			"that allows userns for this program), kernel.unprivileged_userns_clone=1; in a container run it with " +
			"--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
	case step == "make mounts private" || step == "make / read-only" || step == "mount /dev":
		return "mounting is forbidden in a new user namespace: on Ubuntu allow userns for this program in an AppArmor profile; " +
			"in a container use --security-opt apparmor=unconfined"
	case step == "mount /proc":
		return "the container hides parts of /proc: run it with --security-opt systempaths=unconfined"
	case step == "find Landlock" || step == "find Landlock 3 or newer":
		return "the kernel has to be 6.2 or newer with landlock in the lsm= list (cat /sys/kernel/security/lsm)"
	}
	return ""
}
