package egress

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// What one call was given, another of the same session does not get, though it
// knows where.
func TestGrantsDoNotLeak(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com"}, nil, nil)
	other, err := ParseRules([]string{"other.example"})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	cmd := in.command("curl -sS https://example.com/x && echo && sleep 60")
	cmd.Progress = func(_ string, n int64) {
		if n > 0 && ready != nil {
			close(ready)
			ready = nil
		}
	}
	wait := ready
	granted, err := in.box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-wait:
	case <-granted.Done():
		t.Fatal("it did not reach what it was granted")
	}
	in.proxy.mu.Lock()
	at := ""
	for a := range in.proxy.callers {
		at = net.JoinHostPort(a.String(), "3128")
	}
	in.proxy.mu.Unlock()
	try := "curl -sS -x http://" + at + " https://example.com/x"
	for name, n := range map[string]sandbox.Network{
		"nothing granted": {},
		"another host granted": {Mode: sandbox.NetworkProxy, Rules: "other", Ports: []int{80, 443}, Open: func() (sandbox.Gateway, error) {
			return NewProxy(in.proxy.policy, other, func(Connection) {})
		}},
	} {
		c := in.command(try)
		c.Network, c.CallID = n, "d"
		out, err := in.box.Run(t.Context(), c)
		if err != nil || out.ExitCode == 0 {
			t.Errorf("%s: %v %s", name, err, out.Combined.Text())
		}
	}
	granted.Stop()
	if out, err := granted.Wait(); err != nil || len(out.Violations) > 0 {
		t.Errorf("%+v %v", out.Violations, err)
	}
	for _, e := range in.settled(t) {
		if e.CallID != "c" {
			t.Errorf("%+v", e)
		}
	}
}

// Nothing that is said to the name server leaves, whatever it is.
func TestNothingLeavesByLookups(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com", "*.example.com"}, nil, nil)
	out := in.run(t, `python3 - <<'END'
import socket, struct, random
def ask(name, kind, raw=None):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5)
    q = raw if raw is not None else struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\0' + struct.pack('>HH', kind, 1)
    s.sendto(q, ('127.0.0.1', 53))
    try: r = s.recv(2000)
    except OSError: return 'silence'
    return '%d answers, code %d' % (struct.unpack('>H', r[6:8])[0], r[3] & 15)
print(ask('example.com', 1))
for kind in 28, 16, 15, 255, 65: print(ask('example.com', kind))
print(ask('secret.other.example', 16))
print(ask('x' * 60 + '.' + 'y' * 60 + '.example.com', 1))
print(ask('34.216.184.93.in-addr.arpa', 12))
print(ask('', 1, b''), ask('', 1, b'x' * 600), ask('', 1, bytes(12)))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(300): s.sendto(random.randbytes(i), ('127.0.0.1', 53))
for i in range(20): # one may be lost among so many
    a = ask('example.com', 1)
    if a != 'silence': break
print(a)
try:
    s = socket.create_connection(('127.0.0.1', 53), 1); print('stream')
except OSError as e: print(e.strerror)
END`)
	want := `1 answers, code 0
0 answers, code 0
0 answers, code 0
0 answers, code 0
0 answers, code 0
0 answers, code 0
0 answers, code 3
1 answers, code 0
0 answers, code 3
silence silence 0 answers, code 1
1 answers, code 0
Connection refused
`
	if got := out.Combined.Text(); got != want {
		t.Errorf("%s", got)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.asked) > 0 {
		t.Errorf("asked outside for %q", in.asked)
	}
}

// A command can take none of the places that its network is served from, and
// change nothing about them.
func TestNetworkIsNotTheCommands(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com"}, nil, nil)
	out := in.run(t, `python3 - <<'END'
import socket, fcntl, struct, os
for kind, port in (socket.SOCK_DGRAM, 53), (socket.SOCK_STREAM, 80), (socket.SOCK_STREAM, 443), (socket.SOCK_STREAM, 3128):
    for at in '127.0.0.1', '0.0.0.0', '198.18.1.0':
        for reuse in socket.SO_REUSEADDR, socket.SO_REUSEPORT:
            s = socket.socket(socket.AF_INET, kind); s.setsockopt(socket.SOL_SOCKET, reuse, 1)
            try: s.bind((at, port)); print('bound', at, port)
            except OSError as e: pass
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for op, what in (0x8914, 'flags'), (0x8916, 'address'), (0x890B, 'route'):
    try: fcntl.ioctl(s, op, struct.pack('16sH14s', b'lo', 0, b'')); print('changed', what)
    except OSError as e: pass
try: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('raw')
except OSError: pass
try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).send(struct.pack('IHHII', 44, 24, 0x605, 1, 0) + struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack('HHI', 8, 4, 1) + bytes(8)); 
except OSError: pass
try: open('/etc/resolv.conf', 'w'); print('wrote resolv.conf')
except OSError: pass
END
curl -sS --noproxy '*' -m 2 https://93.184.216.34/ 2>&1 | grep -c -e unreachable -e connect; curl -sS --noproxy '*' https://example.com/x`)
	if got := out.Combined.Text(); got != "1\nGET example.com/x" {
		t.Errorf("%s", got)
	}
}

// A command that is ended in the middle of a transfer leaves nothing open.
func TestEndOfCommandEndsItsConnections(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 8)
	in := newInside(t, []string{"example.com"}, endless(began), nil)
	cmd := in.command("curl -sS -o /dev/null https://example.com/x & curl -sS -o /dev/null http://example.com/x & wait")
	r, err := in.box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	<-began
	r.Stop()
	if _, err := r.Wait(); err != nil {
		t.Fatal(err)
	}
	// Close waits for every connection, and would wait for one that goes on.
	if err := in.box.Close(); err != nil {
		t.Error(err)
	}
	for _, e := range in.settled(t) {
		if e.Received == 0 || e.Host != "example.com" {
			t.Errorf("%+v", e)
		}
	}
}

func TestLineLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		l := newLine(a)
		go func() { _, _ = l.Write([]byte("x")) }()
		if _, err := io.ReadFull(b, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := b.Read(make([]byte, 1)); err == nil || time.Since(began) != maxIdle {
			t.Errorf("idle for %v: %v", time.Since(began), err)
		}
		a, b = net.Pipe()
		l = newLine(a)
		l.sent.Store(maxTransfer)
		if n, err := l.Write([]byte("x")); err == nil || n != 0 || !l.full.Load() {
			t.Errorf("%d bytes more than one may carry: %v", n, err)
		}
		_ = b.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Rubbish on every port harms nobody.
func TestRubbish(t *testing.T) {
	t.Parallel()
	in := newInside(t, []string{"example.com", "example.com:22"}, nil, nil)
	script := `python3 - <<'END'
import socket, random
for port in 22, 80, 443, 3128:
    for at in '127.0.0.1', '198.18.1.0':
        for start in b'', b'\x05', b'\x05\x01\x00\x05', b'\x16\x03\x01', b'CONNECT ', b'GET http://', b'POST / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n':
            s = socket.socket(); s.settimeout(2)
            try:
                s.connect((at, port)); s.sendall(start + random.randbytes(random.randrange(3000))); s.shutdown(1)
                while s.recv(4096): pass
            except OSError: pass
            s.close()
END
curl -sS https://example.com/x`
	out := in.run(t, script)
	if got := out.Combined.Text(); !strings.HasSuffix(got, "GET example.com/x") {
		t.Errorf("%s %s", strconv.Itoa(out.ExitCode), got)
	}
}

// endless answers with more and more, and tells when it began.
func endless(began chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 32<<10)
		for n := 0; r.Context().Err() == nil; n++ {
			if _, err := w.Write(b); err != nil {
				return
			}
			if n == 0 {
				began <- struct{}{}
			}
		}
	}
}
