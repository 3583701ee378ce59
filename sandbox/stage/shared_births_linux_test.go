package stage

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// However many are made at once, and however late those that were let go on
// come to be, there are never many more than there may be; and nobody is
// refused while there is room.
func TestNursery(t *testing.T) {
	t.Parallel()
	const limit = 100
	for late := range 20 { // how many births after the answer a process can be counted
		var n nursery
		var made, refused, looks int
		now := time.Unix(0, 0)
		count := func() uint64 { looks++; return uint64(max(0, made-late)) }
		for range 10_000 {
			now = now.Add(20 * time.Microsecond)
			if n.take(limit, count, now) {
				if made++; refused > 0 {
					t.Fatalf("late by %d: refused, and then again let go on", late)
				}
			} else if refused++; made < limit {
				t.Fatalf("late by %d: refused with %d", late, made)
			}
		}
		if made > limit+late+1 || refused == 0 || looks > 100 {
			t.Errorf("late by %d: %d were made, %d refused, %d looks", late, made, refused, looks)
		}
		// When some have ended there is room again.
		made = late + limit/2
		if !n.take(limit, count, now.Add(fullFor)) {
			t.Errorf("late by %d: still full", late)
		}
	}
}

func TestIsBirth(t *testing.T) {
	t.Parallel()
	for _, call := range birthsHere() {
		if !(notice{call: call, args: [6]uint64{^uint64(0)}}).isBirth() {
			t.Errorf("call %d has no arguments", call)
		}
	}
	for flags, want := range map[uint64]bool{
		uint64(unix.SIGCHLD): true, unix.CLONE_VM | unix.CLONE_VFORK: true, unix.CLONE_NEWUSER: false, 0xdead<<32 | unix.CLONE_NEWPID: false,
	} {
		if got := (notice{call: unix.SYS_CLONE, args: [6]uint64{flags}}).isBirth(); got != want {
			t.Errorf("clone %#x: %v", flags, got)
		}
	}
	if (notice{call: unix.SYS_CONNECT}).isBirth() {
		t.Error("connect")
	}
}

// A call that makes a process may go on, and a refused one may not.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a     answer
		flags uint32
		errno int32
	}{
		{answer{goesOn: true, value: 3}, unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE, 0},
		{answer{value: 3}, 0, 0},
		{answer{errno: unix.EAGAIN}, 0, -int32(unix.EAGAIN)},
	} {
		b := tt.a.encode(7)
		if got := binary.NativeEndian.Uint32(b[20:]); got != tt.flags {
			t.Errorf("%+v: flags %d", tt.a, got)
		}
		if got := int32(binary.NativeEndian.Uint32(b[16:])); got != tt.errno {
			t.Errorf("%+v: error %d", tt.a, got)
		}
	}
}
