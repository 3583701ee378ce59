package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// controlled is a service whose person can answer out of band.
type controlled struct {
	*Service
	dir  string
	acts []Act // read only after stop
	stop func() error
}

// serveControl serves in dir until the test ends. The options change the
// server before it starts.
func serveControl(t *testing.T, dir string, options ...func(*control)) *controlled {
	t.Helper()
	s := &controlled{Service: service(t), dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	var mu sync.Mutex
	c := &control{s: s.Service, within: controlWithin, peerOf: peerOf, ready: func() { close(ready) }, record: func(a Act) error {
		mu.Lock()
		defer mu.Unlock()
		s.acts = append(s.acts, a)
		return nil
	}}
	for _, o := range options {
		o(c)
	}
	go func() { done <- c.serve(ctx, dir) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("the server did not start: %v", err)
	}
	s.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

func runDirName(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "run")
}

func (s *controlled) ask(t *testing.T, op Op, id string) ([]View, error) {
	t.Helper()
	return Ask(t.Context(), s.dir, op, id)
}

func (s *controlled) approved(ctx context.Context, command string) string {
	c := aCall()
	c.Args = json.RawMessage(fmt.Sprintf(`{"command":%q}`, command))
	return code(s.Approved(ctx, c, aReason(), limits(), print1))
}

func socketsIn(t *testing.T, dir string) []string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names
}

// raw says something to the one server in dir and returns what it answers.
func raw(t *testing.T, dir string, text []byte, closeWrite bool) controlReply {
	t.Helper()
	d, err := openRunDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	conn, err := d.dial(socketsIn(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write(text)
	if closeWrite {
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	var rep controlReply
	if err := json.NewDecoder(conn).Decode(&rep); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return rep
}

func TestOutOfBandThroughTheSocket(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t))
	ctx := t.Context()
	r := propose(t, s.Service)
	if got := s.approved(ctx, "rm a"); got != "expired" {
		t.Fatalf("ran before the person said anything: %s", got)
	}

	list, err := s.ask(t, OpList, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []View{{
		ID: r.ID, Tool: "bash", Caller: "local", Session: sessionHash("s1")[:12], Summary: "rm a",
		Question: r.Question(), Created: r.Created, Expires: r.Expires,
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	shown, err := s.ask(t, OpShow, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	if got := s.approved(ctx, "rm a"); got != "expired" {
		t.Fatalf("looking approved it: %s", got)
	}

	want[0].Approved = true
	given, err := s.ask(t, OpApprove, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, given); diff != "" {
		t.Error(diff)
	}
	if _, err := s.ask(t, OpApprove, r.ID); !errors.Is(err, ErrApproved) {
		t.Errorf("approved twice: %v", err)
	}
	for _, step := range []struct{ command, want string }{
		{"rm b", "expired"}, {"rm a", "approved"}, {"rm a", "expired"},
	} {
		if got := s.approved(ctx, step.command); got != step.want {
			t.Errorf("%s: %s, want %s", step.command, got, step.want)
		}
	}
	for _, op := range []Op{OpShow, OpApprove, OpDeny} {
		if _, err := s.ask(t, op, r.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of a used one: %v", op, err)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]Act{{ID: r.ID, Op: OpApprove, UID: os.Geteuid(), PID: os.Getpid()}}, s.acts); diff != "" {
		t.Errorf("written down: %s", diff)
	}
	if _, err := s.ask(t, OpList, ""); !errors.Is(err, ErrNoServer) {
		t.Errorf("after the end: %v", err)
	}
}

func TestDenyThroughTheSocket(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t))
	for _, first := range []Op{OpShow, OpApprove} { // a yes can be taken back while it is not used
		r := propose(t, s.Service)
		for _, op := range []Op{first, OpDeny} {
			if _, err := s.ask(t, op, r.ID); err != nil {
				t.Fatalf("%s: %v", op, err)
			}
		}
		if got := s.approved(t.Context(), "rm a"); got != "expired" {
			t.Errorf("denied after %s: %s", first, got)
		}
	}
}

func TestExpiredThroughTheSocket(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t))
	r := propose(t, s.Service)
	m, _ := s.store.(*Memory)
	m.mu.Lock()
	m.entries[r.ID].Record.Expires = time.Now()
	m.mu.Unlock()
	if _, err := s.ask(t, OpApprove, r.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("approved: %v", err)
	}
	if list, err := s.ask(t, OpList, ""); err != nil || len(list) != 0 {
		t.Errorf("listed: %v, %v", list, err)
	}
}

func TestOneOfManyPeopleApproves(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t))
	r := propose(t, s.Service)
	var won, late atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			switch _, err := Ask(t.Context(), s.dir, OpApprove, r.ID); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, ErrApproved):
				late.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || late.Load() != 99 {
		t.Errorf("%d won, %d came late", won.Load(), late.Load())
	}
	if got := s.approved(t.Context(), "rm a"); got != "approved" {
		t.Errorf("first: %s", got)
	}
	if got := s.approved(t.Context(), "rm a"); got != "expired" {
		t.Errorf("second: %s", got)
	}
}

func TestAnAnswerThatCannotBeRecordedDoesNotCount(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t), func(c *control) {
		c.record = func(Act) error { return errors.New("disk full") }
	})
	r := propose(t, s.Service)
	if _, err := s.ask(t, OpApprove, r.ID); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
	if got := s.approved(t.Context(), "rm a"); got != "expired" {
		t.Errorf("it counted: %s", got)
	}
	if err := s.ServeControl(t.Context(), s.dir, nil); err == nil {
		t.Error("nobody to record accepted")
	}
}

func TestWhoMayAnswer(t *testing.T) {
	t.Parallel()
	us, self := os.Geteuid(), os.Getpid()
	tests := []struct {
		name  string
		peer  peer
		fault error
		want  string
	}{
		{"we", peer{us, self}, nil, ""},
		{"root", peer{0, self}, nil, ""},
		{"somebody else", peer{us + 4321, self}, nil, "belongs to user"},
		{"nobody to be seen", peer{us, 0}, nil, "cannot be seen"},
		{"gone", peer{us, 1 << 30}, nil, "is gone"},
		{"the kernel does not say", peer{}, errors.New("no credentials"), "no credentials"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serveControl(t, runDirName(t), func(c *control) {
				c.peerOf = func(*net.UnixConn) (peer, error) { return tt.peer, tt.fault }
			})
			r := propose(t, s.Service)
			_, err := s.ask(t, OpApprove, r.ID)
			got := s.approved(t.Context(), "rm a")
			switch {
			case tt.want == "" && (err != nil || got != "approved"):
				t.Errorf("got %v, then %s", err, got)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || got != "expired"):
				t.Errorf("got %v, then %s; want %q", err, got, tt.want)
			}
		})
	}
}

// TestACommandCannotApproveItself asks from a process that the server's
// process started, as an agent's command would.
func TestACommandCannotApproveItself(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t))
	r := propose(t, s.Service)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsCommand$", "-test.v")
	cmd.Dir = filepath.Dir(s.dir)
	cmd.Env = append(os.Environ(), "ZEPH_TEST_APPROVE="+r.ID)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("started by this server")) {
		t.Errorf("%v: %s", err, out)
	}
	if got := s.approved(t.Context(), "rm a"); got != "expired" {
		t.Errorf("the command approved itself: %s", got)
	}
}

// TestAsCommand is the other process of the test above; alone it has nothing
// to do.
func TestAsCommand(t *testing.T) {
	t.Parallel()
	id := os.Getenv("ZEPH_TEST_APPROVE")
	if id == "" {
		return
	}
	if _, err := Ask(t.Context(), "run", OpApprove, id); err != nil {
		t.Log(err)
		return
	}
	t.Error("approved")
}

func TestStartedBy(t *testing.T) {
	t.Parallel()
	const server, client = 100, 500
	gone := errors.New("gone")
	tests := []struct {
		name    string
		parents map[int]int // a process that is not in it cannot be seen
		want    string
	}{
		{"child", map[int]int{client: server}, "true"},
		{"grandchild", map[int]int{client: 400, 400: 300, 300: server, server: 1}, "true"},
		{"sibling", map[int]int{client: 90, server: 90, 90: 1}, "false"},
		{"came from outside the namespace", map[int]int{client: 0}, "false"},
		{"behind a process of another user", map[int]int{client: 400}, "false"},
		{"gone", map[int]int{}, "error"},
		{"a circle", map[int]int{client: 400, 400: client}, "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := startedBy(client, server, func(pid int) (int, error) {
				if up, ok := tt.parents[pid]; ok {
					return up, nil
				}
				return 0, gone
			})
			text := fmt.Sprint(got)
			if err != nil {
				text = "error"
			}
			if text != tt.want {
				t.Errorf("got %s (%v), want %s", text, err, tt.want)
			}
		})
	}
	t.Run("a parent ends meanwhile", func(t *testing.T) {
		t.Parallel()
		parents := map[int]int{client: 400} // 400 has just ended …
		got, err := startedBy(client, server, func(pid int) (int, error) {
			up, ok := parents[pid]
			if !ok {
				parents[client] = server // … and the server adopts its child
				return 0, gone
			}
			return up, nil
		})
		if err != nil || !got {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("the server is the first process", func(t *testing.T) {
		t.Parallel()
		if got, err := startedBy(client, 1, func(int) (int, error) { return 1, nil }); err != nil || !got {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t))
	for _, tt := range []struct {
		name, text string
		closeWrite bool
		want       string
	}{
		{"nothing", "", true, ""},
		{"no JSON", "hello", true, "no JSON object"},
		{"unknown", `{"op":"stop"}`, true, "none of list"},
		{"long", strings.Repeat(" ", maxControlRequest+1), true, "longer than"},
		{"long without an end", strings.Repeat("x", maxControlRequest+1), false, "longer than"},
		{"far too long", strings.Repeat("x", 4*maxControlRequest), false, "longer than"},
	} {
		if rep := raw(t, s.dir, []byte(tt.text), tt.closeWrite); !strings.Contains(rep.Error, tt.want) || rep.Status == statusOK {
			t.Errorf("%s: %+v", tt.name, rep)
		}
	}
}

func TestSlowAndIdleConnections(t *testing.T) {
	t.Parallel()
	quick := serveControl(t, runDirName(t), func(c *control) { c.within = 200 * time.Millisecond })
	if rep := raw(t, quick.dir, []byte(`{"op":"li`), false); !strings.Contains(rep.Error, "in time") {
		t.Errorf("got %+v", rep)
	}

	// More than are served at once say nothing; the server still stops.
	s := serveControl(t, runDirName(t))
	d, err := openRunDir(s.dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for range maxControlConns + 4 {
		conn, err := d.dial(socketsIn(t, s.dir)[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	began := time.Now()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > controlWithin/2 {
		t.Errorf("stopping took %s", took)
	}
}

func TestTheSocketIsPrivateAndGoes(t *testing.T) {
	t.Parallel()
	s := serveControl(t, runDirName(t))
	info, err := os.Lstat(s.dir)
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	names := socketsIn(t, s.dir)
	if len(names) != 1 || !strings.HasPrefix(names[0], fmt.Sprint(os.Getpid(), "-")) {
		t.Fatalf("got %v", names)
	}
	path := filepath.Join(s.dir, names[0])
	if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
	// What took its place meanwhile is somebody else's.
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("mine"), 0o600), s.stop()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names, socketsIn(t, s.dir)); diff != "" {
		t.Error(diff)
	}

	s = serveControl(t, runDirName(t))
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if left := socketsIn(t, s.dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	s := serveControl(t, filepath.Join(t.TempDir(), strings.Repeat("d", 200), strings.Repeat("e", 200)))
	r := propose(t, s.Service)
	if _, err := s.ask(t, OpApprove, r.ID); err != nil {
		t.Error(err)
	}
}

func TestFolderThatIsNotOurs(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	mk := func(name string, mode os.FileMode) string {
		p := filepath.Join(base, name)
		if err := errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, mode)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	link, file := filepath.Join(base, "link"), filepath.Join(base, "file")
	if err := errors.Join(os.Symlink(mk("real", 0o700), link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, dir, want string }{
		{"others may write", mk("writable", 0o733), "chmod 700"},
		{"others may look", mk("readable", 0o750), "chmod 700"},
		{"link", link, "folder of sockets"},
		{"file", file, "folder of sockets"},
	}
	if os.Geteuid() == 0 {
		theirs := mk("theirs", 0o700)
		if err := os.Chown(theirs, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		if err := service(t).ServeControl(t.Context(), theirs, func(Act) error { return nil }); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("serving in somebody else's: %v", err)
		}
	} else {
		tests = append(tests, struct{ name, dir, want string }{"root's", "/proc/1", "user"})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := service(t).ServeControl(t.Context(), tt.dir, func(Act) error { return nil })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("serve: %v", err)
			}
			if _, err := Ask(t.Context(), tt.dir, OpList, ""); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ask: %v", err)
			}
		})
	}
}

// listenRaw makes a socket without the server's manners. It stays when the
// listener is closed, as that of a killed server does.
func listenRaw(t *testing.T, dir, name string) *net.UnixListener {
	t.Helper()
	d, err := openRunDir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	l, err := net.ListenUnix("unix", d.addr(name))
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	return l
}

func TestWhatKilledServersLeaveIsTakenAway(t *testing.T) {
	t.Parallel()
	fill := func() (dir string, keep []string) {
		dir = runDirName(t)
		for _, n := range []string{"11-dead.sock", "12-old.new", "13-young.new", "other.sock"} {
			if err := listenRaw(t, dir, n).Close(); err != nil {
				t.Fatal(err)
			}
		}
		old := time.Now().Add(-2 * abandoned)
		if err := errors.Join(
			os.Chtimes(filepath.Join(dir, "12-old.new"), old, old),
			os.WriteFile(filepath.Join(dir, "14-file.sock"), nil, 0o600),
			os.Symlink("11-dead.sock", filepath.Join(dir, "15-link.sock")),
			os.Mkdir(filepath.Join(dir, "16-dir.sock"), 0o700),
		); err != nil {
			t.Fatal(err)
		}
		return dir, []string{"13-young.new", "14-file.sock", "15-link.sock", "16-dir.sock", "other.sock"}
	}
	dir, keep := fill()
	if _, err := Ask(t.Context(), dir, OpList, ""); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(keep, socketsIn(t, dir)); diff != "" {
		t.Errorf("asking: %s", diff)
	}
	dir, keep = fill()
	s := serveControl(t, dir)
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(keep, socketsIn(t, dir)); diff != "" {
		t.Errorf("serving: %s", diff)
	}
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	dir := runDirName(t)
	if _, err := Ask(t.Context(), dir, OpList, ""); !errors.Is(err, ErrNoServer) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("asking made the folder: %v", err)
	}
	if _, err := Ask(t.Context(), dir, OpApprove, "../x"); err == nil || errors.Is(err, ErrNoServer) {
		t.Errorf("an id that is none: %v", err)
	}
}

func TestSeveralServers(t *testing.T) {
	t.Parallel()
	dir := runDirName(t)
	var servers []*controlled
	var records []Record
	for range 3 {
		s := serveControl(t, dir)
		servers, records = append(servers, s), append(records, propose(t, s.Service))
	}
	list, err := servers[0].ask(t, OpList, "")
	if err != nil || len(list) != 3 {
		t.Fatalf("got %v, %v", list, err)
	}
	for i, v := range list {
		if v.ID != records[i].ID {
			t.Errorf("place %d is not the %d. oldest", i, i)
		}
	}
	if _, err := Ask(t.Context(), dir, OpApprove, records[1].ID); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"expired", "approved", "expired"} {
		if got := servers[i].approved(t.Context(), "rm a"); got != want {
			t.Errorf("server %d: %s", i, got)
		}
	}
}

// TestServerThatMisbehaves asks a listener that is none of our servers.
func TestServerThatMisbehaves(t *testing.T) {
	t.Parallel()
	evil, err := json.Marshal(controlReply{Status: statusFailed, Error: "no\x1b[2J"})
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := json.Marshal(controlReply{Status: statusOK, Views: []View{{ID: "OTHER"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, reply, want string }{
		{"says nothing", "", "did not answer"},
		{"says nonsense", "HTTP/1.1 200 OK\r\n", "did not answer"},
		{"says no status", "{}", "does not know"},
		{"has escapes", string(evil), `no\x1b[2J`},
		{"answers about another one", string(wrong), "something else"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := runDirName(t)
			l := listenRaw(t, dir, "77-x.sock")
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, conn)
					_, _ = io.WriteString(conn, tt.reply)
					_ = conn.Close()
				}
			}()
			_, err := Ask(t.Context(), dir, OpApprove, "SOME")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("got %v", err)
			}
			// A good server beside it still answers, and the bad one is not hidden.
			s := serveControl(t, dir)
			r := propose(t, s.Service)
			list, err := s.ask(t, OpList, "")
			if good := tt.reply == string(wrong); (err == nil) != good || len(list) == 0 {
				t.Errorf("list: %v, %v", list, err)
			}
			if _, err := s.ask(t, OpApprove, r.ID); err != nil {
				t.Errorf("approve: %v", err)
			}
		})
	}
}
