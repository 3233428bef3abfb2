#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes libntcopy-preload.so of what cargo built: the functions of the map, what
# they need, and nothing of Rust's standard library, since they need none of it.
#
# usage: crates/ntcopy-preload/link.sh libntcopy_preload.a OUT_DIR
# environment: CC
set -eu

[ $# = 2 ] || {
	sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2
	exit 2
}
here=$(dirname "$0")
rust=$1
out=$2
map=$here/libntcopy-preload.map
cc=${CC:-cc}

[ -f "$rust" ] || {
	echo "link.sh: $rust is not there; 'cargo build --release -p ntcopy-preload' makes it" >&2
	exit 1
}
command -v "$cc" >/dev/null 2>&1 || {
	echo "link.sh: $cc is missing; Debian: apt-get install gcc libc6-dev" >&2
	exit 3
}

mkdir -p "$out"
work=$(mktemp -d "$out/.link.XXXXXX")
trap 'rm -rf "$work"' EXIT

{
	echo "-Wl,--undefined=ntcopy_preload_start"
	sed -n '/^global:/,/^local:/s/^\t\([a-z_0-9]*\);$/-Wl,--undefined=\1/p' "$map"
} >"$work/wanted"
# Bound at once, so that no call of a program waits for the loader; never
# unloaded, since a thread may be in one of its functions.
"$cc" -shared -o "$work/shared" -Wl,-soname,libntcopy-preload.so \
	-Wl,--version-script="$map" -Wl,--gc-sections -Wl,--strip-debug -Wl,-z,defs -Wl,-z,relro \
	-Wl,-z,now -Wl,-z,nodelete -Wl,--as-needed "@$work/wanted" "$rust" -lc
chmod 755 "$work/shared"
mv -f "$work/shared" "$out/libntcopy-preload.so"
