// Package posix is the part of the system's calls that files and the audit log
// are built on: opening a path step by step without following a link, locks,
// free space. On a system that does not have them every call fails, so that
// what depends on one refuses instead of doing it in a weaker way.
package posix
