package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

// seatbeltBase begins every profile: what a program needs to run at all and
// that leads nowhere. A service that is not named cannot be asked, so none can
// be made to do what a command may not: no launching, no keychain, no
// preferences, and no checking of certificates, which fetches what these name.
const seatbeltBase = `(version 1)
(deny default)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read
	(sysctl-name-prefix "hw.") (sysctl-name-prefix "machdep.cpu.") (sysctl-name-prefix "net.routetable.") (sysctl-name-prefix "vm.")
	(sysctl-name-prefix "kern.os") (sysctl-name "kern.version") (sysctl-name "kern.hostname") (sysctl-name "kern.argmax")
	(sysctl-name "kern.boottime") (sysctl-name "kern.maxfilesperproc") (sysctl-name "kern.maxproc") (sysctl-name "kern.ngroups")
	(sysctl-name "kern.secure_kernel") (sysctl-name "kern.usrstack64") (sysctl-name "sysctl.name2oid") (sysctl-name "sysctl.proc_cputype"))
(allow mach-lookup
	(global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.opendirectoryd.membership")
	(global-name "com.apple.system.notification_center") (global-name "com.apple.system.logger") (global-name "com.apple.logd"))
(allow ipc-posix-sem)
(allow ipc-posix-shm-read-data (ipc-posix-name "apple.shm.notification_center"))
(allow pseudo-tty)
(allow file-read* file-write-data file-ioctl
	(literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper") (literal "/dev/ptmx")
	(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow file-read* (literal "/") (literal "/dev") (literal "/dev/random") (literal "/dev/urandom") (literal "/etc") (literal "/tmp") (literal "/var"))
(allow file-read* file-write-data (subpath "/dev/fd") (literal "/dev/stdin") (literal "/dev/stdout") (literal "/dev/stderr"))
`

// seatbeltHost is what programs ask for names and certificates when the network
// is the host's.
const seatbeltHost = `(allow system-socket)
(allow network-outbound (remote ip) (literal "/private/var/run/mDNSResponder"))
(allow network-bind network-inbound (local ip))
(allow mach-lookup
	(global-name "com.apple.trustd.agent") (global-name "com.apple.networkd") (global-name "com.apple.dnssd.service")
	(global-name "com.apple.SystemConfiguration.configd") (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
`

// seatbeltUnix lets every local socket be used whose path a command can see.
const seatbeltUnix = `(allow network-outbound (remote unix-socket))
(allow network-bind network-inbound (local unix-socket))
`

// seatbeltMost is how long a profile may be: it is an argument of the program
// that puts it in force, and those have a limit together.
const seatbeltMost = 512 << 10

// loopback says which ports of the machine's loopback a profile opens.
type loopback struct {
	connect []int // what commands may connect to
	listen  []int // where they may listen
}

// seatbeltPlan is the plan for macOS, where nothing can be put in another place
// and reads are listed: what is not opened here is closed.
func (p Policy) seatbeltPlan(home string, writes Places, scratch string, extra []string) []stage.Mount {
	var ms []stage.Mount
	add := func(op stage.Op, paths ...string) {
		for _, path := range paths {
			ms = append(ms, stage.Mount{Op: op, Path: realOnMac(path)})
		}
	}
	add(
		stage.OpRead, "/bin", "/sbin", "/usr", "/System", "/opt", "/nix", "/Library/Apple", "/Library/Developer", "/Library/Frameworks",
		"/Library/Java", "/Applications/Xcode.app", "/etc", "/var/select", "/var/db/dyld", "/var/db/timezone", "/var/db/xcode_select_link",
	)
	if clean(home) {
		add(stage.OpRead, home, home+"/Library/Developer", home+"/Library/Python")
		add(stage.OpMask, home+"/Library") // mail, messages, cookies, what applications keep
	}
	for _, m := range p.plan(writes, scratch, extra) {
		switch {
		case m.Op == stage.OpWrite && m.Source != "":
			add(m.Op, m.Source)
		case slices.Contains([]stage.Op{stage.OpWrite, stage.OpPin, stage.OpReadOnly, stage.OpMask, stage.OpMaskHold}, m.Op):
			add(m.Op, m.Path)
		}
	}
	sortPlan(ms)
	return slices.Compact(ms)
}

// realOnMac is what the kernel calls a path that begins with one of the links
// every macOS has.
func realOnMac(path string) string {
	for _, link := range []string{"/tmp", "/var", "/etc"} {
		if below(path, link) {
			return "/private" + path
		}
	}
	return path
}

// seatbelt writes the profile of a setup. The last rule that matches counts, so
// it follows the plan's order: what lies deeper comes later, and at one place
// what is stricter.
//
// What is opened is written as a path in quotes. What is closed is written as a
// pattern that matches the name in any case, since a name that differs only in
// that may be the same file, and anything in the place of a character that could
// be written in another way or could mean something. So no name can say
// anything else here.
func seatbelt(m *stage.Setup, lo loopback) (string, error) {
	var b strings.Builder
	b.WriteString(seatbeltBase)
	for _, p := range lo.connect {
		fmt.Fprintf(&b, "(allow network-outbound (remote tcp \"localhost:%d\"))\n", p)
	}
	for _, p := range lo.listen {
		fmt.Fprintf(&b, "(allow network-bind network-inbound (local tcp \"localhost:%d\"))\n", p)
	}
	if m.HostNetwork {
		b.WriteString(seatbeltHost)
	}
	if m.UnixSockets && !m.Private {
		b.WriteString(seatbeltUnix)
	}
	if err := writePlaces(&b, m.Mounts); err != nil {
		return "", err
	}
	if b.Len() > seatbeltMost {
		return "", fmt.Errorf("the profile would have %d bytes, %d at most", b.Len(), seatbeltMost)
	}
	return b.String(), nil
}

// writePlaces writes the plan, then what cannot be moved away, whatever lies
// where, and last that what is on the way to an open place can be looked at.
func writePlaces(b *strings.Builder, plan []stage.Mount) error {
	var open, pins, ways []string
	for _, place := range plan {
		if place.Op == stage.OpWrite {
			open = append(open, place.Path)
		}
	}
	for _, place := range plan {
		rule, err := placeRule(place)
		if err != nil {
			return err
		}
		b.WriteString(rule)
		switch place.Op { //nolint:exhaustive // placeRule has refused the rest
		case stage.OpRead:
			ways = append(ways, above(place.Path)...)
		case stage.OpWrite:
			ways = append(ways, above(place.Path)...)
			pins = append(pins, place.Path)
		case stage.OpPin:
			pins = append(pins, place.Path)
		default:
			pins = append(pins, between(place.Path, open)...)
		}
	}
	for _, pin := range ordered(pins) {
		fmt.Fprintf(b, "(deny file-write-unlink %s)\n", pattern(pin, "$"))
	}
	b.WriteString("(deny file-write-setugid)\n")
	for _, way := range ordered(ways) {
		path, err := quoted(way)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "(allow file-read-metadata (literal %s))\n", path)
	}
	return nil
}

// placeRule is what the profile says of one place.
func placeRule(place stage.Mount) (string, error) {
	const reads = "file-read* file-map-executable process-exec*"
	ops := reads
	switch place.Op { //nolint:exhaustive // the rest is refused
	case stage.OpMask, stage.OpMaskHold:
		return "(deny file-write* " + reads + " " + pattern(place.Path, "($|/)") + ")\n", nil
	case stage.OpReadOnly:
		return "(deny file-write* " + pattern(place.Path, "($|/)") + ")\n", nil
	case stage.OpPin:
		return "", nil
	case stage.OpWrite:
		ops = "file-write* " + reads
	case stage.OpRead:
	default:
		return "", fmt.Errorf("a profile cannot say operation %d", place.Op)
	}
	path, err := quoted(place.Path)
	return "(allow " + ops + " (subpath " + path + "))\n", err
}

// above lists the folders on the way to a path.
func above(path string) []string {
	var out []string
	for d := filepath.Dir(path); d != "/" && d != "."; d = filepath.Dir(d) {
		out = append(out, d)
	}
	return out
}

func ordered(paths []string) []string {
	slices.SortFunc(paths, comparePaths)
	return slices.Compact(paths)
}

// errUnspeakable means that a path cannot be written in a profile.
var errUnspeakable = errors.New("the name of this folder holds characters a Seatbelt profile cannot name; rename it")

// quoted writes a path as a string of the profile's language.
func quoted(path string) (string, error) {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return "", fmt.Errorf("%q: %w", path, errUnspeakable)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`, nil
}

// pattern writes the filter that matches a path, in any case and also where the
// volume that holds it is named, and what end says may follow.
func pattern(path, end string) string {
	var b strings.Builder
	b.WriteString(`(regex #"^(/System/Volumes/Data)?`)
	foreign := false
	for _, c := range []byte(path) {
		lower := c | 0x20
		switch {
		case c >= utf8.RuneSelf: // there is more than one way to write most of these
			if !foreign {
				b.WriteString("[^/]+")
			}
		case lower >= 'a' && lower <= 'z':
			b.WriteString(string([]byte{'[', lower, lower - 0x20, ']'}))
		case c >= '0' && c <= '9', c == '/', c == '-', c == '_':
			b.WriteByte(c)
		case c < ' ', c == 0x7f, strings.IndexByte("\"\\^[]", c) >= 0:
			b.WriteString("[^/]")
		default:
			b.WriteString(string([]byte{'[', c, ']'}))
		}
		foreign = c >= utf8.RuneSelf
	}
	b.WriteString(end + `")`)
	return b.String()
}
