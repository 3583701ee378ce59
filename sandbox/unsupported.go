//go:build !linux && !darwin

package sandbox

import (
	"context"
	"net"
	"runtime"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// lesserLevel is not there either.
const lesserLevel = LevelShared

// watch does not exist here either.
type watch struct{ bare bool }

func (*watch) attend(func() []string) {}
func (*watch) close()                 {}

// anchor does not exist here: no other kernel has the walls.
type anchor struct{}

func (*anchor) close() {}
func (*anchor) wait()  {}

func (*anchor) dial(int) (net.Conn, error) { return nil, errRetired }

func (*anchor) ended() bool { return true }

func startAnchor(*stage.Setup) (*anchor, error) {
	return nil, refusal(runtime.GOOS)
}

func (*Sandbox) tryWalls(context.Context, int) (Report, error) {
	_, err := startAnchor(nil)
	return Report{}, err
}

// Control groups do not exist here either.
type (
	group  struct{}
	groups struct{}
)

func (*groups) close() {}

// capture is what a command printed; here none is ever started.
type capture struct{ output }

func (c Config) memoryLimit() int64 { return c.MaxMemory }

func (*Run) launch() error { return errRetired }

func (*Sandbox) network(*stage.Setup, Network) {}

func (*Sandbox) open(Network, *anchor) (Gateway, error) { return nil, errRetired }
