#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds all packages twice, in two folders whose paths differ in name and
# length, and compares each file. The first build is left in DIR.
#
# usage: scripts/check-reproducible.sh DIR
set -eu

[ $# = 1 ] || {
	sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2
	exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
first=$1

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-twice-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# build TMPDIR OUT
build() {
	mkdir -p "$1"
	TMPDIR=$1 "$here/dist.sh" "$2" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		echo "check-reproducible: make dist failed" >&2
		exit 1
	}
}

echo "check-reproducible: the first build"
build "$work/a" "$first"
grep -v '^dist: /' "$work/log" || true
echo "check-reproducible: the second, elsewhere"
build "$work/another-folder/with-a-longer-name" "$work/second"
if ! diff "$first/SHA256SUMS" "$work/second/SHA256SUMS" >&2; then
	echo "check-reproducible: these came out differently (first build <, second >)" >&2
	exit 1
fi
sed 's/^/check-reproducible: twice /' "$first/SHA256SUMS"
