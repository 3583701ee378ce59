//go:build !windows

package posix

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Stat_t is what the system says of a file.
type Stat_t = unix.Stat_t

// Flags of the calls below, and what a mode is made of.
const (
	AT_FDCWD            = unix.AT_FDCWD
	AT_SYMLINK_NOFOLLOW = unix.AT_SYMLINK_NOFOLLOW
	O_CLOEXEC           = unix.O_CLOEXEC
	O_DIRECTORY         = unix.O_DIRECTORY
	O_NOCTTY            = unix.O_NOCTTY
	O_NOFOLLOW          = unix.O_NOFOLLOW
	O_NONBLOCK          = unix.O_NONBLOCK
	S_IFMT              = unix.S_IFMT
	S_IFREG             = unix.S_IFREG
	S_IFDIR             = unix.S_IFDIR
	S_IFLNK             = unix.S_IFLNK
	S_IFIFO             = unix.S_IFIFO
	S_IFSOCK            = unix.S_IFSOCK
	S_IFBLK             = unix.S_IFBLK
	S_IFCHR             = unix.S_IFCHR
	S_ISUID             = unix.S_ISUID
	S_ISGID             = unix.S_ISGID
	S_ISVTX             = unix.S_ISVTX
)

// SIGPIPE is the number of the signal that a pipe nobody reads brings.
const SIGPIPE = int(unix.SIGPIPE)

// Open opens a path.
func Open(path string, flag int, mode uint32) (int, error) { return unix.Open(path, flag, mode) }

// Openat opens a name in a folder.
func Openat(dir int, name string, flag int, mode uint32) (int, error) {
	return unix.Openat(dir, name, flag, mode)
}

// Close closes a descriptor.
func Close(fd int) error { return unix.Close(fd) }

// Fstat describes an open file.
func Fstat(fd int, st *Stat_t) error { return unix.Fstat(fd, st) }

// Fstatat describes a name in a folder.
func Fstatat(dir int, name string, st *Stat_t, flags int) error {
	return unix.Fstatat(dir, name, st, flags)
}

// Lstat describes a path, a link as a link.
func Lstat(path string, st *Stat_t) error { return unix.Lstat(path, st) }

// Readlink tells where a path leads that is a link.
func Readlink(path string, buf []byte) (int, error) { return unix.Readlink(path, buf) }

// Readlinkat tells where a name in a folder leads that is a link.
func Readlinkat(dir int, name string, buf []byte) (int, error) {
	return unix.Readlinkat(dir, name, buf)
}

// Mkdirat makes a folder in a folder.
func Mkdirat(dir int, name string, mode uint32) error { return unix.Mkdirat(dir, name, mode) }

// Linkat gives a file another name.
func Linkat(from int, name string, to int, other string, flags int) error {
	return unix.Linkat(from, name, to, other, flags)
}

// Renameat gives a file another name instead of the one it had.
func Renameat(from int, name string, to int, other string) error {
	return unix.Renameat(from, name, to, other)
}

// Unlinkat removes a name.
func Unlinkat(dir int, name string, flags int) error { return unix.Unlinkat(dir, name, flags) }

// Fsync waits until what was written is on the disk.
func Fsync(fd int) error { return unix.Fsync(fd) }

// Fchmod sets the mode of an open file.
func Fchmod(fd int, mode uint32) error { return unix.Fchmod(fd, mode) }

// Fchown sets whose an open file is.
func Fchown(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }

// SignalName is the name of a signal, "" when it has none.
func SignalName(n int) string { return unix.SignalName(unix.Signal(n)) }

// TryLock takes the lock of an open file. It does not wait.
func TryLock(fd int) (taken bool, err error) {
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}

// Unlock gives the lock back.
func Unlock(fd int) error { return unix.Flock(fd, unix.LOCK_UN) }

// Free is how many bytes an ordinary user may still write to the file system of
// an open file, counted in whole blocks, and how large those are.
func Free(fd int) (blocks, size uint64, err error) {
	var st unix.Statfs_t
	err = unix.Fstatfs(fd, &st)
	return st.Bavail, uint64(st.Bsize), err
}
