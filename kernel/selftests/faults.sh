#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Random send programs while the kernel makes user copies, slab and page
# allocations fail in the middle of their sends. Sends may fail then; but no
# byte may arrive that was not sent, none be counted wrongly, and the kernel
# must not complain.
#
# usage: faults.sh DIR SEED [COUNT]        DIR holds the program soak
#
# With ntcopy.ko loaded, soak attaches its sockets, and it is the module that is tried.
# Needs CONFIG_FAULT_INJECTION_DEBUG_FS, and debugfs; skips (4) without.
dir=$1
seed=$2
count=${3:-100}
debugfs=/sys/kernel/debug
sysctl=/proc/sys/net/core/ntcopy

mountpoint -q $debugfs || mount -t debugfs debugfs $debugfs 2>/dev/null
[ -e /proc/self/make-it-fail ] || {
	echo "1..0 # SKIP no fault injection in this kernel"
	exit 4
}

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
	# A single page, too: without it whoever asked for several would get those.
	[ ! -e "$folder/min-order" ] || echo 0 >"$folder/min-order"
}

off() {
	echo 0 >"$debugfs/$1/probability"
}

# Lines of the kernel's log that are no news of this suite's own.
splats() {
	dmesg | grep -cE 'BUG:|WARNING:|KASAN|KCSAN|UBSAN|possible (circular|recursive)|Oops|unreferenced object'
}

# told NAME COMMAND...: whether it went well, as a line of TAP.
told() {
	name=$1
	shift
	number=$((number + 1))
	if "$@"; then
		echo "ok $number $name"
	else
		echo "not ok $number $name"
		failed=1
	fi
}

skipped() {
	number=$((number + 1))
	echo "ok $number $1 # SKIP no $2 in this kernel"
}

# shellcheck disable=SC2317 # told() calls it
kernel_is_quiet() {
	[ "$(splats)" -ne "$before" ] || return 0
	dmesg | tail -n 100 | sed 's/^/# /'
	return 1
}

# With 2 every send is hinted, and bytes are counted against what sends return.
while_calls_fail() {
	for mode in 2 1; do
		echo $mode >$sysctl || exit 1
		for kind in fail_usercopy failslab fail_page_alloc; do
			for probability in 1 10 50; do
				name="net.core.ntcopy=$mode, $kind, $probability %"
				if ! one $kind $probability; then
					skipped "$name" $kind
					continue
				fi
				told "$name" "$dir/soak" --seed $((seed + number)) \
					--count "$count" --inject
				off $kind
			done
		done
	done
}

before=$(splats)
number=0
failed=0
echo "TAP version 13"
while_calls_fail
told "the kernel does not complain" kernel_is_quiet
echo "1..$number"
exit $failed
