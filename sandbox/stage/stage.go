// Package stage is what this binary does when the sandbox starts it under
// another name: it launches an anchor, is the anchor of a session, or probes
// what the anchor's walls hold.
//
// A stage runs before main, picked by the program name, in any binary that
// links this package. So that it starts fast and holds little, the package
// imports nothing but os, syscall and x/sys/unix beyond what those bring
// themselves. An anchor is the trusted part of the sandbox: it has an empty
// environment, cannot be inspected by what it runs, ignores signals, reads
// nothing but bounded frames from its control socket, and ends with it.
package stage

// The program names that select a stage.
const (
	NameLaunch = "zeph-sandbox-launch" // starts an anchor in new namespaces and leaves
	NameAnchor = "zeph-sandbox-anchor" // first process of a session's namespaces
	NameProbe  = "zeph-sandbox-probe"  // tries what must not work, inside
)

// The launcher's argument for an anchor in the host's namespaces.
const (
	ModeOpen   = "open"   // without walls: it only keeps track of what it started
	ModeShared = "shared" // with the walls that need no namespaces
)

// ModeHostNetwork is the launcher's argument for an anchor that stays in the
// host's network.
const ModeHostNetwork = "host-network"

// ControlFD is the descriptor of the control socket in a launcher and anchor.
const ControlFD = 3
