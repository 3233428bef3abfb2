#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes an OCI image: what this system's Debian packages of the C library, busybox and
# certificates hold; ntcopy's own package; and a user-mode kernel with the flag, so that
# `ntcopy bench NAME --kernel um` builds nothing in the container. Needs no daemon, no
# root and no chroot: packages are fetched by apt-get and unpacked. The container runs
# as a user of its own, and needs no privilege.
#
# Leaves an image layout in DIR and the same as one file, DIR.tar, for `podman load`,
# `ctr image import` and `skopeo copy oci:DIR`.
#
# usage: scripts/image.sh [DIR] [PACKAGES]      default: out/image out/dist
#
# SOURCE_DATE_EPOCH   the time that all files carry; else the commit's
# NTCOPY_CACHE        where the kernel is kept that goes in; default ~/.cache/ntcopy
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/out/image}
packages=${2:-$root/out/dist}
base_packages="base-files libc6 libgcc-s1 busybox-static ca-certificates"

die() {
	echo "image: $1" >&2
	exit "${2:-1}"
}

for tool in apt-get dpkg-deb python3 tar; do
	command -v "$tool" >/dev/null 2>&1 || die "$tool is missing" 3
done
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
package=$packages/ntcopy_${version}_amd64.deb
[ -s "$package" ] || die "there is no $package: 'make dist' makes it"
epoch=${SOURCE_DATE_EPOCH:-$(git -c safe.directory="$root" -C "$root" log -1 --format=%ct)}

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-image-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
umask 022
mkdir -p "$work/debs" "$work/base" "$work/own"

# unpack DEB FOLDER: keeps /lib a link to /usr/lib, as in any Debian.
unpack() {
	dpkg-deb --fsys-tarfile "$1" | tar -C "$2" -x --no-same-owner --keep-directory-symlink
}

for folder in bin sbin lib lib64; do
	mkdir -p "$work/base/usr/$folder" "$work/own/usr/$folder"
	ln -s "usr/$folder" "$work/base/$folder"
done
# shellcheck disable=SC2086 # a list of names
(cd "$work/debs" && apt-get download -q $base_packages >"$work/log" 2>&1) || {
	cat "$work/log" >&2
	die "apt-get can't fetch $base_packages: 'apt-get update' first?"
}
for deb in "$work"/debs/*.deb; do
	unpack "$deb" "$work/base"
done
rm -rf "$work/base/usr/share/doc" "$work/base/usr/share/man" "$work/base/usr/share/locale" \
	"$work/base/usr/share/lintian" "$work/base/usr/lib/x86_64-linux-gnu/gconv"
for name in sh cat echo env ls mkdir sleep id grep sed; do
	ln -sf busybox "$work/base/usr/bin/$name"
done
mkdir -p "$work/base/etc/ssl/certs"
find "$work/base/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat \
	>"$work/base/etc/ssl/certs/ca-certificates.crt"
# A number that no user of the host has, as images without root commonly have it.
printf 'root:x:0:0::/:/bin/sh\nntcopy:x:65532:65532::/tmp:/bin/sh\n' >"$work/base/etc/passwd"
printf 'root:x:0:\nntcopy:x:65532:\n' >"$work/base/etc/group"
for folder in proc sys dev run tmp var/tmp; do
	mkdir -p "$work/base/$folder"
done
chmod 1777 "$work/base/tmp" "$work/base/var/tmp"

unpack "$package" "$work/own"
rm -rf "$work/own/usr/share/man" "$work/own/usr/share/lintian" "$work/own/usr/lib/systemd" \
	"$work/own/lib" "$work/own/usr/share/zsh" "$work/own/usr/share/fish" "$work/own/usr/share/bash-completion"
find "$work/own" -depth -type d -empty -delete
# The kernel as the packed program would look it up.
kernel=$("$work/own/usr/bin/ntcopy" kernel build --kernel um) || die "no kernel: see above" $?
cache=$work/own/usr/lib/ntcopy/cache/kernels
mkdir -p "$cache"
cp -R "$(dirname "$kernel")" "$cache/"
rm -f "$cache"/*/build.log
find "$work/base" "$work/own" -type d -exec chmod u+rwx,go+rx {} +

cat >"$work/config.json" <<CONFIG
{
  "name": "$version", "created": $epoch, "architecture": "amd64",
  "annotations": {
    "org.opencontainers.image.title": "ntcopy",
    "org.opencontainers.image.version": "$version",
    "org.opencontainers.image.licenses": "(MIT OR Apache-2.0) AND GPL-2.0-only"
  },
  "config": {
    "User": "65532:65532",
    "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "NTCOPY_CACHE=/usr/lib/ntcopy/cache"],
    "Entrypoint": ["/usr/bin/ntcopy"],
    "Cmd": ["probe"],
    "WorkingDir": "/tmp"
  }
}
CONFIG
"$root/scripts/image.py" "$out" "$work/config.json" "$work/base" "$work/own"
tar -C "$out" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner -cf "$out.tar" .
echo "image: $out.tar ($(du -k "$out.tar" | cut -f1) KiB), kernel $(basename "$(dirname "$kernel")")"
