package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const pingLine = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`

func callLine(id, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool)
}

func cancelLine(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}

func TestEveryRevision(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s, _ := newTestServer(t)
			l := newLines(t, s)
			l.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			var got struct {
				ProtocolVersion string
				Instructions    string
				ServerInfo      mcp.Implementation
				Capabilities    map[string]any
			}
			if err := json.Unmarshal(l.recv().Result, &got); err != nil {
				t.Fatal(err)
			}
			i := got.ServerInfo
			if got.ProtocolVersion != version || got.Instructions != "be careful" || i.Name != "zeph-mcp-tools" || i.Version != "1.2.3" || i.Title == "" || len(i.Icons) != 1 {
				t.Errorf("got %+v", got)
			}
			// The schema wants a URI: no space, no quote.
			if src := i.Icons[0].Src; !strings.HasPrefix(src, "data:image/svg+xml;base64,") || strings.ContainsAny(src, " '\"<>") {
				t.Errorf("icon %s", src)
			}
			for _, c := range []string{"tools", "resources", "prompts", "logging"} {
				if got.Capabilities[c] == nil {
					t.Errorf("no capability %s", c)
				}
			}
			l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, pingLine)
			if m := l.recv(); string(m.Result) != "{}" {
				t.Errorf("ping: %+v", m)
			}
		})
	}
}

// A cancellation written right behind its call is never lost, and a cancelled
// call gets no answer.
func TestCancelRightBehindTheCall(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	l := newLines(t, s)
	l.initialize("{}")
	for i := range 100 {
		id := fmt.Sprint(i)
		l.send(callLine(id, "slow"), cancelLine(id), pingLine)
		if m := l.recv(); string(m.ID) != `"ping"` {
			t.Fatalf("%d: answered %s", i, m.ID)
		}
	}
	l.send(callLine("1000", "echo"))
	if m := l.recv(); string(m.ID) != "1000" {
		t.Errorf("answered %s", m.ID)
	}
	for range len(fake.started) {
		if cause := <-fake.cancelled; !errors.Is(cause, errClientCancelled) {
			t.Errorf("cause %v", cause)
		}
	}
}

func TestCancelMeansTheSameID(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	l := newLines(t, s)
	l.initialize("{}")
	l.send(callLine("7", "slow"))
	<-fake.started
	l.send(cancelLine(`"7"`), cancelLine("8"), cancelLine("null"), cancelLine("{}"), pingLine)
	l.recv()
	select {
	case cause := <-fake.cancelled:
		t.Fatalf("cancelled: %v", cause)
	default:
	}
	l.send(cancelLine("7"))
	<-fake.cancelled
}

func TestDoubleID(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	l := newLines(t, s)
	l.initialize("{}")
	l.send(callLine("7", "slow"))
	<-fake.started
	l.send(callLine("7", "echo"))
	if m := l.recv(); m.Error == nil || m.Error.Code != mcp.INVALID_REQUEST {
		t.Errorf("got %+v", m)
	}
	close(fake.release)
	if m := l.recv(); m.Error != nil {
		t.Errorf("the first call: %+v", m)
	}
}

func TestBadMessages(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	l := newLines(t, s)
	for text, want := range map[string]message{
		`{"jsonrpc":`:                            {ID: []byte("null"), Error: &rpcError{Code: mcp.PARSE_ERROR}},
		`[{"jsonrpc":"2.0"}]`:                    {ID: []byte("null"), Error: &rpcError{Code: mcp.INVALID_REQUEST}},
		`7`:                                      {ID: []byte("null"), Error: &rpcError{Code: mcp.INVALID_REQUEST}},
		`{"jsonrpc":"2.0","id":1}`:               {ID: []byte("1"), Error: &rpcError{Code: mcp.INVALID_REQUEST}},
		`{"jsonrpc":"2.0","id":{},"method":"x"}`: {ID: []byte("null"), Error: &rpcError{Code: mcp.INVALID_REQUEST}},
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:               {ID: []byte("null"), Error: &rpcError{Code: mcp.INVALID_REQUEST}},
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                  {ID: []byte("1"), Error: &rpcError{Code: mcp.INVALID_REQUEST}},
		`{"jsonrpc":"2.0","id":1,"method":"nope"}`:                  {ID: []byte("1"), Error: &rpcError{Code: mcp.METHOD_NOT_FOUND}},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}`: {ID: []byte("1"), Error: &rpcError{Code: mcp.INVALID_REQUEST}},
	} {
		l.send(text, "", " ")
		if m := l.recv(); string(m.ID) != string(want.ID) || m.Error == nil || m.Error.Code != want.Error.Code {
			t.Errorf("%s: %s %+v", text, m.ID, m.Error)
		}
	}
	for text, has := range map[string]string{
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:                                                                 "fits 53 bits",
		`{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}`:                                                                         "ID: names are case-sensitive: write id",
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}`:                                                                   "method is given twice",
		`{"jsonrpc":"2.0","id":1,"method":5}`:                                                                                     "method has the wrong type: it is a number",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:                                                                    "params must be an object, not a list",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`:                                                      "params.name must be a string, not a number",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":5}}`:                                       "params._meta must be an object, not a number",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","NAME":"slow"}}`:                                   "params.NAME: names are case-sensitive: write name",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":"}"} , "arguments" : {"b":[1]}}}`: "params.arguments is given twice",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","n\u0061me":"slow"}}`:                              "params.name is given twice",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","requestState":{}}}`:                               "params.requestState must be a string, not an object",
	} {
		l.send(text)
		if m := l.recv(); m.Error == nil || !strings.Contains(m.Error.Message, has) || string(m.ID) == "null" {
			t.Errorf("%s: %s %+v", text, m.ID, m.Error)
		}
	}
	l.send(`{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/whatever"}`, pingLine)
	if m := l.recv(); string(m.ID) != `"ping"` {
		t.Errorf("answered %s", m.ID)
	}
}

// A message that is too long gets an error that its sender can tell is its
// own, wherever the id stands, and the next message is served.
func TestTooLongMessage(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, func(o *Options) { o.Config.MaxMessage = 64 << 10 })
	l := newLines(t, s)
	long := strings.Repeat(`\"id\":1,{`, 10<<10)
	for text, id := range map[string]string{
		`{"jsonrpc":"2.0","id":5,"method":"x","params":{"id":6,"a":"` + long + `"}}`:      "5",
		`{"method":"x","params":{"id":6,"a":"` + long + `","b":["id",7]},"id":"a\"b,c" }`: `"a\"b,c"`,
		`{"method":"x","params":"` + long + `"}`:                                          "null",
		`{"method":"id","x":["id",{"id":1}],"params":"` + long + `"}`:                     "null",
		long: "null",
		`{"a":"` + long + `","id":"` + strings.Repeat("x", 4*maxID) + `"}`: "null",
	} {
		l.send(text)
		m := l.recv()
		if string(m.ID) != id || m.Error == nil || !strings.Contains(m.Error.Message, "longer than 65536 bytes") {
			t.Errorf("id %s, want %s, error %+v", m.ID, id, m.Error)
		}
	}
	l.send(pingLine)
	if m := l.recv(); m.Error != nil {
		t.Errorf("ping: %+v", m)
	}
}

func TestLastLineNeedsNoEnd(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	var out strings.Builder
	if err := s.ServeStdio(t.Context(), strings.NewReader(pingLine+"\n"+callLine("1", "echo")), &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"id":1`) {
		t.Errorf("got %q", got)
	}
}

// The wait for an answer has an end, other requests are served meanwhile, and
// the client is told that the question is off.
func TestAskWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fake := newTestServer(t)
		l := newLines(t, s)
		l.initialize(`{"elicitation":{}}`)
		began := time.Now()
		l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":{"progressToken":1}}}`)
		got := []string{l.recv().Method, l.recv().Method}
		slices.Sort(got)
		if want := []string{"elicitation/create", "notifications/progress"}; !slices.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
		l.send(pingLine)
		if m := l.recv(); string(m.ID) != `"ping"` {
			t.Errorf("got %+v", m)
		}
		if m := l.recv(); m.Method != "notifications/cancelled" {
			t.Errorf("got %+v", m)
		}
		m := l.recv()
		if string(m.ID) != "1" || !strings.Contains(string(m.Result), `"code":"expired"`) {
			t.Errorf("got %s", m.Result)
		}
		if took := time.Since(began); took != 2*time.Second || fake.ran.Load() != 0 {
			t.Errorf("after %s, ran %d", took, fake.ran.Load())
		}
		fake.onceEach(t)
	})
}

func TestAskIsCancelledWithItsCall(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	l := newLines(t, s)
	l.initialize(`{"elicitation":{}}`)
	l.send(callLine("1", "ask"))
	question := l.recv()
	l.send(cancelLine("1"))
	if m := l.recv(); m.Method != "notifications/cancelled" {
		t.Errorf("got %+v", m)
	}
	// A yes that comes too late does nothing.
	l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"allow_once"}}}`, question.ID), pingLine)
	if m := l.recv(); string(m.ID) != `"ping"` || fake.ran.Load() != 0 {
		t.Errorf("got %+v, ran %d", m, fake.ran.Load())
	}
}

// A person gets one question at a time, in one session.
func TestOneQuestionAtATime(t *testing.T) {
	t.Parallel()
	s, fake := newTestServer(t)
	l := newLines(t, s)
	l.initialize(`{"elicitation":{}}`)
	l.send(callLine("1", "ask"), callLine("2", "ask"), callLine("3", "ask"))
	results := 0
	next := func(want string) message { // results may come at any time
		for {
			m := l.recv()
			switch {
			case m.Method == want || string(m.ID) == want:
				return m
			case len(m.Result) == 0:
				t.Fatalf("got %+v, want %s", m, want)
			}
			results++
		}
	}
	for range 3 {
		q := next("elicitation/create")
		l.send(pingLine)
		next(`"ping"`) // and no second question
		l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"allow_once"}}}`, q.ID))
	}
	for ; results < 3; results++ {
		l.recv()
	}
	if fake.ran.Load() != 3 {
		t.Errorf("ran %d", fake.ran.Load())
	}
	fake.onceEach(t)
}

// A request of the new era on the same connection does not change what the
// client said in initialize.
func TestCapabilitiesAreNotMixedUp(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	l := newLines(t, s)
	l.initialize(`{"elicitation":{}}`)
	modern := func(id, caps string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"ask","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, id, caps)
	}
	l.send(modern("1", "{}"))
	if m := l.recv(); !strings.Contains(string(m.Result), "approval_required") {
		t.Errorf("asked who cannot be asked: %s", m.Result)
	}
	l.send(modern("2", `{"elicitation":{}}`))
	if m := l.recv(); !strings.Contains(string(m.Result), `"resultType":"input_required"`) {
		t.Errorf("got %s", m.Result)
	}
	l.send(callLine("3", "ask"))
	if m := l.recv(); m.Method != "elicitation/create" {
		t.Errorf("got %+v", m)
	}
}

// 64 calls run at a time; the next waits; everything else is served.
func TestPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fake := newTestServer(t)
		l := newLines(t, s)
		l.initialize("{}")
		for i := range 70 {
			l.send(callLine(fmt.Sprint(i), "slow"))
		}
		synctest.Wait()
		if n := len(fake.started); n != 64 {
			t.Errorf("%d run", n)
		}
		l.send(pingLine)
		l.recv()
		close(fake.release)
		for range 70 {
			if m := l.recv(); m.Error != nil {
				t.Errorf("got %+v", m)
			}
		}
	})
}

func TestTooManyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newTestServer(t)
		l := newLines(t, s)
		l.initialize("{}")
		for i := range maxFlights {
			l.send(callLine(fmt.Sprint(i), "slow"))
		}
		l.send(callLine("9999", "slow"))
		if m := l.recv(); string(m.ID) != "9999" || m.Error == nil || m.Error.Code != codeBusy {
			t.Errorf("got %+v", m)
		}
		go io.Copy(io.Discard, l.out)
	})
}

func TestStopWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"eof", "signal"} {
		for _, tool := range []string{"slow", "stubborn"} {
			synctest.Test(t, func(t *testing.T) {
				s, fake := newTestServer(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				inR, inW := io.Pipe()
				outR, outW := io.Pipe()
				go io.Copy(io.Discard, outR)
				done := make(chan error, 1)
				go func() { done <- s.ServeStdio(ctx, inR, outW) }()
				io.WriteString(inW, callLine("1", tool)+"\n")
				<-fake.started
				began := time.Now()
				if how == "eof" {
					inW.Close()
				} else {
					cancel()
				}
				if err := <-done; err != nil {
					t.Errorf("%s, %s: %v", how, tool, err)
				}
				took := time.Since(began)
				if took > 6*time.Second || tool == "slow" && took > eofGrace {
					t.Errorf("%s, %s: took %s", how, tool, took)
				}
				if tool == "slow" {
					if cause := <-fake.cancelled; !errors.Is(cause, errStopping) {
						t.Errorf("cause %v", cause)
					}
				}
				close(fake.release)
				inW.Close()
				outW.Close()
			})
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBrokenStdoutEnds(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	in, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, pingLine+"\n")
	if err := s.ServeStdio(t.Context(), in, brokenWriter{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestSessionEndIsTold(t *testing.T) {
	t.Parallel()
	var ended []string
	s, fake := newTestServer(t, func(o *Options) { o.SessionEnded = func(id string) { ended = append(ended, id) } })
	if err := s.ServeStdio(t.Context(), strings.NewReader(callLine("1", "echo")), io.Discard); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 1 || ended[0] != fake.last().Session || !strings.HasPrefix(ended[0], "stdio-") {
		t.Errorf("ended %v", ended)
	}
}

// A listener's acknowledgement comes before its end.
func TestListenOnStdio(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	l := newLines(t, s)
	l.send(`{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if m := l.recv(); m.Method != "notifications/subscriptions/acknowledged" {
		t.Errorf("first %+v", m)
	}
	if m := l.recv(); string(m.ID) != "4" {
		t.Errorf("then %+v", m)
	}
}

func TestRPCID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`7`: "n7", ` "7" `: "s7", `"\u0037"`: "s7", `null`: "", `{}`: "", `true`: "", ``: "", `-1.5`: "", `1.0`: "n1", `1e3`: "n1000",
		`9007199254740991`: "n9007199254740991", `9007199254740993`: "", `1e400`: "", `0x10`: "", `NaN`: "",
	} {
		if got := rpcID(json.RawMessage(in)); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

// FuzzMessage: no line makes the transport panic, and a line that is cut for
// its length yields the id that parsing it whole yields, or none.
func FuzzMessage(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":5,"method":"x","params":{"id":6}}`)
	f.Add(`{"a":"\"id\":3","id":"x\\"}`)
	f.Add(`[{"id":1}]`)
	f.Add(`{"id" : -1.5e3 }`)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"\\"}","name":[{},"]"],"a":tru}}`)
	f.Fuzz(func(t *testing.T, text string) {
		e, fault := parseEnvelope([]byte(text))
		found := &idFinder{}
		found.feed([]byte(text))
		_, _, _ = readLine(bufio.NewReader(strings.NewReader(text)), 8)
		if fault != nil || len(e.ID) > maxID || strings.Count(strings.ToLower(text), "id") > 1 || strings.Contains(text, `\`) {
			return
		}
		if got := found.found(); got != nil && rpcID(got) != rpcID(e.ID) && strings.Contains(text, `"id"`) {
			t.Errorf("%s: found %s, parsed %s", text, got, e.ID)
		}
	})
}
