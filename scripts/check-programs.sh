#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# redis-server with redis-benchmark, iperf3, and nginx with a load, as their
# packages have them, in a booted kernel that knows the flag: each without
# `ntcopy run`, and then under it. The bytes that their clients get must be right
# both times, and what the kernel counts as hinted must rise with it alone.
#
# usage: scripts/check-programs.sh NTCOPY [KERNEL]      default: um
#
# Exit code: 0 all passed; 1 not; 3 a program is not installed.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || {
	sed -n 's/^# usage: /usage: /p' "$0" >&2
	exit 2
}
ntcopy=$(realpath "$1")
kernel=${2:-um}
# Daemons lie where the search path of a user does not lead.
PATH=$PATH:/usr/sbin:/sbin
export PATH

missing=
for program in redis-server redis-benchmark iperf3 nginx python3; do
	command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -z "$missing" ] || {
	echo "check-programs: not installed:$missing; scripts/setup.sh programs installs them" >&2
	exit 3
}

for program in redis-server iperf3 nginx; do
	printf 'check-programs: '
	case $program in
	nginx) nginx -v 2>&1 ;;
	*) "$program" --version | head -n 1 ;;
	esac
done
"$ntcopy" kernel build --kernel "$kernel"
exec "$ntcopy" kernel boot --kernel "$kernel" --timeout 1200 --mem 2G -- \
	python3 "$root/scripts/check-programs.py" "$ntcopy"
