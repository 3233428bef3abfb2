#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs what cargo has built: the C library with its headers and pkg-config
# file, the manual pages, the program, what was made of its help (a page of each
# command, and completions for bash, zsh and fish), the daemons with settings to
# begin with, and systemd units for them.
# It builds nothing, so that root needn't run cargo. Settings that are there stay.
#
# usage: [PREFIX=/usr/local] [LIBDIR=PREFIX/lib] [DESTDIR=] [BUILD=target/release]
#        [SYSCONFDIR=PREFIX/etc, or /etc] [UNITDIR=PREFIX/lib/systemd/system]
#        [SYSUSERSDIR=PREFIX/lib/sysusers.d] [UDEVDIR=PREFIX/lib/udev/rules.d]
#        [ZSHDIR=PREFIX/share/zsh/site-functions]
#        scripts/install.sh [library|manual|program|help|daemons|units|device|dkms]...
#                                             default: all but device and dkms
#
# device: the group ntcopy, and the rule that gives /dev/ntcopy to it (afterwards:
# systemd-sysusers, and udevadm control --reload before the module is loaded)
# dkms: the module's sources, below PREFIX/src as DKMS expects them
set -eu
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
includedir=$prefix/include
case $prefix in
/usr) sysconfdir=${SYSCONFDIR:-/etc} ;;
*) sysconfdir=${SYSCONFDIR:-$prefix/etc} ;;
esac
udevdir=${UDEVDIR:-$prefix/lib/udev/rules.d}
unitdir=${UNITDIR:-$prefix/lib/systemd/system}
sysusersdir=${SYSUSERSDIR:-$prefix/lib/sysusers.d}
zshdir=${ZSHDIR:-$prefix/share/zsh/site-functions}
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
	place 644 uapi/ntcopy/uapi.h "$includedir/ntcopy"
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
	"$build/ntcopy" survey list --help >/dev/null 2>&1 || {
		echo "install: $build/ntcopy is the demo's, without surveys; 'make all' makes the whole one" >&2
		exit 1
	}
	place 755 "$build/ntcopy" "$prefix/bin"
	need "$build/libntcopy_preload.a" "cargo build --release -p ntcopy-preload"
	crates/ntcopy-preload/link.sh "$build/libntcopy_preload.a" "$work"
	# Not on the linker's list: nothing is ever linked with it, and `ntcopy run` looks here.
	place 755 "$work/libntcopy-preload.so" "$prefix/lib/ntcopy"
	for file in ntcopy.rules.yml dashboard.json; do
		place 644 "packaging/prometheus/$file" "$prefix/share/doc/ntcopy/examples"
	done
}

install_help() {
	need "$build/manual/man/ntcopy.1" "make manual"
	for page in "$build"/manual/man/*.[18]; do
		place 644 "$page" "$prefix/share/man/man${page##*.}"
	done
	place 644 "$build/manual/bash" "$prefix/share/bash-completion/completions" ntcopy
	place 644 "$build/manual/zsh" "$zshdir" _ntcopy
	place 644 "$build/manual/fish" "$prefix/share/fish/vendor_completions.d" ntcopy.fish
}

install_daemons() {
	for daemon in storaged proxyd; do
		need "$build/$daemon" "cargo build --release -p $daemon"
		place 755 "$build/$daemon" "$prefix/sbin"
		if [ -e "$destdir$sysconfdir/$daemon/$daemon.toml" ]; then
			echo "install: $destdir$sysconfdir/$daemon/$daemon.toml is there, and stays"
		else
			place 644 "packaging/etc/$daemon.toml" "$sysconfdir/$daemon"
		fi
	done
	place 644 packaging/units/port-80.conf "$prefix/share/doc/ntcopy/examples"
}

install_units() {
	for daemon in storaged proxyd; do
		sed -e "s|@SBINDIR@|$prefix/sbin|" -e "s|@SYSCONFDIR@|$sysconfdir|" \
			"packaging/units/$daemon.service" >"$work/$daemon.service"
		place 644 "$work/$daemon.service" "$unitdir"
		place 644 "packaging/units/$daemon.socket" "$unitdir"
	done
	place 644 packaging/units/storaged.sysusers "$sysusersdir" storaged.conf
	sed "s|@BINDIR@|$prefix/bin|" packaging/units/ntcopy-stat.service >"$work/ntcopy-stat.service"
	place 644 "$work/ntcopy-stat.service" "$unitdir"
	place 644 packaging/units/ntcopy-stat.timer "$unitdir"
}

install_device() {
	place 644 packaging/units/ntcopy.sysusers "$sysusersdir" ntcopy-device.conf
	place 644 packaging/units/ntcopy.rules "$udevdir" 60-ntcopy.rules
}

install_dkms() {
	module=$(sed -n 's/^#define NTCOPY_VERSION[[:space:]]*"\(.*\)"/\1/p' kernel/module/module.h)
	source=$prefix/src/ntcopy-$module
	# What a build left in the source stays out.
	(cd kernel/module && find . -type f \( -name '*.[chS]' -o -name Kbuild -o -name Makefile \) \
		! -name '*.mod.c' ! -path './.*/*') >"$work/sources"
	while read -r name; do
		place 644 "kernel/module/$name" "$source/$(dirname "${name#./}")"
	done <"$work/sources"
	place 644 uapi/ntcopy/uapi.h "$source/ntcopy"
	sed "s/@VERSION@/$module/" kernel/module/dkms.conf >"$work/dkms.conf"
	place 644 "$work/dkms.conf" "$source"
}

for path in "$prefix" "$libdir" "$sysconfdir" "$unitdir" "$sysusersdir" "$udevdir" "$zshdir"; do
	case $path in
	/*) ;;
	*)
		echo "install: '$path' is not an absolute path; PREFIX and the folders are, DESTDIR goes before" >&2
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
[ $# -gt 0 ] || set -- library manual program help daemons units
for what; do
	case $what in
	library | manual | program | help | daemons | units | device | dkms) ;;
	*)
		echo "install: '$what' is none of library, manual, program, help, daemons, units, device, dkms" >&2
		exit 2
		;;
	esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for what; do
	"install_$what"
done
