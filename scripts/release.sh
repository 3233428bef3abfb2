#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes what a release is: the packages and the tarball of scripts/dist.sh, and what
# CHANGELOG.md says of this version, in out/release/VERSION. Refuses a checkout that
# is not committed, or whose version has no section with a date in CHANGELOG.md. It
# publishes nothing.
#
# The packages are built on this system, and want its glibc or a later one: on a
# Debian 12 they are for 12 and 13.
#
# usage: scripts/release.sh [DIR]      default: out/release/VERSION
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
out=${1:-$root/out/release/$version}

die() {
	echo "release: $*" >&2
	exit 1
}

grep -q "^## $version - [0-9]\{4\}-[0-9][0-9]-[0-9][0-9]$" "$root/CHANGELOG.md" ||
	die "CHANGELOG.md has no section '## $version - DATE'"
[ -z "$(git -c safe.directory="$root" -C "$root" status --porcelain)" ] ||
	die "something is not committed: a release is what others can build again"
"$root/scripts/dist.sh" "$out"
awk -v head="## $version - " 'index($0, head) == 1 { on = 1 } /^## / && index($0, head) != 1 { on = 0 } on' \
	"$root/CHANGELOG.md" >"$out/NOTES.md"
[ -s "$out/NOTES.md" ] || die "no notes"
echo "release: $out, built on $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release); next:"
echo "release:     sudo scripts/test-dist.sh $out"
