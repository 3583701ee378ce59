package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Config is the part of [tools.scrape] that says where the guarded client may
// go and how far one request may run.
type Config struct {
	// AllowedDomains, when not empty, are the only hosts that may be reached.
	// "example.com" covers itself only, "*.example.com" every name below it.
	AllowedDomains []string `toml:"allowed_domains"`
	// DeniedDomains are never reached; they win over AllowedDomains.
	DeniedDomains []string `toml:"denied_domains"`
	// AllowedPorts, when not empty, are the only ports that may be reached.
	AllowedPorts []int `toml:"allowed_ports"`
	// Timeout is the time one request may take, redirects included.
	Timeout time.Duration `toml:"timeout"`
	// MaxBodyBytes is how much of a body is read, counted after decompression.
	MaxBodyBytes int64 `toml:"max_body_bytes"`
	// MaxConcurrent is how many requests may be under way at once.
	MaxConcurrent int `toml:"max_concurrent"`
	// UserAgent is sent with every request.
	UserAgent string `toml:"user_agent"`
}

// Default returns the built-in config: any public host, any port.
func Default() Config {
	return Config{
		AllowedDomains: []string{},
		DeniedDomains:  []string{},
		AllowedPorts:   []int{},
		Timeout:        15 * time.Second,
		MaxBodyBytes:   4 << 20,
		MaxConcurrent:  4,
		UserAgent:      "zeph-mcp-tools",
	}
}

// Validate reports every value that cannot be used, with its key.
func (c Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("tools.scrape.%s: "+format, append([]any{key}, args...)...))
	}
	errs = append(errs, c.validateDomains()...)
	for i, p := range c.AllowedPorts {
		if p < 1 || p > 65535 {
			bad(fmt.Sprintf("allowed_ports[%d]", i), "%d is not a port", p)
		}
	}
	if c.Timeout < time.Second || c.Timeout > 2*time.Minute {
		bad("timeout", `must be between "1s" and "2m"`)
	}
	if c.MaxBodyBytes < 1024 || c.MaxBodyBytes > 16<<20 {
		bad("max_body_bytes", "must be between 1024 and 16777216")
	}
	if c.MaxConcurrent < 1 || c.MaxConcurrent > 64 {
		bad("max_concurrent", "must be between 1 and 64")
	}
	if strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		bad("user_agent", "must be printable ASCII")
	}
	return errors.Join(errs...)
}

func (c Config) validateDomains() []error {
	var errs []error
	for i, d := range c.AllowedDomains {
		if _, err := parsePattern(d); err != nil {
			errs = append(errs, fmt.Errorf("tools.scrape.allowed_domains[%d]: %w", i, err))
		} else if _, err := netip.ParseAddr(strings.Trim(d, "[]")); err == nil {
			errs = append(errs, fmt.Errorf("tools.scrape.allowed_domains[%d]: an address cannot be allowed, only a domain name", i))
		}
	}
	for i, d := range c.DeniedDomains {
		if _, err := parsePattern(d); err != nil {
			errs = append(errs, fmt.Errorf("tools.scrape.denied_domains[%d]: %w", i, err))
		}
	}
	return errs
}
