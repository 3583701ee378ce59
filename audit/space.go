package audit

import (
	"os"
	"syscall"

	"github.com/zeph-tools/zeph-mcp-tools/internal/posix"
)

// freeSpace fails when the file system has less than size bytes left for us.
func freeSpace(f *os.File, size int64) error {
	blocks, block, err := posix.Free(int(f.Fd()))
	if err != nil {
		return err
	}
	if blocks < uint64(size)/block+1 {
		return syscall.ENOSPC
	}
	return nil
}
