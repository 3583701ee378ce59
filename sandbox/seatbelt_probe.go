package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// seatbeltActs is a script of what must not work. Each act tells whether it
// did; the last must work. It is given a folder with bait, a port on which
// somebody listens, and the server.
const seatbeltActs = `act() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "open $name"; else echo "ok $name"; fi; }
take() { read -r _ < "$1"; }
add() { echo >> "$1"; }
list() { ls "$1" | grep -q .; }
reach() { /bin/bash -c ": <> /dev/tcp/127.0.0.1/$1"; }
act "read a secret" take "$1/secret"
act "list a closed folder" list "$1/closed"
act "write outside" add "$1/outside/file"
act "make a file outside" add "$1/outside/new"
act "change a mode outside" chmod 640 "$1/outside/file"
act "connect to the host" reach "$2"
act "signal the server" kill -0 "$3"
if add "$1/tmp/file"; then echo works; fi
`

// seatbeltProbe is the command that runs the script.
func seatbeltProbe(dir, port string) []string {
	return []string{"/bin/sh", "-c", seatbeltActs, "sh", dir, port, strconv.Itoa(os.Getpid())}
}

// seatbeltBait makes what the probe must not get at, and a folder it may write.
func seatbeltBait(state string) (string, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(state, "probe-")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(
		os.WriteFile(filepath.Join(dir, "secret"), []byte("secret\n"), 0o600),
		os.Mkdir(filepath.Join(dir, "closed"), 0o700), os.WriteFile(filepath.Join(dir, "closed", "name"), nil, 0o600),
		os.Mkdir(filepath.Join(dir, "outside"), 0o700), os.WriteFile(filepath.Join(dir, "outside", "file"), nil, 0o600),
		os.Mkdir(filepath.Join(dir, "tmp"), 0o700),
	)
}

// judgeSeatbelt reads what the script printed. Without walls every act must
// have worked, or that it fails behind them proves nothing.
func judgeSeatbelt(said, limits string, walls bool) (Report, error) {
	r := Report{Limits: limits}
	works := false
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "ok "); ok {
			r.Held = append(r.Held, name)
		} else if name, ok := strings.CutPrefix(line, "open "); ok {
			r.Missing = append(r.Missing, name)
		}
		works = works || line == "works"
	}
	fail := func(step, format string, args ...any) (Report, error) {
		return r, &UnavailableError{Step: step, Cause: fmt.Errorf(format, args...)}
	}
	acts := strings.Count(seatbeltActs, "\nact ")
	switch tried := len(r.Held) + len(r.Missing); {
	case tried != acts || !works:
		return fail("probe the walls", "the probe did not get to its end: %d of %d acts, and what must work does: %v", tried, acts, works)
	case !walls && len(r.Held) > 0:
		return fail("try without walls what they must stop", "it does not work anyway: %s", strings.Join(r.Held, "; "))
	case !walls:
		return r, nil
	case len(r.Missing) > 0:
		return fail("probe the walls", "not confined: %s", strings.Join(r.Missing, "; "))
	}
	r.Level, r.Missing = LevelSeatbelt, slices.Clone(seatbeltGaps())
	return r, nil
}

// seatbeltGaps is what walls on macOS do not stop, for a person to read.
func seatbeltGaps() []string {
	return []string{
		"untested: this program's profiles were written and judged without a macOS to run them on",
		"memory is not limited; processes are counted ten times a second",
		"a program that leaves its group and session within a tenth of a second, and clears its environment, can outlive its command",
		"no loopback of a session's own: commands reach the proxy and the ports of reach, and nothing of their own",
		"what is denied is not told exactly, only guessed from what programs print",
		"certificates are not checked by the system: programs that ask it to (Go, curl of the system) reach no host over TLS",
		"no sandbox of a program's own can be put on top (swift, bazel, chromium: switch theirs off)",
	}
}
