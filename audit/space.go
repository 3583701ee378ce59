package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace fails when the file system has less than size bytes left for us.
func freeSpace(f *os.File, size int64) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Bavail < uint64(size)/uint64(st.Bsize)+1 {
		return unix.ENOSPC
	}
	return nil
}
