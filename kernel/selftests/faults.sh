#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Random send programs while the kernel makes user copies, slab and page
# allocations fail in the middle of their sends. Sends may fail then; but no
# byte may arrive that was not sent, none be counted wrongly, and the kernel
# must not complain.
#
# usage: faults.sh DIR SEED [COUNT]     DIR holds the program soak
#
# Needs CONFIG_FAULT_INJECTION_DEBUG_FS, and debugfs; skips (4) without.
dir=$1
seed=$2
count=${3:-100}
debugfs=/sys/kernel/debug

mountpoint -q $debugfs || mount -t debugfs debugfs $debugfs 2>/dev/null
[ -e /proc/self/make-it-fail ] || {
	echo "1..0 # SKIP no fault injection in this kernel"
	exit 4
}
# Bytes can only be counted against what sends return if every send is hinted.
echo 3 >/proc/sys/net/core/ntcopy || exit 1

# one NAME PROBABILITY: lets that kind of call fail, in percent, in tasks that ask.
one() {
	folder=$debugfs/$1
	[ -d "$folder" ] || return 1
	echo Y >"$folder/task-filter"
	echo "$2" >"$folder/probability"
	echo 1 >"$folder/interval"
	echo -1 >"$folder/times"
	echo 0 >"$folder/space"
	echo 0 >"$folder/verbose"
	# Allocations that may wait are the ones to try.
	[ ! -e "$folder/ignore-gfp-wait" ] || echo N >"$folder/ignore-gfp-wait"
}

off() {
	echo 0 >"$debugfs/$1/probability"
}

# Lines of the kernel's log that are no news of this suite's own.
splats() {
	dmesg | grep -cE 'BUG:|WARNING:|KASAN|KCSAN|UBSAN|possible (circular|recursive)|Oops|unreferenced object'
}

before=$(splats)
number=0
failed=0
echo "TAP version 13"
for kind in fail_usercopy failslab fail_page_alloc; do
	for probability in 1 10 50; do
		number=$((number + 1))
		name="$kind, $probability %"
		if ! one $kind $probability; then
			echo "ok $number $name # SKIP no $kind in this kernel"
			continue
		fi
		if "$dir/soak" --seed $((seed + number)) --count "$count" --inject; then
			echo "ok $number $name"
		else
			echo "not ok $number $name"
			failed=1
		fi
		off $kind
	done
done
number=$((number + 1))
if [ "$(splats)" -eq "$before" ]; then
	echo "ok $number the kernel does not complain"
else
	dmesg | tail -n 100 | sed 's/^/# /'
	echo "not ok $number the kernel does not complain"
	failed=1
fi
echo "1..$number"
exit $failed
