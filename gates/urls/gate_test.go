package urls

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

func newGate(t *testing.T) *Gate {
	t.Helper()
	cfg := Default()
	cfg.DeniedDomains = []string{"denied.example.net"}
	cfg.AllowedPorts = []int{443, 8443, 1}
	p, err := egress.NewPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCheck(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	data, err := os.ReadFile("testdata/verdicts.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		n++
		want, rest, _ := strings.Cut(line, " ")
		var c call.Call
		for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			text, _ := strconv.Unquote(quoted)
			c.Facts.URLs = append(c.Facts.URLs, egress.ParseURL(text))
			rest = rest[len(quoted):]
		}
		d, err := g.Check(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Code
		if d.Verdict == gates.Allow && got == "" {
			got = "allow"
		}
		if got != want {
			t.Errorf("%s: got %s (%s)", line, got, d.Reason)
		}
		if d.Verdict == gates.Deny && (d.Reason == "" || d.Suggestion == "") {
			t.Errorf("%s: refusal without reason or suggestion: %+v", line, d)
		}
	}
	if n < 20 {
		t.Fatalf("only %d cases were read", n)
	}
}

func TestSecretsStayOutOfReasons(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"https://bob:hunter2@example.com/", "http://example.com/?api_key=hunter2", "ftp://bob:hunter2@h/"} {
		d, _ := newGate(t).Check(t.Context(), call.Call{Facts: call.Facts{URLs: []call.URL{egress.ParseURL(text)}}})
		if d.Verdict != gates.Deny || strings.Contains(d.Reason+d.Suggestion, "hunter2") {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

func TestNothingToJudge(t *testing.T) {
	t.Parallel()
	d, err := newGate(t).Check(t.Context(), call.Call{})
	if err != nil || d.Verdict != gates.Allow || d.Code != "" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := New(nil); err == nil {
		t.Error("a gate without a policy")
	}
	inside := call.Facts{URLs: []call.URL{egress.ParseURL("http://127.0.0.1/")}}
	d, _ = newGate(t).Check(t.Context(), call.Call{Spec: call.Spec{Effect: call.RunsCommands}, Facts: inside})
	if d.Verdict != gates.Allow {
		t.Errorf("a URL in a command: %+v", d)
	}
	// A URL that was never parsed is not a good one.
	d, _ = newGate(t).Check(t.Context(), call.Call{Facts: call.Facts{URLs: []call.URL{{}}}})
	if d.Verdict != gates.Deny {
		t.Errorf("the zero URL: %+v", d)
	}
}
