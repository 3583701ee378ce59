package stage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func frames() []Message {
	return []Message{
		&Setup{
			Open: true, Shared: true, HostNetwork: true, Names: true, UnixSockets: true, NoFile: 1, FileSize: 1 << 40, Processes: 3, Memory: 1 << 33, TmpfsBytes: 4,
			MaxLandlock: 3, Reach: []uint32{3128},
			Mounts:  []Mount{{Op: OpWrite, Path: "/a", Source: "/b"}, {Op: OpMaskHold, Path: "/ü"}, {Op: OpNames, Path: "/c"}, {Op: OpList, Path: "/d"}},
			Sockets: []Socket{{Datagrams: true, Port: 53}, {Anywhere: true, Port: 65535}},
		},
		&Launched{PID: 7},
		&Ready{LandlockABI: 7},
		&Fail{Step: "mount /proc", Errno: 1},
		&Start{ID: 1 << 33, Argv: []string{"sh", "-c", ""}, Env: []string{"A=b"}, Dir: "/"},
		&Stop{ID: 2, GraceMS: 2000},
		&Exit{ID: 3, Status: 9, Killed: 1, Survivors: 2, Step: "run", Errno: 2},
		&Exit{ID: 4, Denied: []Denial{{Call: 101, Detail: 1, Count: 3, PID: 12, Name: "gdb"}, {Call: 5}}, Over: 2},
		&Connect{ID: 4},
		&Connected{ID: 5, Errno: 24},
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, m := range frames() {
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("%T (-want +got):\n%s", m, d)
		}
		for n := range b {
			if _, err := Decode(b[:n]); err == nil {
				t.Errorf("%T cut to %d of %d bytes was accepted", m, n, len(b))
			}
		}
		if _, err := Decode(append(b, 0)); err == nil {
			t.Errorf("%T with a byte too many was accepted", m)
		}
	}
}

func TestFramesRefused(t *testing.T) {
	t.Parallel()
	if _, err := Encode(&Start{Argv: []string{strings.Repeat("x", MaxFrame)}}); err == nil {
		t.Error("a frame over the limit was made")
	}
	nul, err := Encode(&Start{Argv: []string{"a\x00b"}})
	if err != nil {
		t.Fatal(err)
	}
	unset, err := Encode(&Setup{Mounts: []Mount{{Path: "/a"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"an unknown kind":   {99},
		"no kind":           {0},
		"a NUL in a string": nul,
		"an unset mount":    unset,
		"a huge count":      {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		"too long":          make([]byte, MaxFrame+1),
	} {
		if m, err := Decode(b); err == nil {
			t.Errorf("%s was read as %+v", name, m)
		}
	}
}

// FuzzDecode feeds the anchor's parser whatever comes: what it accepts, it
// reads the same way again, and it never takes more memory than was sent.
func FuzzDecode(f *testing.F) {
	for _, m := range frames() {
		b, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(b) {
			t.Fatalf("%x was read as %+v, which is %x", b, m, again)
		}
	})
}
