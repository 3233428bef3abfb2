#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What MSG_NTCOPY costs those who do not use it, from the object code: builds
# the send path for x86-64 without and with what is posted, and compares function
# by function what runs until the first socket opts in. The layout of large sends,
# which is for everyone, is in both. Only patched-out jumps may be added; anything else is printed, and ends it with 1. Known, and listed as
# such: where the socket option is set and asked for.
#
# usage: scripts/free-when-unused.sh [SERIES_DIR]
#
# The source is NTCOPY_LINUX, or the package that `ntcopy kernel build` keeps.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
series=$(realpath "${1:-$root/kernel/series/7.3}")
release=$(basename "$series")
cache=$("$root/scripts/cache.sh")

# What a send runs through, from the system call to the copy.
objects="net/socket.o lib/iov_iter.o net/core/sock.o net/core/datagram.o net/core/skbuff.o
	net/unix/af_unix.o net/ipv4/tcp.o net/ipv4/udp.o net/ipv4/raw.o net/ipv4/ip_output.o
	net/ipv6/udp.o net/ipv6/ip6_output.o net/tls/tls_sw.o io_uring/net.o fs/splice.o"
must="__sys_sendto ____sys_sendmsg sock_sendmsg sock_write_iter _copy_from_iter
	copy_page_from_iter csum_and_copy_from_iter_full skb_copy_datagram_from_iter
	unix_stream_sendmsg unix_dgram_sendmsg tcp_sendmsg_locked udp_sendmsg udpv6_sendmsg
	__ip_append_data io_send tls_sw_sendmsg"

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-free-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

die() {
	echo "free-when-unused: $*" >&2
	exit 1
}

fetch_source() {
	mkdir "$work/linux"
	if [ -n "${NTCOPY_LINUX-}" ]; then
		(cd "$NTCOPY_LINUX" && git ls-files -z | tar c --null -T -) | tar x -C "$work/linux"
		return
	fi
	package=$(find "$cache/packages/" -name "linux-source-${release}_*.deb" 2>/dev/null |
		sort -V | tail -n 1)
	[ -n "$package" ] ||
		die "no source of $release: run 'ntcopy kernel build' first, or set NTCOPY_LINUX"
	dpkg-deb --fsys-tarfile "$package" |
		tar x -O --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$work/linux" --strip-components=1
}

# Configures as distributions do where that matters here: patched jumps, mitigations
# (without which there would be jump tables that cannot be followed), -O2.
config() {
	for option in 64BIT SMP JUMP_LABEL MULTIUSER PRINTK BUG FUTEX EPOLL SHMEM PROC_FS SYSFS SYSCTL \
		CPU_MITIGATIONS MITIGATION_RETPOLINE CC_OPTIMIZE_FOR_PERFORMANCE COMPAT IA32_EMULATION \
		SECURITY SECURITY_NETWORK NET UNIX INET IPV6 TLS IO_URING; do
		echo "CONFIG_$option=y"
	done
}

# Only what says so is inlined: with one more branch the compiler inlines others, and the same
# work is then counted in another function. $1: the build's folder
compile() {
	mkdir "$work/$1"
	config >"$work/wanted"
	{
		make -s -C "$work/linux" O="$work/$1" ARCH=x86_64 KCONFIG_ALLCONFIG="$work/wanted" \
			tinyconfig
		cat "$work/wanted" >>"$work/$1/.config"
		make -s -C "$work/linux" O="$work/$1" ARCH=x86_64 olddefconfig
	} >"$work/config.log" 2>&1 || die "cannot configure: $(tail -n 3 "$work/config.log")"
	while read -r option; do
		grep -qx "$option" "$work/$1/.config" || die "$option does not survive in this source"
	done <"$work/wanted"
	compiler=gcc
	! command -v ccache >/dev/null 2>&1 || compiler="ccache gcc"
	# shellcheck disable=SC2086 # a list of files
	CCACHE_DIR=${CCACHE_DIR:-$cache/ccache} make -s -C "$work/linux" O="$work/$1" ARCH=x86_64 \
		CC="$compiler" KCFLAGS="-fno-inline-functions -fno-inline-small-functions" -j"$(nproc)" $objects >"$work/build.log" 2>&1 || {
		grep -m5 -E 'error:|Error' "$work/build.log" >&2
		die "the $1 build fails"
	}
}

# Each word of a list behind an option. $1: the option; then the list
each() {
	option=$1
	shift
	printf -- "$option %s " "$@"
}

apply() {
	for patch; do
		patch -d "$work/linux" -p1 -s -F0 <"$patch" >"$work/patch.log" 2>&1 ||
			die "$(basename "$patch") does not apply"
	done
}

case $series in
"$root"/kernel/series/*)
	"$root/scripts/series.sh" "$work/whole" "$series"
	series=$work/whole/$release
	;;
esac
fetch_source
# unix/ is for everyone, by intention: kernel/README.md.
apply "$series"/unix/*.patch
echo "free-when-unused: building with the layout alone"
compile without
echo "free-when-unused: building with the series"
apply "$series"/net/000[1-9]-*.patch
[ ! -d "$series/mm" ] || apply "$series"/mm/*.patch
compile with

pairs=
for object in $objects; do
	pairs="$pairs $work/without/$object=$work/with/$object"
done
# Known to differ: not on the way of an unhinted send, or no more work.
# shellcheck disable=SC2046,SC2086 # lists of words
python3 "$root/scripts/free-when-unused.py" --key nontemporal_key \
	--known "sk_setsockopt=the option itself" \
	--known "sk_getsockopt=the option itself" \
	--known "_copy_to_iter=calls rcu_read_unlock(), where it was inlined" \
	--known "iov_iter_zero=calls rcu_read_unlock(), where it was inlined" \
	--cold ntcopy_sendmsg $(each --must $must) $pairs
