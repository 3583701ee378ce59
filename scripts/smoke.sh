#!/usr/bin/env bash
# Other people's clients against the binary: the official TypeScript SDK (both
# major versions, so both protocol eras), the official Go SDK and the MCP
# Inspector. mcp-go's own client is covered by the Go tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/npm.sh
. scripts/server.sh

mkdir "$work/js"
cp scripts/smoke/*.mjs "$work/js/"
ln -s "$npm_dir/node_modules" "$work/js/node_modules"
node "$work/js/v1.mjs" "$bin" "$work/ws" "$url"
node "$work/js/v2.mjs" "$bin" "$work/ws" "$url"

(cd scripts/smoke/gosdk && go build -o "$work/gosdk" .)
"$work/gosdk" "$bin" "$work/ws" "$url"

export MCP_INSPECTOR_SECRET_STORE=memory
inspect() { mcp-inspector --cli --config "$work/inspect.json" --server "$1" "${@:2}"; }
cat > "$work/inspect.json" <<EOF
{"mcpServers": {
  "stdio": {"command": "$bin", "args": ["--workspace", "$work/ws"], "env": {"XDG_STATE_HOME": "$work/state"}},
  "http": {"type": "streamable-http", "url": "$url"}
}}
EOF
for how in stdio http; do
	inspect $how --method tools/list --strict > "$work/out"
	grep -q '"bash"' "$work/out"
	inspect $how --method tools/call --tool-name bash --tool-arg 'command=echo from inspector' > "$work/out"
	grep -q 'from inspector' "$work/out"
	inspect $how --method resources/read --uri zeph://status > "$work/out"
	grep -q 'sandbox' "$work/out"
	# An error result must not trip the client's check against the output schema.
	inspect $how --method tools/call --tool-name bash --tool-arg 'command=sudo id' > "$work/out" 2>&1 || true
	grep -q 'blocked_command' "$work/out"
	echo "ok inspector $how"
done
