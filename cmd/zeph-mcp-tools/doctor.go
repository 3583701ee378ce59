package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
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
	AuditErr  string   `json:"audit_error,omitempty"`
	Sandbox   struct {
		Mode        string   `json:"mode"`
		Profile     string   `json:"profile"`
		Terms       []string `json:"terms"` // what commands have: of the profile in force, and of each environment with another
		Level       int      `json:"level"`
		LandlockABI int      `json:"landlock_abi"`
		Limits      string   `json:"limits"` // what holds memory and processes
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
	e, err := f.judge(s)
	if err != nil {
		return d, exitFailed, err
	}
	defer func() {
		if cerr := e.sandbox.Close(); err == nil {
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
		Workspace: e.workspace.Roots(), State: e.state, Gates: e.chain.Names(), Warnings: list(slices.Concat(e.warnings, e.notes)),
	}
	d.AuditLog, d.AuditErr = e.lookAtLog()
	for _, t := range e.registry.List() {
		d.Tools = append(d.Tools, t.Name)
	}
	d.Sandbox.Mode, d.Sandbox.Level, d.Sandbox.LandlockABI = r.Mode, r.Level, r.LandlockABI
	d.Sandbox.Limits = r.Limits
	d.Sandbox.Profile, d.Sandbox.Terms = e.bash.Terms().Profile.String(), e.terms()
	d.Sandbox.Held, d.Sandbox.Missing, d.Sandbox.Fix = list(r.Held), list(r.Missing), r.Fix
	d.Sandbox.TookMS = float64(r.Took.Microseconds()) / 1000
	if r.Err != nil {
		d.Sandbox.Error = r.Err.Error()
	}
	switch {
	case r.Err != nil || d.AuditErr != "":
		d.Verdict, code = "refused", exitRefused
	case len(r.Missing) > 0 || !e.sandbox.Confined():
		d.Verdict, code = "degraded", exitFailed
	default:
		d.Verdict = "good"
	}
	return d, code, nil
}

// terms says what commands have, for a person to read.
func (j *judge) terms() []string {
	out := []string{j.bash.Terms().String()}
	for _, v := range j.cfg.Execution.Environments {
		if t := j.sandbox.Terms(v.Profile, j.cfg.Tools.Sandbox.AllowDomains); t.String() != out[0] {
			out = append(out, fmt.Sprintf("in the environment %s: %s", v.Name, t))
		}
	}
	return out
}

// lookAtLog finds out whether the audit log can be opened: the server does not
// start without it.
func (j *judge) lookAtLog() (path, trouble string) {
	log, err := audit.Open(j.cfg.Tools.Audit, j.state, j.log)
	if err != nil {
		return "", err.Error()
	}
	path = log.Path()
	if err := log.Close(); err != nil {
		trouble = err.Error()
	}
	return path, trouble
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
	switch {
	case d.AuditErr != "":
		line("audit log", "error: %s", d.AuditErr)
	case d.AuditLog == "":
		line("audit log", "off")
	default:
		line("audit log", "%s", d.AuditLog)
	}
	line("sandbox", "%s, level %d, Landlock ABI %d, probed in %.0f ms", d.Sandbox.Mode, d.Sandbox.Level, d.Sandbox.LandlockABI, d.Sandbox.TookMS)
	for i, terms := range d.Sandbox.Terms {
		label := "profile"
		if i > 0 {
			label = ""
		}
		line(label, "%s", terms)
	}
	switch d.Sandbox.Limits {
	case sandbox.LimitsGroup:
		line("limits", "%s: the kernel holds memory and processes of each command", d.Sandbox.Limits)
	case sandbox.LimitsWatched:
		line("limits", "%s: memory and processes of each command are looked at several times a second", d.Sandbox.Limits)
	}
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
