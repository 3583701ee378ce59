#!/usr/bin/env bash
# Release archives for linux and darwin, amd64 and arm64, with checksums. The
# same source gives the same bytes: built twice and compared.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-dev}
rm -rf dist
build() { # build OUT
	local out=$1 os arch
	for os in linux darwin; do
		for arch in amd64 arm64; do
			local dir="$out/zeph-mcp-tools-$version-$os-$arch"
			mkdir -p "$dir"
			CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$version" \
				-o "$dir/zeph-mcp-tools" ./cmd/zeph-mcp-tools
			cp README.md LICENSE-MIT LICENSE-APACHE CHANGELOG.md config.example.toml "$dir/"
			tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$out" -cf - "$(basename "$dir")" | gzip -n > "$dir.tar.gz"
			rm -rf "$dir"
		done
	done
	(cd "$out" && sha256sum ./*.tar.gz > SHA256SUMS)
}
build dist
build dist/again
cmp dist/SHA256SUMS dist/again/SHA256SUMS
rm -rf dist/again
cat dist/SHA256SUMS
