#!/usr/bin/env bash
# The official MCP conformance suite against the binary, for the last revision
# of each era. Scenarios that need the suite's own fixture tools or prompts
# cannot pass on any other server; they are run too, and there only the check
# that every message fits the revision's schema counts.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/npm.sh
bin=$PWD/bin/zeph-mcp-tools
work=$(mktemp -d "$PWD/.bin/conformance-XXXXXX")
server=
cleanup() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
mkdir "$work/ws"
XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config \
	"$bin" serve --transport http --listen 127.0.0.1:0 --workspace "$work/ws" 2> "$work/log" & server=$!
for _ in $(seq 100); do
	url=$(sed -n 's/^listening url=//p' "$work/log")
	[ -n "$url" ] && break
	sleep 0.05
done
[ -n "$url" ] || { cat "$work/log"; echo "the server did not start" >&2; exit 1; }
node scripts/conformance.mjs "$url" "$work/results"
