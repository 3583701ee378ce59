package egress

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Of SOCKS version 5, RFC 1928: the version, the answers, and the kinds of
// address.
const (
	socksVersion = 5

	socksOK          = 0
	socksFailed      = 1
	socksRefused     = 2
	socksUnreachable = 4
	socksNoCommand   = 7
	socksNoAddress   = 8

	socksIPv4 = 1
	socksName = 3
	socksIPv6 = 4
)

// socksError is a request that cannot be served, with the answer to it.
type socksError struct {
	answer byte
	why    string
}

func (e *socksError) Error() string { return e.why }

// errNoMethod means that the client wants to log in, or speaks no SOCKS.
var errNoMethod = errors.New("the client offers no connection without a login")

// readSocks reads what a client says before it may send: the greeting, which
// it answers, and the request. It reads no byte beyond them.
func readSocks(rw io.ReadWriter) (host string, port int, err error) {
	var b [2]byte
	if _, err := io.ReadFull(rw, b[:]); err != nil {
		return "", 0, err
	}
	methods := make([]byte, b[1])
	if _, err := io.ReadFull(rw, methods); err != nil {
		return "", 0, err
	}
	ok := b[0] == socksVersion
	open := false
	for _, m := range methods {
		open = open || m == 0
	}
	if !ok || !open {
		_, _ = rw.Write([]byte{socksVersion, 0xff})
		return "", 0, errNoMethod
	}
	if _, err := rw.Write([]byte{socksVersion, 0}); err != nil {
		return "", 0, err
	}
	return readSocksRequest(rw)
}

func readSocksRequest(r io.Reader) (host string, port int, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", 0, err
	}
	var n int
	switch head[3] {
	case socksIPv4:
		n = 4
	case socksIPv6:
		n = 16
	case socksName:
		var l [1]byte
		if _, err := io.ReadFull(r, l[:]); err != nil {
			return "", 0, err
		}
		n = int(l[0])
	default:
		return "", 0, &socksError{socksNoAddress, fmt.Sprintf("the kind of address %d is not known", head[3])}
	}
	rest := make([]byte, n+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return "", 0, err
	}
	port = int(rest[n])<<8 | int(rest[n+1])
	host = string(rest[:n])
	if a, ok := netip.AddrFromSlice(rest[:n]); ok && head[3] != socksName {
		host = a.Unmap().String()
	}
	switch {
	case head[0] != socksVersion:
		return "", 0, &socksError{socksFailed, "the version of SOCKS is not 5"}
	case head[1] != 1:
		return host, port, &socksError{socksNoCommand, "only connections can be made, no listeners and no datagrams"}
	}
	return host, port, nil
}

// socksAnswer is the answer to a request, with no address in it.
func socksAnswer(code byte) []byte { return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0} }
