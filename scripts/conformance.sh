#!/usr/bin/env bash
# The official MCP conformance suite against the binary, for the last revision
# of each era. Scenarios that need the suite's own fixture tools or prompts
# cannot pass on any other server; they are run too, and there only the check
# that every message fits the revision's schema counts.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/npm.sh
. scripts/server.sh
node scripts/conformance.mjs "$url" "$work/results"
