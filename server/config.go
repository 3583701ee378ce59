package server

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Config is the section [server].
type Config struct {
	SessionIdle    time.Duration `toml:"session_idle"`    // an HTTP session ends when it gets no message for so long; 15m … 24h, so that no waiting call outlives it
	MaxSessions    int           `toml:"max_sessions"`    // HTTP sessions at a time; 1 … 10000
	MaxCalls       int           `toml:"max_calls"`       // calls that run at a time; more wait; 1 … 1024
	MaxMessage     int64         `toml:"max_message"`     // bytes of one message; 64 KiB … 64 MiB
	AllowedOrigins []string      `toml:"allowed_origins"` // web origins, beside the server's own, that a browser may send requests from
}

// Default returns the configuration in force when nothing is set.
func Default() Config {
	return Config{SessionIdle: time.Hour, MaxSessions: 1000, MaxCalls: 64, MaxMessage: 4 << 20}
}

// Validate reports every setting that is out of bounds.
func (c Config) Validate() error {
	var errs []error
	outside := func(key string, ok bool, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("server.%s: must be %s", key, want))
		}
	}
	outside("session_idle", c.SessionIdle >= 15*time.Minute && c.SessionIdle <= 24*time.Hour, "between 15m and 24h")
	outside("max_sessions", c.MaxSessions >= 1 && c.MaxSessions <= 10_000, "between 1 and 10000")
	outside("max_calls", c.MaxCalls >= 1 && c.MaxCalls <= 1024, "between 1 and 1024")
	outside("max_message", c.MaxMessage >= 64<<10 && c.MaxMessage <= 64<<20, "between 65536 and 67108864")
	for i, o := range c.AllowedOrigins {
		if canon, ok := canonicalOrigin(o); !ok || canon != o {
			errs = append(errs, fmt.Errorf("server.allowed_origins[%d]: %q is not an origin such as \"https://app.example\" or \"http://localhost:6274\"", i, o))
		}
	}
	return errors.Join(errs...)
}

// Warnings lists what is less safe than the default.
func (c Config) Warnings() []string {
	if len(c.AllowedOrigins) == 0 {
		return nil
	}
	return []string{"server.allowed_origins lets pages of " + strings.Join(c.AllowedOrigins, ", ") + " make calls as the local user"}
}

// canonicalOrigin returns an origin as browsers write it.
func canonicalOrigin(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", false
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), true
}
