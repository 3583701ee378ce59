package command

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Config is the part of [tools.shell] that decides what a command may do.
type Config struct {
	// BlockedCommands are further names that are always refused.
	BlockedCommands []string `toml:"blocked_commands"`
	// AllowedCommands lifts built-in names. A name in BlockedCommands is never
	// lifted.
	AllowedCommands []string `toml:"allowed_commands"`
	// AllowNetwork = false refuses the network programs even when
	// AllowedCommands lifts them.
	AllowNetwork bool `toml:"allow_network"`
	// ConfirmPatterns replaces what asks: constructs, command patterns with a
	// "*", or plain texts.
	ConfirmPatterns []string `toml:"confirm_patterns"`
	// AllowConfinedConstructs lets the sandbox answer for a construct whose
	// result is not run as code.
	AllowConfinedConstructs bool `toml:"allow_confined_constructs"`
}

// Default returns the configuration in force when none is given.
func Default() Config {
	return Config{
		BlockedCommands: []string{},
		AllowedCommands: []string{},
		AllowNetwork:    true,
		ConfirmPatterns: []string{
			"rm", "truncate", "git push --force", "drop table", "drop database", "truncate table",
			"$( )", "``", "<( )", ">( )", "<<<", "eval",
		},
		AllowConfinedConstructs: true,
	}
}

// Validate names every entry that could never match anything.
func (c Config) Validate() error {
	var errs []error
	names := func(key string, list []string) {
		for i, n := range list {
			if strings.TrimSpace(n) == "" {
				errs = append(errs, fmt.Errorf("tools.shell.%s[%d]: the name is empty", key, i))
			}
			if _, err := path.Match(n, ""); err != nil {
				errs = append(errs, fmt.Errorf("tools.shell.%s[%d]: %q is no pattern: a [ is not closed, or a \\ ends it", key, i, n))
			}
		}
	}
	names("blocked_commands", c.BlockedCommands)
	names("allowed_commands", c.AllowedCommands)
	names("confirm_patterns", c.ConfirmPatterns)
	for i, n := range c.AllowedCommands {
		if strings.ContainsAny(strings.TrimSpace(n), " */") {
			errs = append(errs, fmt.Errorf("tools.shell.allowed_commands[%d]: %q is no program name", i, n))
		}
	}
	return errors.Join(errs...)
}

// Idle lists the entries that change nothing.
func (c Config) Idle() []string {
	var out []string
	for i, n := range c.AllowedCommands {
		switch key := name(n); {
		case !slices.Contains(blockedNames(), key):
			out = append(out, fmt.Sprintf("tools.shell.allowed_commands[%d] = %q: it is not refused anyway", i, n))
		case slices.ContainsFunc(c.BlockedCommands, func(b string) bool { return name(b) == key }):
			out = append(out, fmt.Sprintf("tools.shell.allowed_commands[%d] = %q: blocked_commands is stronger", i, n))
		case !c.AllowNetwork && slices.Contains(networkNames(), key):
			out = append(out, fmt.Sprintf("tools.shell.allowed_commands[%d] = %q: allow_network = false is stronger", i, n))
		}
	}
	return out
}
