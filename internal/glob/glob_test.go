package glob_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/internal/glob"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"*", "a/b\nc", true},
		{"a*c", "abc", true},
		{"a*c", "ac", true},
		{"a*c", "acd", false},
		{"/etc/*", "/etc/a/b", true},
		{"/etc/*", "/etc", false},
		{"**/x", "a/b/x", true},
		{"git log *", "git log -1", true},
		{"git log *", "git log", false},
		{"a?c", "aéc", true},
		{"a?c", "ac", false},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"[^a-c]x", "dx", true},
		{"[]]", "]", true},
		{"[a-]", "-", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"Git", "git", false},
		{"*ab*ab*", "xabxxab", true},
		{"*.go", "a.go.txt", false},
		{"a\xc3", "", false},
	}
	for _, tt := range tests {
		g, err := glob.Compile(tt.pattern)
		if err != nil {
			if utf8.ValidString(tt.pattern) {
				t.Errorf("Compile(%q): %v", tt.pattern, err)
			}
			continue
		}
		if got := g.Match(tt.text); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.text, got)
		}
	}
	g, err := glob.Compile("*sudo[A-C]*")
	if err != nil || !g.Fold().Match("x SUDOb y") || g.Match("x SUDOb y") || g.String() != "*sudo[A-C]*" {
		t.Error("Fold does not fold")
	}
	if g, err := glob.Compile(`/etc/\*x?y`); err != nil || g.Literal() != "/etc/*x" {
		t.Errorf("Literal = %q, %v", g.Literal(), err)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "[", "[a", "[]", "[!]", `a\`, "[z-a]", "\xff", strings.Repeat("a", glob.MaxPattern+1)} {
		if _, err := glob.Compile(p); err == nil {
			t.Errorf("took %q", p)
		}
	}
}

// TestMatchIsNotExponential would not end if it were.
func TestMatchIsNotExponential(t *testing.T) {
	t.Parallel()
	g, err := glob.Compile(strings.Repeat("*a", 100) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.Match(strings.Repeat("a", 64<<10)) {
		t.Error("it matches")
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a*[!b-c]?", "axxd-")
	f.Add("*ab*ab*", "xabxxab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		g, err := glob.Compile(pattern)
		if err != nil || !utf8.ValidString(text) || strings.ContainsAny(pattern, `[]\`) {
			return
		}
		re := regexp.MustCompile(`(?s)\A` + strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern)) + `\z`)
		if got := g.Match(text); got != re.MatchString(text) {
			t.Fatalf("%q on %q: %v", pattern, text, got)
		}
	})
}
