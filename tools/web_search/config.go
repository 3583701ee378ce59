package websearch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/ipi"
)

// Config is [tools.search].
type Config struct {
	// Enabled makes the tool exist, if there is a key.
	Enabled bool `toml:"enabled"`
	// Backend is the provider: "brave".
	Backend string `toml:"backend"`
	// Endpoint is where requests go. Nothing in a call changes it.
	Endpoint string `toml:"endpoint"`
	// AllowPrivateEndpoint lets Endpoint be on the operator's own network, and
	// lets it use http.
	AllowPrivateEndpoint bool `toml:"allow_private_endpoint"`
	// APIKeyEnv names the environment variable that holds the key.
	APIKeyEnv string `toml:"api_key_env"`
	// APIKeyFile is a file that holds the key and nobody else may read. It wins
	// over APIKeyEnv.
	APIKeyFile string `toml:"api_key_file"`
	// MaxResults is the most results a call gets, and what it gets when it does
	// not say.
	MaxResults int `toml:"max_results"`
	// Timeout is the time one search may take.
	Timeout time.Duration `toml:"timeout"`
	// IPIFilterThreshold is the injection score from which matched phrases are
	// blanked, as in [tools.scrape].
	IPIFilterThreshold float64 `toml:"ipi_filter_threshold"`
}

// Default returns the built-in config: no search.
func Default() Config {
	return Config{ //nolint:gosec // names where a key is found, not a key
		Backend:            "brave",
		Endpoint:           "https://api.search.brave.com/res/v1/web/search",
		APIKeyEnv:          "BRAVE_API_KEY",
		MaxResults:         10,
		Timeout:            15 * time.Second,
		IPIFilterThreshold: ipi.DefaultThreshold,
	}
}

// Validate reports every value that cannot be used, with its key.
func (c Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("tools.search."+key+": "+format, args...))
	}
	if c.Backend != "brave" {
		bad("backend", "%q is not known; use %q", c.Backend, "brave")
	}
	if !strings.HasPrefix(c.Endpoint, "https://") && !c.AllowPrivateEndpoint {
		bad("endpoint", "must start with https://")
	}
	if strings.ContainsAny(c.APIKeyEnv, "= \t\n") {
		bad("api_key_env", "must be the name of a variable")
	}
	if c.MaxResults < 1 || c.MaxResults > maxCount {
		bad("max_results", "must be between 1 and %d", maxCount)
	}
	if c.Timeout < time.Second || c.Timeout > time.Minute {
		bad("timeout", `must be between "1s" and "1m"`)
	}
	if !(c.IPIFilterThreshold >= 0 && c.IPIFilterThreshold <= 2) {
		bad("ipi_filter_threshold", "must be between 0 and 2")
	}
	return errors.Join(errs...)
}
