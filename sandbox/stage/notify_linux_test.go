package stage

import (
	"encoding/binary"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// kernelNotice is a notification as the kernel writes it.
func kernelNotice(n notice) []byte {
	b := binary.LittleEndian.AppendUint64(nil, n.id)
	b = binary.LittleEndian.AppendUint32(b, uint32(n.pid))
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.LittleEndian.AppendUint32(b, n.call)
	b = binary.LittleEndian.AppendUint32(b, 0xc000003e)
	b = binary.LittleEndian.AppendUint64(b, 0x401000)
	for _, a := range n.args {
		b = binary.LittleEndian.AppendUint64(b, a)
	}
	return b
}

func TestParseNotice(t *testing.T) {
	t.Parallel()
	want := notice{id: 1 << 60, pid: 77, call: unix.SYS_PTRACE, args: [6]uint64{1, 2, 3, 4, 5, 1 << 63}}
	b := kernelNotice(want)
	if len(b) != 80 {
		t.Fatalf("%d bytes", len(b))
	}
	for _, longer := range [][]byte{b, append(b, 1, 2, 3)} {
		if got, ok := parseNotice(longer); !ok || got != want {
			t.Errorf("%+v, %v", got, ok)
		}
	}
	for n := range b {
		if _, ok := parseNotice(b[:n]); ok {
			t.Errorf("%d bytes were enough", n)
		}
	}
}

// FuzzNotice makes sure that no call, and no name of a process, breaks what is
// told of it, and that no answer lets a call through.
func FuzzNotice(f *testing.F) {
	f.Add(kernelNotice(notice{id: 1, pid: 2, call: unix.SYS_SOCKET, args: [6]uint64{1}}), []byte("sh\n"), int64(3), uint16(0))
	f.Add(kernelNotice(notice{id: 1, pid: 2, call: unix.SYS_CLONE, args: [6]uint64{unix.CLONE_NEWUSER}}), []byte("a\x00b"), int64(-1), uint16(1))
	f.Fuzz(func(t *testing.T, b, comm []byte, value int64, errno uint16) {
		n, ok := parseNotice(b)
		if !ok {
			return
		}
		c := &command{}
		for range 3 {
			c.note(Denial{Call: n.call, Detail: detail(n), Name: commName(comm)})
		}
		for i := range uint32(100) {
			n.args[0], n.args[1] = uint64(i), uint64(i)
			c.note(Denial{Call: n.call + i%3, Detail: detail(n)})
		}
		m := &Exit{Denied: c.denied}
		frame, err := Encode(m)
		if err != nil || len(frame) > 8<<10 || len(c.denied) > maxDenials || CallName(n.call) == "" {
			t.Fatalf("%d denials in %d bytes: %v", len(c.denied), len(frame), err)
		}
		if _, err := Decode(frame); err != nil {
			t.Fatal(err)
		}
		out := answer{value: value, errno: syscall.Errno(errno)}.encode(n.id)
		if len(out) != 24 || binary.LittleEndian.Uint32(out[20:]) != 0 || binary.LittleEndian.Uint64(out) != n.id {
			t.Fatalf("%x", out)
		}
		if e := int32(binary.LittleEndian.Uint32(out[16:])); e != -int32(errno) {
			t.Fatalf("error %d", e)
		}
	})
}

// listened runs what a thread does that is under a filter with a listener, and
// ends that thread.
func listened(t *testing.T, do func(listener)) {
	t.Helper()
	var p program
	p.load(offNumber)
	p.on(unix.SYS_KEYCTL, func(q *program) { q.ret(retListener) })
	p.ret(retAllow)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
			return
		}
		l, err := installListener(p, 0)
		if err != nil {
			t.Errorf("install: %v", err)
			return
		}
		do(l)
	}()
	<-done
}

// A call waits for its answer and gets exactly that.
func TestListener(t *testing.T) {
	t.Parallel()
	heard := make(chan notice, 2)
	listened(t, func(l listener) {
		go l.serve(func(n notice) answer {
			if !l.waits(n) {
				t.Error("nobody waits for the answer")
			}
			if l.waits(notice{id: n.id + 1}) {
				t.Error("somebody waits who did not ask")
			}
			heard <- n
			if n.args[1] == 7 {
				return answer{value: 42}
			}
			return answer{value: 42, errno: unix.EPERM}
		})
		if v, _, errno := unix.Syscall(unix.SYS_KEYCTL, 99, 0, 0); errno != unix.EPERM {
			t.Errorf("denied: %d, %v", v, errno)
		}
		if v, _, errno := unix.Syscall(unix.SYS_KEYCTL, 99, 7, 0); v != 42 || errno != 0 {
			t.Errorf("answered: %d, %v", v, errno)
		}
	})
	if n := <-heard; n.call != unix.SYS_KEYCTL || n.args[0] != 99 || n.pid == 0 {
		t.Errorf("%+v", n)
	}
}

// When nobody listens any more, calls fail.
func TestListenerGone(t *testing.T) {
	t.Parallel()
	listened(t, func(l listener) {
		if err := unix.Close(int(l)); err != nil {
			t.Error(err)
		}
		if _, _, errno := unix.Syscall(unix.SYS_KEYCTL, 99, 0, 0); errno != unix.ENOSYS {
			t.Error(errno)
		}
	})
}
