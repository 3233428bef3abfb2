#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the programs of kernel/selftests/ outside of a kernel tree. The harness
# that they are written for is the kernel's own: it comes from NTCOPY_LINUX, or
# from the source package that `ntcopy kernel build` keeps, and is kept beside it.
#
# usage: scripts/selftests.sh DIR [PROGRAM...]     default: all, into DIR
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
suite=$root/kernel/selftests
cache=$("$root/scripts/cache.sh")
headers="kselftest.h kselftest_harness.h"
common="scene.c scene_io.c stat.c hint.c family.c family_other.c device.c ring.c acts.c"

die() {
	echo "selftests: $*" >&2
	exit 1
}

[ $# -gt 0 ] || {
	echo "usage: scripts/selftests.sh DIR [PROGRAM...]" >&2
	exit 2
}
out=$1
shift

# Unpacks the two headers of a package, once: it takes a while to get at them.
unpack() {
	name=$(basename "$1" .deb)
	include=$cache/selftests/$name
	[ ! -d "$include" ] || return 0
	mkdir -p "$cache/selftests"
	work=$(mktemp -d "$cache/selftests/.partial-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
	for header in $headers; do
		echo "*/tools/testing/selftests/$header"
	done >"$work/names"
	dpkg-deb --fsys-tarfile "$1" |
		tar x -O --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$work" --strip-components=4 --wildcards -T "$work/names" ||
		die "no selftest harness in $1"
	rm "$work/names"
	# Another run may have been faster: what it has is the same.
	mv -T "$work" "$include" 2>/dev/null || [ -d "$include" ] || die "cannot write $include"
}

if [ -n "${NTCOPY_LINUX-}" ]; then
	include=$NTCOPY_LINUX/tools/testing/selftests
else
	package=$(find "$cache/packages/" -name 'linux-source-*.deb' 2>/dev/null | sort -V | tail -n 1)
	[ -n "$package" ] ||
		die "no kernel source: run 'ntcopy kernel build' first, or set NTCOPY_LINUX"
	unpack "$package"
fi
for header in $headers; do
	[ -e "$include/$header" ] || die "$include/$header is missing"
done

[ $# -gt 0 ] || set -- bytes calls control counters edges flags gone holes options ntcopy_pages families soak
mkdir -p "$out"
cd "$suite"
for program; do
	[ -e "$program.c" ] || die "there is no program '$program' in kernel/selftests"
	rest=
	[ ! -e "${program}_acts.c" ] || rest=${program}_acts.c
	# shellcheck disable=SC2086 # lists of files
	"${CC:-cc}" -O2 -D_GNU_SOURCE= -Wall -Wextra -Werror -I. -I"$root/uapi" -I"$include" \
		"$program.c" $rest $common -o "$out/$program" -lpthread
done
