package scope_test

import (
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/gatestest"
	"github.com/zeph-tools/zeph-mcp-tools/gates/scope"
)

func tools() []string { return []string{"bash", "read", "write", "fetch", "web_scrape", "grep"} }

func of(patterns ...string) scope.Scope { return scope.Scope{Patterns: patterns} }

func request(task, tool string) call.Call {
	return call.Call{Meta: call.Meta{Task: task}, Spec: call.Spec{Name: tool, Effect: call.ReadsFiles, Confirm: call.ConfirmNever}}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	research := map[string]scope.Scope{"general": of("*"), "research": of("builtin:fetch", "web_*", "builtin:read")}
	narrow := map[string]scope.Scope{"general": of("read", "grep"), "edit": of("read", "write")}
	tests := []struct {
		name       string
		cfg        scope.Config
		task, tool string
		want       bool
	}{
		{"off", scope.Default(), "anything", "bash", true},
		{"no task", scope.Config{DefaultScope: "general", Scopes: research}, "", "bash", true},
		{"in scope", scope.Config{DefaultScope: "general", Scopes: research}, "research", "fetch", true},
		{"by glob", scope.Config{DefaultScope: "general", Scopes: research}, "research", "web_scrape", true},
		{"out of scope", scope.Config{DefaultScope: "general", Scopes: research}, "research", "bash", false},
		{"unknown task", scope.Config{DefaultScope: "general", Scopes: research}, "nope", "bash", true},
		{"unknown task, strict", scope.Config{DefaultScope: "general", Strict: true, Scopes: research}, "nope", "read", false},
		{"default is narrow", scope.Config{DefaultScope: "general", Scopes: narrow}, "", "write", false},
		{"a task never widens", scope.Config{DefaultScope: "general", Scopes: narrow}, "edit", "write", false},
		{"a task narrows", scope.Config{DefaultScope: "general", Scopes: narrow}, "edit", "grep", false},
		{"no default scope", scope.Config{DefaultScope: "general", Scopes: map[string]scope.Scope{"edit": of("write")}}, "", "bash", true},
		{"no default scope, task", scope.Config{DefaultScope: "general", Scopes: map[string]scope.Scope{"edit": of("write")}}, "edit", "bash", false},
		{"a tool that came later", scope.Config{DefaultScope: "general", Scopes: research}, "research", "web_new", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, err := scope.New(tt.cfg, tools())
			if err != nil {
				t.Fatal(err)
			}
			d, err := g.Check(t.Context(), request(tt.task, tt.tool))
			if err != nil || (d.Verdict == gates.Allow) != tt.want {
				t.Fatalf("%+v, %v", d, err)
			}
			if !tt.want && (d.Code != scope.CodeOutOfScope || strings.Contains(d.Reason+d.Suggestion, tt.task) && tt.task != "") {
				t.Errorf("the refusal tells too much: %+v", d)
			}
			gatestest.Conform(t, g, request(tt.task, tt.tool))
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		scopes map[string]scope.Scope
		def    string
		want   string
	}{
		{"dead", map[string]scope.Scope{"general": of("builtin:nonexistent")}, "general", "general.patterns[0]: \"builtin:nonexistent\" matches no tool"},
		{"full", map[string]scope.Scope{"general": of("*"), "edit": of("read", "*")}, "general", "edit.patterns[1]: \"*\" matches every tool"},
		{"bad glob", map[string]scope.Scope{"edit": of("[")}, "general", "edit.patterns[0]: "},
		{"empty", map[string]scope.Scope{"edit": of()}, "general", "edit.patterns: "},
		{"empty pattern", map[string]scope.Scope{"edit": of("")}, "general", "edit.patterns[0]: the pattern is empty"},
		{"no such default", map[string]scope.Scope{"edit": of("read")}, "other", "default_scope: there is no scope \"other\""},
	}
	for _, tt := range tests {
		_, err := scope.New(scope.Config{DefaultScope: tt.def, Scopes: tt.scopes}, tools())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
