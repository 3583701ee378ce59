package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// diagnosis is what doctor found out.
type diagnosis struct {
	Verdict   string   `json:"verdict"` // good, degraded, refused
	Version   string   `json:"version"`
	Go        string   `json:"go"`
	OS        string   `json:"os"`
	Config    string   `json:"config"` // "" = built-in defaults
	Workspace []string `json:"workspace"`
	State     string   `json:"state"`
	AuditLog  string   `json:"audit_log"`
	Sandbox   struct {
		Mode        string   `json:"mode"`
		Level       int      `json:"level"`
		LandlockABI int      `json:"landlock_abi"`
		Held        []string `json:"held"`
		Missing     []string `json:"missing"`
		Error       string   `json:"error,omitempty"`
		Fix         string   `json:"fix,omitempty"`
		TookMS      float64  `json:"took_ms"`
	} `json:"sandbox"`
	Tools    []string `json:"tools"`
	Gates    []string `json:"gates"`
	Warnings []string `json:"warnings"`
}

func newDoctor(s streams, f *flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "probe this machine for real and say what is missing and how to fix it",
		Long: "Probe the sandbox for real and print its level, what is missing and the fix, versions, configuration and workspace.\n\n" +
			"Exit status: 0 all good, 1 degraded, 3 refused.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, code, err := f.diagnose(cmd.Context(), s)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(s.out)
				enc.SetIndent("", "  ")
				err = enc.Encode(d)
			} else {
				_, err = fmt.Fprint(s.out, d.text())
			}
			if err != nil {
				return err
			}
			return silent(code)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func (f *flags) diagnose(ctx context.Context, s streams) (d diagnosis, code int, err error) {
	e, err := f.engine(s)
	if err != nil {
		return d, exitFailed, err
	}
	defer func() {
		if cerr := e.Close(); err == nil {
			err = cerr
		}
	}()
	path, err := f.configPath()
	if err != nil {
		return d, exitFailed, err
	}
	r := e.sandbox.Probe(ctx)
	d = diagnosis{
		Version: version, Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, Config: path,
		Workspace: e.workspace.Roots(), State: e.state, AuditLog: e.audit.Path(), Gates: e.chain.Names(), Warnings: list(e.warnings),
	}
	for _, t := range e.registry.List() {
		d.Tools = append(d.Tools, t.Name)
	}
	d.Sandbox.Mode, d.Sandbox.Level, d.Sandbox.LandlockABI = r.Mode, r.Level, r.LandlockABI
	d.Sandbox.Held, d.Sandbox.Missing, d.Sandbox.Fix = list(r.Held), list(r.Missing), r.Fix
	d.Sandbox.TookMS = float64(r.Took.Microseconds()) / 1000
	switch {
	case r.Err != nil:
		d.Verdict, d.Sandbox.Error, code = "refused", r.Err.Error(), exitRefused
	case len(r.Missing) > 0 || !e.sandbox.Confined():
		d.Verdict, code = "degraded", exitFailed
	default:
		d.Verdict = "good"
	}
	return d, code, nil
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (d diagnosis) text() string {
	var b strings.Builder
	line := func(label, format string, a ...any) { fmt.Fprintf(&b, "%-11s%s\n", label, fmt.Sprintf(format, a...)) }
	line("verdict", "%s", d.Verdict)
	line("version", "zeph-mcp-tools %s, %s, %s", d.Version, d.Go, d.OS)
	config := d.Config
	if config == "" {
		config = "built-in defaults (no file)"
	}
	line("config", "%s", config)
	line("workspace", "%s", strings.Join(d.Workspace, ", "))
	line("audit log", "%s", d.AuditLog)
	line("sandbox", "%s, level %d, Landlock ABI %d, probed in %.0f ms", d.Sandbox.Mode, d.Sandbox.Level, d.Sandbox.LandlockABI, d.Sandbox.TookMS)
	for _, h := range d.Sandbox.Held {
		line("", "holds: %s", h)
	}
	for _, m := range d.Sandbox.Missing {
		line("", "missing: %s", m)
	}
	if d.Sandbox.Error != "" {
		line("", "error: %s", d.Sandbox.Error)
	}
	if d.Sandbox.Fix != "" {
		line("fix", "%s", d.Sandbox.Fix)
	}
	line("gates", "%s", strings.Join(d.Gates, ", "))
	line("tools", "%s", strings.Join(d.Tools, ", "))
	for _, w := range d.Warnings {
		line("warning", "%s", w)
	}
	return b.String()
}
