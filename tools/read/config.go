package read

import (
	"errors"
	"fmt"
)

// Config is the [tools.read] table.
type Config struct {
	PageLines  int   `toml:"page_lines"`  // lines of one read, unless the call asks for fewer
	PageBytes  int   `toml:"page_bytes"`  // bytes of text in any one result
	LineBytes  int   `toml:"line_bytes"`  // a longer line is cut, visibly
	ImageBytes int64 `toml:"image_bytes"` // a larger image is not returned; 0 = no images
	MaxResults int   `toml:"max_results"` // most matches or paths one call may ask for
}

// Default returns the configuration in force when none is given.
func Default() Config {
	return Config{PageLines: 2000, PageBytes: 30_000, LineBytes: 2000, ImageBytes: 5 << 20, MaxResults: 1000}
}

// Validate checks the limits.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct {
		key          string
		val, low, hi int64
	}{
		{"page_lines", int64(c.PageLines), 1, 100_000},
		{"page_bytes", int64(c.PageBytes), 1000, 1 << 20},
		{"line_bytes", int64(c.LineBytes), 80, 100_000},
		{"image_bytes", c.ImageBytes, 0, 20 << 20},
		{"max_results", int64(c.MaxResults), 1, 100_000},
	} {
		if l.val < l.low || l.val > l.hi {
			errs = append(errs, fmt.Errorf("tools.read.%s: %d is not between %d and %d", l.key, l.val, l.low, l.hi))
		}
	}
	return errors.Join(errs...)
}
