#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Packs the library's crate and builds it as it is packed. What cargo warns of is
# shown, and is an error, but for one warning that is named below.
#
# usage: scripts/check-crate.sh
set -eu
cd "$(dirname "$0")/.."

# The project has no public address that it could name; crates/ntcopy/Cargo.toml.
accepted='manifest has no documentation, homepage or repository'

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-crate-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Cargo refuses what is not committed, unless it is told to take it.
dirty=
if git -c safe.directory="$PWD" status --porcelain -- crates/ntcopy 2>/dev/null | grep -q .; then
	echo "crate: with changes that are not committed"
	dirty=--allow-dirty
fi

CARGO_TERM_COLOR=never "${CARGO:-cargo}" package -p ntcopy --locked ${dirty:+"$dirty"} \
	--target-dir "$work/target" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	echo "crate: cargo package failed" >&2
	exit 1
}
grep -E '^ *(Packaged|Verifying) ' "$work/log" || true

sed -n 's/^warning: //p' "$work/log" >"$work/warnings"
failed=0
while read -r warning; do
	if [ "${warning%.}" = "$accepted" ]; then
		echo "crate: accepted: $warning"
	else
		echo "crate: cargo warns: $warning" >&2
		failed=1
	fi
done <"$work/warnings"
[ "$failed" = 0 ] || {
	cat "$work/log" >&2
	exit 1
}
