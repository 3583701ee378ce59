package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

const print1 = "policy-1"

func service(t *testing.T) *Service {
	t.Helper()
	s, err := New(Default(), NewMemory(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func aCall() call.Call {
	return call.Call{
		ID: "c-1", Session: "s1", Caller: call.Caller{ID: "local"}, Spec: call.Spec{Name: "bash"},
		Args: json.RawMessage(`{"command":"rm a"}`),
		Facts: call.Facts{
			Summary: "rm a", Cwd: call.Path{Path: "/w"},
			Writes: []call.Path{{Text: "a", Path: "/w/a", Place: call.PlaceWorkspace, Inside: true}},
		},
	}
}

func aReason() []Reason {
	return []Reason{{Gate: "command", Code: "delete", Text: "rm deletes a", Kind: "rm"}}
}

func limits() call.Limits { return call.Limits{Timeout: time.Minute} }

func propose(t *testing.T, s *Service) Record {
	t.Helper()
	r, err := s.Propose(t.Context(), aCall(), aReason(), limits(), print1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func yes(r Record) Answer { return Answer{ID: r.ID, Digest: r.Digest, Decision: AllowOnce} }

func resolve(t *testing.T, s *Service, a Answer) error {
	t.Helper()
	return s.Resolve(t.Context(), aCall(), aReason(), limits(), print1, a)
}

func code(err error) string {
	var e *call.Error
	switch {
	case err == nil:
		return "approved"
	case errors.As(err, &e) && e.Category == call.CategoryConfirmationRequired:
		return e.Code
	}
	return "unclassified: " + err.Error()
}

func open(t *testing.T, s *Service) int {
	t.Helper()
	es, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(es)
}

func TestAnswersAndWhatStays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer func(Record) Answer
		want   string
		open   int
	}{
		{"allow once", yes, "approved", 0},
		{"deny", func(r Record) Answer { return Answer{ID: r.ID, Digest: r.Digest, Decision: DecisionDeny} }, "declined", 0},
		{"declined", func(r Record) Answer { return Answer{ID: r.ID, How: HowDeclined} }, "declined", 0},
		{"cancelled", func(r Record) Answer { return Answer{ID: r.ID, How: HowCancelled} }, "cancelled", 1},
		{"cancelled beats a yes", func(r Record) Answer { a := yes(r); a.How = HowCancelled; return a }, "cancelled", 1},
		{"timeout", func(r Record) Answer { return Answer{ID: r.ID, How: HowTimeout} }, "expired", 1},
		{"malformed", func(r Record) Answer { return Answer{ID: r.ID, How: HowMalformed} }, "malformed", 1},
		{"unknown how", func(r Record) Answer { a := yes(r); a.How = "sure"; return a }, "not_approved", 1},
		{"no decision", func(r Record) Answer { return Answer{ID: r.ID, Digest: r.Digest} }, "not_approved", 1},
		{"invented decision", func(r Record) Answer { a := yes(r); a.Decision = 77; return a }, "not_approved", 1},
		{"unknown id", func(r Record) Answer { a := yes(r); a.ID = "nope"; return a }, "expired", 1},
		{"digest of nothing", func(r Record) Answer { a := yes(r); a.Digest = ""; return a }, "changed", 0},
		{"digest off by one", func(r Record) Answer { a := yes(r); a.Digest = "0" + a.Digest[1:] + "0"; return a }, "changed", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := service(t)
			r := propose(t, s)
			if got := code(resolve(t, s, tt.answer(r))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if got := open(t, s); got != tt.open {
				t.Errorf("%d questions open, want %d", got, tt.open)
			}
		})
	}
}

// Whatever differs between the question and the call as it is when the answer
// comes, nothing runs and the question is used up.
func TestAnswerIsBoundToTheCall(t *testing.T) {
	t.Parallel()
	type subject struct {
		c      call.Call
		why    []Reason
		limits call.Limits
		print  string
	}
	tests := []struct {
		name  string
		alter func(*subject)
		want  string
		open  int
	}{
		{"nothing", func(*subject) {}, "approved", 0},
		{"call id and progress", func(s *subject) { s.c.ID = "c-2"; s.c.Progress = func(call.Progress) {} }, "approved", 0},
		{"session", func(s *subject) { s.c.Session = "s2" }, "expired", 1},
		{"caller", func(s *subject) { s.c.Caller.ID = "eve" }, "expired", 1},
		{"tool", func(s *subject) { s.c.Spec.Name = "write" }, "changed", 0},
		{"args", func(s *subject) { s.c.Args = json.RawMessage(`{"command":"rm b"}`) }, "changed", 0},
		{"facts", func(s *subject) { s.c.Facts.Writes[0].Path = "/etc/passwd" }, "changed", 0},
		{"place only", func(s *subject) { s.c.Facts.Writes[0].Place = call.PlaceOutside }, "changed", 0},
		{"cwd", func(s *subject) { s.c.Facts.Cwd.Path = "/x" }, "changed", 0},
		{"limits", func(s *subject) { s.limits.Timeout = time.Hour }, "changed", 0},
		{"output limit", func(s *subject) { s.limits.MaxOutput = 1 }, "changed", 0},
		{"reason text", func(s *subject) { s.why[0].Text = "harmless" }, "changed", 0},
		{"one reason more", func(s *subject) { s.why = append(s.why, Reason{Gate: "paths", Code: "x"}) }, "changed", 0},
		{"policy", func(s *subject) { s.print = "policy-2" }, "policy_changed", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := service(t)
			r := propose(t, s)
			now := subject{aCall(), aReason(), limits(), print1}
			tt.alter(&now)
			err := s.Resolve(t.Context(), now.c, now.why, now.limits, now.print, yes(r))
			if got := code(err); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if got := open(t, s); got != tt.open {
				t.Errorf("%d questions open, want %d", got, tt.open)
			}
		})
	}
}

func TestRecordKeepsItsOwnCopies(t *testing.T) {
	t.Parallel()
	s := service(t)
	c, why := aCall(), aReason()
	r, err := s.Propose(t.Context(), c, why, limits(), print1)
	if err != nil {
		t.Fatal(err)
	}
	copy(c.Args, `{"command":"rm z"}`)
	c.Facts.Writes[0].Path, why[0].Text = "/etc", "x"
	got, err := s.Pending(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Args) != string(aCall().Args) || got.Facts.Writes[0].Path != "/w/a" || got.Reasons[0].Text != "rm deletes a" {
		t.Errorf("the record changed with the caller's memory: %+v", got)
	}
}

func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	s := service(t)
	r := propose(t, s)
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if resolve(t, s, yes(r)) == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d answers won", won.Load())
	}
}

func TestRejectAndResolveCompete(t *testing.T) {
	t.Parallel()
	for range 100 {
		s := service(t)
		r := propose(t, s)
		var yesWon, noWon atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() { yesWon.Store(resolve(t, s, yes(r)) == nil) })
		wg.Go(func() { noWon.Store(s.Deny(t.Context(), r.ID) == nil) })
		wg.Wait()
		if yesWon.Load() == noWon.Load() {
			t.Fatalf("yes %v, no %v", yesWon.Load(), noWon.Load())
		}
	}
}

func TestExpiryIsExclusive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{maxTTL - time.Millisecond, "approved"},
		{maxTTL, "expired"},
		{maxTTL + time.Hour, "expired"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := service(t)
			r := propose(t, s)
			state, err := s.Sign(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(tt.after)
			_, err = s.Open(t.Context(), "s1", state)
			if got := code(err); got != tt.want {
				t.Errorf("state after %s: %s", tt.after, got)
			}
			if got := code(resolve(t, s, yes(r))); got != tt.want {
				t.Errorf("after %s: got %s, want %s", tt.after, got, tt.want)
			}
		})
	}
}

// staleStore hands out what it should have forgotten.
type staleStore struct {
	*Memory
	e Entry
}

func (s staleStore) Get(_ context.Context, _ string) (Entry, error)             { return s.e, nil }
func (s staleStore) Consume(_ context.Context, _ string) (Entry, error)         { return s.e, nil }
func (s staleStore) ConsumeApproved(_ context.Context, _ string) (Entry, error) { return s.e, nil }

func TestSloppyStoreCannotResurrect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := service(t)
		r := propose(t, s)
		time.Sleep(maxTTL)
		s.store = staleStore{NewMemory(), Entry{Record: r, Approved: true}}
		if got := code(resolve(t, s, yes(r))); got != "expired" {
			t.Errorf("resolve: %s", got)
		}
		if got := code(s.Approved(t.Context(), aCall(), aReason(), limits(), print1)); got != "expired" {
			t.Errorf("approved: %s", got)
		}
		r.Expires = r.Expires.Add(time.Hour) // the digest tells
		s.store = staleStore{NewMemory(), Entry{Record: r, Approved: true}}
		if got := code(resolve(t, s, yes(r))); got != "changed" {
			t.Errorf("raised expiry: %s", got)
		}
	})
}

func TestOutOfBand(t *testing.T) {
	t.Parallel()
	s := service(t)
	ctx := t.Context()
	r := propose(t, s)
	approved := func() string { return code(s.Approved(ctx, aCall(), aReason(), limits(), print1)) }
	if got := approved(); got != "expired" {
		t.Fatalf("a pending question approved: %s", got)
	}
	if err := s.Approve(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	other := aCall()
	other.Args = json.RawMessage(`{"command":"rm b"}`)
	if got := code(s.Approved(ctx, other, aReason(), limits(), print1)); got != "expired" {
		t.Errorf("another call: %s", got)
	}
	if got := code(s.Approved(ctx, aCall(), aReason(), limits(), "policy-2")); got != "expired" {
		t.Errorf("another policy: %s", got)
	}
	if got := approved(); got != "approved" {
		t.Errorf("the call: %s", got)
	}
	if got := approved(); got != "expired" {
		t.Errorf("twice: %s", got)
	}
	if err := s.Approve(ctx, r.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("approving a used one: %v", err)
	}
	if err := s.Deny(ctx, r.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("denying a used one: %v", err)
	}
}

func TestSessionGrants(t *testing.T) {
	t.Parallel()
	s := service(t)
	r := propose(t, s)
	if s.Granted("s1", print1, aReason()) {
		t.Fatal("granted before anybody said so")
	}
	a := yes(r)
	a.Decision = AllowSession
	if err := resolve(t, s, a); err != nil {
		t.Fatal(err)
	}
	otherKind := []Reason{{Gate: "command", Kind: "chmod"}}
	otherGate := []Reason{{Gate: "paths", Kind: "rm"}}
	noKind := append(aReason(), Reason{Gate: "command", Code: "x"})
	for name, got := range map[string]bool{
		"same": s.Granted("s1", print1, aReason()), "other session": !s.Granted("s2", print1, aReason()),
		"other kind": !s.Granted("s1", print1, otherKind), "other gate": !s.Granted("s1", print1, otherGate),
		"a reason without kind": !s.Granted("s1", print1, noKind), "no reason": !s.Granted("s1", print1, nil),
	} {
		if !got {
			t.Errorf("%s: wrong", name)
		}
	}
	if s.Granted("s1", "policy-2", aReason()) {
		t.Error("the grant outlived its policy")
	}
	if s.Granted("s1", print1, aReason()) {
		t.Error("the grant came back with the old policy")
	}
}

func TestSessionGrantNeedsKinds(t *testing.T) {
	t.Parallel()
	s := service(t)
	why := []Reason{{Gate: "g", Code: "c", Text: "t"}}
	r, err := s.Propose(t.Context(), aCall(), why, limits(), print1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Grantable() {
		t.Error("grantable without a kind")
	}
	a := Answer{ID: r.ID, Digest: r.Digest, Decision: AllowSession}
	if got := code(s.Resolve(t.Context(), aCall(), why, limits(), print1, a)); got != "malformed" {
		t.Errorf("got %s", got)
	}
}

func TestGrantsAreBounded(t *testing.T) {
	t.Parallel()
	var g grants
	for i := range maxGrantSessions + 10 {
		g.add(fmt.Sprint(i), "p", aReason())
	}
	if len(g.sessions) != maxGrantSessions || g.order.Len() != maxGrantSessions {
		t.Errorf("%d sessions", len(g.sessions))
	}
	if g.covers("0", "p", aReason()) || !g.covers(fmt.Sprint(maxGrantSessions+9), "p", aReason()) {
		t.Error("not the oldest was forgotten")
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	s := service(t)
	a := yes(propose(t, s))
	a.Decision = AllowSession
	if err := resolve(t, s, a); err != nil {
		t.Fatal(err)
	}
	propose(t, s)
	s.Forget(t.Context(), "s1")
	if s.Granted("s1", print1, aReason()) || open(t, s) != 0 {
		t.Error("something of the session is left")
	}
}

func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := service(t)
		c := aCall()
		put := func(session string) string {
			c.Session = session
			_, err := s.Propose(t.Context(), c, aReason(), limits(), print1)
			return code(err)
		}
		for i := range maxPendingSession {
			if got := put("one"); got != "approved" {
				t.Fatalf("%d: %s", i, got)
			}
		}
		if got := put("one"); got != "too_many_pending" {
			t.Errorf("session full: %s", got)
		}
		for i := maxPendingSession; i < maxPending; i++ {
			if got := put(fmt.Sprint("s", i/maxPendingSession)); got != "approved" {
				t.Fatalf("%d: %s", i, got)
			}
		}
		if got := put("late"); got != "too_many_pending" {
			t.Errorf("full: %s", got)
		}
		time.Sleep(maxTTL)
		if got := put("one"); got != "approved" {
			t.Errorf("after all expired: %s", got)
		}
		if got := open(t, s); got != 1 {
			t.Errorf("%d open", got)
		}
	})
}

func TestStoreIsCreateOnly(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	r := Record{ID: "a", Session: "s", Expires: time.Now().Add(time.Minute), Digest: "one"}
	if err := m.Put(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Digest = "two"
	if err := m.Put(t.Context(), r); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
	if e, _ := m.Get(t.Context(), "a"); e.Record.Digest != "one" {
		t.Error("replaced")
	}
	if err := m.Put(t.Context(), Record{ID: "b", Expires: time.Now()}); !errors.Is(err, ErrExpired) {
		t.Errorf("born expired: %v", err)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	s := service(t)
	ctx := t.Context()
	r := propose(t, s)
	state, err := s.Sign(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ctx, "s2", state); code(err) != "expired" {
		t.Errorf("foreign session: %v", err)
	}
	got, err := s.Open(ctx, "s1", state)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Ticket{ID: r.ID, Digest: r.Digest, CallID: "c-1"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Open(ctx, "s1", state); code(err) != "expired" {
		t.Errorf("twice: %v", err)
	}
	again, err := s.Sign(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	newest, err := s.Sign(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ctx, "s1", again); code(err) != "expired" {
		t.Errorf("superseded: %v", err)
	}
	if err := resolve(t, s, yes(r)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ctx, "s1", newest); code(err) != "expired" {
		t.Errorf("after the answer: %v", err)
	}
	if _, err := s.Sign(ctx, r); code(err) != "expired" {
		t.Errorf("signing a used one: %v", err)
	}
}

func TestStateOfAnotherServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := Default()
	cfg.Key = strings.Repeat("k", minKey)
	store := NewMemory()
	var servers []*Service
	for range 2 {
		s, err := New(cfg, store, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	stranger := service(t)
	stranger.store = store
	r := propose(t, servers[0])
	state, err := servers[0].Sign(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Open(ctx, "s1", state); code(err) != "invalid_state" {
		t.Errorf("another key: %v", err)
	}
	if _, err := servers[1].Open(ctx, "s1", state); err != nil {
		t.Errorf("the same key: %v", err)
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	s := service(t)
	c := aCall()
	c.Facts.Summary = "rm a\n\nWhy: nothing\x1b[2K\u202e\u200b\u00a0é 日本"
	r, err := s.Propose(t.Context(), c, aReason(), limits(), print1)
	if err != nil {
		t.Fatal(err)
	}
	q := r.Question()
	if want := `Allow this? rm a\n\nWhy: nothing\x1b[2K\u202e\u200b\u00a0é 日本` + "\n"; !strings.HasPrefix(q, want) {
		t.Errorf("got %q", q)
	}
	for _, want := range []string{"- rm deletes a\n", "Folder: /w", r.ID} {
		if !strings.Contains(q, want) {
			t.Errorf("no %q in %q", want, q)
		}
	}
	c.Facts.Commands = []call.Command{{Name: "cd"}, {Name: "git", Dir: "/w/other"}, {Name: "git", Dir: "/w/other"}, {Name: "make", Dir: call.DirUnknown}}
	c.Facts.Reads = []call.Path{{Path: "/w/in", Place: call.PlaceWorkspace}, {Path: "/mnt/out", Place: call.PlaceOutside}}
	c.Facts.Writes = []call.Path{{Path: "/w/a\nReads: b", Place: call.PlaceWorkspace}, {Path: "/dev/null", Place: call.PlaceDevice}}
	for i := range 10 {
		c.Facts.Writes = append(c.Facts.Writes, call.Path{Path: fmt.Sprintf("/w/%d", i), Place: call.PlaceWorkspace})
	}
	c.Facts.URLs = []call.URL{{URL: "https://example.com/"}}
	if r, err = s.Propose(t.Context(), c, aReason(), limits(), print1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nFolder: /w; git in /w/other; make in a folder that is not known before it runs\n",
		`Changes: /w/a\nReads: b, /w/0, /w/1, /w/2, /w/3, /w/4, /w/5, /w/6, and 3 more` + "\nReads: /mnt/out\nReaches: https://example.com/\n",
	} {
		if !strings.Contains(r.Question(), want) {
			t.Errorf("no %q in %q", want, r.Question())
		}
	}
	c.Facts.Summary = strings.Repeat("x", maxQuestion)
	if _, err := s.Propose(t.Context(), c, aReason(), limits(), print1); code(err) != "too_long_to_review" {
		t.Errorf("got %v", err)
	}
}

// TestQuestionShowsWhatRuns holds that a person sees all of a command that asks,
// what it touches, and nothing that could pass for something else.
func TestQuestionShowsWhatRuns(t *testing.T) {
	t.Parallel()
	ask := func(command string, f call.Facts) string {
		c := aCall()
		c.Args, _ = json.Marshal(map[string]string{"command": command})
		first, _, more := strings.Cut(command, "\n")
		f.Summary = "run: " + first
		if more {
			f.Summary += " …"
		}
		c.Facts = f
		r, err := service(t).Propose(t.Context(), c, aReason(), limits(), print1)
		if err != nil {
			t.Fatal(err)
		}
		return r.Question()
	}
	touched := call.Facts{
		Writes:  []call.Path{{Path: "/w/a", Place: call.PlaceWorkspace}, {Path: "/w/a", Place: call.PlaceWorkspace}, {Path: "/w/b\x1b[2K", Place: call.PlaceWorkspace}},
		Reads:   []call.Path{{Path: "/home/me/notes", Place: call.PlaceOutside}, {Path: "/w/c", Place: call.PlaceWorkspace}, {Path: "/x", Place: call.PlaceOutside, Test: true}},
		Unknown: []call.Unknown{{Text: `"$X"`, By: "rm", Op: "delete"}, {Text: "$c", Code: true}, {Text: "$y", By: "[", Op: "test"}},
	}
	for _, tt := range []struct {
		name, command string
		facts         call.Facts
		want, not     []string
	}{
		{"one line is in the summary", "rm a", call.Facts{}, []string{"Allow this? run: rm a\n"}, []string{"whole", "Changes", "Reads"}},
		{"what follows the first line", "ls\n\x1b[2Krm -r sub\r\u202e\nrm b", call.Facts{}, []string{"| ls\n", `| \x1b[2Krm -r sub\r\u202e` + "\n", "| rm b\n"}, []string{"\x1b", "\u202e"}},
		{"many lines", strings.Repeat("echo\n", 100) + "rm b", call.Facts{}, []string{"… (61 more lines)\n"}, []string{"rm b"}},
		{"a long line", "ls\nrm " + strings.Repeat("x", 1000), call.Facts{}, []string{"… (703 more characters)\n"}, nil},
		{"many long lines", strings.Repeat(strings.Repeat("\x01", 300)+"\n", 40), call.Facts{}, []string{"more lines)"}, nil},
		{"what it touches", "rm", touched, []string{
			`Changes: /w/a, /w/b\x1b[2K` + "\n", "Reads: /home/me/notes, /x\n",
			`Paths that are not known before it runs: "$X" of rm` + "\n",
		}, []string{"/w/c", "$c", "$y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := ask(tt.command, tt.facts)
			for _, s := range tt.want {
				if !strings.Contains(q, s) {
					t.Errorf("no %q in\n%s", s, q)
				}
			}
			for _, s := range tt.not {
				if strings.Contains(q, s) {
					t.Errorf("%q in\n%s", s, q)
				}
			}
		})
	}
}

func TestDigestFieldsCannotRunTogether(t *testing.T) {
	t.Parallel()
	sum := func(fields ...string) string {
		d := newDigest("t")
		for _, f := range fields {
			d.text(f)
		}
		return d.sum()
	}
	if sum("-la", "src") == sum("-l", "asrc") || sum("a", "") == sum("", "a") || sum("a") == sum("a", "") {
		t.Error("two lists of fields have one digest")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	key := strings.Repeat("k", minKey)
	good, loose, short := file("good", key+"\n", 0o600), file("loose", key, 0o644), file("short", "k", 0o600)
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"default", Default(), ""},
		{"zero", Config{}, "approval.ttl"},
		{"too long", Config{TTL: maxTTL + 1, Wait: time.Second}, "approval.ttl"},
		{"no wait", Config{TTL: time.Minute}, "approval.wait"},
		{"key", Config{TTL: time.Minute, Wait: time.Second, Key: key}, ""},
		{"short key", Config{TTL: time.Minute, Wait: time.Second, Key: "k"}, "approval.key"},
		{"both", Config{TTL: time.Minute, Wait: time.Second, Key: key, KeyFile: good}, "approval.key_file"},
		{"file", Config{TTL: time.Minute, Wait: time.Second, KeyFile: good}, ""},
		{"file others can read", Config{TTL: time.Minute, Wait: time.Second, KeyFile: loose}, "chmod 600"},
		{"short file", Config{TTL: time.Minute, Wait: time.Second, KeyFile: short}, "shorter than"},
		{"no file", Config{TTL: time.Minute, Wait: time.Second, KeyFile: dir + "/none"}, "approval.key_file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tt.cfg, NewMemory(), slog.New(slog.DiscardHandler))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), key):
				t.Error("the key is in the error")
			}
		})
	}
	if _, err := New(Default(), nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("nil store accepted")
	}
}

// FuzzState: no text but the one given out is accepted, and nothing panics.
func FuzzState(f *testing.F) {
	s, err := New(Config{TTL: maxTTL, Wait: time.Minute, Key: strings.Repeat("k", minKey)}, NewMemory(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	state := s.encode([5]string{"id", "digest", "c-1", "owner", "ticket"}, time.Unix(1, 0))
	f.Add(state)
	f.Add(state[:len(state)-1])
	f.Add("")
	f.Add(strings.Repeat("A", 80))
	f.Add(state + "A")
	f.Add(state + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _, err := s.parse(text)
		if (err == nil) != (text == state) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
