package suggest_test

import (
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	keys := []string{"timeout", "mode", "sub", "deny_read", "max_output"}
	tests := []struct{ word, want string }{
		{"timout", "timeout"},
		{"TimeOut", "timeout"},
		{"mdoe", "mode"},
		{"subb", "sub"},
		{"dney_raed", "deny_read"},
		{"max_ouptut", "max_output"},
		{"max-output", "max_output"},
		{"zzz", ""},
		{"completely_different", ""},
		{"", ""},
		{"x", ""},
		{"dénY_read", "deny_read"},
	}
	for _, tt := range tests {
		got, ok := suggest.Nearest(tt.word, keys)
		if got != tt.want && ok || ok != (tt.want != "") {
			t.Errorf("Nearest(%q) = %q, %v, want %q", tt.word, got, ok, tt.want)
		}
	}
	if got, ok := suggest.Nearest("moda", []string{"mode", "moda1"}); got != "mode" || !ok {
		t.Errorf("tie = %q, %v, want the first", got, ok)
	}
	if _, ok := suggest.Nearest("x", nil); ok {
		t.Error("a guess without candidates")
	}
}
