#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A full record of this machine: bench/record/<date>-<cpu>/PART, which
# bench/record/INDEX.toml then has to name. Wants a quiet machine and about an hour and a half, three
# kernels that are built at first among that; takes the place of a record of the
# same day. What is not to be had here is named at the end, exit code 3.
#
# usage: [KERNEL=um] scripts/record.sh NTCOPY [PART...]
#        all parts, or those that are named
#
# KERNEL is the one with the flag: um, which is built and booted as a process, or
# host, this machine's own, if it is one with the patches, or has the module.
#
# Minutes, on two CPUs. In that kernel:
#   sweep 8, families 6, http 10 (storaged and proxyd), net-veth 4 (root), net 4,
#   published 3, fork 3, rounds 2, pingpong 2, pieces 1, senders 1, retention
# in pairs of it and another one, not with KERNEL=host:
#   module 2, unused 2, unused-after-hint 2, by-unpatched 15, http-by-unpatched 15
# on this machine's kernel, without the flag:
#   memcpy 12, copies 5, order 4, pages 4, memset 3, turns 2, net-host 2 (root)
# and, if it is named, beside nginx and HAProxy, which have to be installed:
#   http-host 6
set -eu

ntcopy=$1
shift
flagged=${KERNEL:-um}
if [ $# -eq 0 ]; then
	set -- sweep families retention published rounds pieces senders fork \
		http net net-veth pingpong memcpy memset order pages copies turns net-host
	[ "$flagged" = host ] || set -- "$@" unused unused-after-hint module \
		by-unpatched http-by-unpatched
fi
cpu=$("$ntcopy" probe --json | sed -n 's/.*"signature": "\([^"]*\)".*/\1/p' | head -n 1)
place=bench/record/$(date -u +%F)-${cpu:?the CPU does not say what it is}

die() {
	echo "record.sh: $*" >&2
	exit 2
}

case $flagged in
host)
	"$ntcopy" probe --json | grep -q '"msg_ntcopy": true' || {
		echo "record.sh: KERNEL=host, and this kernel does not know MSG_NTCOPY:" \
			"docs/guide/install.md says how to get one that does" >&2
		exit 3
	}
	;;
um) ;;
*) die "KERNEL=$flagged: say um or host" ;;
esac

mkdir -p "$place"
[ "$flagged" = host ] || "$ntcopy" kernel build
missing=
for part; do
	kernel="--kernel $flagged"
	case $part in
	sweep) set -- unix --sweep ;;
	pieces) set -- unix --pieces 300 --sockets 1,16 ;;
	senders) set -- unix --senders 2 ;;
	rounds) set -- unix --sockets 1,2,4,8,16,32,64,128 --object 1MiB --dataset 1MiB,256MiB ;;
	families) set -- unix --sweep --quick --family tcp,tcp6,udp,udp6,udplite ;;
	published) set -- unix --published ;;
	fork) set -- pages --form fork ;;
	http) set -- http --modes nt,adaptive --connections 1,16,64,256 --sndbuf 4MiB ;;
	net-veth) set -- net --veth ;;
	net | pingpong) set -- "$part" ;;
	# All turns of every instruction set that the library copies with.
	turns)
		set -- memcpy --quick --threads 1 --size 1MiB,16MiB --source cold --destination cold --modes "$(
			for isa in movnti sse2-nt avx2-nt avx512-nt movdir64b; do
				for ahead in "" +t0; do
					printf '%s%s,' "$isa" "$ahead"
					for turns in 4x64 8x64 2x128 4x128 8x128 2x256 4x256 8x256; do
						printf '%s%s+%s,' "$isa" "$ahead" "$turns"
					done
				done
			done
			echo rep-movsb
		)"
		kernel=
		;;
	# On a kernel that was not booted for it, it would be of copies.
	retention) set -- retention --sockets 1,8,64 ;;
	unused | unused-after-hint | module | by-unpatched | http-by-unpatched)
		[ "$flagged" != host ] || die "$part compares kernels that are booted in turns: KERNEL=um"
		case $part in
		unused) set -- unix --against unpatched --modes copy --pairs 25 ;;
		unused-after-hint) set -- unix --against unpatched-after-hint --pairs 25 ;;
		module) set -- unix --against module ;;
		by-unpatched)
			set -- unix --against unpatched --sockets 1,8,64 --object 64KiB,1MiB \
				--dataset 1MiB,256MiB
			;;
		http-by-unpatched) set -- http --against unpatched --sndbuf 4MiB ;;
		esac
		;;
	memcpy | memset | order | pages)
		set -- "$part"
		kernel=
		;;
	# The victim of the library's copies, on the same core and on a neighbour.
	copies)
		set -- retention
		kernel=
		;;
	net-host)
		set -- net --veth --modes nocache
		kernel=
		;;
	http-host)
		set -- http --stack haproxy+nginx,storaged+proxyd --modes copy,sendfile \
			--object 64KiB,1MiB --congestion reno
		kernel=
		;;
	*) die "no part is called $part" ;;
	esac
	rm -rf "${place:?}/$part"
	echo "record: $part"
	status=0
	# shellcheck disable=SC2086 # an option and its value, or nothing
	"$ntcopy" bench "$@" $kernel --out "$place/$part" || status=$?
	case $status in
	0) ;;
	# A family that this kernel lacks is a row with its reason.
	3) [ -e "$place/$part/record.jsonl" ] || missing="$missing $part" ;;
	*) exit "$status" ;;
	esac
done
echo "record: $place; name its parts in bench/record/INDEX.toml, and make docs"
[ -z "$missing" ] || {
	echo "record.sh: not to be had here, as was said above:$missing" >&2
	exit 3
}
