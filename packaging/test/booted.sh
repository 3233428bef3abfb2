#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Boots the systemd of a Debian in a folder as process 1 of namespaces of its own
# (processes, mounts, network, names, IPC, control groups), runs a command of that
# Debian beside it, and ends it. It sees /sys and /proc/sys of the machine around it, both
# read-only; no module, no setting and no clock can be changed from there.
#
# usage: packaging/test/booted.sh ROOT [COMMAND ARGUMENT...]
#        without a command: boots and ends it
#
# exit codes: the command's; 1 failed; 3 this system does not allow such a boot
set -eu

root=$1
shift

die() {
	echo "booted: $1" >&2
	exit "${2:-1}"
}

# In the new namespaces, as process 1. What would reach for the machine is masked,
# and so is what would start jobs of the day.
boot_here() {
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	for kept in sys sysrq-trigger; do
		[ -e "$root/proc/$kept" ] || continue
		mount --bind "$root/proc/$kept" "$root/proc/$kept"
		mount -o remount,bind,ro "$root/proc/$kept"
	done
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	mkdir "$root/tmp/dev"
	cp -a "$root/dev/." "$root/tmp/dev/"
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	cp -a "$root/tmp/dev/." "$root/dev/"
	rm -rf "$root/tmp/dev" "$root/dev/kmsg"
	mkdir -p "$root/run/systemd/system"
	for unit in systemd-modules-load.service systemd-sysctl.service modprobe@.service \
		systemd-remount-fs.service systemd-journald-audit.socket timers.target \
		proc-sys-fs-binfmt_misc.automount sys-kernel-debug.mount sys-kernel-tracing.mount \
		sys-fs-fuse-connections.mount dev-hugepages.mount; do
		ln -s /dev/null "$root/run/systemd/system/$unit"
	done
	# Not by chroot: in one, no process may make the namespaces that PrivateUsers= is made of.
	cd "$root"
	pivot_root . .
	umount -l .
	exec env -i container=ntcopy-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		/lib/systemd/systemd --system --unit=basic.target --log-target=console --show-status=no
}

clear_up() {
	[ -z "$boot" ] || kill -KILL "$boot" 2>/dev/null || true
	wait
	if [ -n "$group" ]; then
		echo $$ >"$work/cgroup/cgroup.procs"
		find "$group" -depth -type d -exec rmdir {} + || true
	fi
	umount "$work/cgroup" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}

# beside COMMAND...: in its namespaces.
beside() {
	nsenter --target "$boot" --mount --pid --net --uts --ipc --cgroup -- \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root "$@"
}

is_up() {
	boot=$(tr -d ' ' <"/proc/$outer/task/$outer/children")
	# In words: until it is process 1, systemctl says that it ignores this, and ends with 0.
	[ -n "$boot" ] && [ "$(beside systemctl is-active basic.target)" = active ]
}

# A control group of its own in the hierarchy that a modern systemd wants, wherever
# this machine has it.
make_group() {
	mkdir "$work/cgroup"
	mount -t cgroup2 cgroup2 "$work/cgroup" 2>/dev/null || die "no control groups of version 2 here" 3
	mkdir "$work/cgroup/ntcopy-test-$$" 2>/dev/null || die "no control group of one's own here" 3
	group=$work/cgroup/ntcopy-test-$$
	echo $$ >"$group/cgroup.procs"
}

# The command, beside a systemd that is booted for it.
run_beside() {
	work=$(mktemp -d)
	boot=
	group=
	trap clear_up EXIT
	trap 'exit 130' INT TERM HUP
	make_group
	unshare --cgroup --pid --fork --net --uts --ipc --mount --propagation private true 2>/dev/null ||
		die "no namespaces of one's own here" 3
	NTCOPY_BOOT=inside unshare --cgroup --pid --fork --kill-child --net --uts --ipc --mount \
		--propagation private "$0" "$root" >"$work/log" 2>&1 &
	outer=$!
	tries=0
	until is_up 2>/dev/null; do
		tries=$((tries + 1))
		if [ "$tries" -ge 150 ] || ! kill -0 "$outer" 2>/dev/null; then
			tail -n 20 "$work/log" >&2
			die "systemd did not come up" 3
		fi
		sleep 0.2
	done
	result=0
	[ $# = 0 ] || beside "$@" || result=$?
	# Its last units end, and leave their folders as they would at any shutdown.
	beside systemctl --no-block exit >/dev/null 2>&1 || true
	tries=0
	while kill -0 "$outer" 2>/dev/null && [ "$tries" -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	exit "$result"
}

case ${NTCOPY_BOOT:-} in
inside) boot_here ;;
apart) run_beside "$@" ;;
*) exec unshare --mount --propagation private env NTCOPY_BOOT=apart "$0" "$root" "$@" ;;
esac
