package paths

import "fmt"

// Config is the part of [tools.file] that decides on reads outside.
type Config struct {
	// OutsideRead says what happens to a read of a place that is neither
	// readable by default nor secret: "confirm" or "deny". Empty is deny.
	OutsideRead string `toml:"outside_read"`
}

// Default returns the configuration in force when none is given.
func Default() Config { return Config{OutsideRead: "confirm"} }

// Validate refuses a word that is neither.
func (c Config) Validate() error {
	switch c.OutsideRead {
	case "", "confirm", "deny":
		return nil
	}
	return fmt.Errorf(`tools.file.outside_read: %q is neither "confirm" nor "deny"`, c.OutsideRead)
}
