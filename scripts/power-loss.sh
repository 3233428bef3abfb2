#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Loss of power, not only kill -9: in a booted stock kernel, storaged writes to ext4 and
# to xfs on a disk whose writes are logged (dm-log-writes). The disk is made anew at every
# prefix of the log that ends at a flush, a FUA write or an acknowledgement, and with
# random subsets of what was not flushed; the file system recovers, storaged reads, and
# what was acknowledged must be there and whole, and all else absent or whole.
# scripts/power-loss.py does it.
#
# usage: scripts/power-loss.sh NTCOPY [OPTION]...
#   --fs ext4,xfs                     file systems
#   --steps N                         changes to objects (60)
#   --points N                        random subsets, beside every prefix (150)
#   --seed N                          [default: a random one, printed]
#   --keep DIR                        the first wrong disk of each goes here
#   --mutate no-sync|disk-lies        fsync that does nothing; a disk that loses what it flushed
#   --self-test                       both must be noticed, on each file system
#
# storaged is NTCOPY's neighbour, or STORAGED. Nothing of the host is changed: disks, logs
# and mounts are in the guest's memory, and go with it.
# Exit code: 0 all survived; 1 failed; 2 usage; 3 not available here; 4 something was lost
# or torn. How long: 10 to 30 minutes.
set -eu

usage() {
	sed -n '/^# Loss of power/,/^set /{ /^set /d; s/^# \{0,1\}//p; }' "$0"
}

root=$(cd "$(dirname "$0")/.." && pwd)
case ${1:-} in
--help | -h)
	usage
	exit 0
	;;
'' | -*)
	usage >&2
	exit 2
	;;
esac
ntcopy=$(realpath "$1")
shift
seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
# Where mkfs is, and a Python that is no wrapper, which would start slowly in the guest.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH

"$root/scripts/setup.sh" kernels power
storaged=$(realpath "${STORAGED:-$(dirname "$ntcopy")/storaged}")
[ -x "$storaged" ] || {
	echo "power-loss: no $storaged: make daemons, or say STORAGED=PROGRAM" >&2
	exit 2
}

"$ntcopy" kernel build --kernel stock
case " $* " in
*" --seed "*) ;;
*) echo "power-loss: --seed $seed" ;;
esac
exec "$ntcopy" kernel boot --kernel stock --mem 3G --timeout 7200 -- \
	python3 "$root/scripts/power-loss.py" --storaged "$storaged" --seed "$seed" "$@"
