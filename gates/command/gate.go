// Package command is the gate that judges what commands do: what is never run,
// what destroys what cannot be got back, and what nobody can know before it
// runs.
package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
)

// Posture says what the sandbox holds, as the configuration promises it. Its
// zero value is the strict side.
type Posture struct {
	Confined     bool // strict, with the network off
	PIDNamespace bool // processes outside are out of reach
}

// Gate judges commands. It is safe for concurrent use.
type Gate struct {
	cfg     Config
	posture Posture
	blocked map[string]bool // by built-in name or configuration
	pat     patterns
}

// New returns a gate for a valid configuration.
func New(cfg Config, posture Posture) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{cfg: cfg, posture: posture, blocked: map[string]bool{}, pat: compile(cfg.ConfirmPatterns)}
	for _, n := range blockedNames() {
		g.blocked[n] = true
	}
	for _, n := range cfg.AllowedCommands {
		delete(g.blocked, name(n))
	}
	if !cfg.AllowNetwork {
		for _, n := range networkNames() {
			g.blocked[n] = true
		}
	}
	for _, n := range cfg.BlockedCommands {
		if n = name(n); !strings.ContainsAny(n, " *") {
			g.blocked[n] = true
		}
	}
	return g, nil
}

func name(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// Name returns "command".
func (*Gate) Name() string { return "command" }

func blockedNames() []string {
	return []string{
		"sudo", "doas", "su", "pkexec", "run0", "mkfs", "mke2fs", "shutdown", "reboot", "halt", "poweroff",
		"init", "systemctl", "dd", "curl", "wget", "nc", "ncat", "netcat",
	}
}

func networkNames() []string { return []string{"curl", "wget", "nc", "ncat", "netcat"} }

// finding is one answer with its place in the command.
type finding struct {
	gates.Decision
	pos call.Pos
}

// Check judges the commands, constructs and unknown words of a call.
func (g *Gate) Check(_ context.Context, c call.Call) (gates.Decision, error) {
	f := &c.Facts
	if f.Parse != nil {
		d := gates.Decision{Code: "parse_error", Reason: fmt.Sprintf("the command cannot be read%s: %s", at(f.Parse.Pos), f.Parse.Message), Suggestion: f.Parse.Suggestion}
		return d, nil
	}
	found := g.loosening(nil, f)
	found = g.commands(found, f)
	found = g.acts(found, f)
	found = g.constructs(found, f)
	found = g.unknown(found, f)
	found = g.environment(found, f)
	if t, ok := g.pat.text(f.Text); ok && len(f.Commands) > 0 {
		found = append(found, confirm(call.Pos{}, "confirm_pattern", "the command holds the text "+quote(t), "", "text "+t))
	}
	if len(found) == 0 {
		return gates.Permit(), nil
	}
	best := slices.MinFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.pos.Line, b.pos.Line), cmp.Compare(a.pos.Column, b.pos.Column))
	})
	if best.Verdict == gates.Confirm {
		best.Reason, best.Kind = together(found, best)
	}
	return best.Decision, nil
}

// maxReasons is how many are told at once; the whole command is shown beside
// them.
const maxReasons = 6

// together is what a person is told when several things ask, the first one
// first, and what their leave for a session would cover: all of it, or nothing
// when a part of it cannot be covered. A leave for one of them is none for the
// call.
func together(found []finding, first finding) (reason, kind string) {
	reasons, kinds := []string{first.Reason}, []string{first.Kind}
	for _, f := range found {
		if f.Verdict != gates.Confirm {
			continue
		}
		if !slices.Contains(reasons, f.Reason) {
			reasons = append(reasons, f.Reason)
		}
		kinds = append(kinds, f.Kind)
	}
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	if kinds[0] == "" {
		return strings.Join(reasons, "; "), ""
	}
	return strings.Join(reasons, "; "), strings.Join(kinds, "; ")
}

func deny(pos call.Pos, code, reason, suggestion string) finding {
	return finding{gates.Decision{Verdict: gates.Deny, Code: code, Reason: reason, Suggestion: suggestion}, pos}
}

func confirm(pos call.Pos, code, reason, suggestion, kind string) finding {
	if kind != "" {
		kind = code + " " + kind
	}
	return finding{gates.Decision{Verdict: gates.Confirm, Code: code, Reason: reason, Suggestion: suggestion, Kind: kind}, pos}
}

// at says where in the command something stands.
func at(p call.Pos) string {
	if p.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" at %d:%d", p.Line, p.Column)
}

// quote shows a text of the command, cut to what a person reads at once.
func quote(s string) string {
	const limit = 120
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return "«" + strings.ReplaceAll(s, "\n", " ") + "»"
}

func (g *Gate) loosening(out []finding, f *call.Facts) []finding {
	for _, l := range f.Loosening {
		if l.Never != "" {
			out = append(out, deny(call.Pos{}, "not_grantable", fmt.Sprintf("%s %s cannot be granted to a call: %s", l.Field, quote(l.Value), l.Never), "leave it out, or ask the operator to allow it in the configuration"))
			continue
		}
		out = append(out, confirm(call.Pos{}, "loosening", fmt.Sprintf("the call asks for more than the base policy: %s %s", l.Field, quote(l.Value)), "leave it out if the command does not need it", l.Field+" "+l.Value))
	}
	return out
}

// confined reports whether the sandbox answers for constructs.
func (g *Gate) confined(f *call.Facts) bool {
	return g.posture.Confined && len(f.Loosening) == 0
}

func (g *Gate) commands(out []finding, f *call.Facts) []finding {
	for _, c := range f.Commands {
		if c.Own {
			continue
		}
		if why := g.isBlocked(c); why != "" {
			reason := fmt.Sprintf("%s is never run: %s%s", quote(why), quote(strings.Join(c.Argv, " ")), at(c.Pos))
			if c.Via != "" {
				reason += ", run by " + c.Via
			}
			out = append(out, deny(c.Pos, "blocked_command", reason, suggestBlocked(c, f)))
			continue
		}
		if p, ok := g.pat.command(c); ok {
			out = append(out, confirm(c.Pos, "confirm_pattern", fmt.Sprintf("%s matches the pattern %s%s", quote(strings.Join(c.Argv, " ")), quote(p), at(c.Pos)), "", subject(c.Name, sub(c))))
		}
	}
	return out
}

func subject(name, sub string) string { return strings.TrimSpace(name + " " + sub) }

// sub is the subcommand of the programs that have them.
func sub(c call.Command) string {
	for _, a := range c.Argv[min(1, len(c.Argv)):] {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// isBlocked returns the name by which a command is never run.
func (g *Gate) isBlocked(c call.Command) string {
	n := c.Name
	if n == "" {
		return ""
	}
	for _, pattern := range g.cfg.BlockedCommands {
		if words := strings.Fields(name(pattern)); len(words) > 1 && (matchWords(words, c) || matchWords(append(words, "*"), c)) {
			return pattern
		}
	}
	key := n
	switch {
	case strings.HasPrefix(n, "mkfs.") && !g.blocked[n]:
		key = "mkfs"
	case n == "telinit":
		key = "init"
	case n == "nc.traditional" || n == "nc.openbsd":
		key = "nc"
	}
	byOperator := slices.ContainsFunc(g.cfg.BlockedCommands, func(s string) bool { return name(s) == key })
	if !g.blocked[key] || !byOperator && !harmful(key, c.Argv[min(1, len(c.Argv)):]) {
		return ""
	}
	return n
}

// harmful reports whether the operands make a built-in name one that is never
// run.
func harmful(n string, args []string) bool {
	return n != "init" && n != "systemctl" && n != "dd" || slices.ContainsFunc(args, func(a string) bool {
		switch n {
		case "init":
			return a == "0" || a == "6"
		case "systemctl":
			if unit, ok := strings.CutSuffix(a, ".target"); ok && slices.ContainsFunc(args, func(v string) bool { return v == "start" || v == "isolate" }) {
				a = unit
			}
			return a == "poweroff" || a == "reboot" || a == "halt" || a == "kexec"
		default:
			a = strings.ToLower(a)
			return strings.HasPrefix(a, "if=") || strings.HasPrefix(a, "of=")
		}
	})
}

// acts judges what commands destroy.
func (g *Gate) acts(out []finding, f *call.Facts) []finding {
	for _, a := range f.Acts {
		what := quote(a.Text) + at(a.Pos)
		kind := subject(a.Name, a.Sub)
		if a.Kind == call.ActPush {
			kind = "git push"
		}
		switch a.Kind {
		case call.ActDestroy:
			out = append(out, deny(a.Pos, "destructive_delete", "a recursive delete of "+a.Sub+" is never run: "+what, "name a concrete sub-directory of the workspace"))
		case call.ActForkBomb:
			out = append(out, deny(a.Pos, "fork_bomb", "the function "+quote(a.Name)+" multiplies itself: "+what, "loop, or run one copy at a time"))
		case call.ActNetworkDevice:
			out = append(out, deny(a.Pos, "network_device", "bash would open a connection: "+what, "use the fetch tool to get a page; commands have no network"))
		case call.ActUnknownOperand:
			out = append(out, confirm(a.Pos, "unresolved_command", "what "+quote(a.Name)+" is given is not known before it runs: "+what, "name the operand literally", kind))
		case call.ActGit:
			out = append(out, confirm(a.Pos, "git_destructive", "git "+a.Sub+" throws work away: "+what, "commit or stash first", kind))
		case call.ActMassChange:
			out = append(out, confirm(a.Pos, "mass_change", "many files change at once: "+what, suggestAct(a), kind))
		case call.ActSignal:
			if !g.posture.PIDNamespace {
				out = append(out, confirm(a.Pos, "process_control", "processes of others may end: "+what, "end one process by its id", kind))
			}
		case call.ActRemove, call.ActTruncate, call.ActPush:
			if g.pat.acts[a.Kind] {
				out = append(out, confirm(a.Pos, "confirm_pattern", actReason(a)+": "+what, suggestAct(a), kind))
			}
		case call.ActSQL:
			if g.pat.sql[a.Sub] {
				out = append(out, confirm(a.Pos, "confirm_pattern", a.Sub+" destroys data: "+what, "back the data up first", kind))
			}
		}
	}
	return out
}

func actReason(a call.Act) string {
	if a.Kind == call.ActPush {
		return "this push (" + a.Sub + ") rewrites or deletes what others have"
	}
	if a.Kind == call.ActTruncate {
		return "truncate cuts files"
	}
	return "rm deletes what cannot be got back"
}

// constructs judges what a rule may ask about. The sandbox answers for a
// construct whose result is not run as code.
func (g *Gate) constructs(out []finding, f *call.Facts) []finding {
	answered := g.cfg.AllowConfinedConstructs && g.confined(f)
	for _, c := range f.Constructs {
		if !g.pat.constructs[c.Kind] {
			continue
		}
		if answered && !c.AsCode {
			out = append(out, finding{gates.Decision{
				Verdict: gates.Allow, Code: "confined", Reason: fmt.Sprintf("the construct %s %s%s runs in the sandbox", c.Kind, quote(c.Text), at(c.Pos)),
			}, c.Pos})
			continue
		}
		why, hint := "holds the construct", "write the value out, or run the inner command by itself first"
		if c.AsCode {
			why = "runs as code what comes out of the construct"
			hint = "run the inner command first, look at what it prints, and then run that"
		}
		out = append(out, confirm(c.Pos, "confirm_pattern", fmt.Sprintf("the command %s %s %s%s", why, c.Kind, quote(c.Text), at(c.Pos)), hint, c.Kind))
	}
	return out
}

func (g *Gate) unknown(out []finding, f *call.Facts) []finding {
	for _, u := range f.Unknown {
		switch {
		case u.Code:
			out = append(out, confirm(u.Pos, "unresolved_command", fmt.Sprintf("%s: %s%s", u.Why, quote(u.Text), at(u.Pos)), "write the command out literally", ""))
		case !g.posture.Confined && u.Op != "" && u.Op != "test":
			// Without walls nothing holds what the path leads to.
			out = append(out, confirm(u.Pos, "unresolved_command", fmt.Sprintf("%s: %s%s", u.Why, quote(u.Text), at(u.Pos)), "write the path out literally", ""))
		}
	}
	return out
}

// environment judges variables that change what later programs load. In the
// sandbox they can do no harm.
func (g *Gate) environment(out []finding, f *call.Facts) []finding {
	if g.confined(f) {
		return out
	}
	for _, e := range f.Env {
		if overrides(e.Name) {
			out = append(out, confirm(e.Pos, "environment_override", fmt.Sprintf("%s decides what later programs load or run (%s)%s", quote(e.Name), e.How, at(e.Pos)), "call the program by its path instead", e.Name))
		}
	}
	return out
}

// overrides reports whether a variable changes what later programs load or run.
func overrides(n string) bool {
	switch n {
	case "PATH", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "IFS", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER",
		"GIT_EDITOR", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "RUBYOPT",
		"RUBYLIB", "RUSTC_WRAPPER", "GOFLAGS", "MAKEFLAGS", "PAGER", "EDITOR", "VISUAL":
		return true
	}
	for _, p := range []string{"LD_", "DYLD_", "GIT_SSH", "GIT_CONFIG"} {
		if strings.HasPrefix(n, p) {
			return true
		}
	}
	return false
}
