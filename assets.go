// Package zephmcptools holds the files at the root that the program carries
// inside itself, so that each exists once.
package zephmcptools

import _ "embed"

// ExampleConfig is config.example.toml: every key with its default and why.
//
//go:embed config.example.toml
var ExampleConfig string
