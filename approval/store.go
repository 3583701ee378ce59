package approval

import (
	"context"
	"crypto/subtle"
	"errors"
	"sort"
	"sync"
	"time"
)

// What a [Store] answers when it cannot do as asked.
var (
	ErrNotFound    = errors.New("no such pending approval")
	ErrExists      = errors.New("an approval with this id exists")
	ErrExpired     = errors.New("the approval has expired")
	ErrApproved    = errors.New("it was approved before, and that yes is not used yet")
	ErrFull        = errors.New("too many pending approvals")
	ErrSessionFull = errors.New("too many pending approvals in this session")
)

// How many questions may be open.
const (
	maxPending        = 1000
	maxPendingSession = 32
)

// Entry is what a store keeps of one question.
type Entry struct {
	Record   Record
	Approved bool   // a person said yes out of band; the same call may run once
	Ticket   string // mark of the one signed state that is out; empty = none
}

// Store keeps open questions. Every method is atomic and safe for concurrent
// use; an expired entry is as good as absent. Only the server may reach it.
type Store interface {
	// Put adds a question and never replaces one.
	Put(ctx context.Context, r Record) error
	// Get looks at a question without changing it.
	Get(ctx context.Context, id string) (Entry, error)
	// Consume takes a question out. Of any number of callers one gets it.
	Consume(ctx context.Context, id string) (Entry, error)
	// ConsumeApproved takes out a question about the call with this binding
	// that a person approved out of band.
	ConsumeApproved(ctx context.Context, binding string) (Entry, error)
	// Approve marks a question as approved out of band. Of any number of
	// callers one succeeds; the others learn [ErrApproved].
	Approve(ctx context.Context, id string) error
	// Reject deletes a question.
	Reject(ctx context.Context, id string) error
	// SetTicket remembers the one signed state that may come back.
	SetTicket(ctx context.Context, id, ticket string) error
	// TakeTicket forgets it and returns the question, which stays. Of any
	// number of callers one succeeds.
	TakeTicket(ctx context.Context, id, ticket string) (Entry, error)
	// List returns the open questions, oldest first.
	List(ctx context.Context) ([]Entry, error)
	// Forget deletes every question of a session.
	Forget(ctx context.Context, session string) error
}

// Memory is a [Store] in this process. Its zero value is ready for use.
type Memory struct {
	mu      sync.Mutex
	entries map[string]*Entry
	session map[string]int // number of entries
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{} }

// Put implements [Store].
func (m *Memory) Put(_ context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if r.Expired(now) {
		return ErrExpired
	}
	if m.entries == nil {
		m.entries, m.session = make(map[string]*Entry), make(map[string]int)
	}
	if _, ok := m.entries[r.ID]; ok {
		return ErrExists
	}
	if len(m.entries) >= maxPending || m.session[r.Session] >= maxPendingSession {
		m.prune(now)
	}
	if m.session[r.Session] >= maxPendingSession {
		return ErrSessionFull
	}
	if len(m.entries) >= maxPending {
		return ErrFull
	}
	m.entries[r.ID] = &Entry{Record: r}
	m.session[r.Session]++
	return nil
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, id string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.live(id)
	if e == nil {
		return Entry{}, ErrNotFound
	}
	return *e, nil
}

// Consume implements [Store].
func (m *Memory) Consume(_ context.Context, id string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.live(id)
	if e == nil {
		return Entry{}, ErrNotFound
	}
	m.drop(id)
	return *e, nil
}

// ConsumeApproved implements [Store].
func (m *Memory) ConsumeApproved(_ context.Context, binding string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.entries {
		if e.Approved && e.Record.Binding == binding && m.live(id) != nil {
			m.drop(id)
			return *e, nil
		}
	}
	return Entry{}, ErrNotFound
}

// Approve implements [Store].
func (m *Memory) Approve(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.live(id)
	if e == nil {
		return ErrNotFound
	}
	if e.Approved {
		return ErrApproved
	}
	e.Approved = true
	return nil
}

// Reject implements [Store].
func (m *Memory) Reject(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live(id) == nil {
		return ErrNotFound
	}
	m.drop(id)
	return nil
}

// SetTicket implements [Store].
func (m *Memory) SetTicket(_ context.Context, id, ticket string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.live(id)
	if e == nil {
		return ErrNotFound
	}
	e.Ticket = ticket
	return nil
}

// TakeTicket implements [Store].
func (m *Memory) TakeTicket(_ context.Context, id, ticket string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.live(id)
	if e == nil || e.Ticket == "" || !same(e.Ticket, ticket) {
		return Entry{}, ErrNotFound
	}
	e.Ticket = ""
	return *e, nil
}

// List implements [Store].
func (m *Memory) List(context.Context) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune(time.Now())
	out := make([]Entry, 0, len(m.entries))
	for _, e := range m.entries {
		out = append(out, *e)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i].Record, out[j].Record
		if !a.Created.Equal(b.Created) {
			return a.Created.Before(b.Created)
		}
		return a.ID < b.ID
	})
	return out, nil
}

// Forget implements [Store].
func (m *Memory) Forget(_ context.Context, session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.entries {
		if e.Record.Session == session {
			m.drop(id)
		}
	}
	return nil
}

// live returns the entry, or nil when it is absent or dead. A dead entry is
// deleted.
func (m *Memory) live(id string) *Entry {
	e, ok := m.entries[id]
	if !ok {
		return nil
	}
	if e.Record.Expired(time.Now()) {
		m.drop(id)
		return nil
	}
	return e
}

func (m *Memory) drop(id string) {
	e, ok := m.entries[id]
	if !ok {
		return
	}
	delete(m.entries, id)
	if s := e.Record.Session; m.session[s] > 1 {
		m.session[s]--
	} else {
		delete(m.session, s)
	}
}

func (m *Memory) prune(now time.Time) {
	for id, e := range m.entries {
		if e.Record.Expired(now) {
			m.drop(id)
		}
	}
}

// same compares two secrets in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
