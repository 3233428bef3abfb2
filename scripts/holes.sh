#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Random gathered sends from memory in which pages are missing, plain against
# hinted, in every family: the program holes of kernel/selftests, with CASES
# cases in all, and with both loops of the copy, whatever this CPU's own is.
#
# usage: scripts/holes.sh NTCOPY [CASES]     default: 100000
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || {
	echo "usage: scripts/holes.sh NTCOPY [CASES]" >&2
	exit 2
}
ntcopy=$1
cases=${2:-100000}

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-holes-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

"$ntcopy" kernel build >/dev/null
"$root/scripts/selftests.sh" "$work" holes
# Each family obeyed and by the rule; and each of these with three loops.
variants=$(grep -c '^FIXTURE_VARIANT_ADD(holes' "$root/kernel/selftests/holes.c")
each=$(((cases + 3 * variants - 1) / (3 * variants)))
for way in ahead turns lines; do
	NTCOPY_SELFTEST_HOLES=$each "$ntcopy" kernel boot --append "nontemporal=$way" -- "$work/holes"
done
echo "holes: $((each * 3 * variants)) cases, no difference"
