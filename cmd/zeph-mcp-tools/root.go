package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
)

// flags are the flags every command understands.
type flags struct {
	config    string
	workspace []string
	logLevel  string
	// unconfined lifts every wall. Nothing else can, no file and no call.
	unconfined bool
}

func newRoot(s streams) *cobra.Command {
	var f flags
	serve := newServe(s, &f)
	root := &cobra.Command{
		Use:   "zeph-mcp-tools",
		Short: "Tools for AI agents over MCP: judged, confined, written down",
		Long: "Tools for AI agents over the Model Context Protocol: judged on meaning, confined by the kernel, written down.\n\n" +
			"Without a command it serves MCP on stdin and stdout, so a client's configuration is just the path of this program.",
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := "zeph-mcp-tools help lists the commands"
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "did you mean " + near[0] + "?"
			}
			return usage(fmt.Errorf("unknown command %q: %s", args[0], hint))
		},
		RunE:    serve.RunE,
		Version: version,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("zeph-mcp-tools {{.Version}}\n")
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	p := root.PersistentFlags()
	p.StringVar(&f.config, "config", "", "configuration file (default: $ZEPH_MCP_CONFIG, then the user's configuration folder)")
	p.StringArrayVar(&f.workspace, "workspace", nil, "folder the agent may work in; repeatable (default: the current folder)")
	p.BoolVar(&f.unconfined, "unconfined", false, "run commands without a sandbox, with all rights of this user; every result says so")
	p.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error; logs go to stderr")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.AddCommand(serve, newCall(s, &f), newExplain(s, &f), newConfig(s, &f), newDoctor(s, &f), newAudit(s, &f), newApprovals(s, &f), newVersion(s), newDocs(s))
	return root
}

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.out, "zeph-mcp-tools", version)
			return err
		},
	}
}

// logger returns the program's log: coloured on a terminal, JSON otherwise,
// always on stderr.
func (f *flags) logger(s streams) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usage(errors.New("--log-level must be debug, info, warn or error"))
	}
	if file, ok := s.err.(*os.File); ok && isTerminal(file) && os.Getenv("NO_COLOR") == "" {
		return slog.New(tint.NewTextHandler(s.err, &tint.Options{Level: level, TimeFormat: "15:04:05"})), nil
	}
	return slog.New(slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: level})), nil
}
