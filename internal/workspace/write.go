package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
)

// ErrStale means the file is not the one that was read before.
var ErrStale = errors.New("the file changed since it was read")

// ErrReadOnly means the file's owner marked it as not to be written.
var ErrReadOnly = errors.New("the file is read-only")

// Info is what the opening functions know of a directory entry.
type Info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
	Ino   uint64 // identity, with Dev
	Dev   uint64
	Links uint64 // hard links
	UID   uint32
	GID   uint32
}

// Name returns the entry's name.
func (i *Info) Name() string { return i.name }

// Size returns its length in bytes.
func (i *Info) Size() int64 { return i.size }

// Mode returns its type and permissions.
func (i *Info) Mode() fs.FileMode { return i.mode }

// ModTime returns when it was last changed.
func (i *Info) ModTime() time.Time { return i.mtime }

// IsDir reports whether it is a folder.
func (i *Info) IsDir() bool { return i.mode.IsDir() }

// Sys returns nil: the fields say what is known.
func (i *Info) Sys() any { return nil }

// Same reports whether both describe the same, unchanged file.
func (i *Info) Same(o *Info) bool {
	if i == nil || o == nil {
		return i == o
	}
	return i.Ino == o.Ino && i.Dev == o.Dev && i.size == o.size && i.mtime.Equal(o.mtime)
}

// Lstat describes an entry itself, a link as a link.
func (d *Dir) Lstat(name string) (*Info, error) {
	var st posix.Stat_t
	if err := posix.Fstatat(d.fd(), name, &st, posix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: d.Join(name), Err: err}
	}
	return newInfo(name, &st), nil
}

// Fstat describes an open file.
func Fstat(f *os.File) (*Info, error) {
	var st posix.Stat_t
	if err := posix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	return newInfo(f.Name(), &st), nil
}

func newInfo(name string, st *posix.Stat_t) *Info {
	return &Info{
		name: name, size: st.Size, mode: fileMode(uint32(wide(st.Mode))), mtime: modTime(st),
		Ino: st.Ino, Dev: wide(st.Dev), Links: wide(st.Nlink), UID: st.Uid, GID: st.Gid,
	}
}

// wide evens out the field types of the systems we build for.
func wide[T ~int32 | ~uint16 | ~uint32 | ~uint64](v T) uint64 { return uint64(v) }

// fileMode turns the kernel's mode into Go's.
func fileMode(m uint32) fs.FileMode {
	out := fs.FileMode(m & 0o777)
	for _, b := range []struct {
		bit  uint32
		mode fs.FileMode
	}{{posix.S_ISUID, fs.ModeSetuid}, {posix.S_ISGID, fs.ModeSetgid}, {posix.S_ISVTX, fs.ModeSticky}} {
		if m&b.bit != 0 {
			out |= b.mode
		}
	}
	switch m & posix.S_IFMT {
	case posix.S_IFREG:
	case posix.S_IFDIR:
		out |= fs.ModeDir
	case posix.S_IFLNK:
		out |= fs.ModeSymlink
	case posix.S_IFIFO:
		out |= fs.ModeNamedPipe
	case posix.S_IFSOCK:
		out |= fs.ModeSocket
	case posix.S_IFBLK:
		out |= fs.ModeDevice
	case posix.S_IFCHR:
		out |= fs.ModeDevice | fs.ModeCharDevice
	default:
		out |= fs.ModeIrregular
	}
	return out
}

// WriteOptions says how [Workspace.WriteAtomic] writes. The zero value makes a
// new file or replaces a regular one, whatever it holds.
type WriteOptions struct {
	MustNotExist bool  // refuse to replace anything
	Expect       *Info // refuse to replace anything but this file, unchanged
	Sync         bool  // flush to the disk before the new file takes its name
}

// WriteAtomic gives p the content data: a temporary file beside it takes its
// place in one step, so a reader sees the old file or the new one. Permissions
// and, where possible, the owner of a replaced file are kept; at no moment is
// the content readable by more people than before. It returns what was replaced,
// nil when the file is new. A link or anything that is no regular file is not
// replaced.
func (w *Workspace) WriteAtomic(session string, p call.Path, data []byte, opt WriteOptions) (*Info, error) {
	if err := writable(p); err != nil {
		return nil, &fs.PathError{Op: "write", Path: p.Path, Err: err}
	}
	d, name, err := w.openParent(session, p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	old, err := d.replaceable(name, opt)
	if err != nil {
		return old, err
	}
	temp, err := d.writeTemp(data, old, opt.Sync)
	if err != nil {
		return old, err
	}
	if err := d.commit(temp, name, old, opt); err != nil {
		return old, errors.Join(err, d.discard(temp))
	}
	if opt.Sync {
		if err := posix.Fsync(d.fd()); err != nil {
			return old, &fs.PathError{Op: "fsync", Path: d.path, Err: err}
		}
	}
	return old, nil
}

// replaceable says what stands at name and whether it may be replaced.
func (d *Dir) replaceable(name string, opt WriteOptions) (*Info, error) {
	fail := func(old *Info, err error) (*Info, error) {
		return old, &fs.PathError{Op: "write", Path: d.Join(name), Err: err}
	}
	if name == "." {
		return fail(nil, syscall.EISDIR)
	}
	old, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if opt.Expect != nil {
			return fail(nil, ErrStale)
		}
		return nil, nil
	case err != nil:
		return nil, err
	case old.IsDir():
		return fail(old, syscall.EISDIR)
	case old.mode&fs.ModeSymlink != 0:
		return fail(old, ErrLink)
	case !old.mode.IsRegular():
		return fail(old, ErrNotRegular)
	case opt.MustNotExist:
		return fail(old, fs.ErrExist)
	case opt.Expect != nil && !opt.Expect.Same(old):
		return fail(old, ErrStale)
	case old.mode.Perm()&0o222 == 0:
		return fail(old, ErrReadOnly)
	}
	return old, nil
}

// writeTemp writes data to a new file in the folder and returns its name.
func (d *Dir) writeTemp(data []byte, old *Info, sync bool) (string, error) {
	var r [8]byte
	if _, err := rand.Read(r[:]); err != nil {
		return "", fmt.Errorf("temporary name: %w", err)
	}
	name := ".zeph-" + hex.EncodeToString(r[:]) + ".tmp"
	perm := uint32(0o666) // a new file: what the umask leaves
	if old != nil {
		perm = 0o600
	}
	fd, err := openat(d.fd(), name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return "", &fs.PathError{Op: "write", Path: d.Join(name), Err: err}
	}
	f := os.NewFile(uintptr(fd), d.Join(name))
	_, err = f.Write(data)
	if err == nil && old != nil {
		err = likeOld(fd, old)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, d.discard(name))
	}
	return name, nil
}

// likeOld gives the new file the owner and the mode of the old one. Another
// owner is kept only as far as the system lets us; the mode never grants more
// than before.
func likeOld(fd int, old *Info) error {
	var st posix.Stat_t
	if err := posix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Uid != old.UID || st.Gid != old.GID {
		if err := posix.Fchown(fd, int(old.UID), int(old.GID)); err != nil && !errors.Is(err, syscall.EPERM) {
			return err
		}
	}
	mode := uint32(old.mode.Perm())
	if old.mode&fs.ModeSticky != 0 {
		mode |= posix.S_ISVTX
	}
	return posix.Fchmod(fd, mode)
}

// commit gives the temporary file its name, unless what stands there has
// changed.
func (d *Dir) commit(temp, name string, old *Info, opt WriteOptions) error {
	if old == nil {
		// A link fails when the name exists by now; nothing is overwritten unseen.
		err := posix.Linkat(d.fd(), temp, d.fd(), name, 0)
		switch {
		case err == nil:
			return d.discard(temp)
		case errors.Is(err, syscall.EEXIST) && opt.MustNotExist:
			return &fs.PathError{Op: "write", Path: d.Join(name), Err: fs.ErrExist}
		case errors.Is(err, syscall.EEXIST):
			return &fs.PathError{Op: "write", Path: d.Join(name), Err: ErrStale}
		}
		// A file system without hard links: rename, which is atomic as well.
	} else if now, err := d.Lstat(name); err != nil || !now.Same(old) {
		return &fs.PathError{Op: "write", Path: d.Join(name), Err: ErrStale}
	}
	if err := posix.Renameat(d.fd(), temp, d.fd(), name); err != nil {
		return &fs.PathError{Op: "rename", Path: d.Join(name), Err: err}
	}
	return nil
}

func (d *Dir) discard(name string) error {
	if err := posix.Unlinkat(d.fd(), name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: d.Join(name), Err: err}
	}
	return nil
}

func sortEntries(list []fs.DirEntry) {
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

func modTime(st *posix.Stat_t) time.Time { return time.Unix(st.Mtim.Unix()) }
