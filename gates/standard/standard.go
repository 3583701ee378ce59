// Package standard is the list of gates every server runs.
package standard

import (
	"errors"

	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/gates/paths"
	"github.com/zeph-tools/zeph-mcp-tools/gates/permission"
	"github.com/zeph-tools/zeph-mcp-tools/gates/policy"
	"github.com/zeph-tools/zeph-mcp-tools/gates/scope"
	"github.com/zeph-tools/zeph-mcp-tools/gates/trust"
	"github.com/zeph-tools/zeph-mcp-tools/gates/urls"
)

// Config is what each gate is told by the operator.
type Config struct {
	Scope      scope.Config
	Policy     policy.Config
	Trust      trust.Config
	Permission permission.Config
	Command    command.Config
	Paths      paths.Config
}

// Deps is what gates must know of the rest of the server.
type Deps struct {
	Tools   []string        // names of the tools served
	Roots   []string        // workspace roots
	Posture command.Posture // the confinement that the configuration promises
	Egress  *egress.Policy  // where connections may go
}

// Chain builds every gate and returns them as one chain. A gate that cannot
// be built stops start-up.
func Chain(cfg Config, d Deps) (*gates.Chain, error) {
	var errs []error
	built := func(g gates.Gate, err error) gates.Gate {
		errs = append(errs, err)
		return g
	}
	gs := list(cfg, d, built)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return gates.NewChain(gs...)
}

// list is the order of the gates. The verdict does not depend on it, since the
// strictest wins; it decides which refusal is told first and what a refusal
// costs.
func list(cfg Config, d Deps, built func(gates.Gate, error) gates.Gate) []gates.Gate {
	return []gates.Gate{
		built(scope.New(cfg.Scope, d.Tools)),       // is the tool part of this task at all; nothing else is told
		built(policy.New(cfg.Policy)),              // what the operator's rules say
		built(trust.New(cfg.Trust)),                // is this caller believed enough
		built(permission.New(cfg.Permission)),      // what the operator lets this tool do unasked
		built(command.New(cfg.Command, d.Posture)), // what a command would run
		built(paths.New(cfg.Paths, d.Roots...)),    // what it would read and write
		built(urls.New(d.Egress)),                  // where it would connect
	}
}
