#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs the package of scripts/dist.sh into a Debian 12 of its own, below
# $TMPDIR (else /var/tmp), beside the distribution's headers, and looks what
# DKMS made of it. Needs root for chroot; the host's modules and DKMS are not
# touched, and the folder is removed at the end.
#
# usage: scripts/test-dist.sh
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)

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
for tool in debootstrap dpkg-deb chroot; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "test-dist: $tool is missing: scripts/setup.sh dist" >&2
		exit 3
	}
done

# The mirror that apt uses here for Debian itself.
mirror=$(apt-cache policy 2>/dev/null |
	sed -n 's|.* \(https\{0,1\}://[^ ]*/debian\) [a-z]*/main .*|\1|p' | head -n 1)
[ -n "$mirror" ] || {
	echo "test-dist: apt has no list of a Debian mirror: run 'apt-get update', as root" >&2
	exit 3
}

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
		LC_ALL=C "${inside_env:-A=}" chroot "$debian" "$@"
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

say "package"
"$root/scripts/dist.sh" "$work/one" >"$work/dist.log" 2>&1 || {
	cat "$work/dist.log" >&2
	die "make dist failed"
}
"$root/scripts/dist.sh" "$work/two" >/dev/null 2>&1
deb=$(find "$work/one" -name '*.deb')
cmp "$deb" "$work/two/$(basename "$deb")" || die "the package did not come out the same twice"

say "a Debian 12 from $mirror"
quietly debootstrap debootstrap --variant=minbase bookworm "$debian" "$mirror"
mount -t proc proc "$debian/proc"
mount -t sysfs -o ro sysfs "$debian/sys"
cp /etc/resolv.conf "$debian/etc/resolv.conf"
[ ! -d /etc/apt/apt.conf.d ] || cp -r /etc/apt/apt.conf.d "$debian/etc/apt/"
rm -f "$debian"/etc/apt/apt.conf.d/docker*
[ ! -e /usr/local/share/ca-certificates ] ||
	cp -r /usr/local/share/ca-certificates "$debian/usr/local/share/"
{
	echo "deb $mirror bookworm main"
	echo "deb $mirror-security bookworm-security main"
} >"$debian/etc/apt/sources.list"
# No daemon of that Debian is started here.
printf '#!/bin/sh\nexit 101\n' >"$debian/usr/sbin/policy-rc.d"
chmod 755 "$debian/usr/sbin/policy-rc.d"
quietly update inside apt-get update -q

# The kernel that the module is for, and Debian 12's first, that it is not for.
newer=$(inside apt-cache pkgnames linux-headers-6.12. |
	grep '^linux-headers-6\.12\.[0-9]*+deb12-cloud-amd64$' | sort -V | tail -n 1)
older=$(inside apt-cache pkgnames linux-headers-6.1.0- |
	grep '^linux-headers-6\.1\.0-[0-9]*-cloud-amd64$' | sort -V | tail -n 1)
[ -n "$newer" ] || die "the mirror has no headers of 6.12"
[ -n "$older" ] || die "the mirror has no headers of 6.1"
say "dkms, $newer, $older"
quietly headers inside apt-get install -yq --no-install-recommends dkms "$newer" "$older"

find "$debian" -xdev -path "$debian/proc" -prune -o -print | sort >"$work/before"
say "$(basename "$deb")"
cp "$deb" "$debian/root/ntcopy-dkms.deb"
echo "$debian/root/ntcopy-dkms.deb" >>"$work/before"
sort -o "$work/before" "$work/before"
quietly install inside apt-get install -yq --no-install-recommends /root/ntcopy-dkms.deb

release=${newer#linux-headers-}
old_release=${older#linux-headers-}
version=$(dpkg-deb -f "$deb" Version)
status=$(inside dkms status)
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
module=$(find "$debian/lib/modules/$release/updates/dkms" -name 'ntcopy.ko*')
[ -n "$module" ] || die "there is no module below /lib/modules/$release/updates/dkms"
[ "$(inside modinfo -k "$release" -F version ntcopy)" = "$version" ] ||
	die "modinfo of $release names another version than $version"
case $(inside modinfo -k "$release" -F vermagic ntcopy) in
"$release "*) ;;
*) die "the module is not for $release" ;;
esac

say "installed again, and an upgrade over itself"
quietly again inside apt-get install -yq --reinstall /root/ntcopy-dkms.deb
[ "$(inside dkms status)" = "$status" ] || die "after that: $(inside dkms status)"

say "purge"
quietly purge inside apt-get purge -yq ntcopy-dkms
left=$(inside dkms status)
[ -z "$left" ] || die "DKMS still has: $left"
find "$debian" -xdev -path "$debian/proc" -prune -o -print | sort >"$work/after"
# What apt, dpkg and depmod keep of any package that came and went.
if comm -13 "$work/before" "$work/after" |
	sed "s|^$debian||" |
	grep -v -e '^/var/lib/dpkg/' -e '^/var/cache/apt/' -e '^/var/log/' -e '^/var/lib/apt/' >&2; then
	die "the purge left these"
fi
grep -rlsi ntcopy "$debian/etc" "$debian/lib/modules" "$debian/var/lib/dkms" >&2 &&
	die "the purge left its name there"
say "done: built for $release, not for $old_release, purged without a trace"
