package approval

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of the configuration.
const (
	minTTL = time.Second
	maxTTL = 15 * time.Minute
	minKey = 32 // characters
)

// Config is the section [approval].
type Config struct {
	TTL     time.Duration `toml:"ttl"`      // how long a question can be answered; 1s … 15m
	Wait    time.Duration `toml:"wait"`     // how long a call waits for the answer of a client before 2026-07-28; 1s … ttl
	Key     string        `toml:"key"`      // secret that signs what clients carry back; empty = made at start
	KeyFile string        `toml:"key_file"` // file that holds the key; mode 0600
}

// Default returns the configuration in force when nothing is set.
func Default() Config { return Config{TTL: maxTTL, Wait: 5 * time.Minute} }

// Validate reports every setting that is out of bounds.
func (c Config) Validate() error {
	var errs []error
	if c.TTL < minTTL || c.TTL > maxTTL {
		errs = append(errs, fmt.Errorf("approval.ttl: %s is not between %s and %s", c.TTL, minTTL, maxTTL))
	}
	if c.Wait < minTTL || c.Wait > maxTTL {
		errs = append(errs, fmt.Errorf("approval.wait: %s is not between %s and %s", c.Wait, minTTL, maxTTL))
	}
	if c.Key != "" && c.KeyFile != "" {
		errs = append(errs, errors.New("approval.key_file: give either key or key_file"))
	}
	if c.KeyFile != "" && !filepath.IsAbs(c.KeyFile) {
		errs = append(errs, fmt.Errorf("approval.key_file: %q must be an absolute path", c.KeyFile))
	}
	if c.Key != "" && len(c.Key) < minKey {
		errs = append(errs, fmt.Errorf("approval.key: shorter than %d characters", minKey))
	}
	return errors.Join(errs...)
}

// secret returns the signing key: from the configuration, so that several
// servers accept each other's states, or made now.
func (c Config) secret() ([]byte, error) {
	text := c.Key
	if c.KeyFile != "" {
		info, err := os.Stat(c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("approval.key_file: %w", err)
		}
		if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("approval.key_file: %s must be a regular file that only its owner can read (chmod 600)", c.KeyFile)
		}
		raw, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("approval.key_file: %w", err)
		}
		if text = strings.TrimSpace(string(raw)); len(text) < minKey {
			return nil, fmt.Errorf("approval.key_file: the key in %s is shorter than %d characters", c.KeyFile, minKey)
		}
	}
	if text != "" {
		sum := sha256.Sum256([]byte("zeph-approval-state-key/1\x00" + text))
		return sum[:], nil
	}
	key := make([]byte, sha256.Size)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("approval: no random key: %w", err)
	}
	return key, nil
}
