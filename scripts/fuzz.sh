#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time, one after the other.
# The go command sometimes reports its own time limit as a failure when the time
# is up while an input runs; a real failure
# always names an input, and only that counts.
set -euo pipefail
time=${1:-10s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		if go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg" > "$log" 2>&1; then
			echo "ok   $pkg $target ($(grep -o 'execs: [0-9]*' "$log" | tail -1))"
		elif grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input' "$log"; then
			echo "ok   $pkg $target (stopped at its time)"
		else
			cat "$log"
			exit 1
		fi
	done
done
