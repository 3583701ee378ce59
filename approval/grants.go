package approval

import (
	"container/list"
	"sync"
)

// How much leave is remembered. Beyond it the oldest session's leave is
// forgotten, which only means that its person is asked again.
const (
	maxGrantSessions = 1000
	maxGrantKinds    = 256
)

// grants remembers what a person allowed for a session. A grant holds only
// under the policy it was given under. The zero value is ready for use.
type grants struct {
	mu       sync.Mutex
	sessions map[string]*list.Element // of *granted
	order    list.List                // oldest first
}

type granted struct {
	session     string
	fingerprint string
	kinds       map[string]struct{}
}

// add grants every reason's kind.
func (g *grants) add(session, fingerprint string, reasons []Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions == nil {
		g.sessions = make(map[string]*list.Element)
	}
	e, ok := g.sessions[session]
	if !ok {
		for len(g.sessions) >= maxGrantSessions {
			g.remove(g.order.Front())
		}
		e = g.order.PushBack(&granted{session: session})
		g.sessions[session] = e
	}
	have := of(e)
	if have.fingerprint != fingerprint {
		have.fingerprint, have.kinds = fingerprint, make(map[string]struct{})
	}
	for _, r := range reasons {
		if r.Kind != "" && len(have.kinds) < maxGrantKinds {
			have.kinds[r.Gate+"\x00"+r.Kind] = struct{}{}
		}
	}
}

// covers reports whether every reason was granted under this fingerprint.
func (g *grants) covers(session, fingerprint string, reasons []Reason) bool {
	if !grantable(reasons) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := g.sessions[session]
	if !ok {
		return false
	}
	have := of(e)
	if have.fingerprint != fingerprint {
		g.remove(e)
		return false
	}
	for _, r := range reasons {
		if _, ok := have.kinds[r.Gate+"\x00"+r.Kind]; !ok {
			return false
		}
	}
	return true
}

// forget drops a session's grants.
func (g *grants) forget(session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, ok := g.sessions[session]; ok {
		g.remove(e)
	}
}

func (g *grants) remove(e *list.Element) {
	delete(g.sessions, of(e).session)
	g.order.Remove(e)
}

// of returns an element's value; the list holds nothing else.
func of(e *list.Element) *granted {
	v, _ := e.Value.(*granted)
	return v
}
