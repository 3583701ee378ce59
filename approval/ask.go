package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sort"
	"syscall"
	"time"
)

// ErrNoServer says that there is nobody to ask.
var ErrNoServer = errors.New("no server of yours is running")

// Ask puts a request to every running server whose socket is in dir and
// returns what they have: for [OpList] all open questions, oldest first, else
// the one question with that id as it is after the request. A server that
// could not be asked is an error beside what the others said. Sockets that
// killed servers left behind are taken away.
//
// The error is [ErrNoServer] when no server runs, [ErrNotFound] when none has
// an open question with this id, and [ErrApproved] when it was approved
// before.
func Ask(ctx context.Context, dir string, op Op, id string) ([]View, error) {
	r := controlRequest{Op: op, ID: id}
	if err := r.check(); err != nil {
		return nil, err
	}
	d, err := openRunDir(dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (looked in %s)", ErrNoServer, dir)
	}
	if err != nil {
		return nil, err
	}
	defer d.close()

	names, err := d.sockets()
	if err != nil {
		return nil, err
	}
	var (
		views  []View
		faults []error
		asked  bool
	)
	for _, name := range names {
		got, err := d.ask(ctx, name, r)
		switch {
		case errors.Is(err, errNobody):
			continue
		case errors.Is(err, ErrNotFound):
		case errors.Is(err, ErrApproved):
			return nil, err
		case err != nil:
			faults = append(faults, fmt.Errorf("server %s: %w", pidOf(name), err))
		case op != OpList:
			return got, nil
		}
		asked = true
		views = append(views, got...)
	}
	switch {
	case !asked:
		return nil, fmt.Errorf("%w (looked in %s)", ErrNoServer, dir)
	case op != OpList && len(faults) == 0:
		return nil, ErrNotFound
	}
	sort.SliceStable(views, func(i, j int) bool { return views[i].Created.Before(views[j].Created) })
	return views, errors.Join(faults...)
}

// errNobody says that no server listens on a socket.
var errNobody = errors.New("nobody listens")

// ask puts the request to one server.
func (d *runDir) ask(ctx context.Context, name string, r controlRequest) ([]View, error) {
	conn, err := d.dial(name)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // everything was read
	if err := conn.SetDeadline(time.Now().Add(2 * controlWithin)); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	// A server that refuses may reply before it has read everything.
	_, sent := conn.Write(raw)
	if sent == nil {
		sent = conn.CloseWrite()
	}
	var rep controlReply
	if err := json.NewDecoder(io.LimitReader(conn, maxControlReply)).Decode(&rep); err != nil {
		return nil, fmt.Errorf("it did not answer, and whether the request took effect is unknown: %w", errors.Join(sent, err))
	}
	for i, v := range rep.Views {
		rep.Views[i] = v.harmless()
	}
	switch rep.Status {
	case statusOK:
		if r.Op != OpList && (len(rep.Views) != 1 || rep.Views[0].ID != r.ID) {
			return nil, errors.New("it answered about something else")
		}
		return rep.Views, nil
	case statusUnknown:
		return nil, ErrNotFound
	case statusApproved:
		return nil, ErrApproved
	case statusFailed:
		return nil, errors.New(visible(rep.Error))
	}
	return nil, errors.New("it answered in a way this program does not know")
}

// dial connects to one server and makes sure that it is the folder's owner's.
func (d *runDir) dial(name string) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, d.addr(name))
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		d.removeStale(name)
		return nil, errNobody
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNobody
	case err != nil:
		return nil, err
	}
	p, err := peerOf(conn)
	if err == nil && p.uid != d.owner {
		err = fmt.Errorf("it belongs to user %d", p.uid)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// sweep takes away what killed servers left behind.
func (d *runDir) sweep() {
	names, err := d.sockets()
	if err != nil {
		return // another start will
	}
	for _, name := range names {
		if conn, err := d.dial(name); err == nil {
			_ = conn.Close()
		}
	}
}
