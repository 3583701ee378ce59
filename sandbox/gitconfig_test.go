package sandbox

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestHarmful(t *testing.T) {
	t.Parallel()
	const base = "[core]\n\tbare = false\n\tpager = old\n"
	for _, tt := range []struct {
		name, before, after string
		want                []string
	}{
		{"nothing changed", base, base, nil},
		{"something harmful went", base, "[core]\n", nil},
		{"a remote", base, base + "[remote \"origin\"]\n\turl = git@github.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", nil},
		{"a branch with a dot", base, base + "[branch \"v1.2\"]\n\tremote = origin\n\tmerge = refs/heads/x\n", nil},
		{"a flag without value", base, base + "[core]\n\tbare\n", nil},
		{"comments", base, base + "# [alias] x = y\n; more\n", nil},
		{"an alias", base, base + "[alias]\n\tst = !evil\n", []string{"alias.st"}},
		{"another case", base, base + "[CORE]\n\tFsMonitor = evil\n", []string{"core.fsmonitor"}},
		{"on one line", base, base + "[core] hooksPath = /x\n", []string{"core.hookspath"}},
		{"two on one line", base, base + "[user] [core] hooksPath = /x\n", []string{"what cannot be read"}},
		{"the old way", base, base + "[remote.origin]\n\tvcs = evil\n", []string{"remote.origin.vcs"}},
		{"a continued line", base, base + "[user]\n\tname = a\\\n\tb\n[core]\n\teditor = x\n", []string{"core.editor"}},
		{"hidden behind a continuation", base, base + "[user]\n\tname = a\\\\\n[core]\n\teditor = x\n", []string{"core.editor"}},
		{"a changed value", base, "[core]\n\tbare = false\n\tpager = new\n", []string{"core.pager"}},
		{"an include", base, base + "[include]\n\tpath = x\n", []string{"include.path"}},
		{"a conditional include", base, base + "[includeIf \"gitdir:/\"]\n\tpath = x\n", []string{"includeif.\"gitdir:/\".path"}},
		{"a filter", base, base + "[filter \"x]y\"]\n\tclean = evil\n", []string{"filter.\"x]y\".clean"}},
		{"a url that runs", base, base + "[remote \"o\"]\n\turl = ext::sh -c evil\n", []string{"remote.\"o\".url"}},
		{"a url in pieces", base, base + "[remote \"o\"]\n\turl = ext:\":\"sh\n", []string{"remote.\"o\".url"}},
		{"a url that is an option", base, base + "[remote \"o\"]\n\turl = \"--upload-pack=x\"\n", []string{"remote.\"o\".url"}},
		{"a mark at the start", "", "\ufeff[core]\n\tpager = x\n", []string{"core.pager"}},
		{"windows lines", "", "[core]\r\n\tpager = x\r\n", []string{"core.pager"}},
		{"no section", "", "a = b\n", []string{"what cannot be read"}},
		{"an open header", "", "[core\n", []string{"what cannot be read"}},
		{"binary", "", "\x00\x01", []string{"what cannot be read"}},
	} {
		if got := harmful([]byte(tt.before), []byte(tt.after)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What git itself finds in a configuration is found here too, by name.
func FuzzGitConfig(f *testing.F) {
	if _, err := exec.LookPath("git"); err != nil {
		f.Skip(err)
	}
	for _, s := range []string{
		"[core]\n\tbare = false\n", "[a \"b.c\"]\nd=e\\\nf\n", "[x]y\n[z] w = \"q\\\"#\" # c\n", "[a]\nb = c ; [d]\n", "\ufeff[a.b]\nc",
		"[a]\n#\\\nb=1\n", "[a]\nb=c#\\\nd=2\n", "[a]\nb=\"c;\\\nd=2\n", "[a] b [c] d\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mine, ok := parseGitConfig([]byte(text))
		if !ok {
			return // refused is safe
		}
		c := exec.CommandContext(t.Context(), "git", "config", "--no-includes", "--list", "--name-only", "-z", "-f", "-")
		c.Stdin = strings.NewReader(text)
		c.Dir = "/"
		out, err := c.Output()
		if err != nil {
			return // git does not take it
		}
		names := map[string]bool{}
		for s := range mine {
			names[strings.ToLower(strings.NewReplacer(`"`, "", `\`, "").Replace(s[0]))] = true
		}
		for n := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if n != "" && !names[strings.ToLower(strings.NewReplacer(`"`, "", `\`, "").Replace(n))] {
				t.Errorf("git reads %q in %q, here is %q", n, text, mine)
			}
		}
	})
}

func TestOfSubmodule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"gitdir: ../../.git/modules/a/sub\n": true, "gitdir: /r/.git/modules/a/sub": true,
		"gitdir: evil": false, "gitdir: evil/.git/modules/x\n": false, "gitdir: ../../.git/modules/../evil": false,
		"gitdir: /r/a/sub/.git/modules/x": false, "gitdir: /r2/.git/modules/x": false, "": false, "gitdir: ../../.git/modules/a\nx": true,
	} {
		if got := ofSubmodule("/r/a/sub/.git", text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
