#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Random send programs from a seed, in boots of one kernel that differ only in
# net.core.ntcopy: 0, 3, 1, and one in which it changes all the time. What the
# programs saw must be the same in all of them. Prints the seed; the first
# difference ends it, with the lines that differ and how to see them again.
#
# usage: scripts/soak.sh NTCOPY [--minutes N] [--seed N] [--kernel KERNEL] [--cpus N]
#        [--programs N]
#
# --programs is for each boot, 200 if not said; with --minutes 0 each setting is
# booted once. With --cpus 2 the setting changes on one CPU while another one sends,
# which is for a kernel that looks for data races (--kernel x86+kcsan).
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
programs=200
cpus=
minutes=10
kernel=um
# shellcheck source=scripts/soak-arguments.sh
. "$root/scripts/soak-arguments.sh"
[ $# -gt 0 ] || usage
ntcopy=$1
shift
read_soak_arguments "$@"

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-soak-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

"$ntcopy" kernel build --kernel "$kernel"
"$root/scripts/selftests.sh" "$work/bin" soak

# boot NAME SYSCTL ARGUMENT...: the programs' lines into the file NAME.
boot() {
	name=$1
	sysctl=$2
	shift 2
	code=0
	"$ntcopy" kernel boot --kernel "$kernel" ${cpus:+--cpus "$cpus"} --timeout 1200 \
		--sysctl "net.core.ntcopy=$sysctl" -- "$work/bin/soak" "$@" \
		>"$work/$name" 2>"$work/$name.err" || code=$?
	[ $code -ne 130 ] || exit 130
	if [ $code -ne 0 ]; then
		grep -A 40 FAILED "$work/$name" >&2 || cat "$work/$name.err" >&2
		echo "soak: net.core.ntcopy=$name, $*: exit code $code" >&2
		exit 1
	fi
}

# What the first program that differs saw in both.
show_difference() {
	echo "soak: net.core.ntcopy=$1 and 0 differ, seed $batch:" >&2
	diff "$work/0" "$work/$1" >"$work/diff" || true
	head -n 10 "$work/diff" >&2
	number=$(sed -n 's/^< \([0-9]*\) .*/\1/p' "$work/diff" | head -n 1)
	[ -n "$number" ] || exit 1
	boot first 0 --seed "$batch" --only "$number"
	case $1 in
	flip) boot second 2 --seed "$batch" --only "$number" --flip ;;
	*) boot second "$1" --seed "$batch" --only "$number" ;;
	esac
	diff -u "$work/first" "$work/second" >&2 || true
	exit 1
}

echo "soak: seed $seed, $minutes minutes, kernel $kernel"
begun=$(date +%s)
batch=$seed
played=0
while :; do
	boot 0 0 --seed "$batch" --count "$programs"
	boot 3 3 --seed "$batch" --count "$programs"
	boot 1 1 --seed "$batch" --count "$programs"
	boot flip 2 --seed "$batch" --count "$programs" --flip
	for other in 3 1 flip; do
		cmp -s "$work/0" "$work/$other" || show_difference "$other"
	done
	played=$((played + programs))
	seconds=$(($(date +%s) - begun))
	echo "soak: seed $batch: $programs programs the same in 4 boots ($seconds s)"
	[ $seconds -lt $((minutes * 60)) ] || break
	batch=$((batch + 1))
done
refused=$(grep -c ': [A-Z]' "$work/0" || true)
echo "soak: $played programs from seed $seed on, all the same;" \
	"$refused of the last $programs had a family that this kernel lacks"
