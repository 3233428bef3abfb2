#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Where packages of an earlier version are installed, installs these: settings that
# were changed by hand stay, a daemon that runs is restarted and has its objects, and
# one that doesn't run is not started.
#
# usage: packaging/test/upgrade.sh systemd PACKAGE...       inside, by booted.sh
#        packaging/test/upgrade.sh chroot PACKAGE...        inside, where it can't be booted
set -eu

how=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
settings=/etc/storaged/storaged.toml
# In this Debian no package may start anything; here, as on any machine, they may.
policy=/usr/sbin/policy-rc.d

work=$(mktemp -d)
clear_up() {
	[ ! -e "$work/policy" ] || mv "$work/policy" "$policy"
	rm -rf "$work"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

die() {
	echo "upgrade: $*" >&2
	[ ! -s "$work/log" ] || tail -n 40 "$work/log" >&2
	[ "$how" != systemd ] || journalctl -q --no-pager -u storaged -n 20 >&2
	exit 1
}

# the_daemon WHEN: its process, when it listens.
the_daemon() {
	tries=0
	until curl -so /dev/null --unix-socket /run/storaged/storaged.sock http://storaged/; do
		tries=$((tries + 1))
		[ "$tries" -lt 100 ] || die "storaged does not answer, $1"
		sleep 0.2
	done
	systemctl show -P MainPID storaged
}

upgrade() {
	DEBIAN_FRONTEND=noninteractive dpkg -i "$@" >"$work/log" 2>&1 || die "dpkg -i failed"
}

echo '# changed before the upgrade' >>"$settings"
if [ "$how" = systemd ]; then
	# shellcheck source=packaging/test/descriptors.sh
	. "$here/descriptors.sh"
	mv "$policy" "$work/policy"
	allow_descriptors storaged
	systemctl start storaged || die "systemd does not start storaged"
	before=$(the_daemon "before")
	echo "of the earlier version" |
		curl -sSf --unix-socket /run/storaged/storaged.sock -T - http://storaged/kept ||
		die "the object was not stored"
	upgrade "$@"
	after=$(the_daemon "after")
	[ "$before" != "$after" ] || die "storaged still runs as it did before: process $before"
	[ "$(curl -sSf --unix-socket /run/storaged/storaged.sock http://storaged/kept)" = "of the earlier version" ] ||
		die "the object is not what it was"
	[ "$(systemctl is-active proxyd)" = inactive ] || die "proxyd was started, and did not run before"
	systemctl stop storaged
else
	upgrade "$@"
fi
grep -q '# changed before the upgrade' "$settings" || die "the settings of storaged were overwritten"
echo "upgrade: by $how, from $(sed -n 's/.*(\(.*\)) over (\(.*\)) .*/\2 to \1/p' "$work/log" | sort -u)"
