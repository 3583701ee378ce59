package bash

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
)

func prepared() Config {
	c := Default()
	c.EnvBlocklist = []string{"SECRET_"}
	c.Execution = Execution{Environments: []Environment{
		{Name: "repo", Cwd: "/ws/repo", Env: map[string]secret.Secret{"A": "repo", "SECRET_ALLOWED": "repo"}},
		{Name: "base", Cwd: "/ws/base", Env: map[string]secret.Secret{"A": "base", "B": "base", "SECRET_ALLOWED": "base", "D": "base"}},
	}}
	return c
}

// TestSetting is the order of who decides, and who may set what is kept from
// commands.
func TestSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		defaultEnv string
		list       []string // blocklist, when it is not SECRET_
		args       args
		env        string // the environment in force
		cwd        string
		vars       map[string]string
		refused    []string
	}{
		{name: "nothing said", vars: map[string]string{}},
		{name: "a folder", args: args{Cwd: "sub"}, cwd: "sub", vars: map[string]string{}},
		{name: "a name", args: args{Environment: "repo"}, env: "repo", cwd: "/ws/repo", vars: map[string]string{"A": "repo"}, refused: []string{"SECRET_ALLOWED"}},
		{name: "a name and a folder: the folder wins", args: args{Environment: "repo", Cwd: "sub"}, env: "repo", cwd: "sub", vars: map[string]string{"A": "repo"}, refused: []string{"SECRET_ALLOWED"}},
		{
			name: "the default, nothing said: it may set what is blocked", defaultEnv: "base", env: "base", cwd: "/ws/base",
			vars: map[string]string{"A": "base", "B": "base", "D": "base", "SECRET_ALLOWED": "base"},
		},
		{
			name: "the default and a folder: what is blocked goes", defaultEnv: "base", args: args{Cwd: "sub"}, env: "base", cwd: "sub",
			vars: map[string]string{"A": "base", "B": "base", "D": "base"}, refused: []string{"SECRET_ALLOWED"},
		},
		{
			name: "the default and a variable: what is blocked goes", defaultEnv: "base", args: args{Env: map[string]string{"A": "call"}}, env: "base", cwd: "/ws/base",
			vars: map[string]string{"A": "call", "B": "base", "D": "base"}, refused: []string{"SECRET_ALLOWED"},
		},
		{
			name: "a name over the default", defaultEnv: "base", args: args{Environment: "repo"}, env: "repo", cwd: "/ws/repo",
			vars: map[string]string{"A": "repo", "B": "base", "D": "base"}, refused: []string{"SECRET_ALLOWED"},
		},
		{name: "a call's blocked variable", args: args{Env: map[string]string{"SECRET_INJECTED": "x", "A": "y"}}, vars: map[string]string{"A": "y"}, refused: []string{"SECRET_INJECTED"}},
		{name: "a skill", args: args{SkillEnv: map[string]string{"MY_VAR": "skill"}}, vars: map[string]string{"MY_VAR": "skill"}},
		{name: "a call over a skill", args: args{SkillEnv: map[string]string{"MY_VAR": "skill"}, Env: map[string]string{"MY_VAR": "call"}}, vars: map[string]string{"MY_VAR": "call"}},
		{name: "a skill's blocked variable", args: args{SkillEnv: map[string]string{"SECRET_X": "skill"}}, vars: map[string]string{}, refused: []string{"SECRET_X"}},
		{
			name: "a skill cannot change what only the operator may set", defaultEnv: "base", args: args{SkillEnv: map[string]string{"SECRET_ALLOWED": "skill"}},
			env: "base", cwd: "/ws/base", vars: map[string]string{"A": "base", "B": "base", "D": "base", "SECRET_ALLOWED": "base"}, refused: []string{"SECRET_ALLOWED"},
		},
		{
			name: "all four", defaultEnv: "base",
			args: args{Environment: "repo", SkillEnv: map[string]string{"A": "skill", "B": "skill", "C": "skill"}, Env: map[string]string{"C": "call"}},
			env:  "repo", cwd: "/ws/repo", vars: map[string]string{"A": "repo", "B": "skill", "C": "call", "D": "base"}, refused: []string{"SECRET_ALLOWED"},
		},
		{name: "no blocklist", list: []string{}, args: args{Env: map[string]string{"SECRET_X": "y"}}, vars: map[string]string{"SECRET_X": "y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := prepared()
			cfg.Execution.DefaultEnv = tt.defaultEnv
			if tt.list != nil {
				cfg.EnvBlocklist = tt.list
			}
			if err := cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			got, err := cfg.setting(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			vars := map[string]string{}
			for name, v := range got.vars {
				vars[name] = v.value
			}
			if d := cmp.Diff(tt.vars, vars); d != "" {
				t.Errorf("variables (-want +got):\n%s", d)
			}
			if got.name != tt.env || got.cwd != tt.cwd {
				t.Errorf("environment %q in %q, want %q in %q", got.name, got.cwd, tt.env, tt.cwd)
			}
			if d := cmp.Diff(tt.refused, got.refused); d != "" {
				t.Errorf("refused (-want +got):\n%s", d)
			}
		})
	}
}

// TestSecretsOfTheOperatorStayUnknown keeps the values an operator gives to
// commands out of everything a reading of the command produces.
func TestSecretsOfTheOperatorStayUnknown(t *testing.T) {
	t.Parallel()
	cfg := prepared()
	cfg.Execution.DefaultEnv = "base"
	cfg.Execution.Environments[1].Env["API_KEY"] = "canary"
	s, err := cfg.setting(args{SkillEnv: map[string]string{"SKILL_KEY": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"A": "base", "B": "base", "D": "base", "SKILL_KEY": "x"}, s.known(cfg)); d != "" {
		t.Errorf("known (-want +got):\n%s", d)
	}
}

// TestInheritedVariables are the rows about what the server itself was started
// with.
func TestInheritedVariables(t *testing.T) {
	t.Parallel()
	inherited := []string{"PATH=/bin", "SECRET_TEST_ID=1", "AWS_REGION=1", "OPENAI_ORG=1", "OTHER=1"}
	for name, tt := range map[string]struct {
		list []string
		want []string
	}{
		"SECRET_":          {[]string{"SECRET_"}, []string{"PATH", "AWS_REGION", "OPENAI_ORG", "OTHER"}},
		"AWS_ and OPENAI_": {[]string{"AWS_", "OPENAI_"}, []string{"PATH", "OTHER"}},
		"none":             {nil, []string{"PATH", "AWS_REGION", "OPENAI_ORG", "OTHER"}}, // SECRET_… still looks like one
	} {
		cfg := Default()
		cfg.EnvBlocklist = tt.list
		got := cfg.base(inherited, "")
		for name := range fixed() {
			delete(got, name)
		}
		want := map[string]bool{}
		for _, n := range tt.want {
			want[n] = true
		}
		have := map[string]bool{}
		for n := range maps.Keys(got) {
			have[n] = true
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestExecutionConfig(t *testing.T) {
	t.Parallel()
	if err := prepared().Execution.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Execution){
		`execution.default_env: there is no environment "rpeo"; did you mean repo? known here: repo, base`: func(e *Execution) { e.DefaultEnv = "rpeo" },
		`execution.default_env: there is no environment "Repo"`:                                            func(e *Execution) { e.DefaultEnv = "Repo" },
		`execution.environments[1].name: "repo" is there twice`:                                            func(e *Execution) { e.Environments[1].Name = "repo" },
		`execution.environments[0].name: "" must have`:                                                     func(e *Execution) { e.Environments[0].Name = "" },
		`execution.environments[0].name: "a b" must have`:                                                  func(e *Execution) { e.Environments[0].Name = "a b" },
		`execution.environments[1].cwd: the environment "base" needs a folder`:                             func(e *Execution) { e.Environments[1].Cwd = " " },
		`execution.environments[0].env: "A=B" is no variable's name`:                                       func(e *Execution) { e.Environments[0].Env["A=B"] = "" },
		`execution.environments[0].env: "N" is no variable's name, or its value holds a NUL character`:     func(e *Execution) { e.Environments[0].Env["N"] = "\x00" },
		`execution.environments: 65 are more than 64`: func(e *Execution) {
			e.Environments = append(e.Environments, make([]Environment, 63)...)
		},
	} {
		e := prepared().Execution
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
