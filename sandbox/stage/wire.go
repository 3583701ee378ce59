package stage

import (
	"errors"
	"slices"
)

// MaxFrame is the largest frame either side sends or takes.
const MaxFrame = 192 << 10

// Errors of the frame codec.
var (
	ErrTooLong   = errors.New("frame is too long")
	ErrMalformed = errors.New("frame is malformed")
)

// Op is what is done at one place of the file system.
type Op byte

// The operations. The zero Op is refused.
const (
	OpUnset    Op = iota
	OpWrite       // Source appears at Path, writable
	OpTmpfs       // an empty writable place of its own
	OpEmpty       // an empty place that stays empty
	OpKeep        // Path stays visible below an emptied place, read-only
	OpPin         // Path cannot be moved away
	OpReadOnly    // Path cannot be changed
	OpMask        // Path cannot be read
	OpMaskHold    // Path cannot be read but holds a writable place below
	OpNames       // Path is a file that names the session's own name server
	OpRead        // Path and what is below can be read; walls that are shared only
	OpList        // the names below Path can be listed; the same
)

// Mount is one operation on the file system of a session.
type Mount struct {
	Op     Op
	Path   string
	Source string // of OpWrite; "" = Path
}

// Socket is one that is made in the session's network and handed out.
type Socket struct {
	Datagrams bool // for datagrams, and bound; else a listener
	Anywhere  bool // at every address; else 127.0.0.1
	Port      uint16
}

// Setup tells an anchor what walls to build. It is the first frame.
type Setup struct {
	Open        bool // no walls: only keep track of processes
	Shared      bool // walls without namespaces: the host's are shared, and one command runs at a time
	HostNetwork bool // the network is the host's
	Names       bool // 198.18.0.0/15 leads to the session itself
	UnixSockets bool // AF_UNIX sockets may be made
	Private     bool // and connected to where the session may write, and nowhere else
	Trace       bool // processes inside may trace each other
	NoFile      uint64
	FileSize    uint64
	Processes   uint64
	Memory      uint64 // bytes of one command's processes together
	TmpfsBytes  uint64
	MaxLandlock uint32   // newest ABI to use; 0 = what the kernel has. For tests
	Reach       []uint32 // ports of the host's loopback that may be connected to; shared walls only
	Mounts      []Mount
	Sockets     []Socket // handed out with [Ready], in this order
}

// Launched is the launcher's last word.
type Launched struct{ PID uint32 }

// Ready says that the walls stand.
type Ready struct{ LandlockABI uint32 }

// Fail says which step of building the walls failed. The anchor ends.
type Fail struct {
	Step  string
	Errno uint32
}

// Start runs one command. Two descriptors come with it: its standard output
// and standard error. Four more say which control groups it is started in, as
// the lists of their threads: two to enter, and two to come back to.
type Start struct {
	ID   uint64
	Self bool // run this very binary instead of Argv[0]
	Argv []string
	Env  []string
	Dir  string
}

// Stop ends a command: a request to everything it started, then force.
type Stop struct {
	ID      uint64
	GraceMS uint32
}

// Connect asks for a socket of the session's network that is not connected yet.
type Connect struct{ ID uint64 }

// Connected answers [Connect]. The socket comes with it unless Errno is set.
type Connected struct {
	ID    uint64
	Errno uint32
}

// Exit is the end of a command. When Step is set it was never started.
type Exit struct {
	ID        uint64
	Status    uint32 // as wait reports it
	Killed    uint32 // processes it had left behind
	Survivors uint32 // processes that could not be ended
	Step      string
	Errno     uint32
	Denied    []Denial
	Over      byte // the limit it was ended for
}

// The limits a command can be ended for.
const (
	OverNothing byte = iota
	OverMemory
	OverProcesses
)

// Denial is a system call that was denied to a command, and how often.
type Denial struct {
	Call   uint32
	Detail uint32 // an argument that says what it was about: a family of sockets, new namespaces
	Count  uint32
	PID    uint32 // the first time, inside
	Name   string // of that process, by its own word
}

// Message is one of the frames.
type Message interface {
	kind() byte
	put(*writer)
	get(*reader)
}

// Encode returns m as one frame.
func Encode(m Message) ([]byte, error) {
	w := writer{b: []byte{m.kind()}}
	m.put(&w)
	if len(w.b) > MaxFrame {
		return nil, ErrTooLong
	}
	return w.b, nil
}

// Decode reads one frame. Whatever the bytes, it allocates no more than a
// small multiple of their number.
func Decode(b []byte) (Message, error) {
	if len(b) == 0 || len(b) > MaxFrame {
		return nil, ErrMalformed
	}
	m := blank(b[0])
	if m == nil {
		return nil, ErrMalformed
	}
	r := reader{b: b[1:]}
	m.get(&r)
	if r.bad || len(r.b) != 0 {
		return nil, ErrMalformed
	}
	return m, nil
}

func blank(kind byte) Message {
	switch kind {
	case 1:
		return &Setup{}
	case 2:
		return &Launched{}
	case 3:
		return &Ready{}
	case 4:
		return &Fail{}
	case 5:
		return &Start{}
	case 6:
		return &Stop{}
	case 7:
		return &Exit{}
	case 10:
		return &Connect{}
	case 11:
		return &Connected{}
	}
	return nil
}

func (*Setup) kind() byte    { return 1 }
func (*Launched) kind() byte { return 2 }
func (*Ready) kind() byte    { return 3 }
func (*Fail) kind() byte     { return 4 }
func (*Start) kind() byte    { return 5 }
func (*Stop) kind() byte     { return 6 }
func (*Exit) kind() byte     { return 7 }

func (*Connect) kind() byte   { return 10 }
func (*Connected) kind() byte { return 11 }

func (m *Setup) put(w *writer) {
	w.flag(m.Open)
	w.flag(m.Shared)
	w.flag(m.HostNetwork)
	w.flag(m.Names)
	w.flag(m.UnixSockets)
	w.flag(m.Private)
	w.flag(m.Trace)
	w.u64(m.NoFile)
	w.u64(m.FileSize)
	w.u64(m.Processes)
	w.u64(m.Memory)
	w.u64(m.TmpfsBytes)
	w.u32(m.MaxLandlock)
	w.u32(uint32(len(m.Reach)))
	for _, p := range m.Reach {
		w.u32(p)
	}
	w.u32(uint32(len(m.Mounts)))
	for _, x := range m.Mounts {
		w.b = append(w.b, byte(x.Op))
		w.text(x.Path)
		w.text(x.Source)
	}
	w.u32(uint32(len(m.Sockets)))
	for _, x := range m.Sockets {
		w.flag(x.Datagrams)
		w.flag(x.Anywhere)
		w.u32(uint32(x.Port))
	}
}

func (m *Setup) get(r *reader) {
	m.Open, m.Shared, m.HostNetwork, m.Names = r.flag(), r.flag(), r.flag(), r.flag()
	m.UnixSockets, m.Private, m.Trace = r.flag(), r.flag(), r.flag()
	m.NoFile, m.FileSize, m.Processes, m.Memory, m.TmpfsBytes = r.u64(), r.u64(), r.u64(), r.u64(), r.u64()
	m.MaxLandlock = r.u32()
	m.Reach = make([]uint32, r.count(4))
	for i := range m.Reach {
		m.Reach[i] = r.u32()
	}
	n := r.count(9)
	m.Mounts = make([]Mount, 0, n)
	for range n {
		x := Mount{Op: Op(r.byte()), Path: r.text(), Source: r.text()}
		if x.Op == OpUnset || x.Op > OpList {
			r.bad = true
		}
		m.Mounts = append(m.Mounts, x)
	}
	for range r.count(6) {
		x := Socket{Datagrams: r.flag(), Anywhere: r.flag()}
		port := r.u32()
		if x.Port = uint16(port); port > 65535 {
			r.bad = true
		}
		m.Sockets = append(m.Sockets, x)
	}
}

func (m *Connect) put(w *writer) { w.u64(m.ID) }
func (m *Connect) get(r *reader) { m.ID = r.u64() }

func (m *Connected) put(w *writer) {
	w.u64(m.ID)
	w.u32(m.Errno)
}
func (m *Connected) get(r *reader) { m.ID, m.Errno = r.u64(), r.u32() }

func (m *Launched) put(w *writer) { w.u32(m.PID) }
func (m *Launched) get(r *reader) { m.PID = r.u32() }
func (m *Ready) put(w *writer)    { w.u32(m.LandlockABI) }
func (m *Ready) get(r *reader)    { m.LandlockABI = r.u32() }

func (m *Fail) put(w *writer) {
	w.text(m.Step)
	w.u32(m.Errno)
}
func (m *Fail) get(r *reader) { m.Step, m.Errno = r.text(), r.u32() }

func (m *Start) put(w *writer) {
	w.u64(m.ID)
	w.flag(m.Self)
	w.list(m.Argv)
	w.list(m.Env)
	w.text(m.Dir)
}

func (m *Start) get(r *reader) {
	m.ID, m.Self, m.Argv, m.Env, m.Dir = r.u64(), r.flag(), r.list(), r.list(), r.text()
}

func (m *Stop) put(w *writer) {
	w.u64(m.ID)
	w.u32(m.GraceMS)
}
func (m *Stop) get(r *reader) { m.ID, m.GraceMS = r.u64(), r.u32() }

func (m *Exit) put(w *writer) {
	w.u64(m.ID)
	w.u32(m.Status)
	w.u32(m.Killed)
	w.u32(m.Survivors)
	w.text(m.Step)
	w.u32(m.Errno)
	w.u32(uint32(len(m.Denied)))
	for _, d := range m.Denied {
		w.u32(d.Call)
		w.u32(d.Detail)
		w.u32(d.Count)
		w.u32(d.PID)
		w.text(d.Name)
	}
	w.b = append(w.b, m.Over)
}

func (m *Exit) get(r *reader) {
	m.ID, m.Status, m.Killed, m.Survivors = r.u64(), r.u32(), r.u32(), r.u32()
	m.Step, m.Errno = r.text(), r.u32()
	for range r.count(20) {
		m.Denied = append(m.Denied, Denial{Call: r.u32(), Detail: r.u32(), Count: r.u32(), PID: r.u32(), Name: r.text()})
	}
	m.Over = r.byte()
}

type writer struct{ b []byte }

func (w *writer) u32(v uint32) { w.b = append(w.b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24)) }

func (w *writer) u64(v uint64) {
	w.u32(uint32(v))
	w.u32(uint32(v >> 32))
}

func (w *writer) flag(v bool) {
	if v {
		w.b = append(w.b, 1)
		return
	}
	w.b = append(w.b, 0)
}

func (w *writer) text(s string) {
	w.u32(uint32(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) list(l []string) {
	w.u32(uint32(len(l)))
	for _, s := range l {
		w.text(s)
	}
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) flag() bool {
	v := r.byte()
	if v > 1 {
		r.bad = true
	}
	return v == 1
}

func (r *reader) u32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func (r *reader) u64() uint64 {
	low := r.u32()
	return uint64(low) | uint64(r.u32())<<32
}

// count reads the number of elements of at least size bytes each, and refuses
// more than can follow.
func (r *reader) count(size int) int {
	n := r.u32()
	if r.bad || uint64(n)*uint64(size) > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

// text reads a string. A NUL could end a path or an argument early, so it is
// refused.
func (r *reader) text() string {
	b := r.take(r.count(1))
	if slices.Contains(b, 0) {
		r.bad = true
		return ""
	}
	return string(b)
}

func (r *reader) list() []string {
	n := r.count(4)
	out := make([]string, 0, n)
	for range n {
		out = append(out, r.text())
	}
	return out
}
