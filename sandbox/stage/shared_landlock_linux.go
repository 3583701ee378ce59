package stage

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handleMore adds what a network namespace would do, and a pid namespace, as far
// as the kernel knows how. It returns the length of what it has filled in.
func handleMore(attr *unix.LandlockRulesetAttr, abi uint32) uintptr {
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = unsafe.Offsetof(attr.Scoped)
	}
	if abi >= scopesSignals {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		size = unsafe.Offsetof(attr.Quiet_access_fs)
	}
	if abi >= 9 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if abi >= 10 {
		attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
	}
	return size
}

// grant opens the listed places, and nothing else: here these rules are the only
// wall around files.
func (a *anchor) grant(handled uint64) error {
	for _, m := range a.setup.Mounts {
		rights := uint64(unix.LANDLOCK_ACCESS_FS_READ_DIR) // of [OpList]
		if m.Op == OpRead || m.Op == OpWrite {
			rights |= rightsRead
		}
		if m.Op == OpWrite {
			rights |= rightsWrite
		}
		if a.setup.UnixSockets && m.Op != OpList {
			rights |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
		}
		err := allowReal(a.rules, m.Path, rights&handled)
		if m.Op == OpRead && absentNow(err) {
			continue // it has just gone, or become a link
		}
		if err != nil {
			return at("open "+m.Path, err)
		}
	}
	return a.grantDevices(handled)
}

func (a *anchor) grantDevices(handled uint64) error {
	for _, n := range deviceNames() {
		if gone("/dev/" + n) {
			continue
		}
		if err := allowBeneath(a.rules, "/dev/"+n, rightsDevice&handled); err != nil {
			return at("open /dev/"+n, err)
		}
	}
	return nil
}

func absentNow(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR)
}

// allowReal is [allowBeneath] for a path without links.
func allowReal(rules int, path string, rights uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return err
	}
	return allowAt(rules, fd, rights)
}
