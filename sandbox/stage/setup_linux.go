package stage

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is an error with the name of what was being done.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func at(step string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{step: step, err: err}
}

// builder makes the file system of a session. It runs once, in a mount
// namespace of its own.
type builder struct {
	setup  *Setup
	clones map[int]int // index of a mount to the detached copy it places
	masks  string      // where the unreadable file and folder are
	seal   []string    // places made read-only at the end
}

// build turns the copy of the host's mounts into the session's view: all of it
// read-only, the writable places cut back in, then everything that must not be
// changed or read covered again. The order is parent before child, and a
// copy is taken of every writable place before the whole is made read-only.
func (b *builder) build() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return at("make mounts private", err)
	}
	old := unix.Umask(0)
	defer unix.Umask(old)
	if err := b.cloneSources(); err != nil {
		return err
	}
	devs, err := cloneDevices()
	if err != nil {
		return err
	}
	if err := setAttr("/", unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
		return at("make / read-only", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return at("mount /proc", err)
	}
	b.boundPIDs()
	if err := b.devices(devs); err != nil {
		return err
	}
	for i, m := range b.setup.Mounts {
		if err := b.place(i, m); err != nil {
			return at(opName(m.Op)+" "+m.Path, err)
		}
	}
	for _, p := range append(b.seal, "/dev", "/proc") {
		if err := setAttr(p, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return at("seal "+p, err)
		}
	}
	// The working directory still names a folder of the view before.
	return at("change to /", os.Chdir("/"))
}

// boundPIDs sets how many processes this namespace can hold, which also counts
// root's. It is twice what commands may have, so that one is told apart as the
// one that has too many before nobody can start any. Kernels before 6.14 have
// one number for all namespaces and refuse.
func (b *builder) boundPIDs() {
	const reserved = 300 // the kernel keeps these numbers to itself
	if n := b.setup.Processes; n > 0 {
		_ = os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.FormatUint(reserved+2*n, 10)), 0)
	}
}

func opName(o Op) string {
	switch o {
	case OpWrite:
		return "open for writing"
	case OpTmpfs, OpEmpty:
		return "empty"
	case OpKeep:
		return "keep"
	case OpPin:
		return "pin"
	case OpReadOnly:
		return "protect"
	case OpMask, OpMaskHold:
		return "mask"
	case OpNames:
		return "name the name server in"
	case OpRead, OpList:
		return "open"
	case OpUnset:
	}
	return "place"
}

func setAttr(path string, flags uint, attr uint64) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: attr})
}

// cloneSources takes copies of the places that stay as they are. A source is
// named by its real path: a link anywhere in it means that somebody exchanged
// it, and is refused.
func (b *builder) cloneSources() error {
	b.clones = map[int]int{}
	for i, m := range b.setup.Mounts {
		if m.Op != OpWrite && m.Op != OpKeep {
			continue
		}
		src := m.Source
		if src == "" {
			src = m.Path
		}
		fd, err := cloneReal(src)
		if m.Op == OpKeep && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP)) {
			continue
		}
		if err != nil {
			return at(opName(m.Op)+" "+src, err)
		}
		b.clones[i] = fd
	}
	return nil
}

func cloneReal(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	return clone(fd, "", unix.AT_EMPTY_PATH)
}

func clone(dir int, path string, flags uint) (int, error) {
	return unix.OpenTree(dir, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|flags)
}

// attach puts a detached copy at path.
func attach(fd int, path string, attr uint64) error {
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	if attr != 0 {
		a := &unix.MountAttr{Attr_set: attr}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, a); err != nil {
			return err
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

func (b *builder) place(i int, m Mount) error {
	switch m.Op {
	case OpWrite:
		fd := b.clones[i]
		if err := mountpoint(fd, m.Path); err != nil {
			return err
		}
		return attach(fd, m.Path, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	case OpKeep:
		fd, ok := b.clones[i]
		if !ok {
			return nil
		}
		if err := mountpoint(fd, m.Path); err != nil {
			return err
		}
		return attach(fd, m.Path, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	case OpTmpfs:
		return tmpfs(m.Path, "mode=1777,size="+strconv.FormatUint(b.setup.TmpfsBytes, 10))
	case OpEmpty:
		return b.empty(m.Path, "mode=0755")
	case OpPin:
		return again(m.Path, 0)
	case OpReadOnly:
		return again(m.Path, unix.MOUNT_ATTR_RDONLY)
	case OpMask:
		return b.mask(m.Path)
	case OpMaskHold:
		return b.empty(m.Path, "mode=0711")
	case OpNames:
		return b.nameServer(m.Path)
	case OpUnset, OpRead, OpList:
	}
	return unix.EINVAL
}

// mountpoint sees to it that there is something at path to mount the copy on.
// It is missing only where an emptied place covers it.
func mountpoint(fd int, path string) error {
	if _, err := os.Stat(path); err == nil || !os.IsNotExist(err) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(path, 0o711)
	}
	if err := os.MkdirAll(parent(path), 0o711); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "/"
}

func tmpfs(path, options string) error {
	return unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

func (b *builder) empty(path, options string) error {
	if gone(path) {
		return nil
	}
	if err := tmpfs(path, options+",size=1m"); err != nil {
		return err
	}
	b.seal = append(b.seal, path)
	return nil
}

// gone reports whether nothing can be reached at path: it does not exist, or
// lies below a place this user cannot enter anyway.
func gone(path string) bool {
	_, err := os.Stat(path)
	if err == nil {
		return false
	}
	return slices.Contains([]uint32{
		uint32(unix.ENOENT), uint32(unix.EACCES), uint32(unix.ENOTDIR), uint32(unix.ELOOP),
	}, errnoOf(err))
}

func again(path string, attr uint64) error {
	if gone(path) {
		return nil
	}
	fd, err := clone(unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	return attach(fd, path, attr)
}

// mask covers path with something nobody can open.
func (b *builder) mask(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		if gone(path) {
			return nil
		}
		return err
	}
	what := b.masks + "/file"
	if st.IsDir() {
		what = b.masks + "/dir"
	}
	fd, err := clone(unix.AT_FDCWD, what, 0)
	if err != nil {
		return err
	}
	return attach(fd, path, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

// deviceNames are the devices a program may expect anywhere.
func deviceNames() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

func cloneDevices() (map[string]int, error) {
	fds := map[string]int{}
	for _, n := range deviceNames() {
		fd, err := clone(unix.AT_FDCWD, "/dev/"+n, 0)
		if errors.Is(err, unix.ENOENT) && n != "null" {
			continue
		}
		if err != nil {
			return nil, at("open /dev/"+n, err)
		}
		fds[n] = fd
	}
	return fds, nil
}

// devices makes a /dev with the harmless devices, terminals of its own and
// shared memory of its own.
func (b *builder) devices(fds map[string]int) error {
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=256k"); err != nil {
		return at("mount /dev", err)
	}
	for n, fd := range fds {
		if err := os.WriteFile("/dev/"+n, nil, 0o600); err != nil {
			return at("make /dev/"+n, err)
		}
		if err := attach(fd, "/dev/"+n, 0); err != nil {
			return at("place /dev/"+n, err)
		}
	}
	for _, l := range [][2]string{
		{"/proc/self/fd", "/dev/fd"},
		{"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"},
		{"/proc/self/fd/2", "/dev/stderr"},
		{"pts/ptmx", "/dev/ptmx"},
	} {
		if err := os.Symlink(l[0], l[1]); err != nil {
			return at("link "+l[1], err)
		}
	}
	for _, d := range []string{"/dev/pts", "/dev/shm", "/dev/mask"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return at("make "+d, err)
		}
	}
	opt := "newinstance,ptmxmode=0666,mode=0620"
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, opt); err != nil {
		return at("mount /dev/pts", err)
	}
	if err := tmpfs("/dev/shm", "mode=1777,size="+strconv.FormatUint(b.setup.TmpfsBytes, 10)); err != nil {
		return at("mount /dev/shm", err)
	}
	b.masks = "/dev/mask"
	if err := os.Mkdir(b.masks+"/dir", 0); err != nil {
		return at("make mask", err)
	}
	return at("make mask", os.WriteFile(b.masks+"/file", nil, 0))
}

// deafen makes the anchor ignore every signal a process inside could send it.
// What it starts gets the defaults back from the runtime, which knows only the
// signals it handles itself; the kernel keeps the others from the first process
// of a namespace anyway.
func deafen() {
	type action struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	ignore := action{handler: 1}
	keep := []unix.Signal{
		unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGCHLD, unix.SIGPROF,
		unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU,
	}
	for s := unix.Signal(1); s <= 31; s++ {
		if slices.Contains(keep, s) {
			continue
		}
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s),
			uintptr(unsafe.Pointer(&ignore)), 0, 8, 0, 0) //nolint:gosec // the kernel reads it
	}
}
