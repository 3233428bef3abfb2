#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# nginx and HAProxy as Debian 12 has them, started under `ntcopy run` by the drop-ins of
# `ntcopy advise --apply DIR --unit`, in a Debian of its own whose systemd is booted:
# packaging/test/units.sh says what is looked at. Needs root for chroot; the host's
# units and packages are not touched.
#
# usage: scripts/test-units.sh [PACKAGES]      default: out/dist
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
tests=$root/packaging/test
packages=$(cd "${1:-$root/out/dist}" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
package=ntcopy_${version}_amd64.deb

die() {
	echo "test-units: $1" >&2
	exit "${2:-1}"
}

[ "$(id -u)" = 0 ] || die "needs root, for debootstrap and chroot" 3
command -v debootstrap >/dev/null 2>&1 || die "debootstrap is missing: scripts/setup.sh dist" 3
[ -s "$packages/$package" ] || die "there is no $packages/$package: 'make dist' makes it"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/ntcopy-test-units-XXXXXX")
debian=$work/debian
clear_up() {
	umount -l "$debian/proc" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

base=$("$tests/debian-root.sh")
cp -a --reflink=auto "$base" "$debian"
mount -t proc proc "$debian/proc"
mkdir "$debian/root/packages"
cp "$packages/$package" "$tests/units.sh" "$debian/root/packages/"
for command in "update -q" "install -yq --no-install-recommends /root/packages/$package nginx-light haproxy"; do
	# shellcheck disable=SC2086 # a list of words
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C \
		chroot "$debian" apt-get $command >"$work/log" 2>&1 || {
		tail -n 40 "$work/log" >&2
		die "apt-get $command failed"
	}
done
umount "$debian/proc"
"$tests/booted.sh" "$debian" /root/packages/units.sh
