package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	zephmcptools "github.com/zeph-tools/zeph-mcp-tools"
	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/config"
)

func newConfig(s streams, f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "write, check and show the configuration", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage(errors.New("config takes a command: init, check or show"))
		},
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "init", Short: "write the example, with every key and its default, where it will be read; never overwrites", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return f.configInit(s) },
		},
		&cobra.Command{
			Use: "check [FILE]", Short: "check a file strictly; exit status 2 when it is wrong", Args: cobra.MaximumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return f.configCheck(s, args) },
		},
		&cobra.Command{
			Use: "show", Short: "print what is in force and where each value comes from; secrets are not shown", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				j, err := f.judge(s)
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(s.out, config.Show(j.cfg, j.origins))
				for _, t := range j.terms() {
					_, err = fmt.Fprintln(s.out, "# effective profile:", t)
				}
				return err
			},
		},
	)
	return cmd
}

// configInit writes the example to the file that would be read.
func (f *flags) configInit(s streams) error {
	path := f.config
	if path == "" {
		path = os.Getenv("ZEPH_MCP_CONFIG")
	}
	if path == "" {
		dir, err := userDir("XDG_CONFIG_HOME", ".config")
		if err != nil {
			return usage(err)
		}
		path = filepath.Join(dir, "config.toml")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the configuration folder: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("%s exists already and is left as it is", path))
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(zephmcptools.ExampleConfig)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = fmt.Fprintln(s.out, path)
	return err
}

// configCheck checks a file the way start-up would: values, rules, workspace
// and gates.
func (f *flags) configCheck(s streams, args []string) error {
	if len(args) == 1 {
		f.config = args[0]
	}
	path, err := f.configPath()
	if err != nil {
		return err
	}
	j, err := f.judge(s)
	if err != nil {
		return err
	}
	// The key that signs what clients carry back is read at start, too.
	if _, err := approval.New(j.cfg.Approval, approval.NewMemory(), j.log); err != nil {
		return usage(j.origins.Locate(err))
	}
	for _, w := range slices.Concat(j.warnings, j.notes) {
		fmt.Fprintln(s.err, "warning:", w)
	}
	if path == "" {
		path = "built-in defaults"
	}
	_, err = fmt.Fprintln(s.out, "ok:", path)
	return err
}
