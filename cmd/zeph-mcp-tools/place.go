package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/config"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

// localCaller is the person whose machine this is: it started this process.
func localCaller(transport string) call.Caller {
	return call.Caller{ID: "local", Transport: transport, Trust: call.TrustTrusted}
}

// stateDir is where the audit log, the caches and the private /tmp folders of
// sessions live.
func stateDir() (string, error) {
	return userDir("XDG_STATE_HOME", ".local/state")
}

func userDir(env, below string) (string, error) {
	base := os.Getenv(env)
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%s is not set and there is no home: %w", env, err)
		}
		base = filepath.Join(home, below)
	}
	if !filepath.IsAbs(base) {
		return "", fmt.Errorf("%s must be an absolute path, not %q", env, base)
	}
	return filepath.Join(base, "zeph-mcp-tools"), nil
}

// configPath is the file in force: the flag, the environment, the user's
// configuration folder; "" when there is none and the defaults hold. Never
// anything in the workspace.
func (f *flags) configPath() (string, error) {
	if f.config != "" {
		return f.config, nil
	}
	if p := os.Getenv("ZEPH_MCP_CONFIG"); p != "" {
		return p, nil
	}
	dir, err := userDir("XDG_CONFIG_HOME", ".config")
	if err != nil {
		return "", nil //nolint:nilerr // no home, so no file: the defaults hold
	}
	path := filepath.Join(dir, "config.toml")
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", nil
		}
		return "", usage(err)
	}
	return path, nil
}

// load reads the configuration in force. Workspaces named on the command line
// replace those of the file; without either the current folder is the
// workspace.
func (f *flags) load() (config.Config, config.Origins, error) {
	path, err := f.configPath()
	if err != nil {
		return config.Config{}, nil, err
	}
	cfg, origins, err := config.Load(path)
	if err != nil {
		return cfg, origins, usage(err)
	}
	switch {
	case f.unconfined:
		cfg.Tools.Sandbox.Mode = sandbox.ModeOff
		origins["tools.sandbox.mode"] = config.Origin{Source: "--unconfined"}
	case cfg.Tools.Sandbox.Mode == sandbox.ModeOff:
		err := errors.New("tools.sandbox.mode: \"off\" in a file is not enough: start the server with --unconfined as well")
		return cfg, origins, usage(origins.Locate(err))
	}
	switch {
	case len(f.workspace) > 0:
		cfg.Tools.File.Workspace.Roots = f.workspace
		origins["tools.file.roots"] = config.Origin{Source: "--workspace"}
	case len(cfg.Tools.File.Workspace.Roots) == 0:
		cwd, err := os.Getwd()
		if err != nil {
			return cfg, origins, fmt.Errorf("find the current folder: %w", err)
		}
		cfg.Tools.File.Workspace.Roots = []string{cwd}
		origins["tools.file.roots"] = config.Origin{Source: "current folder"}
	}
	return cfg, origins, nil
}
