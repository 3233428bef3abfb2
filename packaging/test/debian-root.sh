#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes a Debian 12 in which packages are tried: the base system, DKMS with the
# headers of the newest 6.12 and of a 6.1, a C compiler, systemd, man, the shells
# that completions are for, and little else. Or a release that has the base system
# alone and knows nothing. It is made once, kept below the cache, and made anew after
# 30 days.
# Prints its folder. Needs root; the host is not changed.
#
# usage: packaging/test/debian-root.sh
#        packaging/test/debian-root.sh bare bookworm|trixie
#
# NTCOPY_CACHE   where it is kept; default ~/.cache/ntcopy
set -eu

case ${1:-} in
bare)
	suite=$2
	name=bare-$suite
	packages=
	;;
*)
	suite=bookworm
	name=$suite
	packages="dkms systemd man-db gcc libc6-dev pkgconf curl strace iproute2 ca-certificates zsh fish"
	;;
esac
cache=$("$(dirname "$0")/../../scripts/cache.sh")/debian

die() {
	echo "debian-root: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || {
	echo "debian-root: needs root, for debootstrap and chroot" >&2
	exit 3
}

# The mirror that apt uses here for Debian itself.
mirror=$(apt-cache policy 2>/dev/null |
	sed -n 's|.* \(https\{0,1\}://[^ ]*/debian\) [a-z]*/main .*|\1|p' | head -n 1)
[ -n "$mirror" ] || {
	echo "debian-root: apt has no list of a Debian mirror: run 'apt-get update', as root" >&2
	exit 3
}
# Another list of packages, another way of making it: another folder.
key=$({ echo "$packages"; cat "$0"; } | sha256sum | cut -c1-12)
base=$cache/$name-$key
if [ -n "$(find "$base/made" -mtime -30 2>/dev/null)" ]; then
	echo "$base/root"
	exit 0
fi

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ -n "$(find "$base/made" -mtime -30 2>/dev/null)" ]; then
	echo "$base/root"
	exit 0
fi
partial=$(mktemp -d "$cache/partial-XXXXXX")
root=$partial/root
clear_up() {
	umount -l "$root/proc" 2>/dev/null || true
	rm -rf --one-file-system "$partial"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
		LC_ALL=C chroot "$root" "$@"
}

quietly() {
	"$@" >"$partial/log" 2>&1 || {
		tail -n 40 "$partial/log" >&2
		die "failed: $*"
	}
}

echo "debian-root: a Debian ($name) from $mirror, to be kept in $cache" >&2
quietly debootstrap --variant=minbase "$suite" "$root" "$mirror"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -d /etc/apt/apt.conf.d ] || cp -r /etc/apt/apt.conf.d "$root/etc/apt/"
rm -f "$root"/etc/apt/apt.conf.d/docker*
[ ! -e /usr/local/share/ca-certificates ] ||
	cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
{
	echo "deb $mirror $suite main"
	echo "deb $mirror-security $suite-security main"
} >"$root/etc/apt/sources.list"
# No daemon of that Debian is started here.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
quietly inside apt-get update -q
if [ -n "$packages" ]; then
	newer=$(inside apt-cache pkgnames linux-headers-6.12. |
		grep '^linux-headers-6\.12\.[0-9]*+deb12-cloud-amd64$' | sort -V | tail -n 1)
	older=$(inside apt-cache pkgnames linux-headers-6.1.0- |
		grep '^linux-headers-6\.1\.0-[0-9]*-cloud-amd64$' | sort -V | tail -n 1)
	[ -n "$newer" ] || die "the mirror has no headers of 6.12"
	[ -n "$older" ] || die "the mirror has no headers of 6.1"
	# shellcheck disable=SC2086 # a list of names
	quietly inside apt-get install -yq --no-install-recommends $packages "$newer" "$older"
	# The kernel that the module is for, and the one that it is not for.
	printf '%s\n' "${newer#linux-headers-}" "${older#linux-headers-}" >"$partial/kernels"
fi
inside apt-get clean
umount "$root/proc"
rm -f "$partial/log"
touch "$partial/made"
rm -rf --one-file-system "$cache/$name"-*
mv "$partial" "$base"
trap - EXIT
echo "$base/root"
