package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openFolder opens a folder that is reached through no link.
func openFolder(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// openReal opens for reading what is reached through no link.
func openReal(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// renameNew renames in a folder, unless the new name is taken.
func renameNew(dir int, name, to string) error {
	return unix.Renameat2(dir, name, dir, to, unix.RENAME_NOREPLACE)
}

// open lets the owner of a folder read, change and enter it.
func open(dir int) {
	var st unix.Stat_t
	if unix.Fstat(dir, &st) == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", dir), st.Mode&0o7777|0o700, 0)
	}
}
