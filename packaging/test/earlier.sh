#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The packages as an earlier version would have been: its number, also of the module.
# What is in them is this version's.
#
# usage: packaging/test/earlier.sh PACKAGES VERSION EARLIER OUT
set -eu

packages=$1
version=$2
earlier=$3
out=$4

work=$(mktemp -d "${TMPDIR:-/var/tmp}/ntcopy-earlier-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$out"
pattern=$(echo "$version" | sed 's/\./\\./g')
for deb in "$packages"/*.deb; do
	rm -rf "$work/repacked"
	dpkg-deb -R "$deb" "$work/repacked"
	rm "$work/repacked/DEBIAN/md5sums"
	sources=$work/repacked/usr/src/ntcopy
	[ ! -d "$sources-$version" ] || {
		mv "$sources-$version" "$sources-$earlier"
		sed -i "s/$pattern/$earlier/" "$sources-$earlier/dkms.conf" "$sources-$earlier/module.h" \
			"$work/repacked/DEBIAN/postinst" "$work/repacked/DEBIAN/prerm"
	}
	sed -i "s/$pattern/$earlier/" "$work/repacked/DEBIAN/control"
	name=$(basename "$deb" | sed "s/_${pattern}_/_${earlier}_/")
	dpkg-deb -b "$work/repacked" "$out/$name" >/dev/null
done
