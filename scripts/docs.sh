#!/usr/bin/env bash
# docs: rewrite the generated pages. check: fail when they differ.
set -euo pipefail
cd "$(dirname "$0")/.."
out=docs
if [ "${1:-check}" = check ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
fi
bin/zeph-mcp-tools docs tools > "$out/tools.md"
bin/zeph-mcp-tools docs config > "$out/config.md"
if [ "$out" != docs ]; then
	for f in tools.md config.md; do
		diff -u "docs/$f" "$out/$f" || { echo "docs/$f is out of date: make docs" >&2; exit 1; }
	done
fi
