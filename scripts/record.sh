#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A full record of this machine: bench/record/<date>-<cpu>/PART. README's table is
# made from the sweep. Wants a quiet machine and about an hour and a half; takes
# the place of a record of the same day.
#
# usage: scripts/record.sh NTCOPY [PART...]     all parts, or those that are named
#
# In the kernel with the flag: sweep families phase retention unused published fork.
# On this one, copies and fills in user space: memcpy memset order pages copies.
set -eu

ntcopy=$1
shift
[ $# -gt 0 ] || set -- sweep families phase retention unused published fork \
	memcpy memset order pages copies
cpu=$("$ntcopy" probe --json | sed -n 's/.*"signature": "\([^"]*\)".*/\1/p' | head -n 1)
place=bench/record/$(date -u +%F)-${cpu:?the CPU does not say what it is}

mkdir -p "$place"
"$ntcopy" kernel build
for part; do
	rm -rf "${place:?}/$part"
	kernel="--kernel um"
	case $part in
	sweep) set -- unix --sweep ;;
	families) set -- unix --sweep --quick --family tcp,tcp6,udp,udp6,udplite ;;
	# 256 MiB in flight: at 128, the neighbours decide from minute to minute.
	phase) set -- phase --object 2MiB ;;
	retention) set -- retention ;;
	unused) set -- unix --against unpatched --pairs 25 ;;
	published) set -- unix --published ;;
	fork) set -- pages --form fork ;;
	memcpy | memset | order | pages)
		set -- "$part"
		kernel=
		;;
	# The victim of the library's copies, on the same core and on a neighbour.
	copies)
		set -- retention
		kernel=
		;;
	*)
		echo "record.sh: no part is called $part" >&2
		exit 2
		;;
	esac
	status=0
	# shellcheck disable=SC2086 # an option and its value, or nothing
	"$ntcopy" bench "$@" $kernel --out "$place/$part" || status=$?
	# A family that this kernel lacks is a row with its reason.
	[ "$status" -eq 0 ] || [ "$part-$status" = families-3 ] || exit "$status"
	[ "$part" != sweep ] || "$ntcopy" report "$place/$part" --splice README.md
done
echo "record: $place"
