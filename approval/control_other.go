//go:build !linux

package approval

import (
	"errors"
	"fmt"
	"net"
)

// errElsewhere is the answer where it cannot be told who is at the other end
// of a socket and whether an agent started it.
var errElsewhere = fmt.Errorf("approvals out of band need Linux: %w", errors.ErrUnsupported)

type runDir struct{ owner int }

func openRunDir(string, bool) (*runDir, error) { return nil, errElsewhere }

func (*runDir) close() {}

func (*runDir) addr(string) *net.UnixAddr { return nil }

func (*runDir) listen() (*net.UnixListener, func(), error) { return nil, nil, errElsewhere }

func (*runDir) sockets() ([]string, error) { return nil, errElsewhere }

func (*runDir) removeStale(string) {}

func pidOf(string) string { return "" }

func peerOf(*net.UnixConn) (peer, error) { return peer{}, errElsewhere }

func (peer) admit() error { return errElsewhere }
