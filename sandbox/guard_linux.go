package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const guardLimit = 1 << 20 // bytes of a configuration; a larger one is not taken

// guard remembers the configurations of git as they were before a command.
type guard map[string][]byte

func newGuard(readOnly []string) guard {
	g := guard{}
	for _, p := range readOnly {
		if !isGitConfig(p) {
			continue
		}
		if b, ok := readReal(p); ok {
			g[p] = b
		}
	}
	return g
}

// check looks at them again, and at those that are new. What a command put in
// that could make git run something is taken out by putting the old file back;
// a new file is set aside. It returns a line for each.
func (g guard) check(readOnly []string) []string {
	var out []string
	for _, p := range readOnly {
		if !isGitConfig(p) {
			continue
		}
		before, known := g[p]
		if _, err := os.Lstat(p); errors.Is(err, os.ErrNotExist) {
			continue
		}
		after, ok := readReal(p)
		if ok && known && bytes.Equal(before, after) {
			continue
		}
		keys := []string{"what cannot be read"}
		if ok {
			keys = harmful(before, after)
		}
		if len(keys) == 0 {
			continue
		}
		done := "put back as it was"
		switch {
		case !known && aside(p) == nil:
			done = "set aside"
		case !known || putBack(p, before) != nil:
			done = "could not be put back"
		}
		out = append(out, p+" "+done+": it sets "+strings.Join(keys, ", "))
	}
	return out
}

// folder opens the folder of a path no part of which is a link.
func folder(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// readReal reads a regular file that is reached through no link.
func readReal(path string) ([]byte, bool) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read from
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > guardLimit {
		return nil, false
	}
	b, err := io.ReadAll(io.LimitReader(f, guardLimit+1))
	return b, err == nil && len(b) <= guardLimit
}

// putBack replaces a file by what it was.
func putBack(path string, content []byte) error {
	dir, err := folder(path)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // nothing was written through it
	name := filepath.Base(path)
	tmp := name + ".zeph-restore"
	_ = unix.Unlinkat(dir, tmp, 0)
	fd, err := unix.Openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat(dir, tmp, dir, name)
	}
	return err
}

// aside renames a file to a name git does not look at.
func aside(path string) error {
	dir, err := folder(path)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // nothing was written through it
	name := filepath.Base(path)
	return unix.Renameat(dir, name, dir, name+".zeph-quarantine")
}
