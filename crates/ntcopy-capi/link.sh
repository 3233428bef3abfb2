#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes libntcopy.so.VERSION, its two links and libntcopy.a of what cargo built.
#
# rustc can't do this itself: it hands the linker a version script without a
# version, which GNU ld refuses beside one with versions and LLVM's linker
# prefers to it; and its static library exports all of Rust's own symbols, which
# would clash with those of a second such library in one program.
#
# usage: crates/ntcopy-capi/link.sh libntcopy_capi.a OUT_DIR
# environment: CC, OBJCOPY
set -eu

[ $# = 2 ] || {
	sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2
	exit 2
}
here=$(dirname "$0")
rust=$1
out=$2
map=$here/libntcopy.map
cc=${CC:-cc}
objcopy=${OBJCOPY:-objcopy}

[ -f "$rust" ] || {
	echo "link.sh: $rust is not there; 'cargo build --release -p ntcopy-capi' makes it" >&2
	exit 1
}
for tool in "$cc" "$objcopy"; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "link.sh: $tool is missing; Debian: apt-get install gcc libc6-dev binutils" >&2
		exit 3
	}
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
soname=libntcopy.so.${version%%.*}
names=$(sed -n '/^global:/,/^local:/s/^\t\([a-z_]*\);$/\1/p' "$map")

mkdir -p "$out"
work=$(mktemp -d "$out/.link.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Only what the public functions need, and of that only their names visible.
echo "$names" >"$work/names"
echo "$names" | sed 's/^/-Wl,--undefined=/' >"$work/wanted"
"$cc" -nostdlib -r -Wl,--gc-sections "@$work/wanted" -o "$work/ntcopy.o" "$rust"
# Without Rust's own bitcode, which chokes an ar with a plugin of an older LLVM.
"$objcopy" --strip-debug --keep-global-symbols="$work/names" --remove-section=.llvmbc \
	--remove-section=.llvmcmd "$work/ntcopy.o" "$work/libntcopy.o"
rm -f "$out/libntcopy.a"
ar rcsD "$out/libntcopy.a" "$work/libntcopy.o"

"$cc" -shared -o "$work/shared" -Wl,-soname,"$soname" -Wl,--version-script="$map" \
	-Wl,--strip-debug -Wl,--gc-sections -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,--as-needed "@$work/wanted" "$rust" \
	-lgcc_s -lpthread -ldl -lm -lc
chmod 755 "$work/shared"
mv -f "$work/shared" "$out/libntcopy.so.$version"
ln -sf "libntcopy.so.$version" "$out/$soname"
ln -sf "$soname" "$out/libntcopy.so"
