#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every test, and the series held against its source, in lanes side by side: most of
# the tests wait (for a boot, a time-out, a guest on an emulated CPU), and a machine
# with two CPUs has one to spare.
#
#   cli      tests of the program; said as they go
#   rest     those of all other crates, and of the documentation
#   booted   those that boot for minutes: the suites, in kernels of ours and, on an emulated
#            CPU, in the distribution's
#   series   scripts/check-series.sh
#
# What the others said comes last, and then how many tests passed and failed. Ends
# with what the first that failed ended with.
# What boots said is kept by all that it depends on (scripts/inputs.sh), and so is
# that the series is clean: only what has changed is tried again; NTCOPY_ANEW=1
# tries all.
#
# usage: scripts/test.sh [ARGUMENT of cargo test]...
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
cache=$(scripts/cache.sh)
# Tests of the program that boot for minutes, the longest first.
long='module_booted booted mutations proxyd_booted'
# targets IS|NOT PACKAGE: arguments that choose the test programs of it, or of all others. All are
# of the whole workspace, or cargo would build what they share in another way, and again. A name
# that both have is run with the package's.
targets() {
	"$cargo" metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
which, package = sys.argv[1:]
own, others = set(), set()
for each in json.load(sys.stdin)["packages"]:
    tests = {target["name"] for target in each["targets"] if target["kind"] == ["test"]}
    (own if each["name"] == package else others).update(tests)
for name in sorted(own if which == "IS" else others - own):
    print("--test", name)
' "$1" "$2"
}

cli() {
	# shellcheck disable=SC2046 # a list of arguments
	"$cargo" test --workspace --locked --no-fail-fast $(targets IS ntcopy-cli |
		grep -vxE -e "--test ($(echo "$long" | tr ' ' '|'))") "$@"
}

rest() {
	code=0
	# shellcheck disable=SC2046 # a list of arguments
	"$cargo" test --workspace --locked --no-fail-fast --lib --bins $(targets NOT ntcopy-cli) "$@" ||
		code=$?
	"$cargo" test --workspace --locked --no-fail-fast --doc "$@" || code=$?
	return "$code"
}

booted() {
	code=0
	for test in $long; do
		"$cargo" test --workspace --locked --no-fail-fast --test "$test" "$@" || code=$?
	done
	return "$code"
}

series() {
	inputs=$(find kernel/series/7.3 kernel/selftests kernel/module kernel/kunit \
		kernel/asm scripts/check-series.sh scripts/series.sh uapi -type f | LC_ALL=C sort)
	source=$(find "$cache/packages/" -name 'linux-source-7.*.deb' | sort -V | tail -n 1)
	# shellcheck disable=SC2086 # lists of files
	clean=$cache/outputs/series-$(scripts/inputs.sh "=$(git --version; perl -v)" $inputs $source)
	if [ -e "$clean" ] && [ -z "${NTCOPY_ANEW-}" ]; then
		echo "check-series: all is as it was when this was said:"
		touch "$clean"
		cat "$clean"
		return
	fi
	mkdir -p "$cache/outputs"
	scripts/check-series.sh 7.3 >"$clean.$$" || {
		cat "$clean.$$"
		rm -f "$clean.$$"
		return 1
	}
	cat "$clean.$$"
	mv "$clean.$$" "$clean"
}

# Groups of their own, guests and all: what a shell starts beside itself ignores Ctrl-C.
beside() {
	setsid "$0" --lane "$@" >"$work/$1.log" 2>&1 &
	eval "group_$1=\$!"
}

kill_group() {
	[ -z "$1" ] || kill -- "-$1" 2>/dev/null || :
}

# wait_for LANE GROUP
wait_for() {
	wait "$2" || code=$?
	echo "test: lane $1"
	cat "$work/$1.log"
}

# count LOG...: what cargo said of each test program, summed up
count() {
	cat "$@" | awk '/^test result: / { passed += $4; failed += $6; skipped += $8 }
		END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }'
}

all() {
	work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-test-XXXXXX")
	group_rest='' group_booted='' group_series=''
	trap 'kill_group "$group_rest"; kill_group "$group_booted"; kill_group "$group_series"
		rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
	echo "test: lanes rest, booted and series run beside this one; what they say comes last"
	beside rest "$@"
	beside booted "$@"
	beside series
	{
		code=0
		cli "$@" 2>&1 || code=$?
		echo "$code" >"$work/cli.code"
	} | tee "$work/cli.log"
	code=$(cat "$work/cli.code")
	wait_for series "$group_series"
	wait_for rest "$group_rest"
	wait_for booted "$group_booted"
	group_rest='' group_booted='' group_series=''
	count "$work"/*.log
	return "$code"
}

case ${1-} in
--lane)
	lane=$2
	shift 2
	case $lane in
	rest) rest "$@" ;;
	booted) booted "$@" ;;
	series) series ;;
	esac
	;;
*) all "$@" ;;
esac
