package config_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	zephmcptools "github.com/zeph-tools/zeph-mcp-tools"
	"github.com/zeph-tools/zeph-mcp-tools/config"
)

// TestExample holds the example to the truth: it loads, it is the defaults,
// and it names every key and no other.
func TestExample(t *testing.T) {
	t.Parallel()
	cfg, origins, err := config.Parse(zephmcptools.ExampleConfig, "config.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), cfg); diff != "" {
		t.Errorf("the example is not the defaults: %s", diff)
	}
	if !reflect.DeepEqual(config.Default(), cfg) {
		t.Error("a list that is empty in the example is missing in the defaults, or the other way round")
	}
	for _, key := range leaves(reflect.TypeFor[config.Config](), "") {
		if _, ok := origins[key]; !ok {
			t.Errorf("the example does not set %s", key)
		}
	}
}

// TestExampleExplainsEveryKey wants a comment before each key, and the keys of
// rules, which have no default, in the commented examples.
func TestExampleExplainsEveryKey(t *testing.T) {
	t.Parallel()
	last := ""
	for i, line := range strings.Split(zephmcptools.ExampleConfig, "\n") {
		if key := regexp.MustCompile(`^\w+ = `).FindString(line); key != "" && !strings.HasPrefix(last, "# ") {
			t.Errorf("line %d: %snothing says why", i+1, key)
		}
		if len(line) > 80 {
			t.Errorf("line %d is longer than 80 characters", i+1)
		}
		last = line
	}
	for _, key := range []string{"effect", "tool", "paths", "args_match", "pattern", "action", "patterns"} {
		if !regexp.MustCompile(`(?m)^# ` + key + ` = `).MatchString(zephmcptools.ExampleConfig) {
			t.Errorf("no commented example of %s", key)
		}
	}
}

// TestExampleUncommented turns the commented examples on; they must load too.
func TestExampleUncommented(t *testing.T) {
	t.Parallel()
	src := regexp.MustCompile(`(?m)^# (\[+[a-z_.]+\]+|\w+ = .*)$`).ReplaceAllString(zephmcptools.ExampleConfig, "$1")
	src = strings.NewReplacer("\nrules = []\n", "\n", "\nenvironments = []\n", "\n").Replace(src)
	cfg, _, err := config.Parse(src, "config.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Tools.Policy.Rules) != 1 || len(cfg.Tools.Permissions.Tools["bash"]) != 2 || len(cfg.Security.CapabilityScopes.Scopes) != 2 || len(cfg.Execution.Environments) != 1 {
		t.Errorf("not every example took effect: %+v", cfg)
	}
}

func TestShowNamesEveryKey(t *testing.T) {
	t.Parallel()
	cfg, origins, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	shown := config.Show(cfg, origins)
	for _, key := range leaves(reflect.TypeFor[config.Config](), "") {
		if name := key[strings.LastIndexByte(key, '.')+1:]; !strings.Contains(shown, "\n"+name+" = ") {
			t.Errorf("%s is not shown", key)
		}
	}
}

// leaves lists the full path of every key a file can set, by the tags alone.
func leaves(t reflect.Type, prefix string) []string {
	var out []string
	for f := range t.Fields() {
		tag := f.Tag.Get("toml")
		switch {
		case tag == "-" || tag == "*":
		case tag == ",inline" || f.Anonymous:
			out = append(out, leaves(f.Type, prefix)...)
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
			out = append(out, leaves(f.Type, prefix+tag+".")...)
		default:
			out = append(out, prefix+tag)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
