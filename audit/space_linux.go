package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// proveSpace sets blocks aside for the bytes after the end of the file without
// changing its size. Where the file system cannot do that, it looks at the
// free space.
func proveSpace(f *os.File, from, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, from, size)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, from, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return freeSpace(f, size)
	}
	return err
}
