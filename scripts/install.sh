#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs what cargo has built: the C library with its headers and pkg-config
# file, the manual pages, the program, and the help that it gives: pages of those
# commands that have none written by hand, and completions for bash, zsh and fish.
# It builds nothing, so that root needn't run cargo.
#
# usage: [PREFIX=/usr/local] [LIBDIR=PREFIX/lib] [DESTDIR=] [BUILD=target/release]
#        scripts/install.sh [library|manual|program|help]...   default: all four
set -eu
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
includedir=$prefix/include
destdir=${DESTDIR:-}
build=${BUILD:-${CARGO_TARGET_DIR:-target}/release}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# place MODE SOURCE FOLDER [NAME]
place() {
	install -D -m "$1" "$2" "$destdir$3/${4:-$(basename "$2")}"
	echo "install: $destdir$3/${4:-$(basename "$2")}"
}

# need FILE COMMAND: what makes a file that is not there.
need() {
	[ -f "$1" ] || {
		echo "install: $1 is not there; '$2' makes it" >&2
		exit 1
	}
}

install_library() {
	need "$build/libntcopy_capi.a" "cargo build --release -p ntcopy-capi"
	crates/ntcopy-capi/link.sh "$build/libntcopy_capi.a" "$work"
	sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$libdir|" -e "s|@INCLUDEDIR@|$includedir|" \
		-e "s|@VERSION@|$version|" crates/ntcopy-capi/ntcopy.pc.in >"$work/ntcopy.pc"
	place 644 crates/ntcopy-capi/include/ntcopy.h "$includedir"
	# The same name as the library's header in the source; a folder of its own keeps them apart.
	place 644 uapi/ntcopy.h "$includedir/ntcopy" uapi.h
	place 755 "$work/libntcopy.so.$version" "$libdir"
	for link in "libntcopy.so.${version%%.*}" libntcopy.so; do
		cp -Pf "$work/$link" "$destdir$libdir/$link"
		echo "install: $destdir$libdir/$link"
	done
	place 644 "$work/libntcopy.a" "$libdir"
	place 644 "$work/ntcopy.pc" "$libdir/pkgconfig"
	[ -n "$destdir" ] || [ "$(id -u)" != 0 ] ||
		echo "install: a new library: 'ldconfig' makes it known if $libdir is on its list"
}

install_manual() {
	for page in docs/man/*.[1-8]; do
		place 644 "$page" "$prefix/share/man/man${page##*.}"
	done
}

install_program() {
	need "$build/ntcopy" "cargo build --release -p ntcopy-cli"
	place 755 "$build/ntcopy" "$prefix/bin"
	need "$build/libntcopy_preload.a" "cargo build --release -p ntcopy-preload"
	crates/ntcopy-preload/link.sh "$build/libntcopy_preload.a" "$work"
	# Not on the linker's list: nothing is ever linked with it, and `ntcopy run` looks here.
	place 755 "$work/libntcopy-preload.so" "$prefix/lib/ntcopy"
}

# by_hand COMMAND: whether it, or what it is a part of, has a page written by hand.
by_hand() {
	name=$1
	while [ "$name" != ntcopy ]; do
		for written in docs/man/"$name".[18]; do
			[ ! -e "$written" ] || return 0
		done
		name=${name%-*}
	done
	return 1
}

install_help() {
	need "$build/ntcopy" "cargo build --release -p ntcopy-cli"
	"$build/ntcopy" man "$work/man"
	for page in "$work"/man/*.1; do
		by_hand "$(basename "$page" .1)" || place 644 "$page" "$prefix/share/man/man1"
	done
	for shell in bash zsh fish; do
		"$build/ntcopy" completions "$shell" >"$work/$shell"
	done
	place 644 "$work/bash" "$prefix/share/bash-completion/completions" ntcopy
	place 644 "$work/zsh" "$prefix/share/zsh/site-functions" _ntcopy
	place 644 "$work/fish" "$prefix/share/fish/vendor_completions.d" ntcopy.fish
}

for path in "$prefix" "$libdir"; do
	case $path in
	/*) ;;
	*)
		echo "install: '$path' is not an absolute path; PREFIX and LIBDIR are, DESTDIR goes before" >&2
		exit 2
		;;
	esac
	case $path in
	*[!A-Za-z0-9/._+-]*)
		echo "install: '$path' has characters that pkg-config and make would split or expand" >&2
		exit 2
		;;
	esac
done
[ $# -gt 0 ] || set -- library manual program help
for what; do
	case $what in
	library | manual | program | help) ;;
	*)
		echo "install: '$what' is none of library, manual, program, help" >&2
		exit 2
		;;
	esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for what; do
	"install_$what"
done
