#!/usr/bin/env bash
# make run: check this machine, then serve the current folder over HTTP and say
# how a client reaches it. PORT=0 picks a free port.
set -euo pipefail
bin=$(cd "$(dirname "$0")/.." && pwd)/bin/zeph-mcp-tools
ws=${WORKSPACE:-$PWD}

"$bin" doctor --workspace "$ws" || [ $? -eq 1 ] # 1 = degraded: said above, still runs
cat <<EOF

A client that starts the server itself (stdio) wants this in its config:

  {"mcpServers": {"zeph": {"command": "$bin", "args": ["--workspace", "$ws"]}}}

A client that connects over HTTP wants the URL printed below. Ctrl-C stops the server.

EOF
exec "$bin" serve --transport http --listen "127.0.0.1:${PORT:-8765}" --workspace "$ws"
