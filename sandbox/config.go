package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mode says whether commands are confined. The zero value is [ModeStrict].
type Mode uint8

// The modes.
const (
	ModeStrict Mode = iota // confined, or not run
	ModeOff                // not confined; only an operator can say so
)

// MarshalText returns the word used in config.
func (m Mode) MarshalText() ([]byte, error) {
	if m == ModeOff {
		return []byte("off"), nil
	}
	return []byte("strict"), nil
}

// UnmarshalText reads the word used in config.
func (m *Mode) UnmarshalText(b []byte) error {
	switch string(b) {
	case "strict":
		*m = ModeStrict
	case "off":
		*m = ModeOff
	default:
		return fmt.Errorf("sandbox mode %q is not known; say \"strict\" or \"off\"", b)
	}
	return nil
}

// UnixSockets says which local sockets a command may use. The zero value is
// [UnixSocketsNone].
type UnixSockets uint8

// The choices.
const (
	UnixSocketsNone    UnixSockets = iota // connected pairs only
	UnixSocketsPrivate                    // those that lie where the command can write
	UnixSocketsAll                        // every socket whose path a command can see
)

// String returns the word used in config.
func (u UnixSockets) String() string {
	switch u {
	case UnixSocketsAll:
		return "all"
	case UnixSocketsPrivate:
		return "private"
	case UnixSocketsNone:
	}
	return "none"
}

// MarshalText returns the word used in config.
func (u UnixSockets) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads the word used in config.
func (u *UnixSockets) UnmarshalText(b []byte) error {
	switch string(b) {
	case "none":
		*u = UnixSocketsNone
	case "private":
		*u = UnixSocketsPrivate
	case "all":
		*u = UnixSocketsAll
	default:
		return fmt.Errorf("unix sockets %q are not known; say \"none\", \"private\" or \"all\"", b)
	}
	return nil
}

// Config is the table [tools.sandbox]. A zero number means the kernel's or the
// caller's own limit.
type Config struct {
	Mode          Mode          `toml:"mode"`
	MinLevel      int           `toml:"min_level"`     // weakest level that may run a command
	Profile       Profile       `toml:"profile"`       // of a command whose call says nothing
	UnixSockets   UnixSockets   `toml:"unix_sockets"`  // which local sockets a command may use
	Network       NetworkMode   `toml:"network"`       // what a command can reach when its call says nothing
	MaxTimeout    time.Duration `toml:"max_timeout"`   // longest a command may take
	KillGrace     time.Duration `toml:"kill_grace"`    // between asking a command to end and forcing it
	IdleTimeout   time.Duration `toml:"idle_timeout"`  // a session without commands gives its processes back
	MaxSessions   int           `toml:"max_sessions"`  // sessions that may have processes at once
	MaxProcesses  int           `toml:"max_processes"` // of one session, threads included
	MaxMemory     int64         `toml:"max_memory"`    // bytes, of one command's processes together; never more than half of the machine's
	MaxOpenFiles  int           `toml:"max_open_files"`
	MaxFileSize   int64         `toml:"max_file_size"`   // bytes of one file a command writes
	TmpfsSize     int64         `toml:"tmpfs_size"`      // bytes of /dev/shm
	SpoolSize     int64         `toml:"spool_size"`      // bytes of one command's output kept on disk
	Reach         []int         `toml:"reach"`           // ports of the host's loopback that commands can reach
	Expose        []int         `toml:"expose"`          // ports of commands that the host's loopback leads to
	MaxOutputSize int64         `toml:"max_output_size"` // bytes a command may print before it is ended
	// AllowHostNetwork lets a call ask for the host's network, AllowAnyHost for
	// addresses and names of the own network.
	AllowHostNetwork bool `toml:"allow_host_network"`
	AllowAnyHost     bool `toml:"allow_any_host"`
}

// Default returns the configuration used when nothing is said.
func Default() Config {
	return Config{
		MinLevel:      LevelFull,
		Profile:       Workspace,
		MaxTimeout:    30 * time.Minute,
		KillGrace:     2 * time.Second,
		IdleTimeout:   10 * time.Minute,
		MaxSessions:   64,
		MaxProcesses:  512,
		MaxMemory:     4 << 30,
		MaxOpenFiles:  4096,
		MaxFileSize:   8 << 30,
		TmpfsSize:     256 << 20,
		SpoolSize:     256 << 20,
		MaxOutputSize: 8 << 30,
		Reach:         []int{},
		Expose:        []int{},
	}
}

// Validate reports everything that is wrong with c.
func (c Config) Validate() error {
	var errs []error
	bad := func(ok bool, key, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("tools.sandbox.%s: %s", key, want))
		}
	}
	bad(c.Mode <= ModeOff, "mode", "say \"strict\" or \"off\"")
	bad(c.UnixSockets <= UnixSocketsAll, "unix_sockets", "say \"none\", \"private\" or \"all\"")
	bad(c.MinLevel >= LevelSeatbelt && c.MinLevel <= LevelFull, "min_level", "say 3, or 2 where user namespaces are refused, or 1 on macOS")
	bad(c.MaxTimeout > 0, "max_timeout", "must be more than nothing, such as \"10m\"")
	bad(c.KillGrace >= 0 && c.KillGrace <= time.Minute, "kill_grace", "must be between \"0s\" and \"1m\"")
	bad(c.IdleTimeout > 0, "idle_timeout", "must be more than nothing, such as \"10m\"")
	bad(c.MaxSessions > 0, "max_sessions", "must be at least 1")
	bad(c.MaxProcesses >= 64, "max_processes", "must be at least 64: the session itself takes some")
	bad(c.MaxMemory >= 64<<20, "max_memory", "must be at least 67108864 bytes, or few programs run")
	bad(c.MaxOpenFiles >= 64, "max_open_files", "must be at least 64")
	bad(c.MaxFileSize > 0, "max_file_size", "must be more than nothing, in bytes")
	bad(c.TmpfsSize >= 1<<20, "tmpfs_size", "must be at least 1048576 bytes")
	bad(c.SpoolSize >= 0, "spool_size", "must not be negative; 0 keeps nothing on disk")
	bad(c.MaxOutputSize >= 1<<20, "max_output_size", "must be at least 1048576 bytes")
	bad(c.Profile != ProfileUnset && c.Profile < Unconfined, "profile", "say one of "+strings.Join(ProfileNames(), ", "))
	if r := c.Profile.row(); c.Profile != Workspace {
		bad(c.Network == NetworkOff || c.Network == r.network, "network", "the profile "+r.name+" has its own network: leave one of them out")
		bad(c.UnixSockets == UnixSocketsNone || c.UnixSockets == r.unix, "unix_sockets", "the profile "+r.name+" has its own sockets: leave one of them out")
	}
	bad(c.Network <= NetworkHost, "network", "say \"off\", \"proxy\" or \"host\"")
	errs = append(errs, validPorts("reach", c.Reach, nil), validPorts("expose", c.Expose, c.Reach))
	return errors.Join(errs...)
}

// maxPorts is how many ports can be reached, or exposed.
const maxPorts = 32

// validPorts reports what cannot be a list of ports, which has none of others.
func validPorts(key string, ports, others []int) error {
	var errs []error
	if len(ports) > maxPorts {
		errs = append(errs, fmt.Errorf("tools.sandbox.%s: more than %d ports", key, maxPorts))
	}
	for i, p := range ports {
		var what string
		switch {
		case p < 1 || p > 65535:
			what = "must be between 1 and 65535"
		case p == proxyPort || p == namesPort:
			what = "is taken by the proxy"
		case slices.Contains(ports[:i], p):
			what = "is there twice"
		case slices.Contains(others, p):
			what = "cannot be reached and exposed at once"
		default:
			continue
		}
		errs = append(errs, fmt.Errorf("tools.sandbox.%s[%d]: %d %s", key, i, p, what))
	}
	return errors.Join(errs...)
}

// Warnings lists what in c is unsafe, for the operator to read at start.
func (c Config) Warnings() []string {
	var out []string
	if c.Mode == ModeOff {
		out = append(out, "tools.sandbox.mode = \"off\" (--unconfined): commands run with all rights of this user, and with the network")
	}
	if c.Network == NetworkHost {
		out = append(out, "tools.sandbox.network = \"host\": commands have this machine's network, its local services too")
	}
	if c.AllowHostNetwork {
		out = append(out, "tools.sandbox.allow_host_network = true: a call that a person permits gets this machine's network")
	}
	if c.AllowAnyHost {
		out = append(out, "tools.sandbox.allow_any_host = true: a call that a person permits reaches hosts of the own network")
	}
	if len(c.Reach) > 0 {
		out = append(out, fmt.Sprintf("tools.sandbox.reach: commands can talk to what listens on this machine's ports %v", c.Reach))
	}
	if c.Mode == ModeStrict && c.MinLevel < LevelFull {
		out = append(out, fmt.Sprintf("tools.sandbox.min_level = %d: where user namespaces are refused, commands run behind fewer walls; doctor lists what is missing", c.MinLevel))
	}
	if c.UnixSockets == UnixSocketsAll {
		out = append(out, "tools.sandbox.unix_sockets = \"all\": a command can talk to every local service whose socket it can see")
	}
	return out
}
