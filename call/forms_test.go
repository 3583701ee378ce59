package call_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func TestForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"git push":                {"git push"},
		"/usr/bin/git push":       {"git push"},
		"git -C x push y":         {"git -C x push y", "git x push y", "git push y"},
		"git --git-dir=x push":    {"git --git-dir=x push", "git push"},
		"git -p -C x push --all":  {"git -p -C x push --all", "git -C x push --all", "git x push --all", "git push --all"},
		"git log -1 push":         {"git log -1 push"},
		"ls -l":                   {"ls -l", "ls"},
		"git --no-pager status":   {"git --no-pager status", "git status"},
		"docker --context c rm x": {"docker --context c rm x", "docker c rm x", "docker rm x"},
	} {
		argv := strings.Fields(text)
		c := call.Command{Name: argv[0][strings.LastIndex(argv[0], "/")+1:], Argv: argv}
		var got []string
		for _, f := range c.Forms() {
			got = append(got, strings.Join(f, " "))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
	if f := (call.Command{Argv: []string{"$x", "push"}}).Forms(); f != nil {
		t.Errorf("of an unknown program: %q", f)
	}
}
