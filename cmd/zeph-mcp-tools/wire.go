package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
	"github.com/zeph-tools/zeph-mcp-tools/audit"
	"github.com/zeph-tools/zeph-mcp-tools/config"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/gates/standard"
	"github.com/zeph-tools/zeph-mcp-tools/internal/redact"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
	"github.com/zeph-tools/zeph-mcp-tools/tools/bash"
	"github.com/zeph-tools/zeph-mcp-tools/tools/read"
	"github.com/zeph-tools/zeph-mcp-tools/tools/session"
	webscrape "github.com/zeph-tools/zeph-mcp-tools/tools/web_scrape"
	websearch "github.com/zeph-tools/zeph-mcp-tools/tools/web_search"
	"github.com/zeph-tools/zeph-mcp-tools/tools/write"
)

// maxText is how many characters of text a result may have before the rest is
// cut: about what every client passes on to the model.
const maxText = 30_000

// judge is everything that can say what would happen to a call. Building one
// starts no process, opens no log and reaches no network.
type judge struct {
	cfg       config.Config
	log       *slog.Logger
	state     string
	workspace *workspace.Workspace
	sandbox   *sandbox.Sandbox
	bash      *bash.Tool
	registry  *tools.Registry
	chain     *gates.Chain
	origins   config.Origins
	warnings  []string // what is less safe than the default
	notes     []string // what has no effect

	// late is what tools report to once calls run.
	late struct {
		status    func(context.Context) session.Status
		hop       func(egress.Event)
		connected func(egress.Connection)
		ended     func(bash.RunRecord)
	}
}

// judge builds, in the order data flows: configuration, workspace, sandbox,
// egress, tools, gates.
func (f *flags) judge(s streams) (*judge, error) {
	cfg, origins, err := f.load()
	if err != nil {
		return nil, err
	}
	j := &judge{cfg: cfg, origins: origins, warnings: config.Warnings(cfg)}
	if j.log, err = f.logger(s); err != nil {
		return nil, err
	}
	if err := cfg.Tools.Sandbox.Refused(runtime.GOOS); err != nil {
		return nil, err
	}
	if j.state, err = stateDir(); err != nil {
		return nil, usage(err)
	}
	if err := j.build(); err != nil {
		return nil, usage(origins.Locate(err))
	}
	return j, nil
}

// build builds what judges, from the configuration.
func (j *judge) build() error {
	if err := j.places(); err != nil {
		return err
	}
	policy, err := egress.NewPolicy(j.cfg.Egress())
	if err != nil {
		return err
	}
	if err := j.tools(policy); err != nil {
		return err
	}
	return j.gates(policy)
}

// places opens the workspace and describes to the sandbox what commands see.
func (j *judge) places() error {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // no home: nothing in it is readable
	}
	j.workspace, err = workspace.Open(j.cfg.Workspace(), workspace.Env{
		Home: home, StateDir: j.state, UID: os.Getuid(), Caches: []string{filepath.Join(j.state, "cache")},
	})
	if err != nil {
		return err
	}
	roots := j.workspace.Roots()
	readOnly := func() []string {
		var out []string
		for _, r := range roots {
			out = append(out, j.workspace.ProtectedIn(r)...)
		}
		return out
	}
	p := sandbox.Policy{
		Roots: roots, StateDir: j.state, RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"),
		Git:         j.workspace.Repositories(),
		LookSecrets: j.workspace.Secrets, LookReadOnly: readOnly, LookIn: j.workspace.ProtectedIn, LookDeep: j.workspace.ProtectedDeep,
	}
	j.sandbox, err = sandbox.New(j.cfg.Tools.Sandbox.Config, p, j.log)
	return err
}

// tools builds every tool, in the order clients see them.
func (j *judge) tools(policy *egress.Policy) error {
	var errs []error
	var list []tools.Tool
	add := func(t tools.Tool, err error) {
		errs = append(errs, err)
		list = append(list, t)
	}
	ws, cfg := j.workspace, j.cfg
	client := egress.NewClient(policy, cfg.Egress(), j.hop)
	box := cfg.Tools.Sandbox
	ast := shellast.New(ws, shellast.Options{AllowHostNetwork: box.AllowHostNetwork, AllowAnyHost: box.AllowAnyHost})
	out := bash.Outside{Hosts: box.AllowDomains, Open: func(r *egress.Rules) (sandbox.Gateway, error) {
		return egress.NewProxy(policy, r, j.connected)
	}}
	var err error
	if j.bash, err = bash.New(cfg.Bash(), ast, j.sandbox, ws, out, j.ended); err != nil {
		return err
	}
	add(j.bash, nil)
	add(bash.NewOutput(j.bash))
	add(bash.NewStop(j.bash))
	add(read.NewRead(cfg.Read(), ws))
	add(read.NewFindPath(cfg.Read(), ws))
	add(read.NewGrep(cfg.Read(), ws))
	add(read.NewListDirectory(cfg.Read(), ws))
	add(write.NewWrite(cfg.Write(), ws))
	add(write.NewEdit(cfg.Write(), ws))
	add(webscrape.NewFetch(cfg.Scrape(), client))
	add(webscrape.NewScrape(cfg.Scrape(), client))
	if search, err := websearch.NewSearch(cfg.Tools.Search, policy, j.hop); !errors.Is(err, websearch.ErrAbsent) {
		add(search, err)
	} else if cfg.Tools.Search.Enabled {
		j.notes = append(j.notes, "tools.search.enabled = true: "+err.Error())
	}
	add(session.NewStatus(func(ctx context.Context) session.Status { return j.late.status(ctx) }))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	j.registry, err = tools.NewRegistry(list...)
	return err
}

func (j *judge) hop(e egress.Event) {
	if j.late.hop != nil {
		j.late.hop(e)
	}
}

func (j *judge) connected(c egress.Connection) {
	if j.late.connected != nil {
		j.late.connected(c)
	}
}

func (j *judge) ended(r bash.RunRecord) {
	if j.late.ended != nil {
		j.late.ended(r)
	}
}

// gates builds the chain. The sandbox counts as in force when the
// configuration says so: it refuses to run anything where it is not.
func (j *judge) gates(policy *egress.Policy) error {
	var names []string
	for _, t := range j.registry.List() {
		names = append(names, t.Name)
	}
	known := append([]string{"web_search"}, names...) // rules for it may stand without a key
	j.notes = append(j.notes, j.cfg.Tools.Policy.Unmatched(known)...)
	j.notes = append(j.notes, j.cfg.Tools.Permissions.Unmatched(known)...)
	j.notes = append(j.notes, j.cfg.Tools.Shell.Command.Idle()...)
	var err error
	j.chain, err = standard.Chain(gateConfig(j.cfg), standard.Deps{
		Tools: names, Roots: j.workspace.Roots(), Egress: policy,
		Posture: command.Posture{
			Confined:     j.sandbox.Confined() && j.bash.Offline(),
			PIDNamespace: j.sandbox.OwnProcesses(),
		},
	})
	return err
}

// gateConfig picks what each gate is told out of the configuration.
func gateConfig(c config.Config) standard.Config {
	return standard.Config{
		Scope: c.Security.CapabilityScopes, Policy: c.Tools.Policy, Trust: c.Tools.Trust,
		Permission: c.Tools.Permissions, Command: c.Tools.Shell.Command, Paths: c.Tools.File.Paths,
	}
}

// engine is a judge that can also run calls.
type engine struct {
	*judge
	pipeline  *pipeline.Pipeline
	approvals *approval.Service
	audit     *audit.Log
	started   time.Time
}

// engine opens the audit log and builds the pipeline. Close must be called.
func (f *flags) engine(s streams) (*engine, error) {
	j, err := f.judge(s)
	if err != nil {
		return nil, err
	}
	e := &engine{judge: j, started: time.Now()}
	if e.approvals, err = approval.New(j.cfg.Approval, approval.NewMemory(), j.log); err != nil {
		return nil, usage(j.origins.Locate(err))
	}
	if e.audit, err = audit.Open(j.cfg.Tools.Audit, j.state, j.log); err != nil {
		return nil, err
	}
	j.late.status = e.status
	j.late.hop = func(ev egress.Event) { e.recordEvent("egress", ev) }
	j.late.connected = func(c egress.Connection) { e.recordEvent("connection", c) }
	j.late.ended = e.recordEnd
	e.pipeline, err = pipeline.New(pipeline.Options{
		Tools: j.registry, Chain: j.chain, Approvals: e.approvals, Audit: e.audit, Redact: redact.New(),
		Log: j.log, Fingerprint: j.fingerprint(), MaxText: maxText, Ready: func(ctx context.Context) error { return j.sandbox.Probe(ctx).Err },
	})
	if err != nil {
		return nil, errors.Join(err, e.audit.Close())
	}
	return e, nil
}

// recordEvent writes one outbound connection to the audit log.
func (e *engine) recordEvent(kind string, ev any) {
	var fields map[string]any
	b, err := json.Marshal(ev)
	if err == nil {
		err = json.Unmarshal(b, &fields)
	}
	if err == nil {
		err = e.audit.Event(kind, fields)
	}
	if err != nil {
		e.log.Error("audit log lost a connection", "error", err)
	}
}

// recordEnd writes the end of a background run to the audit log: the record of
// its call was written when the call was answered.
func (e *engine) recordEnd(r bash.RunRecord) {
	fields := map[string]any{
		"call_id": r.CallID, "run_id": r.RunID, "session": r.Session, "bytes": r.Bytes, "duration_ms": r.Duration.Milliseconds(),
		"timed_out": r.TimedOut, "stopped": r.Stopped, "survivors": r.Survivors,
	}
	if r.Err != nil {
		fields["error"] = r.Err.Error()
	} else {
		fields["exit_code"] = r.ExitCode
	}
	if r.Signal != "" {
		fields["signal"] = r.Signal
	}
	if len(r.Violations) > 0 {
		fields["violations"] = r.Violations
	}
	if err := e.audit.Event("run_ended", fields); err != nil {
		e.log.Error("audit log lost the end of a run", "call_id", r.CallID, "error", err)
	}
}

// fingerprint names the policy in force: approvals and grants end with it.
func (j *judge) fingerprint() string {
	b, err := json.Marshal(struct {
		Version string
		Config  config.Config
		Roots   []string
	}{version, j.cfg, j.workspace.Roots()})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// status is what the status tool and zeph://status tell.
func (e *engine) status(ctx context.Context) session.Status {
	st := session.Status{
		Version: version, Uptime: time.Since(e.started).Round(time.Second).String(), Workspace: e.workspace.Roots(),
		Gates: e.chain.Names(), Calls: e.pipeline.Stats(), Warnings: e.warnings,
	}
	for _, t := range e.registry.List() {
		st.Tools = append(st.Tools, t.Name)
	}
	r := e.sandbox.Probe(ctx)
	terms := e.bash.Terms()
	st.Sandbox = session.Sandbox{
		Mode: r.Mode, Level: r.Level, Profile: terms.Profile.String(), Network: terms.Network.String(), Missing: r.Missing,
	}
	return st
}

// ready says why calls cannot be taken yet.
func (e *engine) ready() error { return e.sandbox.Probe(context.Background()).Err }

// endSession takes back what a session held.
func (e *engine) endSession(id string) {
	e.bash.End(id)
	e.sandbox.End(id)
	if err := e.workspace.DropScratch(id); err != nil {
		e.log.Warn("session left something behind", "error", err)
	}
}

// Close ends what runs and writes down what waited. It is safe after a failed
// serve.
func (e *engine) Close() error {
	e.pipeline.Close()
	e.bash.Close()
	return errors.Join(e.sandbox.Close(), e.audit.Close())
}
