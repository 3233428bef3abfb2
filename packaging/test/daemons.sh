#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# storaged and proxyd, as installed, each within its unit's settings: an object is
# stored, and comes back the same by storaged's socket and through proxyd; who is
# not of storaged's group is refused; both end well.
#
# usage: packaging/test/daemons.sh / systemd         inside, by booted.sh
#        unshare --mount --net packaging/test/daemons.sh ROOT util-linux
#
# util-linux: where systemd can't be had; by sandbox.sh
set -eu

root=$1
how=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packaging/test/descriptors.sh
. "$here/descriptors.sh"
socket=/run/storaged/storaged.sock
storaged=
proxyd=

die() {
	echo "daemons: $*" >&2
	for name in storaged proxyd; do
		[ ! -s "$work/$name.log" ] || sed "s/^/daemons: $name: /" "$work/$name.log" >&2
		[ "$how" != systemd ] || journalctl -q --no-pager -u "$name" -n 20 >&2
	done
	exit 1
}

work=$(mktemp -d)
clear_up() {
	for pid in $storaged $proxyd; do
		# shellcheck disable=SC2046 # numbers
		kill -KILL $(children "$pid") "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

# children PID: the process's children; strace's is the daemon.
children() {
	cat "/proc/$1/task/$1/children" 2>/dev/null || true
}

# inside GROUP COMMAND...: runs the command as the user nobody, with a group.
inside() {
	group=$1
	shift
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$root" \
		setpriv --reuid=65534 --regid=65534 --groups="$group" "$@"
}

# answers NAME: whether it listens.
answers() {
	case $1 in
	storaged) inside "$gid" curl -so /dev/null --unix-socket "$socket" http://storaged/ ;;
	proxyd) inside 65534 curl -so /dev/null http://127.0.0.1:8080/ ;;
	esac
}

# start NAME: within its unit's settings, until it listens. Its process is $daemon.
start() {
	if [ "$how" = systemd ]; then
		allow_descriptors "$1"
		systemctl start "$1" || die "systemd does not start $1"
	else
		unshare --mount --propagation private "$here/sandbox.sh" run "$root" "$1" \
			>"$work/$1.log" 2>&1 &
		eval "$1=$!"
	fi
	tries=0
	until answers "$1"; do
		tries=$((tries + 1))
		[ "$tries" -lt 100 ] || die "$1 does not listen after 20 s"
		sleep 0.2
	done
	if [ "$how" = systemd ]; then
		daemon=$(systemctl show -P MainPID "$1")
	else
		eval "daemon=\$(children \$$1)"
	fi
	confined "$1" "/proc/$((daemon))/status"
}

# confined NAME STATUS: what the kernel says of the process is what the unit says.
confined() {
	[ -e "$2" ] || die "$1 is not there any more"
	for fact in "NoNewPrivs:1" "CapBnd:0000000000000000" "CapEff:0000000000000000" "CapAmb:0000000000000000"; do
		tr -d '\t ' <"$2" | grep -qx "$fact" || die "$1 has not $fact: $(grep "^${fact%%:*}" "$2")"
	done
	case $1 in
	storaged) umask=0007 ;;
	proxyd) umask=0027 ;;
	esac
	grep -q "^Umask:.*$umask\$" "$2" || die "$1 has $(grep ^Umask "$2")"
	grep -q '^Uid:.*[[:space:]]0[[:space:]]' "$2" && die "$1 runs as root"
	grep -q '^[0-9]* [0-9]* [^ ]* [^ ]* / ro' "${2%/status}/mountinfo" || [ "$how" != systemd ] ||
		die "$1 may write to the system"
	[ "$how" != systemd ] || grep -q '^Seccomp:.*2$' "$2" || die "$1 has no filter of system calls"
}

# finish NAME: ends it as systemd does; it must end with 0.
finish() {
	if [ "$how" = systemd ]; then
		systemctl stop "$1"
		said=$(systemctl show -P Result -P ExecMainStatus -P ActiveState "$1" | tr '\n' ' ')
		[ "$said" = "success 0 inactive " ] || die "$1 ended so: $said"
		return
	fi
	eval "pid=\$$1"
	# shellcheck disable=SC2046 # one number
	kill -TERM $(children "$pid") || die "$1 is not there any more"
	wait "$pid" || die "$1 ended with $?"
	eval "$1="
	"$here/sandbox.sh" check "$root" "$1"
}

chroot "$root" ip link set lo up
gid=$(sed -n 's/^_storaged:[^:]*:\([0-9]*\):.*/\1/p' "$root/etc/group")
[ -n "$gid" ] || die "there is no group _storaged"
head -c 3000001 /dev/urandom >"$work/object"

start storaged
[ "$(stat -c '%a %g' "$root$socket")" = "770 $gid" ] || die "$socket is $(stat -c '%a %g' "$root$socket")"
inside "$gid" curl -sSf --unix-socket "$socket" -T - http://storaged/folder/object <"$work/object" ||
	die "the object was not stored"
inside "$gid" curl -sSf --unix-socket "$socket" http://storaged/folder/object >"$work/back" ||
	die "the object does not come back"
cmp "$work/object" "$work/back" || die "the object came back changed"
if inside 65534 curl -sS --unix-socket "$socket" http://storaged/folder/object >"$work/back" 2>/dev/null; then
	die "anybody may use $socket"
fi

start proxyd
inside 65534 curl -sSf http://127.0.0.1:8080/folder/object >"$work/back" || die "proxyd does not answer"
cmp "$work/object" "$work/back" || die "the object came back through proxyd changed"
status=$(inside 65534 curl -sS -o /dev/null -w '%{http_code}' -T - http://127.0.0.1:8080/folder/object <"$work/object")
[ "$status" = 405 ] || die "a PUT through proxyd is answered with $status"
if [ "$how" = systemd ]; then
	systemctl reload proxyd || die "proxyd can't be reloaded"
	inside 65534 curl -sSf -o /dev/null http://127.0.0.1:8080/folder/object || die "a reload ended it"
fi
finish proxyd
finish storaged
if [ "$how" = systemd ]; then
	# Sockets of systemd's: nobody listens, and who asks is answered.
	systemctl start storaged.socket proxyd.socket || die "systemd does not listen"
	[ "$(stat -c '%a %g' "$root$socket")" = "660 $gid" ] || die "$socket of storaged.socket is $(stat -c '%a %g' "$root$socket")"
	for again in first second; do
		inside 65534 curl -sSf http://127.0.0.1:8080/folder/object >"$work/back" || die "the $again start by a socket"
		cmp "$work/object" "$work/back" || die "the object came back through sockets of systemd's changed"
		systemctl --no-block restart storaged proxyd
	done
	systemctl stop proxyd.socket storaged.socket
	finish proxyd
	finish storaged
fi
[ -s "$root/var/lib/storaged/blobs/1" ] || die "the object is not in /var/lib/storaged"
echo "daemons: an object of 3000001 bytes, stored, read, proxied, by $how"
