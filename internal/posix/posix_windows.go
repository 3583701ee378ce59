package posix

import (
	"errors"
	"syscall"
)

// Stat_t is never filled here.
type Stat_t struct {
	Dev, Ino, Nlink uint64
	Mode, Uid, Gid  uint32
	Size            int64
	Mtim, Ctim      Timespec
}

// Timespec is a point in time.
type Timespec struct{}

// Unix is the time as seconds and nanoseconds.
func (Timespec) Unix() (sec, nsec int64) { return 0, 0 }

// Nano is the time as nanoseconds.
func (Timespec) Nano() int64 { return 0 }

// The names that exist elsewhere. No call takes them here.
const (
	AT_FDCWD            = -100
	AT_SYMLINK_NOFOLLOW = 0x100
	O_CLOEXEC           = syscall.O_CLOEXEC
	O_DIRECTORY         = 0x10000
	O_NOCTTY            = 0x100
	O_NOFOLLOW          = 0x20000
	O_NONBLOCK          = syscall.O_NONBLOCK
	S_IFMT              = 0xf000
	S_IFREG             = 0x8000
	S_IFDIR             = 0x4000
	S_IFLNK             = 0xa000
	S_IFIFO             = 0x1000
	S_IFSOCK            = 0xc000
	S_IFBLK             = 0x6000
	S_IFCHR             = 0x2000
	S_ISUID             = 0x800
	S_ISGID             = 0x400
	S_ISVTX             = 0x200
	SIGPIPE             = 13
)

// Open fails.
func Open(string, int, uint32) (int, error) { return -1, errors.ErrUnsupported }

// Openat fails.
func Openat(int, string, int, uint32) (int, error) { return -1, errors.ErrUnsupported }

// Close fails.
func Close(int) error { return errors.ErrUnsupported }

// Fstat fails.
func Fstat(int, *Stat_t) error { return errors.ErrUnsupported }

// Fstatat fails.
func Fstatat(int, string, *Stat_t, int) error { return errors.ErrUnsupported }

// Lstat fails.
func Lstat(string, *Stat_t) error { return errors.ErrUnsupported }

// Readlink fails.
func Readlink(string, []byte) (int, error) { return 0, errors.ErrUnsupported }

// Readlinkat fails.
func Readlinkat(int, string, []byte) (int, error) { return 0, errors.ErrUnsupported }

// Mkdirat fails.
func Mkdirat(int, string, uint32) error { return errors.ErrUnsupported }

// Linkat fails.
func Linkat(int, string, int, string, int) error { return errors.ErrUnsupported }

// Renameat fails.
func Renameat(int, string, int, string) error { return errors.ErrUnsupported }

// Unlinkat fails.
func Unlinkat(int, string, int) error { return errors.ErrUnsupported }

// Fsync fails.
func Fsync(int) error { return errors.ErrUnsupported }

// Fchmod fails.
func Fchmod(int, uint32) error { return errors.ErrUnsupported }

// Fchown fails.
func Fchown(int, int, int) error { return errors.ErrUnsupported }

// SignalName knows none.
func SignalName(int) string { return "" }

// TryLock fails.
func TryLock(int) (bool, error) { return false, errors.ErrUnsupported }

// Unlock fails.
func Unlock(int) error { return errors.ErrUnsupported }

// Free fails.
func Free(int) (blocks, size uint64, err error) { return 0, 0, errors.ErrUnsupported }
