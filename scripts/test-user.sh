#!/usr/bin/env bash
# Runs every test as an ordinary user, whoever calls. As root it switches to
# uid and gid 1000 for the test binaries only, with a home of their own; the
# build stays with the caller.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" -ne 0 ]; then
	exec go test -count=1 ./...
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/zeph-user-XXXXXX")
base=$(mktemp -d /srv/zeph-user-XXXXXX) # workspaces of tests must lie where nothing is readable by default
trap 'rm -rf "$dir" "$base"' EXIT
chmod 755 "$dir"
chown 1000:1000 "$base"
mkdir "$dir/home"
chown 1000:1000 "$dir/home"
cat > "$dir/exec" <<EOF
#!/usr/bin/env bash
set -euo pipefail
bin=\$1; shift
copy=\$(mktemp "$dir/test-XXXXXX")
cp "\$bin" "\$copy"
chmod 755 "\$copy"
tmp=\$(mktemp -d "$dir/tmp-XXXXXX")
chown 1000:1000 "\$tmp"
rc=0
env -u XDG_STATE_HOME -u XDG_CONFIG_HOME -u XDG_CACHE_HOME HOME="$dir/home" TMPDIR="\$tmp" ZEPH_TEST_BASE="$base" \
	GOFLAGS=-mod=mod GOPATH="\$(go env GOPATH)" \
	setpriv --reuid 1000 --regid 1000 --clear-groups "\$copy" "\$@" || rc=\$?
rm -rf "\$copy" "\$tmp"
exit \$rc
EOF
chmod 755 "$dir/exec"
# archtest asks the go command, whose caches belong to the caller; it looks at
# sources only, so who runs it makes no difference.
go list ./... | grep -v /internal/archtest | xargs go test -count=1 -exec "$dir/exec"
