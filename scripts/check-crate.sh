#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What a registry would be given: packs the library's crate, and builds it as it is
# packed, by `cargo publish --dry-run`, which publishes nothing. What cargo warns of
# is shown, and is an error, but for the warnings that are named below. Needs a
# network: cargo asks the registry's index.
#
# usage: scripts/check-crate.sh
set -eu
cd "$(dirname "$0")/.."

# The project has no public address that it could name; crates/ntcopy/Cargo.toml.
accepted='manifest has no documentation, homepage or repository'
# What makes it a rehearsal.
rehearsal='aborting upload due to dry run'

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-crate-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Cargo refuses what is not committed, unless --allow-dirty is given.
dirty=
if git -c safe.directory="$PWD" status --porcelain -- crates/ntcopy Cargo.toml Cargo.lock 2>/dev/null | grep -q .; then
	echo "crate: with changes that are not committed"
	dirty=--allow-dirty
fi

CARGO_TERM_COLOR=never "${CARGO:-cargo}" publish --dry-run -p ntcopy --locked ${dirty:+"$dirty"} \
	--target-dir "$work/target" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	echo "crate: cargo publish --dry-run failed" >&2
	exit 1
}
grep -E '^ *(Packaged|Verifying|Uploading) ' "$work/log" || true

sed -n 's/^warning: //p' "$work/log" >"$work/warnings"
failed=0
while read -r warning; do
	if [ "${warning%.}" = "$accepted" ] || [ "$warning" = "$rehearsal" ]; then
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
