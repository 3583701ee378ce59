package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/suggest"
)

// Argument resolves the path argument field of a file tool. What cannot be
// resolved at all is an argument error, so no tool has to deal with it.
func (w *Workspace) Argument(field, text string, followLast bool) (call.Path, error) {
	switch {
	case text == "":
		return call.Path{}, call.ArgError(field, "the path is empty", "give a file or folder, for example src/main.go")
	case strings.ContainsRune(text, 0):
		return call.Path{}, call.ArgError(field, "the path holds a NUL byte", "leave it out")
	case len(text) >= maxPath:
		return call.Path{}, call.ArgError(field, fmt.Sprintf("the path is %d bytes long; the system takes %d", len(text), maxPath-1), "use a shorter path")
	}
	p := w.ResolveFile(text, followLast)
	if p.Place == call.PlaceUnknown {
		return call.Path{}, call.ArgError(field, "the path runs through too many symbolic links", "look at the links with list_directory")
	}
	return p, nil
}

// fault is how one kind of error is told. "%s" in its texts is the path as the
// caller wrote it.
type fault struct {
	is            []error
	code          string
	message, hint string
}

func faults() []fault {
	return []fault{
		{[]error{ErrStale}, "stale", "%s changed while the call ran", "read it again and repeat the call"},
		{
			[]error{ErrLink},
			"link", "%s leads through a symbolic link that was not there when the call was judged",
			"repeat the call with the path the link leads to",
		},
		{[]error{ErrReadOnly}, "read_only", "%s is marked read-only", "chmod u+w it first if it is meant to change"},
		{[]error{ErrNotRegular}, "not_regular", "%s is a device, a pipe or a socket", "only regular files can be used"},
		{[]error{ErrNoScratch}, "no_scratch", "%s: there is no private /tmp here", "use a path in the workspace"},
		{[]error{ErrRefused}, "refused", "%s is not open to the file tools", "use a path in the workspace"},
		{[]error{fs.ErrNotExist}, "not_found", "%s does not exist", ""},
		{[]error{fs.ErrExist}, "exists", "%s exists already", "set overwrite to true to replace it"},
		{[]error{syscall.EISDIR}, "is_folder", "%s is a folder", "list it with list_directory"},
		{[]error{syscall.ENOTDIR}, "not_folder", "a part of %s is a file, not a folder", "check it with list_directory"},
		{[]error{syscall.ENAMETOOLONG}, "name_too_long", "a name in %s is too long for the file system", "use a shorter one"},
		{[]error{fs.ErrPermission, syscall.EROFS}, "permission", "the system does not allow that on %s", "look at its mode with list_directory"},
		{[]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}, "no_space", "no space left for %s", "free some; the old content is untouched"},
	}
}

// Explain turns an error of the opening functions into one a model can act on.
// An error it does not know is returned as it is.
func (w *Workspace) Explain(session, field string, p call.Path, err error) error {
	var done *call.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	shown := p.Text
	if shown == "" {
		shown = w.Rel(p.Path)
	}
	for _, f := range faults() {
		if !slices.ContainsFunc(f.is, func(e error) bool { return errors.Is(err, e) }) {
			continue
		}
		e := call.Failure(f.code, strings.Replace(f.message, "%s", shown, 1), f.hint)
		e.Field, e.Cause = field, err
		switch f.code {
		case "refused":
			e.Category = call.CategoryPolicyBlocked
		case "not_found":
			e.Suggestion = w.nearest(session, p)
		case "stale":
			e.Retryable = true
		}
		return e
	}
	return err
}

// nearest suggests the existing name that is closest to a missing one.
func (w *Workspace) nearest(session string, p call.Path) string {
	missing := p.Path
	for range 64 {
		dir := w.ClassifyFile(parent(missing))
		list, err := w.ReadDir(session, dir)
		if err != nil {
			if missing = parent(missing); missing == "/" || !errors.Is(err, fs.ErrNotExist) {
				break
			}
			continue
		}
		if !dir.Place.Readable() { // names there are not given away
			break
		}
		names := make([]string, 0, len(list))
		for _, e := range list {
			names = append(names, e.Name())
		}
		if near, ok := suggest.Nearest(path.Base(missing), names); ok {
			return "did you mean " + w.Rel(path.Join(dir.Path, near)) + "?"
		}
		return "look for it with find_path; " + w.Rel(dir.Path) + " exists"
	}
	return "look for it with find_path"
}

// Lock keeps other file tools from changing p until unlock is called.
func (w *Workspace) Lock(p call.Path) (unlock func()) {
	h := uint32(2166136261)
	for i := range len(p.Path) {
		h = (h ^ uint32(p.Path[i])) * 16777619
	}
	m := &w.locks[h%uint32(len(w.locks))]
	m.Lock()
	return m.Unlock
}

// MayHoldSecrets reports whether something below the folder dir could be
// unreadable. When it is false, a walk need not classify each entry.
func (w *Workspace) MayHoldSecrets(dir string) bool {
	if root, ok := w.rootOf(dir); !ok || len(w.deny) > 0 || w.secretRule(root) != "" {
		return true
	}
	for p := range w.secret {
		if within(dir, p) {
			return true
		}
	}
	for _, s := range w.prefixes {
		if within(dir, s.dir) || within(s.dir, dir) {
			return true
		}
	}
	return within(dir, homesDir())
}
