//go:build linux || darwin

package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The bounds of what is remembered of one protected folder. What is beyond them
// in bytes is still noticed when it changes, and set aside, but cannot be put
// back. A folder that a command has made that large is set aside as a whole.
const (
	treeEntries = 4096
	treeBytes   = 16 << 20
)

// remembered is a protected file or folder as it was, where no mount holds it. The
// name of the place itself is "".
type remembered map[string]leaf

type leaf struct {
	mode  fs.FileMode
	at    signature
	whole bool   // text is all of it
	text  []byte // of a file, or where a link leads
}

// signature changes whenever a file does: no program can set the time of its
// last change.
type signature struct {
	device, inode uint64
	size          int64
	changed       unix.Timespec
}

// remember looks at a place. What has not changed since old was made is not
// read again.
func remember(place string, old remembered) remembered {
	t := remembered{}
	room := int64(treeBytes)
	_ = filepath.WalkDir(place, func(path string, _ fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, place), "/")
		if name != "" && strings.Contains(filepath.Base(path), quarantine) {
			if err == nil && isFolder(path) {
				return fs.SkipDir
			}
			return nil
		}
		var st unix.Stat_t
		if err = errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return skip(err) // it has just gone, or is not for us to see
		}
		if len(t) >= treeEntries {
			return fs.SkipAll
		}
		//nolint:unconvert // their sizes differ between systems
		l := leaf{mode: modeOf(uint32(st.Mode)), at: signature{uint64(st.Dev), st.Ino, st.Size, st.Ctim}}
		if was, ok := old[name]; ok && was.at == l.at && was.mode == l.mode && was.whole {
			l.whole, l.text = true, was.text
		} else {
			l.read(path, room)
		}
		room -= int64(len(l.text))
		t[name] = l
		return nil
	})
	return t
}

// skip passes over what cannot be looked at.
func skip(error) error { return nil }

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// modeOf keeps what matters of a mode: the kind, and who may do what.
func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFREG:
	default:
		mode |= fs.ModeIrregular
	}
	return mode
}

func (l *leaf) read(path string, room int64) {
	switch {
	case l.mode.IsDir():
		l.whole = true
	case l.mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		l.text, l.whole = []byte(target), err == nil
	case l.mode.IsRegular() && l.at.size <= room:
		l.text, l.whole = readReal(path)
	}
}

// same reports whether two leaves cannot be told apart. What could not be
// remembered is the same as long as nobody touched it.
func (l leaf) same(o leaf) bool {
	if l.mode != o.mode {
		return false
	}
	return l.at == o.at || l.whole && o.whole && bytes.Equal(l.text, o.text)
}

func (t remembered) same(o remembered) bool { return maps.EqualFunc(t, o, leaf.same) }

// settle puts a place back as it was, and tells of everything it had to undo.
func (t remembered) settle(place string, now remembered) []restored {
	names := slices.AppendSeq(slices.Collect(maps.Keys(t)), maps.Keys(now))
	slices.SortFunc(names, comparePaths)
	var out []restored
	var aside, missing []string // whose content goes without saying
	in := func(name string, dirs []string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return name != d && below(name, d) })
	}
	for _, name := range slices.Compact(names) {
		was, had := t[name]
		is, has := now[name]
		path := filepath.Join(place, name)
		switch {
		case had && has && is.same(was), !had && in(name, aside):
		case !had:
			aside = append(aside, name)
			out = append(out, restored{path, path + " is protected and was " + undo(path, state{})})
		default:
			said := was.putBack(path, is, has)
			if has || name == "" || !in(name, missing) && !slices.Contains(missing, "") {
				out = append(out, restored{path, path + " is protected and was " + said})
			}
			if !has {
				missing = append(missing, name)
			}
		}
	}
	return out
}

// putBack makes a path what it was, and says how that went.
func (l leaf) putBack(path string, is leaf, has bool) string {
	said, err := "put back as it was", error(nil)
	switch {
	case has && !l.whole:
		said, err = "set aside: it was too large to be put back", aside(path)
	case !l.whole:
		return "removed, and too large to be put back"
	case l.mode.IsDir() && has && is.mode.IsDir():
		err = setMode(path, l.mode)
	case l.mode.IsDir():
		if has {
			err = aside(path)
		}
		err = errors.Join(err, makeFolder(path, l.mode))
	case l.mode&fs.ModeSymlink != 0:
		err = relink(path, string(l.text))
	default:
		err = errors.Join(putBack(path, l.text), setMode(path, l.mode))
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return "removed together with the folder it was in"
	case err != nil:
		return "to be " + said + ", which failed (" + err.Error() + ")"
	}
	return said
}

func makeFolder(path string, mode fs.FileMode) error {
	dir, err := folder(path)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // nothing was written through it
	if err := unix.Mkdirat(dir, filepath.Base(path), uint32(mode.Perm())); err != nil {
		return err
	}
	return setMode(path, mode)
}

// setMode sets the mode of a file or folder that is reached through no link.
func setMode(path string, mode fs.FileMode) error {
	fd, err := openReal(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	return unix.Fchmod(fd, uint32(mode.Perm()))
}

// kept is what to remember of a place after it was settled: as it is where that
// is what it was, and as it was elsewhere, so that what could not be undone is
// seen again.
func (t remembered) kept(now remembered) remembered {
	out := maps.Clone(t)
	for name, was := range t {
		if is, ok := now[name]; ok && is.same(was) {
			out[name] = is
		}
	}
	return out
}
