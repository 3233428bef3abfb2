#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# ntcopy.ko while processes and threads do to attached sockets whatever can be
# done to a socket, as a seed has it, in a kernel with KASAN, lockdep and
# kmemleak. Prints the seed, and what was done how often. What the kernel says of
# itself fails this, and so does a socket, or a reference, that is left.
#
# usage: scripts/soak-module.sh NTCOPY [--minutes N] [--seed N] [--kernel KERNEL]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
minutes=5
kernel=x86+module
# shellcheck source=scripts/soak-arguments.sh
. "$root/scripts/soak-arguments.sh"
[ $# -gt 0 ] || usage
ntcopy=$1
shift
read_soak_arguments "$@"

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-soak-module-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

module=$("$ntcopy" module build --kernel "$kernel")
"$root/scripts/selftests.sh" "$work" module_fuzz
echo "soak-module: seed $seed, $minutes minutes, kernel $kernel"
# kmemleak is asked when the module has gone: nothing refers to what it left in memory then.
# shellcheck disable=SC2016 # the guest's shell expands these
"$ntcopy" kernel boot --kernel "$kernel" --cpus 2 --timeout $((minutes * 60 + 1200)) -- sh -c '
	"$1" module load "$2" || exit
	code=0
	"$3" "$4" "$5" || code=$?
	"$1" module unload || code=1
	exit $code' soak-module "$ntcopy" "$module" "$work/module_fuzz" "$seed" $((minutes * 60))
