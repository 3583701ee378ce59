package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights a path may be given. Device nodes may be made nowhere.
const (
	rightsRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsNode   = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsFile = rightsDevice | unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// minLandlock is the first ABI with a right to truncate; below it a file
// outside could be emptied.
const minLandlock = 3

// landlock makes the ruleset every command is restricted by. It says again
// what the mounts say, so that one mistake there opens nothing.
func (a *anchor) landlock() (uint32, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, at("find Landlock", errno)
	}
	abi := uint32(v)
	if a.setup.MaxLandlock != 0 {
		abi = min(abi, a.setup.MaxLandlock)
	}
	if abi < minLandlock {
		return abi, at("find Landlock 3 or newer", unix.EOPNOTSUPP)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rightsRead | rightsWrite | rightsNode}
	if abi >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	size := unsafe.Sizeof(attr.Handled_access_fs) // every kernel with Landlock takes that length
	if a.setup.Shared {
		size = handleMore(&attr, abi)
		a.scoped = abi >= scopesSignals
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return abi, at("make Landlock rules", errno)
	}
	a.rules = int(fd)
	unix.CloseOnExec(a.rules)
	if a.setup.Shared {
		return abi, a.grant(attr.Handled_access_fs)
	}
	allow := func(path string, rights uint64) error {
		return at("allow "+path, allowBeneath(a.rules, path, rights&attr.Handled_access_fs))
	}
	return abi, a.view(allow)
}

// view allows what the mounts of the session show.
func (a *anchor) view(allow func(string, uint64) error) error {
	if err := allow("/", rightsRead); err != nil {
		return err
	}
	for _, m := range a.setup.Mounts {
		if m.Op != OpWrite && m.Op != OpTmpfs {
			continue
		}
		if err := allow(m.Path, rightsRead|rightsWrite); err != nil {
			return err
		}
	}
	if err := allow("/dev/shm", rightsRead|rightsWrite); err != nil {
		return err
	}
	for _, n := range append(deviceNames(), "ptmx", "pts") {
		if gone("/dev/" + n) {
			continue
		}
		if err := allow("/dev/"+n, rightsDevice); err != nil {
			return err
		}
	}
	return nil
}

func allowBeneath(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return allowAt(rules, fd, rights)
}

// allowAt adds a rule for what fd stands for, and closes it.
func allowAt(rules, fd int, rights uint64) error {
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	if rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return errno
	}
	return nil
}

// restrictSelf applies the rules to the calling thread.
func restrictSelf(rules int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
