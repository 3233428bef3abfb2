#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds ntcopy-dkms_<version>_all.deb: the module's sources, for DKMS. The same
# commit gives the same bytes. lintian must have nothing to say of it.
#
# usage: scripts/dist.sh [DIR]     default: out/dist
#
# SOURCE_DATE_EPOCH   the time that the package's files carry; else the commit's
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/out/dist}
package=ntcopy-dkms
packaging=$root/packaging/$package
module=$root/kernel/module

die() {
	echo "dist: $*" >&2
	exit 1
}

command -v dpkg-deb >/dev/null 2>&1 || {
	echo "dist: dpkg-deb is missing: scripts/setup.sh dist" >&2
	exit 3
}
version=$(sed -n 's/^#define NTCOPY_VERSION[[:space:]]*"\(.*\)"/\1/p' "$module/module.h")
[ -n "$version" ] || die "kernel/module/module.h defines no NTCOPY_VERSION"
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || true)}
[ -n "$epoch" ] || die "no commit whose time the package could carry; set SOURCE_DATE_EPOCH"
export SOURCE_DATE_EPOCH="$epoch"

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-dist-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
tree=$work/tree
source=$tree/usr/src/ntcopy-$version
doc=$tree/usr/share/doc/$package
umask 022
mkdir -p "$source" "$doc" "$tree/DEBIAN"

# What a build left in the source stays out.
(cd "$module" && find . -type f \( -name '*.[chS]' -o -name Kbuild -o -name Makefile \) \
	! -name '*.mod.c' ! -path './.*/*') | while read -r name; do
	install -D -m 644 "$module/$name" "$source/$name"
done
install -m 644 "$root/uapi/ntcopy.h" "$source/ntcopy.h"

# fill FILE MODE TARGET
fill() {
	sed -e "s/@VERSION@/$version/g" -e "s/@SIZE@/$(du -sk "$tree/usr" | cut -f1)/" \
		"$1" >"$3"
	chmod "$2" "$3"
}
fill "$module/dkms.conf" 644 "$source/dkms.conf"
fill "$packaging/copyright" 644 "$doc/copyright"
fill "$packaging/README.Debian" 644 "$doc/README.Debian"
{
	echo "ntcopy ($version) unstable; urgency=medium"
	echo
	echo "  * The module of ntcopy $version; its CHANGELOG.md says what is new."
	echo
	echo " -- $(sed -n 's/^Maintainer: //p' "$packaging/control")  $(date -u -R -d "@$epoch")"
} | gzip -9n >"$doc/changelog.gz"
fill "$packaging/postinst" 755 "$tree/DEBIAN/postinst"
fill "$packaging/prerm" 755 "$tree/DEBIAN/prerm"
(cd "$tree" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$tree/DEBIAN/md5sums"
fill "$packaging/control" 644 "$tree/DEBIAN/control"
find "$tree" -exec touch -h -d "@$epoch" {} +

mkdir -p "$out"
deb=$out/${package}_${version}_all.deb
dpkg-deb --root-owner-group -Zxz --build "$tree" "$deb" >/dev/null
echo "dist: $deb ($(du -k "$deb" | cut -f1) KiB), $(sha256sum "$deb" | cut -c1-16)"

if command -v lintian >/dev/null 2>&1; then
	said=$(lintian --no-cfg --allow-root --display-info --fail-on error,warning,info "$deb" 2>&1) || {
		echo "$said" >&2
		die "lintian refuses it"
	}
	[ -z "$said" ] || echo "$said"
	echo "dist: lintian has nothing to say"
else
	echo "dist: lintian was not asked: it is not installed (scripts/setup.sh dist)"
fi
