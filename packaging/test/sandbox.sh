#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs a daemon inside a Debian with the settings of its own unit file, as far as
# they can be had without systemd as process 1: user, groups, no capabilities, no
# new privileges, a read-only system with the unit's folders in it, no homes, a
# private /tmp, invisible processes, file mode mask, limits. What else the unit
# promises is compared with what the daemon did, by strace: each system call with
# SystemCallFilter=, each socket with RestrictAddressFamilies=, each mapping with
# MemoryDenyWriteExecute=.
#
# usage: packaging/test/sandbox.sh run ROOT NAME      in a mount namespace of its own
#        packaging/test/sandbox.sh check ROOT NAME    after it has ended
set -eu

what=$1
root=$2
name=$3
unit=$(find "$root/lib/systemd/system" "$root/usr/lib/systemd/system" -name "$name.service" |
	head -n 1)
trace=$root/run/$name/strace

die() {
	echo "sandbox: $*" >&2
	exit 1
}

[ -n "$unit" ] || die "$root has no unit $name.service"

# of KEY: its values in the unit, a line each.
of() {
	sed -n "s/^$1=//p" "$unit"
}

# wants KEY VALUE: a setting that is applied here, so that it is not only thought to be there.
wants() {
	[ "$(of "$1")" = "$2" ] || die "$name.service has no $1=$2, which this applies"
}

# No more descriptors than this machine lets anybody have.
descriptors() {
	most=$(prlimit --noheadings --output HARD --nofile | tr -d " ")
	if [ "$most" != unlimited ] && [ "$(of LimitNOFILE)" -gt "$most" ]; then
		echo "$most"
	else
		of LimitNOFILE
	fi
}

# The folders that systemd would make, for the user that it would make them for.
folders() {
	for folder in $(of StateDirectory | sed 's|^|/var/lib/|') $(of RuntimeDirectory | sed 's|^|/run/|'); do
		case $folder in
		/run/*) mode=755 ;;
		*) mode=$(of StateDirectoryMode) ;;
		esac
		mkdir -p "$root$folder"
		chmod "$mode" "$root$folder"
		chown "$1:$2" "$root$folder"
		mount --bind "$root$folder" "$root$folder"
	done
}

run() {
	for setting in NoNewPrivileges PrivateTmp ProtectHome; do
		wants "$setting" yes
	done
	wants ProtectSystem strict
	wants ProtectProc invisible
	wants CapabilityBoundingSet ''
	# One that systemd would make up has a number of the range that it takes them from.
	if [ -n "$(of DynamicUser)" ]; then
		uid=64123
		gid=64123
	else
		uid=$(sed -n "s/^$(of User):[^:]*:\([0-9]*\):.*/\1/p" "$root/etc/passwd")
		gid=$(sed -n "s/^$(of User):[^:]*:[0-9]*:\([0-9]*\):.*/\1/p" "$root/etc/passwd")
	fi
	[ -n "$uid" ] || die "there is no user $(of User)"
	groups=
	for group in $(of SupplementaryGroups); do
		groups=$groups,$(sed -n "s/^$group:[^:]*:\([0-9]*\):.*/\1/p" "$root/etc/group")
	done
	groups=${groups:+--groups=${groups#,}}
	groups=${groups:---clear-groups}
	mount --bind "$root" "$root"
	folders "$uid" "$gid"
	for folder in /tmp /var/tmp; do
		mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root$folder"
	done
	for folder in /home /root; do
		mount -t tmpfs -o mode=000,ro tmpfs "$root$folder"
	done
	mount -t proc -o hidepid=invisible,nosuid,nodev,noexec proc "$root/proc"
	mount --bind "$root/proc/sys" "$root/proc/sys"
	mount -o remount,bind,ro "$root/proc/sys"
	mount -o remount,bind,ro "$root"
	# shellcheck disable=SC2046,SC2016 # a command and its arguments; the inner shell expands
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$root" \
		prlimit --nofile="$(descriptors)" setpriv --reuid="$uid" --regid="$gid" "$groups" --no-new-privs --bounding-set=-all \
		--inh-caps=-all --ambient-caps=-all \
		sh -c 'umask "$1"; shift; exec "$@"' sh "$(of UMask)" \
		strace -f -qq -o "${trace#"$root"}" $(of ExecStart)
}

# The names of a filter, without the sets that it is made of.
filter() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$root" systemd-analyze syscall-filter \
		>"$work/sets" 2>"$work/words" || die "systemd-analyze: $(cat "$work/words")"
	allowed=
	denied=
	for word in $(of SystemCallFilter); do
		case $word in
		'~'*) sign=denied ;;
		esac
		if [ "${sign:-}" = denied ]; then
			denied="$denied ${word#\~}"
		else
			allowed="$allowed $word"
		fi
	done
	# shellcheck disable=SC2086 # lists of names
	members $allowed | sort -u >"$work/allowed"
	# shellcheck disable=SC2086
	members $denied | sort -u >"$work/denied"
	comm -23 "$work/allowed" "$work/denied"
}

# members NAME...: system calls, and those of sets, however deep.
members() {
	for member; do
		case $member in
		@*)
			# shellcheck disable=SC2046 # a list of names
			members $(awk -v set="$member" '
				/^@/ { here = ($1 == set); next }
				here && $1 != "#" { print $1 }' "$work/sets")
			;;
		*) echo "$member" ;;
		esac
	done
}

check() {
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	filter >"$work/filter"
	[ "$(wc -l <"$work/filter")" -gt 100 ] || die "the filter of $name.service was not understood"
	# The trace begins with the program: systemd does what prlimit and sh did before it.
	sed -n 's/^[0-9]* *\([a-z0-9_]*\)(.*/\1/p; s/^[0-9]* *<\.\.\. \([a-z0-9_]*\) resumed.*/\1/p' "$trace" |
		sort -u >"$work/called"
	[ "$(wc -l <"$work/called")" -gt 20 ] || die "strace saw only: $(tr '\n' ' ' <"$work/called")"
	refused=$(comm -23 "$work/called" "$work/filter" | tr '\n' ' ')
	[ -z "$refused" ] || die "$name calls what SystemCallFilter= forbids: $refused"
	families=$(of RestrictAddressFamilies | tr ' ' '|')
	other=$(grep -E 'socket(pair)?\(AF_' "$trace" | grep -vE "\((AF_X|$families)," || true)
	[ -z "$other" ] || die "$name opens what RestrictAddressFamilies= forbids: $other"
	writable=$(grep -E '(mmap|mprotect|pkey_mprotect)\(.*PROT_WRITE\|PROT_EXEC' "$trace" || true)
	[ -z "$writable" ] || die "$name maps what MemoryDenyWriteExecute= forbids: $writable"
	echo "sandbox: $name: $(wc -l <"$work/called") different system calls, all within its unit's filter"
	rm -f "$trace"
}

case $what in
run | check) "$what" ;;
*) die "'$what' is neither run nor check" ;;
esac
