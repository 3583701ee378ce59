// Package config composes every package's own configuration into one file,
// reads it strictly, and shows what is in force and why.
//
// Each package owns its keys, their defaults and their checks. This package
// knows only where in the file they stand. A mistake anywhere stops the start:
// unknown keys, keys in other letters, values of another type or out of bounds
// are all reported at once, each with its line.
package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/gates/paths"
	"github.com/zeph-tools/zeph-mcp-tools/gates/permission"
	"github.com/zeph-tools/zeph-mcp-tools/gates/policy"
	"github.com/zeph-tools/zeph-mcp-tools/gates/scope"
	"github.com/zeph-tools/zeph-mcp-tools/gates/trust"
	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/server"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
	"github.com/zeph-tools/zeph-mcp-tools/tools/read"
	webscrape "github.com/zeph-tools/zeph-mcp-tools/tools/web_scrape"
	websearch "github.com/zeph-tools/zeph-mcp-tools/tools/web_search"
	"github.com/zeph-tools/zeph-mcp-tools/tools/write"
)

// Secret is a text that never prints itself.
type Secret = secret.Secret

// maxFile is the largest config file that is read.
const maxFile = 1 << 20

// Config is the whole file.
type Config struct {
	Server    server.Config   `toml:"server"`
	Approval  approval.Config `toml:"approval"`
	Security  Security        `toml:"security"`
	Execution bash.Execution  `toml:"execution"`
	Tools     Tools           `toml:"tools"`
}

// Security is [security].
type Security struct {
	AutonomyLevel    permission.Autonomy `toml:"autonomy_level"`
	CapabilityScopes scope.Config        `toml:"capability_scopes"`
}

// Shell is [tools.shell].
type Shell struct {
	Bash    bash.Config    `toml:",inline"`
	Command command.Config `toml:",inline"`
}

// Validate asks both packages to judge their part.
func (s Shell) Validate() error { return errors.Join(s.Bash.Validate(), s.Command.Validate()) }

// Warnings lists what is less safe than the default.
func (s Shell) Warnings() []string {
	out := s.Bash.Warnings()
	var lifted []string
	for _, prefix := range bash.Default().EnvBlocklist {
		if !slices.Contains(s.Bash.EnvBlocklist, prefix) {
			lifted = append(lifted, prefix)
		}
	}
	if len(lifted) > 0 {
		out = append(out, "tools.shell.env_blocklist lacks "+strings.Join(lifted, ", ")+": commands get such variables of the server")
	}
	if len(s.Command.AllowedCommands) > 0 {
		out = append(out, "tools.shell.allowed_commands lifts "+strings.Join(s.Command.AllowedCommands, ", "))
	}
	if len(s.Command.ConfirmPatterns) == 0 {
		out = append(out, "tools.shell.confirm_patterns = []: no pattern asks before a command runs")
	}
	return out
}

// File is [tools.file].
type File struct {
	Workspace workspace.Config `toml:",inline"`
	Paths     paths.Config     `toml:",inline"`
}

// Validate asks both packages to judge their part.
func (f File) Validate() error { return errors.Join(f.Workspace.Validate(), f.Paths.Validate()) }

// Warnings lists what is less safe than the default.
func (f File) Warnings() []string {
	var out []string
	if p := f.Workspace.ReadablePaths; len(p) > 0 {
		out = append(out, "tools.file.readable_paths lets "+strings.Join(p, ", ")+" be read without asking, secrets there too")
	}
	return out
}

// Sandbox is [tools.sandbox].
type Sandbox struct {
	sandbox.Config
	egress.RulesConfig
}

// Validate asks both packages to judge their part.
func (s Sandbox) Validate() error { return errors.Join(s.Config.Validate(), s.RulesConfig.Validate()) }

// Warnings lists what is less safe than the default.
func (s Sandbox) Warnings() []string {
	out := s.Config.Warnings()
	if s.Network == sandbox.NetworkProxy && len(s.AllowDomains) > 0 {
		out = append(out, "tools.sandbox.allow_domains: commands can send what they read to "+strings.Join(s.AllowDomains, ", "))
	}
	return out
}

// Tools is [tools].
type Tools struct {
	Shell       Shell             `toml:"shell"`
	File        File              `toml:"file"`
	Read        read.Config       `toml:"read"`
	Write       write.Config      `toml:"write"`
	Scrape      webscrape.Config  `toml:"scrape"`
	Search      websearch.Config  `toml:"search"`
	Sandbox     Sandbox           `toml:"sandbox"`
	Trust       trust.Config      `toml:"trust"`
	Policy      policy.Config     `toml:"policy"`
	Permissions permission.Config `toml:"permissions"`
	Audit       audit.Config      `toml:"audit"`
}

// Default returns the configuration in force without a file.
func Default() Config {
	cfg := Config{
		Server:    server.Default(),
		Approval:  approval.Default(),
		Security:  Security{CapabilityScopes: scope.Default()},
		Execution: bash.DefaultExecution(),
		Tools: Tools{
			Shell:       Shell{Bash: bash.Default(), Command: command.Default()},
			File:        File{Workspace: workspace.Default(), Paths: paths.Default()},
			Read:        read.Default(),
			Write:       write.Default(),
			Scrape:      webscrape.Default(),
			Search:      websearch.Default(),
			Sandbox:     Sandbox{Config: sandbox.Default(), RulesConfig: egress.DefaultRules()},
			Trust:       trust.Default(),
			Policy:      policy.Default(),
			Permissions: permission.Default(),
			Audit:       audit.Default(),
		},
	}
	fill(reflect.ValueOf(&cfg).Elem())
	return cfg
}

// Bash is what the bash tool is told.
func (c Config) Bash() bash.Config {
	b := c.Tools.Shell.Bash
	b.Execution = c.Execution
	return b
}

// Workspace is what the workspace is told.
func (c Config) Workspace() workspace.Config { return c.Tools.File.Workspace }

// Read is what the tools that read files are told.
func (c Config) Read() read.Config { return c.Tools.Read }

// Write is what the tools that change files are told.
func (c Config) Write() write.Config { return c.Tools.Write }

// Scrape is what the tools that read web pages are told.
func (c Config) Scrape() webscrape.Config { return c.Tools.Scrape }

// Egress is where outbound connections may go.
func (c Config) Egress() egress.Config { return c.Tools.Scrape.Config }

// Load reads the file at path over the defaults; an empty path means that
// there is no file. The error joins every mistake as an [*Error]; the config
// that comes with it must not be used.
func Load(path string) (Config, Origins, error) {
	if path == "" {
		cfg := Default()
		return cfg, Origins{}, cfg.Validate()
	}
	src, err := readFile(path)
	if err != nil {
		return Default(), nil, fmt.Errorf("read config: %w", err)
	}
	return Parse(src, path)
}

// Parse is [Load] of a text; file is what messages call it.
func Parse(src, file string) (Config, Origins, error) {
	cfg := Default()
	origins, err := decode(src, file, &cfg)
	if err != nil {
		return cfg, origins, err
	}
	fill(reflect.ValueOf(&cfg).Elem())
	cfg.Tools.Permissions.Autonomy = cfg.Security.AutonomyLevel
	return cfg, origins, place(cfg.Validate(), file, scan(src))
}

// readFile reads a config file that only its owner can change.
func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o002 != 0:
		return "", fmt.Errorf("%s can be changed by every user of this machine: run chmod o-w on it", path)
	case info.Size() > maxFile:
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	buf := make([]byte, info.Size())
	if _, err := f.ReadAt(buf, 0); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return string(buf), nil
}

// place adds to each check that failed the line of the key it names. Checks
// name the key first, as in tools.file.roots[0]: the path is empty.
func place(err error, file string, lines positions) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, place(e, file, lines))
		}
		return errors.Join(errs...)
	}
	key, text, ok := strings.Cut(err.Error(), ": ")
	if !ok || strings.ContainsAny(key, " \t") {
		return &Error{File: file, Text: err.Error()}
	}
	return &Error{File: file, Line: lines.line(key), Key: key, Text: text}
}

// Validate asks every package to judge its part.
func (c Config) Validate() error { return validate(c) }

// Warnings lists every setting that is less safe than its default, for the
// operator to read at start.
func Warnings(c Config) []string {
	out := warnings(c)
	if c.Tools.Search.Enabled && c.Tools.Search.AllowPrivateEndpoint {
		out = append(out, "tools.search.allow_private_endpoint = true: searches may go to this network, unencrypted: "+c.Tools.Search.Endpoint)
	}
	return out
}

// Render returns the configuration as a file that loads to the same. It holds
// secrets in the clear.
func Render(c Config) string { return render(c) }

// Show returns the configuration in force for people to read: each value with
// where it came from, secrets redacted.
func Show(c Config, o Origins) string { return show(c, o) }
