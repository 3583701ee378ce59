package webscrape

import (
	"errors"
	"fmt"

	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/internal/ipi"
)

// Config is [tools.scrape]: where requests may go, and how what comes back is
// treated.
type Config struct {
	egress.Config

	// IPIFilterThreshold is the injection score, 0 to 1, from which matched
	// phrases are blanked. Above 1 never blanks.
	IPIFilterThreshold float64 `toml:"ipi_filter_threshold"`
	// MaxChars is what fetch returns at a time when the call does not say.
	MaxChars int `toml:"max_chars"`
}

// Default returns the built-in config.
func Default() Config {
	return Config{Config: egress.Default(), IPIFilterThreshold: ipi.DefaultThreshold, MaxChars: 10_000}
}

// Validate reports every value that cannot be used, with its key.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate()}
	if !(c.IPIFilterThreshold >= 0 && c.IPIFilterThreshold <= 2) {
		errs = append(errs, errors.New("tools.scrape.ipi_filter_threshold: must be between 0 and 2"))
	}
	if c.MaxChars < 100 || c.MaxChars > maxChars {
		errs = append(errs, fmt.Errorf("tools.scrape.max_chars: must be between 100 and %d", maxChars))
	}
	return errors.Join(errs...)
}
