package approval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func controlRequests() []struct{ name, raw, fault string } {
	return []struct{ name, raw, fault string }{
		{"list", `{"op":"list"}`, ""},
		{"approve", "{\"op\":\"approve\",\"id\":\"ABC-1_z\"}\n", ""},
		{"nothing", ``, "none of list"},
		{"no object", `["approve"]`, "no JSON object"},
		{"half", `{"op":"appr`, "no JSON object"},
		{"two", `{"op":"list"}{"op":"approve","id":"A"}`, "no JSON object"},
		{"doubled key", `{"op":"list","op":"approve"}`, "no JSON object"},
		{"other case", `{"OP":"list"}`, "a key other than"},
		{"more keys", `{"op":"list","force":"yes"}`, "a key other than"},
		{"no string", `{"op":"approve","id":7}`, "no string"},
		{"nested", `{"op":{"a":"b"}}`, "no string"},
		{"unknown operation", `{"op":"approve_all"}`, "none of list"},
		{"operation in other case", `{"op":"Approve","id":"A"}`, "none of list"},
		{"no id", `{"op":"approve"}`, "not the id"},
		{"id of list", `{"op":"list","id":"A"}`, "takes no id"},
		{"id with escapes", `{"op":"show","id":"\u001b[2J"}`, "not the id"},
		{"id with a path", `{"op":"show","id":"../A"}`, "not the id"},
		{"long id", `{"op":"show","id":"` + strings.Repeat("A", maxControlID+1) + `"}`, "not the id"},
		{"long", `{"op":"list"}` + strings.Repeat(" ", maxControlRequest), "longer than"},
	}
}

func TestControlRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range controlRequests() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseControl([]byte(tt.raw))
			switch {
			case tt.fault == "" && err != nil:
				t.Error(err)
			case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
				t.Errorf("got %v, want %q", err, tt.fault)
			}
		})
	}
}

// FuzzControl: whatever is accepted is one of the four operations, says the
// same when it is written again, and carries nothing that acts on a terminal.
func FuzzControl(f *testing.F) {
	for _, tt := range controlRequests() {
		f.Add([]byte(tt.raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseControl(raw)
		if err != nil {
			return
		}
		switch r.Op {
		case OpList, OpShow, OpApprove, OpDeny:
		default:
			t.Fatalf("operation %q accepted", r.Op)
		}
		if (r.ID == "") != (r.Op == OpList) || visible(r.ID) != r.ID {
			t.Fatalf("id %q accepted with %s", r.ID, r.Op)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseControl(again)
		if err != nil || got != r {
			t.Fatalf("%s reads back as %+v, %v", again, got, err)
		}
	})
}

func TestViewsCannotActOnATerminal(t *testing.T) {
	t.Parallel()
	evil := "a\x1b[2J\r\u202e"
	got := View{ID: evil, Tool: evil, Caller: evil, Session: evil, Summary: evil, Question: evil + "\nWhy: " + evil}.harmless()
	const safe = `a\x1b[2J\r\u202e`
	want := View{ID: safe, Tool: safe, Caller: safe, Session: safe, Summary: safe, Question: safe + "\nWhy: " + safe}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, got.harmless()); diff != "" {
		t.Errorf("escaping twice changes it: %s", diff)
	}
}
