#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Holds the kernel patches against the source that they are for: git am takes
# each, checkpatch --strict has nothing to say, and with --build each compiles
# by itself for x86-64, with W=1 and sparse, without a word about a file that
# the series touches.
#
# usage: scripts/check-series.sh [--build] [SERIES_DIR]
#
# The source is NTCOPY_LINUX, or the package that `ntcopy kernel build` keeps.
set -eu

build=
if [ "${1-}" = --build ]; then
	build=1
	shift
fi
root=$(cd "$(dirname "$0")/.." && pwd)
series=${1:-$root/kernel/series/7.3}
cache=${NTCOPY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ntcopy}

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-series-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

die() {
	echo "check-series: $*" >&2
	exit 1
}

patches=$(find "$series" -name '*.patch' | LC_ALL=C sort)
[ -n "$patches" ] || die "no patches in $series"
# The bench's own patches, in um/, come after the ones for everybody.
patches=$(echo "$patches" | grep -v /um/; echo "$patches" | grep /um/ || true)

# What the patches touch, less what they create.
touched() {
	# shellcheck disable=SC2086 # a list of files
	sed -n 's#^--- a/##p' $patches | sort -u
}

helpers="scripts/checkpatch.pl scripts/spelling.txt scripts/const_structs.checkpatch
	scripts/checkpatch-spell.txt .gitattributes"

# The sources of a tree of the user's, less what was built in it.
list_source() {
	if [ -e .git ]; then
		git ls-files -z
	else
		find . -type f -print0
	fi
}

# Copies the files to look at, or everything, into $work/linux.
fetch_source() {
	mkdir "$work/linux"
	if [ -n "${NTCOPY_LINUX-}" ]; then
		if [ -n "$build" ]; then
			(cd "$NTCOPY_LINUX" && list_source | tar c --null -T -) | tar x -C "$work/linux"
		else
			{
				touched
				echo "$helpers" | tr -s ' \t' '\n'
			} >"$work/names"
			(cd "$NTCOPY_LINUX" && tar c --ignore-failed-read -T "$work/names" 2>/dev/null) |
				tar x -C "$work/linux"
		fi
		return
	fi
	package=$(find "$cache/packages" -name 'linux-source-7.*.deb' 2>/dev/null | sort -V | tail -n 1)
	[ -n "$package" ] || die "no kernel source: run 'ntcopy kernel build' first, or set NTCOPY_LINUX"
	dpkg-deb --fsys-tarfile "$package" |
		tar x -O --wildcards './usr/src/linux-source-*.tar.xz' >"$work/source.tar.xz"
	if [ -n "$build" ]; then
		tar xf "$work/source.tar.xz" -C "$work/linux" --strip-components=1
	else
		touched | sed 's#^#*/#' >"$work/names"
		for helper in $helpers; do
			echo "*/$helper" >>"$work/names"
		done
		# A helper that this version lacks is no loss; a touched file is, and git am says so.
		tar xf "$work/source.tar.xz" -C "$work/linux" --strip-components=1 \
			--wildcards -T "$work/names" 2>/dev/null || true
	fi
	rm -f "$work/source.tar.xz"
}

in_tree() {
	git -C "$work/linux" -c user.name=check -c user.email=check@localhost "$@"
}

configure() {
	make -s -C "$work/linux" O="$work/out" x86_64_defconfig
	"$work/linux/scripts/config" --file "$work/out/.config" \
		-d MODULES -e TLS -e MPTCP -e DEBUG_INFO_NONE -d DRM -d SOUND -d USB_SUPPORT -d WLAN
	make -s -C "$work/linux" O="$work/out" olddefconfig prepare
}

# Builds what the series touches, and everything beside it that includes it.
compile() {
	log=$work/build.log
	make -s -C "$work/linux" O="$work/out" -j"$(nproc)" W=1 C=1 \
		lib/iov_iter.o net/socket.o net/core/ net/unix/ net/tls/ net/ipv4/ arch/x86/lib/ \
		>"$log" 2>&1 || {
		grep -m5 -E 'error:|Error' "$log" >&2
		die "$1 does not build by itself"
	}
	# shellcheck disable=SC2086 # a list of files
	names=$(sed -n 's#^+++ b/##p' $patches | sort -u | paste -sd'|' | sed 's/\./\\./g')
	if grep -E "($names):[0-9]+" "$log" >&2; then
		die "$1: warnings from W=1 or sparse, above"
	fi
}

fetch_source
in_tree init -q
in_tree add -Af .
in_tree commit -qm base
[ -z "$build" ] || configure

count=0
for patch in $patches; do
	name=${patch#"$series"/}
	in_tree am -q "$patch" 2>"$work/am.log" || {
		cat "$work/am.log" >&2
		die "$name does not apply"
	}
	(cd "$work/linux" && perl scripts/checkpatch.pl --strict --no-tree --quiet "$patch") ||
		die "$name: checkpatch has something to say, above"
	case $name in
	um/*) ;;
	*) [ -z "$build" ] || compile "$name" ;;
	esac
	count=$((count + 1))
	echo "check-series: $name"
done
echo "check-series: $count patches apply${build:+, build} and are clean"
