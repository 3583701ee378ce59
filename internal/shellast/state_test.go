package shellast

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCopiesOfAState changes a state and its copies in every way and wants none
// of them to see what another did.
func TestCopiesOfAState(t *testing.T) {
	t.Parallel()
	known := func() map[string]value { return map[string]value{"a": literal("1"), "b": literal("2")} }
	for name, change := range map[string]func(*state){
		"set":       func(s *state) { s.set("a", literal("x")) },
		"set new":   func(s *state) { s.set("c", literal("x")) },
		"void":      func(s *state) { s.void("a") },
		"loosen":    func(s *state) { s.loosen("a") },
		"loosenAll": (*state).loosenAll,
		"element":   func(s *state) { s.setElement("c", nil, "x") },
		"join":      func(s *state) { s.join(newState("/")) },
		"delete":    func(s *state) { delete(s.change(), "a") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newState("/")
			st.set("a", literal("1"))
			st.set("b", literal("2"))
			first, second := st.clone(), st.clone()
			third := first.clone()
			change(first)
			change(st)
			for what, s := range map[string]*state{"a copy": second, "a copy of a copy": third} {
				if diff := cmp.Diff(known(), s.vars, cmp.AllowUnexported(value{})); diff != "" {
					t.Errorf("%s sees the change (-want +got):\n%s", what, diff)
				}
			}
			if cmp.Equal(known(), st.vars, cmp.AllowUnexported(value{})) {
				t.Error("nothing changed")
			}
			change(third)
			if diff := cmp.Diff(st.vars, third.vars, cmp.AllowUnexported(value{})); diff != "" {
				t.Errorf("the same change came to something else (-want +got):\n%s", diff)
			}
		})
	}
	empty := newState("/")
	dup := empty.clone()
	dup.set("a", literal("1"))
	if len(empty.vars) != 0 {
		t.Error("an empty state shares its variables")
	}
}

// TestArena wants slices that do not reach into each other.
func TestArena(t *testing.T) {
	t.Parallel()
	var a arena[int]
	var all [][]int
	for n := range 200 {
		s := a.take(n % 70)
		if len(s) != n%70 || cap(s) != len(s) {
			t.Fatalf("take(%d): %d of %d", n%70, len(s), cap(s))
		}
		for i := range s {
			if s[i] != 0 {
				t.Fatal("it was handed out before")
			}
			s[i] = n
		}
		all = append(all, s)
	}
	for n, s := range all {
		for _, v := range s {
			if v != n {
				t.Fatalf("slice %d holds %d", n, v)
			}
		}
	}
}
