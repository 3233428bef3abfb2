#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds what `make dist` builds, twice, and tries it in a Debian 12 of its own
# below $TMPDIR (else /var/tmp): installs it, uses it, runs the daemons within
# their units' settings, looks what DKMS made of the module, purges all of it
# without a trace, and does so after an upgrade of an earlier version, too. Needs
# root for chroot; the host's modules, DKMS, users and units are not touched, and
# the folder is removed at the end.
#
# Also packs the library's crate, and builds it as it is packed.
#
# usage: scripts/test-dist.sh [DIR]
#
# DIR: try these packages, of `make dist`, and don't build any
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
tests=$root/packaging/test
# A tenth of what systemd thinks of a service without any of this is 9.6.
exposure_max=20
# What the packages are an upgrade of.
earlier=0.1.0

say() {
	echo "test-dist: $*"
}

die() {
	echo "test-dist: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || {
	echo "test-dist: needs root, for debootstrap and chroot" >&2
	exit 3
}
for tool in cargo debootstrap dpkg-deb chroot unshare readelf; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "test-dist: $tool is missing: scripts/setup.sh dist" >&2
		exit 3
	}
done

work=$(mktemp -d "${TMPDIR:-/var/tmp}/ntcopy-test-dist-XXXXXX")
debian=$work/debian
clear_up() {
	for mounted in proc sys; do
		umount -l "$debian/$mounted" 2>/dev/null || true
	done
	rm -rf --one-file-system "$work"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

# inside COMMAND...: in that Debian, without a terminal or the host's locale.
inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
		LC_ALL=C chroot "$debian" "$@"
}

# quietly LOG COMMAND...: shows the log if the command fails.
quietly() {
	log=$1
	shift
	"$@" >"$work/$log.log" 2>&1 || {
		tail -n 40 "$work/$log.log" >&2
		die "failed: $*"
	}
}

check_binaries() {
	for deb in "$packages"/*_amd64.deb; do
		dpkg-deb -x "$deb" "$work/unpacked"
	done
	for file in usr/bin/ntcopy usr/sbin/storaged usr/sbin/proxyd usr/lib/ntcopy/libntcopy-preload.so \
		usr/lib/x86_64-linux-gnu/libntcopy.so.0; do
		about=$(readelf -Whld "$work/unpacked/$file")
		case $about in
		*DYN*GNU_RELRO*BIND_NOW* | *DYN*GNU_RELRO*"FLAGS_1"*NOW*) ;;
		*) die "$file is not position-independent with full RELRO" ;;
		esac
		! readelf -WS "$work/unpacked/$file" | grep -q '\.symtab' || die "$file is not stripped"
		! grep -q "${TMPDIR:-/tmp}/ntcopy" "$work/unpacked/$file" ||
			die "$file has the path of the folder in which it was built"
	done
	rm -rf "$work/unpacked"
}

check_dkms() {
	release=$(sed -n 1p "$base/../kernels")
	old_release=$(sed -n 2p "$base/../kernels")
	status=$(inside dkms status 2>/dev/null)
	say "dkms status: $status"
	case $status in
	*"ntcopy/$version, $release, x86_64: installed"*) ;;
	*)
		cat "$work/install.log" "$debian/var/lib/dkms/ntcopy/$version/build/make.log" >&2 || true
		die "DKMS did not build it for $release"
		;;
	esac
	case $status in
	*"$old_release"*) die "DKMS took it for $old_release, for which it is not" ;;
	esac
	# What each kernel's package calls when it is configured.
	for kernel in "$old_release" "$release"; do
		quietly hook inside /etc/kernel/postinst.d/dkms "$kernel"
	done
	[ "$(inside dkms status 2>/dev/null)" = "$status" ] ||
		die "after the hook of the kernels' packages: $(inside dkms status 2>/dev/null)"
	module=$(find "$debian/lib/modules/$release/updates/dkms" -name 'ntcopy.ko*')
	[ -n "$module" ] || die "there is no module below /lib/modules/$release/updates/dkms"
	[ "$(inside modinfo -k "$release" -F version ntcopy)" = "$version" ] ||
		die "modinfo of $release names another version than $version"
	case $(inside modinfo -k "$release" -F vermagic ntcopy) in
	"$release "*) ;;
	*) die "the module is not for $release" ;;
	esac
}

check_units() {
	for unit in storaged proxyd; do
		file=$(find "$debian/lib/systemd/system" "$debian/usr/lib/systemd/system" -name "$unit.service" |
			head -n 1)
		[ -n "$file" ] || die "there is no unit $unit.service"
		file=${file#"$debian"}
		quietly verify inside systemd-analyze verify --man=no "$file"
		[ ! -s "$work/verify.log" ] || die "systemd on $unit.service: $(cat "$work/verify.log")"
		quietly security inside systemd-analyze security --offline=yes --no-pager \
			--threshold="$exposure_max" "$file"
		say "$unit.service: $(grep -o 'Overall exposure.*[0-9]' "$work/security.log")"
		[ ! -e "$debian/etc/systemd/system/multi-user.target.wants/$unit.service" ] ||
			die "$unit.service was enabled, and that was not asked for"
		quietly verify inside systemd-analyze verify --man=no "${file%.service}.socket"
		[ ! -s "$work/verify.log" ] || die "systemd on $unit.socket: $(cat "$work/verify.log")"
	done
	inside getent passwd _storaged >/dev/null || die "there is no user _storaged"
	inside getent group ntcopy >/dev/null || die "there is no group ntcopy"
	[ -f "$debian/usr/lib/udev/rules.d/60-ntcopy-dkms.rules" ] ||
		die "there is no udev rule for /dev/ntcopy"
}

check_settings_stay() {
	echo '# changed by hand' >>"$debian/etc/storaged/storaged.toml"
	quietly again inside sh -c 'apt-get install -yq --reinstall /root/packages/*.deb'
	grep -q 'changed by hand' "$debian/etc/storaged/storaged.toml" ||
		die "installed again, the settings of storaged were overwritten"
	[ "$(inside dkms status 2>/dev/null)" = "$status" ] || die "after that: $(inside dkms status 2>/dev/null)"
}

check_upgrade() {
	"$tests/earlier.sh" "$packages" "$version" "$earlier" "$debian/root/packages/earlier"
	quietly earlier inside sh -c 'apt-get install -yq --no-install-recommends /root/packages/earlier/*.deb'
	case $(inside dkms status 2>/dev/null) in
	*"ntcopy/$earlier, $release, x86_64: installed"*) ;;
	*) die "the earlier version was not built: $(inside dkms status 2>/dev/null)" ;;
	esac
	# shellcheck disable=SC2016 # the other shell expands it
	set -- sh -c 'exec /root/packages/upgrade.sh "$1" /root/packages/*.deb' upgrade
	if [ "$how" = systemd ]; then
		"$tests/booted.sh" "$debian" "$@" systemd
	else
		inside "$@" chroot
		# What the daemon would have made.
		mkdir -p "$debian/var/lib/storaged/objects"
	fi
	check_dkms
	[ -z "$(find "$debian/usr/src" "$debian/var/lib/dkms" -path "*$earlier*")" ] ||
		die "of the earlier module there is left: $(find "$debian/usr/src" "$debian/var/lib/dkms" -path "*$earlier*")"
}

check_purge() {
	# State that only the packages' programs have made.
	[ -d "$debian/var/lib/storaged/objects" ] || die "the daemon has left no state to purge"
	quietly purge inside apt-get purge -yq ntcopy ntcopy-dkms libntcopy-dev libntcopy0
	left=$(inside dkms status 2>/dev/null)
	[ -z "$left" ] || die "DKMS still has: $left"
	# shellcheck disable=SC2016 # dpkg expands it
	left=$(inside dpkg-query -W -f '${Package} ${Status}\n' | grep ntcopy || true)
	[ -z "$left" ] || die "dpkg still has: $left"
	"$tests/snapshot.sh" "$debian" >"$work/after"
	if ! diff "$work/before" "$work/after" >"$work/difference"; then
		cat "$work/difference" >&2
		die "the purge left or changed these (before <, after >)"
	fi
	left=$(find "$debian/var/log" "$debian/var/cache" "$debian/var/lib" "$debian/tmp" "$debian/run" \
		! -path '*/var/cache/apt/*' \( -name '*ntcopy*' -o -name '*storaged*' -o -name '*proxyd*' \))
	[ -z "$left" ] || die "the purge left: $left"
	! inside ldconfig -p | grep ntcopy >&2 || die "the loader still knows it"
}

say "the library's crate"
"$root/scripts/check-crate.sh"
if [ $# -gt 0 ]; then
	packages=$(cd "$1" && pwd)
else
	packages=$work/dist
	"$root/scripts/check-reproducible.sh" "$packages"
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
for name in "ntcopy_${version}_amd64.deb" "libntcopy0_${version}_amd64.deb" \
	"libntcopy-dev_${version}_amd64.deb" "ntcopy-dkms_${version}_all.deb"; do
	[ -s "$packages/$name" ] || die "there is no $packages/$name"
done
check_binaries

base=$("$tests/debian-root.sh")
say "a copy of $base"
cp -a --reflink=auto "$base" "$debian"
mount -t proc proc "$debian/proc"
mount -t sysfs -o ro sysfs "$debian/sys"
mkdir "$debian/root/packages"
cp "$packages"/*.deb "$tests/use.sh" "$tests/use.c" "$tests/daemons.sh" \
	"$tests/descriptors.sh" "$tests/upgrade.sh" "$debian/root/packages/"
(cd "$root/docs/man" && printf '%s\n' *.[1-8]) >"$debian/root/packages/pages"
# Its systemd boots once before, so that what that leaves is not taken for ours.
how=systemd
"$tests/booted.sh" "$debian" || {
	[ $? = 3 ] || die "systemd was booted, and failed"
	how=util-linux
}
"$tests/snapshot.sh" "$debian" >"$work/before"

say "install"
quietly install inside sh -c 'apt-get install -yq --no-install-recommends /root/packages/*.deb'
check_dkms
check_units
say "use"
inside /root/packages/use.sh "$version" /root/packages/use.c /root/packages/pages
say "daemons, each within its unit's settings"
# Without systemd: strace names each system call, and none may be outside the filter.
unshare --mount --net --propagation private "$tests/daemons.sh" "$debian" util-linux
if [ "$how" = systemd ]; then
	"$tests/booted.sh" "$debian" /root/packages/daemons.sh / systemd
else
	say "systemd can't be booted here: the units were not tried by it"
fi
say "installed again"
check_settings_stay
say "purge"
check_purge
say "an earlier version, upgraded, and purged"
check_upgrade
check_purge
say "done: $version for $release, not for $old_release, purged without a trace"
