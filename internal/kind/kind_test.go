package kind_test

import (
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/kind"
)

func TestOf(t *testing.T) {
	t.Parallel()
	cmd := func(argv ...string) call.Command { return call.Command{Name: argv[0], Argv: argv} }
	tests := []struct {
		name  string
		facts call.Facts
		want  string
	}{
		{"nothing", call.Facts{}, "t: "},
		{"subcommand", call.Facts{Commands: []call.Command{cmd("git", "push", "origin"), cmd("ls", "-la"), cmd("git", "push")}}, "t: run git push, run ls"},
		{"hidden subcommand", call.Facts{Commands: []call.Command{cmd("git", "-C", "x", "push")}}, ""},
		{"program path", call.Facts{Commands: []call.Command{{Name: "x", Path: "/w/x", Argv: []string{"./x", "1"}}}}, "t: run /w/x"},
		{"folders", call.Facts{Reads: []call.Path{{Path: "/w/a"}, {Path: "/w/b"}}, Writes: []call.Path{{Path: "/w/d", Recursive: true}}}, "t: read /w/*, write /w/d/**"},
		{"host", call.Facts{URLs: []call.URL{{Host: "example.com", Path: "/x"}}}, "t: reach example.com"},
		{"unknown", call.Facts{Unknown: []call.Unknown{{Text: "$x"}}}, ""},
		{"unknown program", call.Facts{Commands: []call.Command{{Argv: []string{"$x"}}}}, ""},
		{"unreadable", call.Facts{Parse: &call.ParseError{}}, ""},
		{"loosened", call.Facts{Loosening: []call.Loosening{{Field: "network"}}}, ""},
		{"bad url", call.Facts{URLs: []call.URL{{Fault: "bad_url"}}}, ""},
		{"unknown path", call.Facts{Reads: []call.Path{{Text: "$x"}}}, ""},
	}
	for _, tt := range tests {
		if got := kind.Of(call.Call{Spec: call.Spec{Name: "t"}, Facts: tt.facts}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := kind.Of(call.Call{}); got != "" {
		t.Errorf("zero call: %q", got)
	}
}
