package write

import (
	"errors"
	"fmt"
)

// Config is the [tools.write] table.
type Config struct {
	MaxFileBytes int64 `toml:"max_file_bytes"` // a larger file is not edited
	DiffBytes    int   `toml:"diff_bytes"`     // a longer diff is cut, visibly
	Sync         bool  `toml:"sync"`           // flush each file to the disk before it takes its name
}

// Default returns the configuration in force when none is given.
func Default() Config { return Config{MaxFileBytes: 10 << 20, DiffBytes: 8000} }

// Validate checks the limits.
func (c Config) Validate() error {
	var errs []error
	if c.MaxFileBytes < 1 || c.MaxFileBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("tools.write.max_file_bytes: %d is not between 1 and %d", c.MaxFileBytes, 1<<30))
	}
	if c.DiffBytes < 200 || c.DiffBytes > 1<<20 {
		errs = append(errs, fmt.Errorf("tools.write.diff_bytes: %d is not between 200 and %d", c.DiffBytes, 1<<20))
	}
	return errors.Join(errs...)
}
