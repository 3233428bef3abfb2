#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A full record of this machine: bench/record/<date>-<cpu>/PART, which
# bench/record/INDEX.toml then has to name. Wants a quiet machine and about an hour and a half, three
# kernels that are built at first among that; takes the place of a record of the
# same day. What is not to be had here is named at the end, exit code 3.
#
# usage: [KERNEL=um] scripts/record.sh NTCOPY [PART...]
#        all parts, or those that are named; the table below has them
#
# KERNEL is the one with the flag: um, which is built and booted as a process, or
# host, this machine's own, if it is one with the patches, or has the module.
set -eu

ntcopy=$1
shift
flagged=${KERNEL:-um}

# Its name, minutes on two CPUs, where it runs (flagged: a kernel with the flag; pairs: that one and
# another, booted in turns; stock: a stock kernel with the module; here: this machine's kernel), and
# what `ntcopy bench` is told. Only if it is named: named, since nginx, HAProxy or memcached has to be
# installed. net-veth and net-host: root.
parts() {
	cat <<-PARTS
		sweep 13 flagged unix --sweep
		families 6 flagged unix --sweep --quick --family tcp,udp
		udp-gso 1 flagged unix --family udp-gso --sockets 1,8,64
		beside 3 flagged unix --beside 64KiB,256KiB --quick --pairs 10
		retention 1 flagged retention --sockets 1,8,64 --object 64KiB,256KiB,1MiB
		published 4 flagged unix --own-caches --published
		rounds 2 flagged unix --sockets 1,2,4,8,16,32,64,128 --object 1MiB --dataset 1MiB,256MiB
		fork 3 flagged pages --form fork
		http 10 flagged http --modes hinted --connections 1,16,64,256 --sndbuf 4MiB
		net 4 flagged net
		net-veth 4 flagged net --veth
		pingpong 2 flagged pingpong
		memcpy 12 here memcpy
		memcpy-offsets 3 here memcpy --quick --threads 1 --size 4KiB,64KiB,1MiB,16MiB,64MiB --offset 0,15,33 --pairs 7 --modes ours
		memset 3 here memset
		order 4 here order
		pages 4 here pages
		turns 2 here memcpy --quick --threads 1 --size 1MiB,16MiB --source cold --destination cold --modes $(turns)
		net-host 2 here net --veth --modes nocache
		http-host 6 named http --stack haproxy+nginx,storaged+proxyd --modes plain,sendfile --object 64KiB,1MiB
		unused 2 pairs unix --against stock --modes plain --pairs 25
		by-stock 5 pairs unix --against stock --sockets 1,8,64 --object 64KiB,256KiB,1MiB --dataset 1MiB,256MiB --modes plain,hinted,vmsplice
		retention-by-stock 2 pairs retention --against stock --sockets 1,64 --object 256KiB,1MiB
		default-buffers 1 pairs unix --own-caches --against stock --sockets 1 --sndbuf 104KiB --object 4KiB,16KiB,64KiB,128KiB --modes plain
		default-buffers-one-cpu 1 pairs unix --against stock --sockets 1,16 --sndbuf 104KiB --object 4KiB,16KiB,64KiB,128KiB --dataset 1MiB,256MiB --modes plain
		http-proxyd 8 pairs http --against stock --sndbuf 4MiB --modes plain,hinted,sendfile --connections 1,16,64
		module 3 stock unix --sockets 1,8,64 --object 256KiB,1MiB --dataset 1MiB,256MiB --modes hinted
		retention-module 1 stock retention --sockets 1,8,64 --object 256KiB,1MiB
		module-by-patches 2 pairs unix --against module --sockets 1,8,64 --object 256KiB,1MiB --dataset 256MiB
		app 6 named app --against stock --connections 16,64 --kernel um
		http-haproxy 6 named http --against stock --stack haproxy+storaged --modes plain,hinted,sendfile --object 64KiB,1MiB --connections 16,64 --kernel um
		http-haproxy-1m 3 named http --against stock --stack haproxy+storaged --modes plain,hinted,sendfile --object 1MiB --connections 16,64 --sndbuf 1MiB --haproxy-pipe 1MiB --kernel um
		http-module 3 named http --stack haproxy+storaged --modes hinted,sendfile --object 1MiB --connections 16,64 --rate off --kernel um+module
		http-module-1m 3 named http --stack haproxy+storaged --modes hinted,sendfile --object 1MiB --connections 16,64 --rate off --sndbuf 1MiB --haproxy-pipe 1MiB --kernel um+module
		http-nginx 2 named http --stack haproxy+nginx,nginx+nginx --modes hinted,sendfile --object 1MiB --connections 16,64 --rate off --kernel um
	PARTS
}

# All turns of every instruction set that the library copies with.
turns() {
	for isa in movnti sse2-nt avx2-nt avx512-nt movdir64b; do
		for ahead in "" +t0; do
			printf '%s%s,' "$isa" "$ahead"
			for turns in 4x64 8x64 2x128 4x128 8x128 2x256 4x256 8x256; do
				printf '%s%s+%s,' "$isa" "$ahead" "$turns"
			done
		done
	done
	echo rep-movsb
}

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
	not_here=pairs
	;;
um) not_here= ;;
*) die "KERNEL=$flagged: say um or host" ;;
esac
# shellcheck disable=SC2046 # a list of names
[ $# -gt 0 ] || set -- $(parts | awk -v not="$not_here" '$3 != "named" && $3 != not { print $1 }')
cpu=$("$ntcopy" probe --json | sed -n 's/.*"cpu_signature": "\([^"]*\)".*/\1/p' | head -n 1)
place=bench/record/$(date -u +%F)-${cpu:?the CPU does not say what it is}

mkdir -p "$place"
[ "$flagged" = host ] || "$ntcopy" kernel build
missing=
for part; do
	row=$(parts | grep "^$part ") || die "no part is called $part"
	# shellcheck disable=SC2086 # a list of words
	set -- $row
	where=$3
	shift 3
	case $where in
	flagged) set -- "$@" --kernel "$flagged" ;;
	pairs)
		[ "$flagged" != host ] || die "$part compares kernels that are booted in turns: KERNEL=um"
		set -- "$@" --kernel um
		;;
	stock) set -- "$@" --kernel um+module ;;
	esac
	rm -rf "${place:?}/$part"
	echo "record: $part"
	status=0
	"$ntcopy" bench "$@" --out "$place/$part" || status=$?
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
