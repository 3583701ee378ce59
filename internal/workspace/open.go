package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
)

// The refusals of the opening functions. They are a second fence behind the
// gates, which have judged the same path before.
var (
	// ErrRefused means the place is secret, undecided, or not writable.
	ErrRefused = errors.New("the path is not open to the file tools")
	// ErrNotRegular means the path is a device, a pipe or a socket.
	ErrNotRegular = errors.New("not a regular file")
	// ErrLink means a component is a symbolic link now and was none when the
	// call was judged.
	ErrLink = errors.New("the path changed while the call was judged: a component is a symbolic link now")
)

// anchor returns the directory that p is opened from and the rest of the way.
// The rest never passes a symbolic link.
func (w *Workspace) anchor(session string, p call.Path) (base, rel string, err error) {
	if p.Place == call.PlaceSecret || p.Place == call.PlaceUnknown || p.Secret != "" || !strings.HasPrefix(p.Path, "/") {
		return "", "", ErrRefused
	}
	if r, ok := w.rootOf(p.Path); ok {
		return r, strings.TrimPrefix(p.Path[len(r):], "/"), nil
	}
	switch {
	case within("/tmp", p.Path):
		if base, err = w.Scratch(session); err != nil {
			return "", "", err
		}
		return base, strings.TrimPrefix(p.Path[len("/tmp"):], "/"), nil
	case within("/dev/shm", p.Path):
		return "", "", ErrRefused
	}
	return "/", p.Path[1:], nil
}

// OpenFile opens p for a file tool: from the handle of its root, component by
// component, following no link. Flags that write are refused where p is not
// writable or protected. What is opened is a regular file; anything else is
// [ErrNotRegular], and a folder is EISDIR.
func (w *Workspace) OpenFile(session string, p call.Path, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0 {
		if err := writable(p); err != nil {
			return nil, &fs.PathError{Op: "open", Path: p.Path, Err: err}
		}
	}
	d, name, err := w.openParent(session, p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.open(name, flag, perm)
}

// OpenDir opens the folder p.
func (w *Workspace) OpenDir(session string, p call.Path) (*Dir, error) {
	base, rel, err := w.anchor(session, p)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.Path, Err: err}
	}
	return openDirAt(base, rel, p.Path)
}

// ReadDir lists the folder p, sorted by name.
func (w *Workspace) ReadDir(session string, p call.Path) ([]fs.DirEntry, error) {
	d, err := w.OpenDir(session, p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir()
}

// Lstat describes p itself, a link as a link.
func (w *Workspace) Lstat(session string, p call.Path) (*Info, error) {
	d, name, err := w.openParent(session, p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Lstat(name)
}

// Mkdir makes the folder p; its parent must exist.
func (w *Workspace) Mkdir(session string, p call.Path, perm fs.FileMode) error {
	if err := writable(p); err != nil {
		return &fs.PathError{Op: "mkdir", Path: p.Path, Err: err}
	}
	d, name, err := w.openParent(session, p)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.mkdir(name, perm)
}

// MkdirAll makes the folder p and those above it, as far as they are missing.
func (w *Workspace) MkdirAll(session string, p call.Path, perm fs.FileMode) error {
	if err := writable(p); err != nil {
		return &fs.PathError{Op: "mkdir", Path: p.Path, Err: err}
	}
	base, rel, err := w.anchor(session, p)
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: p.Path, Err: err}
	}
	d, err := openDirAt(base, "", base)
	if err != nil {
		return err
	}
	defer func() { d.Close() }()
	for _, c := range split(rel) {
		if err := d.mkdir(c, perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		next, err := d.Dir(c)
		if err != nil {
			return err
		}
		d.Close()
		d = next
	}
	return nil
}

// openParent opens the folder that holds p.
func (w *Workspace) openParent(session string, p call.Path) (*Dir, string, error) {
	base, rel, err := w.anchor(session, p)
	if err != nil {
		return nil, "", &fs.PathError{Op: "open", Path: p.Path, Err: err}
	}
	dir, name := "", rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		dir, name = rel[:i], rel[i+1:]
	}
	if name == "" {
		name = "."
	}
	d, err := openDirAt(base, dir, parent(p.Path))
	return d, name, err
}

// writable refuses what no file tool may change.
func writable(p call.Path) error {
	switch {
	case p.Place != call.PlaceWorkspace && p.Place != call.PlaceScratch:
		return ErrRefused
	case p.Protected != "":
		return fmt.Errorf("%w: %s is protected", ErrRefused, p.Protected)
	}
	return nil
}

func split(rel string) []string {
	if rel == "" {
		return nil
	}
	return strings.Split(rel, "/")
}

// Dir is an open folder. Everything reached through it is reached from its
// handle, so it stays the same folder whatever happens to its path.
type Dir struct {
	f    *os.File
	path string // as judged; for messages and for classifying what lies below
}

// openDirAt opens base and walks down rel, following no link below base.
func openDirAt(base, rel, shown string) (*Dir, error) {
	fd, err := retry(func() (int, error) {
		return posix.Open(base, os.O_RDONLY|posix.O_DIRECTORY|posix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: base, Err: err}
	}
	for c := range strings.SplitSeq(rel, "/") {
		if c == "" {
			continue
		}
		next, err := openat(fd, c, os.O_RDONLY|posix.O_DIRECTORY, 0)
		_ = posix.Close(fd) // a directory opened for reading
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: shown, Err: err}
		}
		fd = next
	}
	return &Dir{f: os.NewFile(uintptr(fd), shown), path: shown}, nil
}

// Close closes the folder. It was opened for reading, so nothing is lost when
// closing fails.
func (d *Dir) Close() { _ = d.f.Close() }

// Path returns the folder's path as it was judged.
func (d *Dir) Path() string { return d.path }

// Join returns the path of an entry.
func (d *Dir) Join(name string) string {
	if d.path == "/" {
		return "/" + name
	}
	return d.path + "/" + name
}

// ReadDir lists the folder, sorted by name.
func (d *Dir) ReadDir() ([]fs.DirEntry, error) {
	list, err := d.f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	sortEntries(list)
	return list, nil
}

// Dir opens an entry that is a folder.
func (d *Dir) Dir(name string) (*Dir, error) {
	fd, err := openat(d.fd(), name, os.O_RDONLY|posix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.Join(name), Err: err}
	}
	return &Dir{f: os.NewFile(uintptr(fd), d.Join(name)), path: d.Join(name)}, nil
}

// Open opens an entry that is a regular file for reading.
func (d *Dir) Open(name string) (*os.File, error) { return d.open(name, os.O_RDONLY, 0) }

func (d *Dir) open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if name == "." {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: syscall.EISDIR}
	}
	fd, err := openat(d.fd(), name, flag|posix.O_NONBLOCK|posix.O_NOCTTY, uint32(perm.Perm()))
	if err != nil {
		if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) { // a pipe or socket
			err = ErrNotRegular
		}
		return nil, &fs.PathError{Op: "open", Path: d.Join(name), Err: err}
	}
	var st posix.Stat_t
	if err := posix.Fstat(fd, &st); err != nil {
		_ = posix.Close(fd) // the error of fstat says more
		return nil, &fs.PathError{Op: "open", Path: d.Join(name), Err: err}
	}
	switch st.Mode & posix.S_IFMT {
	case posix.S_IFREG:
		err = nil
	case posix.S_IFDIR:
		err = syscall.EISDIR
	default:
		err = ErrNotRegular
	}
	if err != nil {
		_ = posix.Close(fd) // nothing was written
		return nil, &fs.PathError{Op: "open", Path: d.Join(name), Err: err}
	}
	return os.NewFile(uintptr(fd), d.Join(name)), nil
}

// Readlink reads an entry that is a symbolic link.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, maxPath)
	n, err := posix.Readlinkat(d.fd(), name, buf)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: d.Join(name), Err: err}
	}
	return string(buf[:n]), nil
}

func (d *Dir) mkdir(name string, perm fs.FileMode) error {
	if err := posix.Mkdirat(d.fd(), name, uint32(perm.Perm())); err != nil {
		return &fs.PathError{Op: "mkdir", Path: d.Join(name), Err: err}
	}
	return nil
}

func (d *Dir) fd() int { return int(d.f.Fd()) }

// openat opens name in the folder dir without following a link.
func openat(dir int, name string, flag int, perm uint32) (int, error) {
	fd, err := retry(func() (int, error) {
		return posix.Openat(dir, name, flag|posix.O_NOFOLLOW|posix.O_CLOEXEC, perm)
	})
	if err == nil {
		return fd, nil
	}
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) && isLink(dir, name) {
		return -1, ErrLink
	}
	return -1, err
}

func isLink(dir int, name string) bool {
	var st posix.Stat_t
	err := posix.Fstatat(dir, name, &st, posix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&posix.S_IFMT == posix.S_IFLNK
}

// retry repeats a call that a signal interrupted.
func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
