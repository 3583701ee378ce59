package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/zeph-tools/zeph-mcp-tools/gates/permission"
	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
)

var update = flag.Bool("update", false, "rewrite the expected texts")

// TestEveryMistakeIsTold runs testdata/bad: each file holds one kind of mistake
// and exactly what is said about it.
func TestEveryMistakeIsTold(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil || len(a.Files) != 2 || len(a.Comment) == 0 {
				t.Fatalf("want a sentence, config.toml and want: %v", err)
			}
			_, _, err = Parse(string(a.Files[0].Data), "config.toml")
			if err == nil {
				t.Fatal("no error")
			}
			if *update {
				a.Files[1].Data = []byte(err.Error() + "\n")
				if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(a.Files[1].Data), err.Error()+"\n"); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	cfg, origins, err := Load("")
	if err != nil || len(origins) != 0 || !reflect.DeepEqual(cfg, Default()) {
		t.Errorf("without a file: %v, %v", origins, err)
	}
	if w := Warnings(cfg); len(w) != 0 {
		t.Errorf("the defaults warn: %v", w)
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("[security]\nautonomy_level = \"full\"\n[tools.sandbox]\nmode = \"off\"\n[[tools.permissions.bash]]\npattern = \"*\"\naction = \"ask\"\n", 0o600)
	cfg, origins, err = Load(path)
	if err != nil || cfg.Tools.Permissions.Autonomy != permission.Full || len(cfg.Tools.Permissions.Tools["bash"]) != 1 {
		t.Fatalf("%+v, %v", cfg.Tools.Permissions, err)
	}
	if o := origins["tools.sandbox.mode"]; o.Source != path || o.Line != 4 {
		t.Errorf("origin %+v", o)
	}
	if w := Warnings(cfg); len(w) != 2 {
		t.Errorf("warnings %q", w)
	}
	write("", 0o602)
	if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a file everybody can change: %v", err)
	}
	write("", 0o600)
	if _, _, err := Load(path); err != nil {
		t.Errorf("an empty file: %v", err)
	}
	for _, p := range []string{filepath.Dir(path), path + "x"} {
		if _, _, err := Load(p); err == nil {
			t.Errorf("loaded %s", p)
		}
	}
	write("# "+strings.Repeat("x", maxFile), 0o600)
	if _, _, err := Load(path); err == nil {
		t.Error("loaded a huge file")
	}
}

// TestEveryLooseningWarns: what gives more than the default is listed at start.
func TestEveryLooseningWarns(t *testing.T) {
	t.Parallel()
	for src, has := range map[string]string{
		"[server]\nallowed_origins = [\"https://a.example\"]":                                             "pages of https://a.example",
		"[tools.shell]\nenv_blocklist = [\"ZEPH_\"]":                                                      "env_blocklist lacks AWS_, AZURE_",
		"[tools.shell]\nenv_pass = [\"AWS_SECRET_ACCESS_KEY\"]":                                           "env_pass",
		"[tools.shell]\nallowed_commands = [\"curl\"]":                                                    "allowed_commands lifts curl",
		"[tools.shell]\nconfirm_patterns = []":                                                            "confirm_patterns = []",
		"[tools.file]\nreadable_paths = [\"/root/.ssh\"]":                                                 "readable_paths lets /root/.ssh",
		"[tools.search]\nenabled = true\nallow_private_endpoint = true\nendpoint = \"http://127.0.0.1/\"": "allow_private_endpoint",
		"[tools.sandbox]\nmode = \"off\"":                                                                 "tools.sandbox.mode",
		"[tools.sandbox]\nunix_sockets = \"all\"":                                                         "unix_sockets",
		"[tools.trust]\nquarantined = \"ask\"":                                                            "quarantined",
		"[tools.policy]\nenabled = true\ndefault_effect = \"allow\"":                                      "default_effect",
		"[security]\nautonomy_level = \"full\"":                                                           "autonomy_level",
		"[tools.audit]\nmode = \"off\"":                                                                   "tools.audit.mode",
		"[tools.audit]\nmode = \"best_effort\"":                                                           "tools.audit.mode",
	} {
		cfg, _, err := Parse(src, "c.toml")
		if w := Warnings(cfg); err != nil || len(w) != 1 || !strings.Contains(w[0], has) {
			t.Errorf("%s: warnings %q, error %v", src, w, err)
		}
	}
	// A part that warns is still checked.
	if _, _, err := Parse("[tools.file]\nroots = [\"\"]\noutside_read = \"confirm\"", "c.toml"); err == nil {
		t.Error("an empty root was accepted")
	}
}

func TestRenderLoadsToTheSame(t *testing.T) {
	t.Parallel()
	src := `
[security.capability_scopes]
default_scope = "general"
[security.capability_scopes.general]
patterns = ["*"]
[security.capability_scopes."a b"]
patterns = ["read", "x\"y\\z\u0001é"]
[[tools.policy.rules]]
effect = "deny"
tool = "*"
paths = ["/etc/*"]
[[tools.policy.rules]]
effect = "confirm"
tool = "bash"
args_match = 'a"b'
[tools.permissions]
bash = [{ pattern = "ls *", action = "allow" }, { pattern = "*", action = "ask" }]
[approval]
key = "0123456789012345678901234567890123456789"
ttl = "1m30s"
[execution]
default_env = "b"
[[execution.environments]]
name = "a"
cwd = "."
[[execution.environments]]
name = "b"
cwd = "sub"
env = { "A" = "hidden", B = "" }
`
	cfg, origins, err := Parse(src, "f")
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := Parse(Render(cfg), "rendered")
	if err != nil {
		t.Fatalf("%v\n%s", err, Render(cfg))
	}
	if diff := cmp.Diff(cfg, back); diff != "" {
		t.Error(diff)
	}
	shown := Show(cfg, origins)
	for _, want := range []string{
		"key = \"[redacted]\"  # f:19\n", "ttl = \"1m30s\"  # f:20\n", "wait = \"5m\"  # default\n", "args_match = \"\"  # default\n", "tool = \"bash\"  # f:14\n",
		"[execution.environments.env]\nA = \"[redacted]\"  # f:29\n", "[security.capability_scopes.\"a b\"]\n", "[[tools.permissions.bash]]\npattern = \"ls *\"  # f:17\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "0123456789") {
		t.Error("a secret is shown")
	}
	if _, _, err := Parse(Show(cfg, origins), "shown"); err == nil || !strings.Contains(err.Error(), "approval.key: shorter") {
		t.Errorf("what is shown is a file but for the secret: %v", err)
	}
}

// every is one of everything a config struct may hold.
type every struct {
	Text    string            `toml:"text"`
	Flag    bool              `toml:"flag"`
	Int     int               `toml:"int"`
	Small   int8              `toml:"small"`
	Uint    uint16            `toml:"uint"`
	Float   float64           `toml:"float"`
	Wait    time.Duration     `toml:"wait"`
	Longest time.Duration     `toml:"max_secs"`
	Level   permission.Action `toml:"level"`
	Hidden  secret.Secret     `toml:"hidden"`
	APIKey  string            `toml:"api_key"`
	List    []string          `toml:"list"`
	Floats  []float64         `toml:"floats"`
	Skip    string            `toml:"-"`
	Sub     struct {
		inner
		More struct {
			Name string `toml:"name"`
		} `toml:",inline"`
	} `toml:"sub"`
	Maps map[string]map[string]int `toml:"maps"`
}

type inner struct {
	Deep string `toml:"deep"`
}

func TestDecodeEveryType(t *testing.T) {
	t.Parallel()
	src := `
text = """
a
b"""
flag = true
int = -5
small = 127
uint = 65535
float = 1
wait = "1h30m"
max_secs = 30
level = "deny"
hidden = "s3"
api_key = "s4"
list = [
  "a", # x
  "b",
]
floats = [1.5, 2.0, 1e9]
sub = { deep = "d", name = "n" }
[maps.x]
y = 1
"a.b" = 2
`
	var got every
	origins, err := decode(src, "f", &got)
	if err != nil {
		t.Fatal(err)
	}
	want := every{
		Text: "a\nb", Flag: true, Int: -5, Small: 127, Uint: 65535, Float: 1, Wait: 90 * time.Minute, Longest: 30 * time.Second, Level: permission.Deny,
		Hidden: "s3", APIKey: "s4", List: []string{"a", "b"}, Floats: []float64{1.5, 2, 1e9}, Maps: map[string]map[string]int{"x": {"y": 1, "a.b": 2}},
	}
	want.Sub.Deep, want.Sub.More.Name = "d", "n"
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(every{}.Sub), cmp.Transformer("secret", secret.Secret.Reveal)); diff != "" {
		t.Error(diff)
	}
	for key, line := range map[string]int{"text": 2, "flag": 5, "list": 15, "list[1]": 17, "floats": 19, "sub.deep": 20, "maps.x.y": 22, `maps.x."a.b"`: 23} {
		if o := origins[key]; o.Line != line {
			t.Errorf("%s is said to be in line %d, want %d", key, o.Line, line)
		}
	}
	var back every
	if _, err := decode(render(got), "f", &back); err != nil {
		t.Fatalf("%v\n%s", err, render(got))
	}
	if diff := cmp.Diff(got, back, cmp.AllowUnexported(every{}.Sub), cmp.Transformer("secret", secret.Secret.Reveal)); diff != "" {
		t.Errorf("%s\n%s", diff, render(got))
	}
	if s := show(got, origins); strings.Contains(s, "s3") || strings.Contains(s, "s4") {
		t.Errorf("a secret is shown:\n%s", s)
	}
}

func TestTagsMustBeRight(t *testing.T) {
	t.Parallel()
	type dup struct {
		A string `toml:"a"`
		B string `toml:"a"`
	}
	type untagged struct{ A string }
	type upper struct {
		A string `toml:"Name"`
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[dup](), reflect.TypeFor[untagged](), reflect.TypeFor[upper]()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken for a table", typ)
				}
			}()
			tableOf(typ)
		}()
	}
	keysOf(reflect.TypeFor[Config](), "") // panics on a wrong tag anywhere
}

func FuzzConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(a.Files[0].Data))
	}
	f.Add(Render(Default()))
	f.Fuzz(func(t *testing.T, src string) {
		cfg, origins, err := Parse(src, "f")
		if err != nil {
			return
		}
		back, _, err := Parse(Render(cfg), "rendered")
		if err != nil {
			t.Fatalf("%v\n%s", err, Render(cfg))
		}
		if diff := cmp.Diff(cfg, back); diff != "" {
			t.Fatal(diff)
		}
		Show(cfg, origins)
		Warnings(cfg)
	})
}
