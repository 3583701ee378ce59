// Package gatestest holds what the tests of every gate check: that it never
// changes a call, can be asked concurrently, and fits a chain.
package gatestest

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// Conform asks the gate about each call many times at once and through a
// chain, and wants the same answer every time and the call unchanged.
func Conform(t *testing.T, g gates.Gate, calls ...call.Call) {
	t.Helper()
	chain, err := gates.NewChain(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(calls, call.Call{}) {
		before := c
		before.Facts = c.Facts.Clone()
		want, wantErr := g.Check(t.Context(), c)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := g.Check(t.Context(), c); got != want || (err == nil) != (wantErr == nil) {
					t.Errorf("%s: two answers to one call: %+v, then %+v, %v", g.Name(), want, got, err)
				}
			})
		}
		wg.Wait()
		if !reflect.DeepEqual(before, c) {
			t.Errorf("%s changed the call", g.Name())
		}
		if want.Verdict != gates.Allow && (want.Code == "" || want.Reason == "") {
			t.Errorf("%s: %v without code or reason: %+v", g.Name(), want.Verdict, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if j := chain.Judge(ctx, c); j.Verdict != gates.Deny {
			t.Errorf("%s: a cancelled call is judged %v", g.Name(), j.Verdict)
		}
	}
}
