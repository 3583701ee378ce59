package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zeph-tools/zeph-mcp-tools/audit"
)

func newAudit(s streams, f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "read and verify the audit log", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage(errors.New("audit takes a command: tail or verify"))
		},
	}
	var n int
	tail := &cobra.Command{
		Use: "tail [FILE]", Short: "print the last records, one JSON object a line", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if n < 1 {
				return usage(errors.New("--lines must be at least 1"))
			}
			path, err := f.auditPath(args)
			if err != nil {
				return err
			}
			lines, err := audit.Tail(path, n)
			if errors.Is(err, fs.ErrNotExist) {
				return noLog(path)
			}
			if err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
			for _, l := range lines {
				if _, err := fmt.Fprintf(s.out, "%s\n", l); err != nil {
					return err
				}
			}
			return nil
		},
	}
	tail.Flags().IntVarP(&n, "lines", "n", 20, "how many records")
	var asJSON bool
	verify := &cobra.Command{
		Use: "verify [FILE]", Short: "check the hash chain; exit status 1 when it is broken", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := f.auditPath(args)
			if err != nil {
				return err
			}
			return verifyLog(s, path, asJSON)
		},
	}
	verify.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.AddCommand(tail, verify)
	return cmd
}

// auditPath is the file named on the command line, else the one in force.
func (f *flags) auditPath(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	cfg, _, err := f.load()
	if err != nil {
		return "", err
	}
	if cfg.Tools.Audit.Path != "" {
		return cfg.Tools.Audit.Path, nil
	}
	state, err := stateDir()
	return filepath.Join(state, "audit.jsonl"), err
}

func verifyLog(s streams, path string, asJSON bool) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return noLog(path)
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	rep, err := audit.Verify(file)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if asJSON {
		if err := json.NewEncoder(s.out).Encode(rep); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(s.out, reportText(rep)); err != nil {
		return err
	}
	if rep.Broken != 0 {
		return silent(exitFailed)
	}
	return nil
}

func noLog(path string) error {
	return fmt.Errorf("there is no audit log at %s: nothing has been recorded there yet", path)
}

func reportText(rep audit.Report) string {
	var b strings.Builder
	if rep.Broken == 0 {
		fmt.Fprintf(&b, "whole: %d records, last hash %s\n", rep.Records, rep.LastHash)
	} else {
		fmt.Fprintf(&b, "broken: %d problems in %d lines\n", rep.Broken, rep.Lines)
	}
	if rep.Continues != "" {
		fmt.Fprintf(&b, "it took the place of a log that was moved or cut, whose last hash was %s\n", rep.Continues)
	}
	for _, n := range rep.Recovered {
		fmt.Fprintf(&b, "line %d was torn by a crash; the record after it says so\n", n)
	}
	for _, p := range rep.Problems {
		fmt.Fprintf(&b, "line %d: %s: %s\n", p.Line, p.Kind, p.Text)
	}
	return b.String()
}
