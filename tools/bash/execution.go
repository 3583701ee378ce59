package bash

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// The bounds of what an operator prepares.
const (
	maxEnvironments = 64
	maxEnvName      = 64
	maxFolders      = 1000 // looked through for the folder that was meant
)

// Execution is [execution]: the folders and variables that an operator has
// prepared for commands. A call picks one by name and never changes one.
type Execution struct {
	DefaultEnv   string        `toml:"default_env"` // of a call that names none; "" = none
	Environments []Environment `toml:"environments"`
}

// Environment is one of [[execution.environments]].
type Environment struct {
	Name string                   `toml:"name"`
	Cwd  string                   `toml:"cwd"`
	Env  map[string]secret.Secret `toml:"env"`
	// Profile is that of commands in it; zero: that of [tools.sandbox].
	Profile sandbox.Profile `toml:"profile"`
}

// DefaultExecution returns the configuration used when nothing is said.
func DefaultExecution() Execution { return Execution{Environments: []Environment{}} }

// Validate reports everything that is wrong with e and can be seen without
// looking at the disk.
func (e Execution) Validate() error {
	var errs []error
	fault := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("execution."+key+": "+format, args...))
	}
	if len(e.Environments) > maxEnvironments {
		fault("environments", "%d are more than %d", len(e.Environments), maxEnvironments)
	}
	for i, v := range e.Environments {
		at := fmt.Sprintf("environments[%d].", i)
		switch {
		case v.Name == "" || len(v.Name) > maxEnvName || strings.ContainsFunc(v.Name, notNameable):
			fault(at+"name", "%q must have 1 to %d printable characters without spaces", v.Name, maxEnvName)
		case slices.ContainsFunc(e.Environments[:i], func(o Environment) bool { return o.Name == v.Name }):
			fault(at+"name", "%q is there twice", v.Name)
		}
		if strings.TrimSpace(v.Cwd) == "" || strings.ContainsRune(v.Cwd, 0) {
			fault(at+"cwd", "the environment %q needs a folder", v.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(v.Env)) {
			if !isName(name) || strings.ContainsRune(v.Env[name].Reveal(), 0) {
				fault(at+"env", "%q is no variable's name, or its value holds a NUL character", name)
			}
		}
	}
	if _, ok := e.named(e.DefaultEnv); e.DefaultEnv != "" && !ok {
		fault("default_env", "there is no environment %q; %s", e.DefaultEnv, e.hint(e.DefaultEnv))
	}
	return errors.Join(errs...)
}

func notNameable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// named finds an environment. Names are case-sensitive.
func (e Execution) named(name string) (Environment, bool) {
	i := slices.IndexFunc(e.Environments, func(v Environment) bool { return v.Name == name })
	if i < 0 {
		return Environment{}, false
	}
	return e.Environments[i], true
}

func (e Execution) names() []string {
	out := make([]string, len(e.Environments))
	for i, v := range e.Environments {
		out[i] = v.Name
	}
	return out
}

// hint says which names there are, the one that was probably meant first.
func (e Execution) hint(name string) string {
	known := "known here: " + strings.Join(e.names(), ", ")
	if len(e.Environments) == 0 {
		return "none is configured here; leave it out"
	}
	if near, ok := suggest.Nearest(name, e.names()); ok {
		return "did you mean " + near + "? " + known
	}
	return known
}

// open checks the folders of e against the workspace and returns e with the
// real paths. An environment that cannot be used stops the start.
func (e Execution) open(ws *workspace.Workspace) (Execution, error) {
	var errs []error
	out := Execution{DefaultEnv: e.DefaultEnv, Environments: slices.Clone(e.Environments)}
	for i, v := range out.Environments {
		p := ws.Resolve(ws.Roots()[0], v.Cwd, true)
		info, err := os.Stat(p.Path)
		fault := func(what string) {
			errs = append(errs, fmt.Errorf("execution.environments[%d].cwd: the folder %s of the environment %q %s", i, v.Cwd, v.Name, what))
		}
		switch {
		case p.Place == call.PlaceUnknown || err != nil:
			fault("does not exist")
		case !info.IsDir():
			fault("is no folder")
		case p.Place != call.PlaceWorkspace:
			fault("lies outside the workspace (tools.file.roots and allowed_paths)")
		}
		out.Environments[i].Cwd = p.Path
	}
	return out, errors.Join(errs...)
}

// variable is one variable beside the inherited ones, and who set it.
type variable struct {
	value string
	from  source
}

type source uint8

// Who sets a variable, weakest first.
const (
	fromDefault source = iota
	fromSkill
	fromNamed
	fromCall
)

// String is how a person is told of it.
func (s source) String() string {
	switch s {
	case fromDefault:
		return "default environment"
	case fromSkill:
		return "skill"
	case fromNamed:
		return "environment"
	case fromCall:
		return "call"
	}
	return "call"
}

// setting is where a command runs, and what it finds in its environment beside
// what every command does.
type setting struct {
	name    string          // of the environment in force; "" = none
	cwd     string          // as written; "" = the first workspace folder
	field   string          // the argument that named cwd
	profile sandbox.Profile // of the environments in force; zero = none names one
	vars    map[string]variable
	refused []string // variables that were not passed on
}

// setting works out where and with what a call runs. What a call says is
// stronger than the environment it names, that one than the skill's variables,
// and those than the default environment.
func (c Config) setting(a args) (setting, error) {
	s := setting{vars: map[string]variable{}}
	if v, ok := c.Execution.named(c.Execution.DefaultEnv); ok {
		s.enter(v, fromDefault)
	}
	s.layer(a.SkillEnv, fromSkill, c.blocked)
	if a.Environment != "" {
		v, ok := c.Execution.named(a.Environment)
		if !ok {
			return setting{}, call.ArgError("environment",
				fmt.Sprintf("there is no environment %q", clip(a.Environment)), c.Execution.hint(a.Environment))
		}
		s.enter(v, fromNamed)
	}
	s.layer(a.Env, fromCall, c.blocked)
	if a.Cwd != "" {
		s.cwd, s.field = a.Cwd, "cwd"
	}
	// Only the default environment may set what is kept from commands, and only
	// for calls that leave everything as the operator prepared it.
	if a.Cwd != "" || a.Environment != "" || len(a.Env) > 0 {
		s.filter(c.blocked)
	}
	slices.Sort(s.refused)
	s.refused = slices.Compact(s.refused)
	return s, nil
}

// enter puts an environment of the operator in force.
func (s *setting) enter(v Environment, from source) {
	s.name, s.cwd, s.field = v.Name, v.Cwd, "environment"
	if v.Profile != sandbox.ProfileUnset {
		s.profile = v.Profile
	}
	for name, value := range v.Env {
		s.vars[name] = variable{value: value.Reveal(), from: from}
	}
}

// layer puts variables of somebody who is not the operator over what is there.
func (s *setting) layer(vars map[string]string, from source, blocked func(string) bool) {
	for name, value := range vars {
		if blocked(name) {
			s.refused = append(s.refused, name)
			continue
		}
		s.vars[name] = variable{value: value, from: from}
	}
}

func (s *setting) filter(blocked func(string) bool) {
	for name := range s.vars {
		if blocked(name) {
			s.refused = append(s.refused, name)
			delete(s.vars, name)
		}
	}
}

// known are the variables whose values may be looked at when the command is
// read. What may be a secret of the operator stays unknown, so that no value
// of it can come out in a reason, a question or a record.
func (s *setting) known(c Config) map[string]string {
	out := map[string]string{}
	for name, v := range s.vars {
		operator := v.from == fromDefault || v.from == fromNamed
		if !operator || !c.blocked(name) && !c.secret(name, v.value) {
			out[name] = v.value
		}
	}
	return out
}

// attribute corrects who is said to set the variables of the call. What the
// operator gives every command is no choice of the call, so it is not listed.
func (s *setting) attribute(env []call.EnvVar) []call.EnvVar {
	var out []call.EnvVar
	for _, e := range env {
		v, ok := s.vars[e.Name]
		if e.How == fromCall.String() && ok {
			if v.from == fromDefault {
				continue
			}
			e.How = v.from.String()
		}
		out = append(out, e)
	}
	return out
}

// folder resolves the working directory and refuses one that cannot be used.
// What lies outside the workspace is left to the gates.
func (t *Tool) folder(s setting) (string, error) {
	if s.cwd == "" {
		return "", nil
	}
	root := t.ws.Roots()[0]
	p := t.ws.Resolve(root, s.cwd, true)
	fault := func(what, suggestion string) error {
		return call.ArgError(s.field, "the folder "+clip(s.cwd)+" "+what, suggestion)
	}
	if p.Path == "" || p.Place == call.PlaceUnknown {
		return "", fault("cannot be resolved", "name a folder of the workspace")
	}
	if p.Place != call.PlaceWorkspace {
		return s.cwd, nil
	}
	info, err := os.Stat(p.Path)
	switch {
	case err == nil && !info.IsDir():
		return "", fault("is no folder", "name the folder it lies in")
	case err != nil:
		return "", fault("does not exist", nearFolder(p.Path, root))
	}
	return s.cwd, nil
}

// nearFolder suggests the folder beside a missing one that was probably meant.
func nearFolder(missing, root string) string {
	parent := filepath.Dir(missing)
	d, err := os.Open(parent)
	if err != nil {
		return "name a folder that exists, relative to " + root
	}
	defer d.Close() //nolint:errcheck // only read
	entries, _ := d.ReadDir(maxFolders)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	if near, ok := suggest.Nearest(filepath.Base(missing), names); ok {
		return "did you mean " + filepath.Join(parent, near) + "?"
	}
	return "name a folder that exists, relative to " + root
}

// clip cuts a caller's text to what an error needs of it.
func clip(s string) string {
	if r := []rune(s); len(r) > maxEnvName {
		return string(r[:maxEnvName]) + "…"
	}
	return s
}
