//go:build linux || darwin

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// deepEvery is how often the repositories that nothing names are looked for at
// most: it means to walk the workspace.
const deepEvery = 2 * time.Second

// nested are the protected names of repositories within the workspace that
// neither lie at its top nor are named in an index. They are found by a walk
// after commands; until then nobody knows of one that a command made, so it is
// judged when it is found: what changed while a command ran is taken for its
// work. It lives below the lock of the watch.
type nested struct {
	find   func() []string
	every  time.Duration // between walks
	paths  []string      // nil = not looked for yet
	looked time.Time
	timer  *time.Timer // a walk that is to come, or goes on
	closed bool
	began  time.Time  // of the commands that run now
	busy   []span     // when others ran
	told   []restored // what a walk undid, for the next result
}

type span struct{ from, to time.Time }

// slack is how far behind the kernel's times of files may be.
const slack = 20 * time.Millisecond

// first looks before the first command: what is found is not a command's.
func (n *nested) first() {
	if n.find != nil && n.paths == nil {
		n.paths, n.looked = append([]string{}, n.find()...), time.Now()
	}
}

// ended notes that commands ran up to now.
func (n *nested) ended(running int) {
	if n.find == nil || running > 0 {
		return
	}
	if len(n.busy) == 64 {
		n.busy = slices.Delete(n.busy, 0, 32)
	}
	n.busy = append(n.busy, span{n.began, time.Now()})
}

// later has the workspace walked, not too often, away from any command.
func (n *nested) later(adopt func([]string)) {
	if n.find == nil || n.closed || n.timer != nil {
		return
	}
	n.timer = time.AfterFunc(max(0, n.every-time.Since(n.looked)), func() { adopt(n.find()) })
}

// during reports whether a command ran at a time.
func (n *nested) during(at time.Time, running bool) bool {
	return running && !at.Before(n.began.Add(-slack)) || slices.ContainsFunc(n.busy, func(s span) bool {
		return !at.Before(s.from.Add(-slack)) && !at.After(s.to.Add(slack))
	})
}

// adopt takes over what a walk found, and judges what is new.
func (w *watch) adopt(found []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.deep
	n.timer, n.looked = nil, time.Now()
	if n.closed {
		return
	}
	old := n.paths
	n.paths = append([]string{}, found...)
	for _, p := range found {
		if _, ok := w.known[p]; ok || slices.Contains(old, p) {
			continue
		}
		was, now := w.before(p), w.look(p)
		var undone []restored
		if !now.same(was) {
			undone = settle(p, was, now)
		}
		n.told = append(n.told, undone...)
		if w.running > 0 {
			w.known[p] = was.after(now, undone)
		}
	}
}

// before is what can be said of how a path was before the commands that ran
// since the last walk.
func (w *watch) before(p string) state {
	now := w.look(p)
	made := func(path string) bool {
		var st unix.Stat_t
		return unix.Lstat(path, &st) == nil && w.deep.during(time.Unix(st.Ctim.Unix()), w.running > 0)
	}
	switch {
	case now.kind == hookFolder:
		return lookHooks(p, func(name string) bool { return !made(filepath.Join(p, name)) })
	case made(p):
		return state{}
	}
	return now
}

// look is what stands at a protected path. In a folder of hooks that no mount
// holds it is what git would run.
func (w *watch) look(p string) state {
	if filepath.Base(p) == "hooks" && slices.Contains(w.deep.paths, p) {
		if info, err := os.Lstat(p); err == nil && info.IsDir() {
			return lookHooks(p, func(string) bool { return true })
		}
	}
	return look(p)
}

func lookHooks(dir string, want func(name string) bool) state {
	list, err := os.ReadDir(dir)
	if err != nil {
		return state{kind: other}
	}
	var text []byte
	for _, e := range list {
		var st unix.Stat_t
		if !isHook(e.Name()) || !want(e.Name()) || unix.Lstat(filepath.Join(dir, e.Name()), &st) != nil {
			continue
		}
		text = fmt.Appendf(text, "%s\x00%d %d\n", e.Name(), st.Ino, st.Ctim.Nano())
	}
	return state{kind: hookFolder, text: text}
}

// isHook reports whether git would run a file of that name.
func isHook(name string) bool {
	return !strings.HasSuffix(name, ".sample") && !strings.Contains(name, quarantine)
}

// changedHooks sets aside the hooks that are new or were changed. What was in a
// changed one is not known any more.
func changedHooks(dir string, was, now state) []restored {
	old := strings.SplitAfter(string(was.text), "\n")
	var out []restored
	for line := range strings.Lines(string(now.text)) {
		name, _, _ := strings.Cut(line, "\x00")
		if was.kind == hookFolder && slices.Contains(old, line) {
			continue
		}
		out = append(out, settle(filepath.Join(dir, name), state{}, state{kind: other})...)
	}
	return out
}

// close ends the looking.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deep.closed = true
	if w.deep.timer != nil {
		w.deep.timer.Stop()
	}
}

// attend has a watch look for repositories that nothing names.
func (w *watch) attend(find func() []string) { w.deep.find, w.deep.every = find, deepEvery }
