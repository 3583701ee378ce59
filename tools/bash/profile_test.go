package bash_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
)

// A call names a profile to have less, and gets an error that says what would
// be more.
func TestProfileArgument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.need(t)
	res := w.run(t, map[string]any{"command": "touch f; touch $TMPDIR/g && echo private", "profile": "read-only"})
	if _, err := os.Stat(w.root + "/f"); err == nil || !strings.Contains(res.Text, "touch: ") || !strings.Contains(res.Text, "private") {
		t.Errorf("it wrote: %v %s", err, res.Text)
	}
	if !strings.Contains(string(res.Structured), `"profile":"read-only"`) {
		t.Errorf("the result does not tell: %s", res.Structured)
	}
	w.run(t, map[string]any{"command": "touch f", "profile": "workspace"})
	if _, err := os.Stat(w.root + "/f"); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		args  map[string]any
		field string
		says  string
	}{
		"no profile at all":      {map[string]any{"profile": "unconfined"}, "profile", "--unconfined"},
		"an unknown one":         {map[string]any{"profile": "off"}, "profile", "not known"},
		"with a writable place":  {map[string]any{"profile": "read-only", "allow_write": []string{"/opt"}}, "allow_write", "contradict"},
		"with hosts":             {map[string]any{"profile": "workspace", "allow_domains": []string{"example.com"}}, "allow_domains", "contradict"},
		"with a network":         {map[string]any{"profile": "read-only", "network": "proxy"}, "network", "contradict"},
		"with the host's":        {map[string]any{"profile": "workspace", "network": "host"}, "network", "contradict"},
		"with a network it does": {map[string]any{"profile": "read-only", "network": "off"}, "", ""},
	} {
		tt.args["command"] = "true"
		_, err := w.accept(t, tt.args)
		e, _ := errors.AsType[*call.Error](err)
		if tt.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if e == nil || e.Category != call.CategoryInvalidParameters || e.Field != tt.field || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where the operator gives less, a call gets no more by naming a profile; what
// asks a person goes on asking.
func TestProfileOfTheOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(b *bash.Config, s *sandbox.Config) {
		s.Profile = sandbox.ReadOnly
		b.Execution.Environments = []bash.Environment{{Name: "edit", Cwd: "sub", Profile: sandbox.Workspace}}
	})
	w.need(t)
	if res := w.run(t, map[string]any{"command": "touch f || echo no"}); !strings.Contains(res.Text, "no\n") || !strings.Contains(res.Text, "this profile changes nothing") {
		t.Error(res.Text)
	}
	_, err := w.accept(t, map[string]any{"command": "touch f", "profile": "workspace"})
	if e, ok := errors.AsType[*call.Error](err); !ok || e.Field != "profile" || !strings.Contains(e.Message, "writes") {
		t.Errorf("a call loosened: %v", err)
	}
	res := w.run(t, map[string]any{"command": "touch f && echo yes", "environment": "edit"})
	if !strings.HasPrefix(res.Text, "yes") || !strings.Contains(string(res.Structured), `"profile":"workspace"`) {
		t.Errorf("the operator's environment: %s", res.Text)
	}
	res = w.run(t, map[string]any{"command": "touch f2 || echo no", "environment": "edit", "profile": "read-only"})
	if !strings.Contains(res.Text, "no\n") {
		t.Error(res.Text)
	}
	acc, err := w.accept(t, map[string]any{"command": "true", "allow_write": []string{"sub"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]call.Loosening{{Field: "allow_write", Value: w.root + "/sub"}}, acc.Facts.Loosening); diff != "" {
		t.Errorf("a place of the workspace is not asked for: %s", diff)
	}
	if d := w.tool.Spec().Description; !strings.Contains(d, "Here the profile is read-only: commands write /tmp.") {
		t.Error(d)
	}
}
