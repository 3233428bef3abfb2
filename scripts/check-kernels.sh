#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The suite in every kernel that looks for faults: built, booted in QEMU, run
# with the hint's whole path under KASAN, lockdep, kmemleak and UBSAN, the copies and
# their faults on a CPU of each vendor's way to copy, then under
# KCSAN, then with user copies and allocations that fail. The first socket that
# opts in patches the kernel, once a boot, and so may the sysctl: each is the first
# in a boot of its own, under lockdep. Under KCSAN, random programs send while the
# sysctl changes. A failed test fails this, and so does any report of a kernel about
# itself.
#
# usage: scripts/check-kernels.sh NTCOPY [KERNEL...]
#        default: x86 x86+kcsan x86:6.12 x86:6.12+kcsan
#
# What the guests print is kept in out/kernels (NTCOPY_OUT): KERNEL-suite.log,
# KERNEL-faults.log and so on; with .err, what the host said of the boot.
set -eu

[ $# -gt 0 ] || {
	echo "usage: scripts/check-kernels.sh NTCOPY [KERNEL...]" >&2
	exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
ntcopy=$1
shift
[ $# -gt 0 ] || set -- x86 x86+kcsan x86:6.12 x86:6.12+kcsan

programs=${PROGRAMS:-options counters edges flags calls control gone holes ntcopy_pages bytes}
# The size of the biggest send: an emulated CPU that checks each access is slow.
export NTCOPY_SELFTEST_BIG_MIB=4

logs=${NTCOPY_OUT:-$root/out/kernels}
work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-kernels-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'echo "check-kernels: interrupted; what was seen is in $logs" >&2; exit 130' INT TERM
mkdir -p "$logs"

# boot KERNEL NAME COMMAND...: the guest's output into the file KERNEL-NAME.log.
boot() {
	kernel=$1
	name=$2
	log=$logs/$(echo "$kernel" | tr ':' '-')-$name.log
	shift 2
	echo "check-kernels: $kernel: $name runs; its output: $log"
	begun=$(date +%s)
	code=0
	"$ntcopy" kernel boot --kernel "$kernel" --cpus 2 --timeout 7200 -- "$@" \
		>"$log" 2>"$log.err" || code=$?
	passed=$(grep -c '^ok ' "$log" || true)
	skipped=$(grep -c '^ok .*# SKIP' "$log" || true)
	refused=$(grep -c '^not ok ' "$log" || true)
	echo "check-kernels: $kernel: $name: $((passed - skipped)) passed," \
		"$skipped skipped, $refused failed; exit code $code, $(($(date +%s) - begun)) s"
	# The signal reaches the guest's side first; without this the next boot would begin.
	[ $code -ne 130 ] || {
		echo "check-kernels: interrupted" >&2
		exit 130
	}
	if [ $code -ne 0 ] || [ "$refused" -ne 0 ] || [ "$passed" -eq 0 ]; then
		grep '^not ok ' "$log" >&2 || true
		tail -n 100 "$log.err" >&2
		failed=1
	fi
}

# The ways to copy: four pages in turn, and line by line. That one page ahead is QEMU's.
vendors() {
	for vendor in intel:GenuineIntel,family=6,model=143 zen4:AuthenticAMD,family=25,model=17; do
		NTCOPY_QEMU_CPU=max,vendor=${vendor#*:}
		export NTCOPY_QEMU_CPU
		# shellcheck disable=SC2086 # a list of programs
		boot "$1" "${vendor%%:*}" sh -c "$run" suite "$work/bin" ${COPIES:-edges holes bytes}
		unset NTCOPY_QEMU_CPU
	done
}

# The first to patch the kernel, and one for which there is no memory.
first_hints() {
	boot "$1" first-setsockopt "$work/bin/calls" -r calls.tcp_obeyed.write_and_writev
	boot "$1" first-sysctl "$work/bin/calls" -r calls.tcp_all.write_and_writev
	boot "$1" first-without-memory sh "$root/kernel/selftests/faults.sh" --first "$work/bin" 1 20
}

soak() {
	log=$logs/$(echo "$1" | tr ':' '-')-soak.log
	echo "check-kernels: $1: random programs run, the sysctl changes; their output: $log"
	code=0
	"$root/scripts/soak.sh" "$ntcopy" --kernel "$1" --cpus 2 --seed 1 --minutes 0 \
		--programs 50 >"$log" 2>&1 || code=$?
	[ $code -ne 130 ] || exit 130
	tail -n 1 "$log"
	[ $code -eq 0 ] || {
		tail -n 100 "$log" >&2
		failed=1
	}
}

# What the guest does: each program in a folder, all of them.
# shellcheck disable=SC2016 # the guest's shell expands it
run='
	cd "$1"
	shift
	code=0
	for program; do
		echo "# program $program"
		"./$program" 2>&1 || code=1
	done
	exit $code'

failed=
"$root/scripts/selftests.sh" "$work/bin"
for kernel; do
	"$ntcopy" kernel build --kernel "$kernel" >/dev/null
	# shellcheck disable=SC2086 # a list of programs
	boot "$kernel" suite sh -c "$run" suite "$work/bin" $programs
	case $kernel in
	*plain) ;;
	*kcsan) soak "$kernel" ;;
	*)
		boot "$kernel" faults sh "$root/kernel/selftests/faults.sh" "$work/bin" 1
		first_hints "$kernel"
		vendors "$kernel"
		;;
	esac
done
[ -z "$failed" ]
