#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every test. The suite in the distribution's kernels, on an emulated CPU, takes a
# third of all the time and half of a machine with two CPUs: it runs beside the
# others, and what it said comes last. Ends with what cargo ends with, of the one
# that failed.
#
# usage: scripts/test.sh [ARGUMENT of cargo test]...
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
# The beginning of these tests' names, in crates/ntcopy-cli/tests/module_booted.rs.
long=the_suite_passes_through_the_module_on_
log=$(mktemp "${TMPDIR:-/tmp}/ntcopy-test-XXXXXX")
beside=

# A group of its own, guests and all: what a shell starts beside itself ignores Ctrl-C.
trap '[ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || :; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

echo "test: the suite in Debian's kernels runs beside the others; what it says comes last"
setsid "$cargo" test --workspace --locked --no-fail-fast --test module_booted "$@" -- "$long" \
	>"$log" 2>&1 &
beside=$!
code=0
"$cargo" test --workspace --locked --no-fail-fast "$@" -- --skip "$long" || code=$?
wait "$beside" || code=$?
beside=
cat "$log"
exit $code
