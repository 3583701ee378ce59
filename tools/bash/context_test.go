package bash_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
)

func withEnvironments(defaultEnv string) func(*bash.Config, *sandbox.Config) {
	return func(c *bash.Config, _ *sandbox.Config) {
		c.EnvBlocklist = []string{"SECRET_"}
		c.Execution = bash.Execution{DefaultEnv: defaultEnv, Environments: []bash.Environment{
			{Name: "repo", Cwd: "sub", Env: map[string]secret.Secret{"WHO": "repo", "TOOL": "curl", "PYTHONPATH": "x"}},
			{Name: "base", Cwd: ".", Env: map[string]secret.Secret{"WHO": "base", "SECRET_ALLOWED": "canary", "GOFLAGS": "-v"}},
		}}
	}
}

// in runs a call of a caller with the variables of a skill.
func (w *world) in(t *testing.T, args map[string]any, skill map[string]string) (map[string]any, string) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	acc, err := w.reg.AcceptFor("bash", raw, skill)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := gates.NewChain(allow{})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := ch.Authorize(t.Context(), call.Call{ID: "c", Session: "s", Spec: acc.Spec, Args: acc.Args, Facts: acc.Facts}, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.reg.Run(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(res.Structured, &out); err != nil {
		t.Fatal(err)
	}
	return out, res.Text
}

// TestContext runs commands in prepared environments: what the command sees is
// what the result says.
func TestContext(t *testing.T) {
	t.Parallel()
	const show = `pwd; echo "$WHO|$SECRET_ALLOWED|$SECRET_X|$MY_VAR"`
	for _, tt := range []struct {
		name, defaultEnv string
		args             map[string]any
		skill            map[string]string
		cwd, env, out    string // cwd below the root
	}{
		{name: "nothing said: the first folder of the workspace", out: "|||"},
		{name: "a folder", args: map[string]any{"cwd": "sub"}, cwd: "/sub", out: "|||"},
		{name: "a name", args: map[string]any{"environment": "repo"}, cwd: "/sub", env: "repo", out: "repo|||"},
		{name: "a name and a folder", args: map[string]any{"environment": "repo", "cwd": "."}, env: "repo", out: "repo|||"},
		{name: "the default", defaultEnv: "base", env: "base", out: "base|canary||"},
		{name: "the default and a folder", defaultEnv: "base", args: map[string]any{"cwd": "sub"}, cwd: "/sub", env: "base", out: "base|||"},
		{name: "another than the default", defaultEnv: "base", args: map[string]any{"environment": "repo"}, cwd: "/sub", env: "repo", out: "repo|||"},
		{name: "a call's variables", defaultEnv: "base", args: map[string]any{"env": map[string]string{"WHO": "call", "SECRET_X": "y"}}, env: "base", out: "call|||"},
		{name: "a skill", skill: map[string]string{"MY_VAR": "skill", "WHO": "skill"}, out: "skill|||skill"},
		{name: "a skill over the default", defaultEnv: "base", skill: map[string]string{"WHO": "skill"}, env: "base", out: "skill|canary||"},
		{name: "a call over a skill", skill: map[string]string{"MY_VAR": "skill"}, args: map[string]any{"env": map[string]string{"MY_VAR": "call"}}, out: "|||call"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withEnvironments(tt.defaultEnv))
			w.need(t)
			args := map[string]any{"command": show}
			maps.Copy(args, tt.args)
			got, text := w.in(t, args, tt.skill)
			if want := w.root + tt.cwd + "\n" + tt.out + "\n"; got["stdout"] != want {
				t.Errorf("stdout %q, want %q", got["stdout"], want)
			}
			name, _ := got["environment"].(string)
			if got["cwd"] != w.root+tt.cwd || name != tt.env {
				t.Errorf("cwd %v, environment %q, want %q, %q", got["cwd"], name, w.root+tt.cwd, tt.env)
			}
			if strings.Contains(text, "canary") != strings.Contains(tt.out, "canary") {
				t.Errorf("text %q", text)
			}
		})
	}
}

// TestContextErrors: a name or folder that is not there is told before the
// command is looked at, even when the command itself is refused.
func TestContextErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withEnvironments(""))
	if err := os.WriteFile(w.root+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", w.root+"/loop"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		args  map[string]any
		field string
		holds []string // of message and suggestion
	}{
		{"an unknown name", map[string]any{"environment": "nonexistent-env"}, "environment", []string{`"nonexistent-env"`, "known here: repo, base"}},
		{"a name nearly right", map[string]any{"environment": "rpeo"}, "environment", []string{"did you mean repo?"}},
		{"names are case-sensitive", map[string]any{"environment": "REPO"}, "environment", []string{"did you mean repo?"}},
		{"a long name", map[string]any{"environment": strings.Repeat("x", 500)}, "environment", []string{"…"}},
		{"a missing folder", map[string]any{"cwd": "none"}, "cwd", []string{"does not exist", "relative to " + w.root}},
		{"a folder nearly right", map[string]any{"cwd": "sbu"}, "cwd", []string{"did you mean " + w.root + "/sub?"}},
		{"a missing folder in a missing one", map[string]any{"cwd": "none/none"}, "cwd", []string{"does not exist"}},
		{"a file", map[string]any{"cwd": "file"}, "cwd", []string{"is no folder"}},
		{"a link to itself", map[string]any{"cwd": "loop"}, "cwd", []string{"cannot be resolved"}},
		{"a NUL", map[string]any{"cwd": "a\x00b"}, "cwd", []string{"cannot be resolved"}},
	} {
		for _, command := range []string{"true", "sudo id", "echo $("} {
			tt.args["command"] = command
			_, err := w.accept(t, tt.args)
			e, ok := errors.AsType[*call.Error](err)
			if !ok || e.Code != "invalid_parameters" || e.Field != tt.field {
				t.Errorf("%s, %s: %v", tt.name, command, err)
				continue
			}
			for _, h := range tt.holds {
				if !strings.Contains(e.Message+" "+e.Suggestion, h) {
					t.Errorf("%s: %q, %q do not say %q", tt.name, e.Message, e.Suggestion, h)
				}
			}
		}
	}
	none := newWorld(t, nil)
	_, err := none.accept(t, map[string]any{"command": "true", "environment": "repo"})
	if e, ok := errors.AsType[*call.Error](err); !ok || !strings.Contains(e.Suggestion, "none is configured") {
		t.Errorf("no environments: %v", err)
	}
	// The key of the registry's own cannot be sent by a client.
	_, err = none.accept(t, map[string]any{"command": "true", call.SkillEnvKey: map[string]string{"A": "b"}})
	if e, ok := errors.AsType[*call.Error](err); !ok || e.Field != call.SkillEnvKey {
		t.Errorf("%v", err)
	}
}

// TestFactsOfAContext: gates see the resolved folder and the variables that
// somebody chose.
func TestFactsOfAContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withEnvironments("base"))
	raw := json.RawMessage(`{"command":"$TOOL x; cat a.txt","environment":"repo","env":{"LD_PRELOAD":"y"}}`)
	acc, err := w.reg.AcceptFor("bash", raw, map[string]string{"NODE_OPTIONS": "z"})
	if err != nil {
		t.Fatal(err)
	}
	f := acc.Facts
	if f.Cwd.Path != w.root+"/sub" || len(f.Commands) != 2 || f.Commands[0].Name != "curl" || f.Reads[0].Path != w.root+"/sub/a.txt" {
		t.Errorf("%+v", f)
	}
	want := []call.EnvVar{
		{Name: "LD_PRELOAD", How: "call"},
		{Name: "NODE_OPTIONS", How: "skill"},
		{Name: "PYTHONPATH", How: "environment"},
		{Name: "TOOL", How: "environment"},
		{Name: "WHO", How: "environment"},
	}
	if d := cmp.Diff(want, f.Env); d != "" {
		t.Errorf("variables (-want +got):\n%s", d)
	}
	if !strings.Contains(string(acc.Args), `"zeph/skill_env":{"NODE_OPTIONS":"z"}`) {
		t.Errorf("an approval would not be about the skill's variables: %s", acc.Args)
	}
	acc, err = w.accept(t, map[string]any{"command": "echo $SECRET_ALLOWED"})
	if err != nil {
		t.Fatal(err)
	}
	if shown, _ := json.Marshal(acc.Facts); strings.Contains(string(shown), "canary") {
		t.Errorf("the operator's secret comes out: %s", shown)
	}
	if len(acc.Facts.Env) != 0 {
		t.Errorf("what every command gets is no choice of the call: %+v", acc.Facts.Env)
	}
	if acc, err = w.accept(t, map[string]any{"command": "true", "cwd": w.outside}); err != nil || acc.Facts.Cwd.Place.Writable() {
		t.Errorf("a folder outside is left to the gates: %v, %+v", err, acc.Facts.Cwd)
	}
}

// TestEnvironmentsAreCheckedAtStart: an environment nobody could use stops the
// start and is named.
func TestEnvironmentsAreCheckedAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := os.Symlink(w.outside, filepath.Join(w.root, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.root+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(workspace.Config{Roots: []string{w.root}}, workspace.Env{UID: os.Getuid()})
	if err != nil {
		t.Fatal(err)
	}
	for cwd, want := range map[string]string{
		"sub": "", w.root + "/sub/..": "",
		"none": "does not exist", w.outside: "lies outside the workspace", "out": "lies outside the workspace", "..": "lies outside the workspace",
		"file": "is no folder", "/tmp": "lies outside the workspace",
	} {
		cfg := bash.Default()
		cfg.Execution.Environments = []bash.Environment{{Name: "first", Cwd: "."}, {Name: "second", Cwd: cwd}}
		_, err := bash.New(cfg, shellast.New(ws, shellast.Options{}), w.box, ws, bash.Outside{}, w.ended)
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%s: %v", cwd, err)
			}
		case err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"second"`):
			t.Errorf("%s: %v", cwd, err)
		}
	}
	cfg := bash.Default()
	cfg.Execution.DefaultEnv = "none"
	if _, err := bash.New(cfg, shellast.New(ws, shellast.Options{}), w.box, ws, bash.Outside{}, w.ended); err == nil || !strings.Contains(err.Error(), `execution.default_env: there is no environment "none"`) {
		t.Errorf("an unknown default: %v", err)
	}
}
