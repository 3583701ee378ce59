package urls

import "github.com/zeph-tools/zeph-mcp-tools/egress"

// Config is what this gate judges by. It has no keys of its own: the gate and
// the client that later opens the connection follow one and the same policy.
type Config = egress.Config

// Default returns the built-in config.
func Default() Config { return egress.Default() }
