package read

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// maxDepth bounds how deep a walk goes; each level holds one open folder.
const maxDepth = 200

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// walk goes through a tree on the handles of its folders. It follows no link,
// leaves out what is secret, and by default what .gitignore hides.
type walk struct {
	ws       *workspace.Workspace
	session  string
	ignored  bool // also what .gitignore hides
	depth    int  // levels below the start; 0 = no bound but maxDepth
	classify bool // something on the way may be secret
	visit    func(d *workspace.Dir, e fs.DirEntry, at string) error

	secrets    int // entries left out because they are secret
	unreadable int // folders the system does not let us list
}

// run walks the folder at start.
func (w *walk) run(ctx context.Context, start call.Path) error {
	d, err := w.ws.OpenDir(w.session, start)
	if err != nil {
		return err
	}
	defer d.Close()
	w.classify = w.ws.MayHoldSecrets(start.Path)
	var g *ignores
	if !w.ignored {
		g = w.above(start.Path)
	}
	if err := w.folder(ctx, d, g, 1); !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// above collects the .gitignore files of the workspace above the start.
func (w *walk) above(start string) *ignores {
	var g *ignores
	for _, root := range w.ws.Roots() {
		if start == root || !strings.HasPrefix(start, root+"/") {
			continue
		}
		names := strings.Split(start[len(root)+1:], "/")
		for i := range names {
			at := path.Join(root, path.Join(names[:i]...))
			d, err := w.ws.OpenDir(w.session, w.ws.ClassifyFile(at))
			if err != nil {
				return g
			}
			g = g.enter(d)
			d.Close()
		}
	}
	return g
}

func (w *walk) folder(ctx context.Context, d *workspace.Dir, g *ignores, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	list, err := d.ReadDir()
	if err != nil {
		w.unreadable++
		return nil //nolint:nilerr // counted; one folder does not end the search
	}
	if !w.ignored {
		g = g.enter(d)
	}
	for _, e := range list {
		p := d.Join(e.Name())
		if w.skip(e, p, g) {
			continue
		}
		if err := w.visit(d, e, p); err != nil {
			return err
		}
		if !e.IsDir() || level >= maxDepth || w.depth > 0 && level >= w.depth {
			continue
		}
		sub, err := d.Dir(e.Name())
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.unreadable++
			}
			continue
		}
		err = w.folder(ctx, sub, g, level+1)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// skip reports whether an entry is left out.
func (w *walk) skip(e fs.DirEntry, p string, g *ignores) bool {
	switch e.Name() {
	case ".git", ".hg", ".svn", ".jj":
		return true
	case "node_modules":
		if !w.ignored && e.IsDir() {
			return true
		}
	}
	if !w.ignored && g.match(p, e.IsDir()) {
		return true
	}
	if w.classify && w.ws.ClassifyFile(p).Place == call.PlaceSecret {
		w.secrets++
		return true
	}
	return false
}

// openPath opens a file that a call names itself.
func openPath(ws *workspace.Workspace, session string, p call.Path) (*os.File, error) {
	return ws.OpenFile(session, p, os.O_RDONLY, 0)
}
