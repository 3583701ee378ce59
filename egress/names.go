package egress

import (
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Programs that know nothing of proxies look a name up and connect. What they
// get is an address that exists only inside, from [Captured], and stands for
// the name: the connection says which one was meant.

// Captured is the range of addresses that stand for names. It is set aside for
// measuring networks, so that nothing outside has one.
func Captured() netip.Prefix { return netip.MustParsePrefix("198.18.0.0/15") }

const (
	maxNames   = 4096 // of one proxy
	maxMessage = 512  // bytes of a datagram with a question or an answer
	namesTTL   = 60
)

// names hands out addresses for names. The zero value is ready for use.
type names struct {
	mu   sync.Mutex
	next netip.Addr
	by   map[string]netip.Addr
	of   map[netip.Addr]string
}

// address returns the address that stands for a name, not ok when there are
// too many names.
func (n *names) address(name string) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.by[name]; ok {
		return a, true
	}
	if n.by == nil {
		n.by, n.of = map[string]netip.Addr{}, map[netip.Addr]string{}
		first := Captured().Addr().As4()
		first[2] = 1 // what is before belongs to the interface
		n.next = netip.AddrFrom4(first)
	}
	if len(n.by) >= maxNames {
		return netip.Addr{}, false
	}
	a := n.next
	n.by[name], n.of[a], n.next = a, name, a.Next()
	return a, true
}

// name returns what an address stands for; "" when it is none of ours.
func (n *names) name(a netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[a.Unmap()]
}

// answer makes the answer to one question. lookup says which address stands
// for a name. What is no question gets no answer.
func answer(query []byte, lookup func(name string) (netip.Addr, dnsmessage.RCode)) ([]byte, bool) {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response || len(query) > maxMessage {
		return nil, false
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	q, err := p.Question()
	if err != nil || h.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeFormatError
		return finish(reply, nil, netip.Addr{})
	}
	a, code := netip.Addr{}, dnsmessage.RCodeNameError
	if name, ok := asciiHost(q.Name.String()); ok && q.Class == dnsmessage.ClassINET && q.Type != dnsmessage.TypePTR {
		a, code = lookup(strings.ToLower(name))
	}
	if q.Type != dnsmessage.TypeA {
		a = netip.Addr{} // the name exists, and has nothing else
	}
	reply.RCode = code
	return finish(reply, &q, a)
}

func finish(h dnsmessage.Header, q *dnsmessage.Question, a netip.Addr) ([]byte, bool) {
	b := dnsmessage.NewBuilder(make([]byte, 0, maxMessage), h)
	err := b.StartQuestions()
	if q != nil && err == nil {
		err = b.Question(*q)
	}
	if a.Is4() && err == nil {
		if err = b.StartAnswers(); err == nil {
			err = b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: namesTTL}, dnsmessage.AResource{A: a.As4()})
		}
	}
	if err != nil {
		return nil, false
	}
	out, err := b.Finish()
	return out, err == nil
}
