// Package secret holds a text that does not show itself.
package secret

import "log/slog"

const shown = "[redacted]"

// Secret is a text that prints as [redacted] in every usual way: fmt, slog,
// JSON and TOML. Only [Secret.Reveal] gives it out. An empty secret prints as
// nothing, so that a missing one can be told from a set one.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns [redacted], or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return shown
}

// GoString is what %#v prints.
func (s Secret) GoString() string { return s.String() }

// LogValue is what slog prints.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is what JSON and TOML print.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the text as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}
