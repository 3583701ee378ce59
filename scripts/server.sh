# Sourced by scripts that drive a running server. Makes $work (a scratch folder
# that goes away) with $work/ws in it, and starts the server over HTTP: $url.
bin=$PWD/bin/zeph-mcp-tools
mkdir -p .bin
work=$(mktemp -d "$PWD/.bin/run-XXXXXX")
server=
cleanup() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
mkdir "$work/ws"
export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config
"$bin" serve --transport http --listen 127.0.0.1:0 --workspace "$work/ws" 2> "$work/log" & server=$!
for _ in $(seq 100); do
	url=$(sed -n 's/^listening url=//p' "$work/log")
	[ -n "$url" ] && break
	sleep 0.05
done
[ -n "$url" ] || { cat "$work/log"; echo "the server did not start" >&2; exit 1; }
