package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"
)

const (
	recordHandshake = 0x16 // first byte of a TLS connection
	maxHello        = 32 << 10
	extEncrypted    = 0xfe0d // encrypted client hello
)

// hello is what a client says before anything of a TLS connection is secret.
type hello struct {
	raw       []byte // what was read, to be passed on
	name      string // server name; "" = none
	encrypted bool   // another name may be hidden in it
}

var errHello = errors.New("this is no TLS client hello")

// readHello reads a client hello and no more than maxHello bytes. The parser
// is the standard library's, which refuses doubled extensions and names; the
// handshake it serves for ends as soon as the hello is known.
func readHello(ctx context.Context, r io.Reader) (hello, error) {
	var h hello
	var raw bytes.Buffer
	known := false
	stop := errors.New("known")
	conn := tls.Server(hearOnly{io.TeeReader(io.LimitReader(r, maxHello), &raw)}, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			h.name, known = info.ServerName, true
			h.encrypted = slices.Contains(info.Extensions, extEncrypted)
			return nil, stop
		},
	})
	err := conn.HandshakeContext(ctx)
	h.raw = raw.Bytes()
	if !known {
		return h, errors.Join(errHello, err)
	}
	return h, nil
}

// hearOnly is a connection that can only be read from.
type hearOnly struct{ io.Reader }

func (hearOnly) Write(b []byte) (int, error)      { return len(b), nil }
func (hearOnly) Close() error                     { return nil }
func (hearOnly) LocalAddr() net.Addr              { return nil }
func (hearOnly) RemoteAddr() net.Addr             { return nil }
func (hearOnly) SetDeadline(time.Time) error      { return nil }
func (hearOnly) SetReadDeadline(time.Time) error  { return nil }
func (hearOnly) SetWriteDeadline(time.Time) error { return nil }

// alertDenied is the TLS record for "access denied", which clients show.
func alertDenied() []byte { return []byte{0x15, 3, 1, 0, 2, 2, 49} }
