package workspace

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// homeReadable are the toolchains and caches in the caller's home that need
// nobody's leave.
func homeReadable() []string {
	return []string{
		".cargo", ".rustup", ".nvm", ".pyenv", "go", ".local/lib", ".local/share", ".local/bin",
		".cache", ".config/git",
	}
}

// loadReadable lists what is readable besides the system directories. A
// toolchain that is a link is readable where it really lies.
func (w *Workspace) loadReadable() {
	w.readable = append(w.readable, w.lifted...)
	w.readable = append(w.readable, "/home/linuxbrew/.linuxbrew")
	if w.home == "" {
		return
	}
	for _, n := range homeReadable() {
		p := w.home + "/" + n
		w.readable = append(w.readable, p)
		if info, err := os.Lstat(p); err == nil && info.Mode()&os.ModeSymlink != 0 {
			if real, err := filepath.EvalSymlinks(p); err == nil && real != "/" && !within(real, w.home) {
				w.readable = append(w.readable, real)
			}
		}
	}
}

// Classify says what an already resolved absolute path is, by the rules that
// hold for commands.
func (w *Workspace) Classify(abs string) call.Path { return w.classify(abs, abs, false) }

// ClassifyFile is [Workspace.Classify] by the rules that hold for the file
// tools: /proc, /dev and /run are the server's own there, and never readable.
func (w *Workspace) ClassifyFile(abs string) call.Path { return w.classify(abs, abs, true) }

func (w *Workspace) classify(text, abs string, fileTool bool) call.Path {
	if !strings.HasPrefix(abs, "/") || strings.ContainsRune(abs, 0) {
		return unknown(text, abs)
	}
	p := filepath.Clean(abs)
	out := call.Path{Text: text, Path: p}
	root, inside := w.rootOf(p)
	out.Inside, out.Root = inside, inside && root == p
	if inside {
		out.Protected = w.protectedName(root, p)
	}
	if out.Secret = w.secretOf(p, inside, fileTool); out.Secret != "" {
		out.Place = call.PlaceSecret
		return out
	}
	out.Place = w.place(p, inside, fileTool)
	if out.Place.Readable() {
		out.HoldsDeny = w.holds(p)
	}
	return out
}

// secretOf returns the rule that makes p unreadable, "" when there is none.
func (w *Workspace) secretOf(p string, inside, fileTool bool) string {
	// Commands see the cache of their own workspace only. The file tools would
	// reach those of others, and what lies there ends up in others' builds.
	if fileTool || !w.isCache(p) {
		if rule := w.secretRule(p); rule != "" {
			return rule
		}
	}
	if rule := w.denied(p); rule != "" {
		return rule
	}
	if inside {
		return ""
	}
	if fileTool {
		for _, d := range []string{"/proc", "/dev", "/run"} {
			if within(d, p) {
				return d + " of the server"
			}
		}
	}
	switch {
	case within("/proc", p):
		return procSecret(p)
	case within("/dev", p) && isBlockDevice(p):
		return "block device"
	}
	return ""
}

// place sorts a path that is not secret.
func (w *Workspace) place(p string, inside, fileTool bool) call.Place {
	switch {
	case inside:
		return call.PlaceWorkspace
	case within("/tmp", p), within("/dev/shm", p), w.isCache(p) && !fileTool:
		return call.PlaceScratch
	case isDevice(p):
		return call.PlaceDevice
	}
	for _, r := range w.readable {
		if within(r, p) {
			return call.PlaceSystem
		}
	}
	if w.home != "" && within(w.home, p) {
		return call.PlaceOutside
	}
	if isSystem(p) {
		return call.PlaceSystem
	}
	return call.PlaceOutside
}

func (w *Workspace) isCache(p string) bool {
	for _, c := range w.caches {
		if within(c, p) {
			return true
		}
	}
	return false
}

// holds names the place that needs leave and lies below the readable folder p.
func (w *Workspace) holds(p string) string {
	switch {
	case w.home != "" && w.home != p && within(p, w.home):
		return w.home
	case p == "/":
		return homesDir()
	}
	return ""
}

// isSystem reports whether p is "/" itself or lies in a system directory.
func isSystem(p string) bool {
	if p == "/" {
		return true
	}
	top, _, _ := strings.Cut(p[1:], "/")
	switch top {
	case "usr", "bin", "sbin", "opt", "etc", "var", "sys", "proc", "run", "dev", "boot":
		return true
	}
	return strings.HasPrefix(top, "lib")
}

// isDevice reports whether p is a device that may be read and written.
func isDevice(p string) bool {
	switch p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return len(p) > len("/dev/fd/") && strings.HasPrefix(p, "/dev/fd/") || isOwnDescriptor(p)
}

// isOwnDescriptor reports whether p is a descriptor of the process itself.
func isOwnDescriptor(p string) bool {
	if !strings.HasPrefix(p, "/proc/") {
		return false
	}
	f := strings.Split(p, "/")
	return len(f) >= 5 && f[1] == "proc" && (f[2] == "self" || f[2] == "thread-self") && f[3] == "fd"
}

// isBlockDevice reports whether p is a disk. A name counts where there is no
// such node here.
func isBlockDevice(p string) bool {
	if info, err := os.Lstat(p); err == nil {
		m := info.Mode()
		return m&os.ModeDevice != 0 && m&os.ModeCharDevice == 0
	}
	name := strings.TrimPrefix(p, "/dev/")
	for _, d := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "md", "dm-", "sr", "nbd", "zram"} {
		rest, ok := strings.CutPrefix(name, d)
		if ok && rest != "" && !strings.Contains(rest, "/") && len(rest) <= 6 {
			return true
		}
	}
	return strings.HasPrefix(name, "mapper/") && name != "mapper/control" || strings.HasPrefix(name, "disk/by-")
}

// procSecret returns the rule for what another process keeps in /proc. The
// process itself, and process 1, which is the sandbox's own, are left to the
// kernel.
func procSecret(p string) string {
	f := strings.Split(strings.TrimPrefix(p, "/proc/"), "/")
	if len(f) < 2 || f[0] == "self" || f[0] == "thread-self" || f[0] == "1" {
		return ""
	}
	what := f[1]
	if what == "task" && len(f) > 3 {
		what = f[3]
	}
	switch what {
	case "environ", "mem", "maps", "smaps", "fd", "auxv", "pagemap":
		if f[0] != "sys" && f[0] != "bus" && f[0] != "fs" {
			return "/proc/*/" + what + " of other processes"
		}
	}
	return ""
}
