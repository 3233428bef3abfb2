#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes or renews a flat apt repository: the packages, Packages and Packages.gz,
# Release with sums and a date until which it is valid, InRelease and Release.gpg by
# a key of yours, and the public half of that key. Any web server, or a folder, can
# offer DIR. Earlier versions that are in DIR stay, so that a client may go back.
#
# The index is made and signed aside, and put in place at the end: where something
# fails, what was there is as it was.
#
# usage: scripts/apt-repo.sh DIR KEY [PACKAGES]
#
# KEY        a key of gpg's that can sign: its fingerprint, or the user's address
# PACKAGES   a folder of .deb files; default: out/dist
# GNUPGHOME  where gpg has its keys
#
# exit codes: 1 failed; 2 usage, or no such key; 3 a tool is missing
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# Clients refuse an index that is older than that: an attacker may be withholding the newer one.
valid_days=365

die() {
	echo "apt-repo: $1" >&2
	exit "${2:-1}"
}

if [ -z "${1:-}" ] || [ -z "${2:-}" ]; then
	die "usage: scripts/apt-repo.sh DIR KEY [PACKAGES]; make apt-repo DIR=/srv/apt KEY=you@example.org" 2
fi
repo=$1
key=$2
packages=${3:-$root/out/dist}
for tool in apt-ftparchive gpg gzip; do
	command -v "$tool" >/dev/null 2>&1 || die "$tool is missing: scripts/setup.sh dist" 3
done
ls "$packages"/*.deb >/dev/null 2>&1 || die "no packages in $packages: 'make dist' makes them"
gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 ||
	die "gpg has no secret key '$key' ('gpg --list-secret-keys' lists them, 'gpg --quick-gen-key' makes one)" 2

mkdir -p "$repo"
repo=$(cd "$repo" && pwd)
# The same file system, so that what is finished only has to be renamed.
work=$(mktemp -d "$repo/.new-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
umask 022

# One file name, one content: a version that changed would be another on each machine.
for deb in "$packages"/*.deb; do
	kept=$repo/$(basename "$deb")
	[ ! -e "$kept" ] || cmp -s "$deb" "$kept" ||
		die "$kept is there, and is another one: a version that was published never changes"
done
# Old and new in one folder, as the repository will be: apt-ftparchive goes by where a file is.
mkdir "$work/all"
for deb in "$repo"/*.deb "$packages"/*.deb; do
	name=$work/all/$(basename "$deb")
	[ ! -e "$deb" ] || [ -e "$name" ] || ln "$deb" "$name" 2>/dev/null || cp "$deb" "$name"
done
(cd "$work/all" && apt-ftparchive packages .) >"$work/Packages" || die "apt-ftparchive packages failed"
[ -s "$work/Packages" ] || die "apt-ftparchive found no package"
gzip -9nk "$work/Packages"
mkdir "$work/index"
mv "$work/Packages" "$work/Packages.gz" "$work/index/"
(
	cd "$work/index"
	apt-ftparchive \
		-o APT::FTPArchive::Release::Origin=ntcopy -o APT::FTPArchive::Release::Label=ntcopy \
		-o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Architectures=amd64 \
		-o "APT::FTPArchive::Release::Valid-Until=$(LC_ALL=C date -u -R -d "+$valid_days days" | sed 's/+0000/UTC/')" \
		release . >"$work/Release"
) || die "apt-ftparchive release failed"
mv "$work/Release" "$work/index/Release"
gpg --batch --yes --local-user "$key" --digest-algo SHA512 --armor --detach-sign \
	--output "$work/index/Release.gpg" "$work/index/Release" || die "gpg did not sign"
gpg --batch --yes --local-user "$key" --digest-algo SHA512 --clearsign \
	--output "$work/index/InRelease" "$work/index/Release" || die "gpg did not sign"
gpg --batch --export "$key" >"$work/index/ntcopy-archive-keyring.gpg"

# The packages first: an index names only what is there. InRelease last: it is what clients ask for.
for deb in "$packages"/*.deb; do
	name=$(basename "$deb")
	[ -e "$repo/$name" ] || { cp "$deb" "$work/$name" && chmod 644 "$work/$name" && mv "$work/$name" "$repo/$name"; }
done
for file in ntcopy-archive-keyring.gpg Packages Packages.gz Release Release.gpg InRelease; do
	mv "$work/index/$file" "$repo/$file"
done
cat <<SAY
apt-repo: $repo has $(grep -c '^Package: ' "$repo/Packages") packages, signed by $key. On each machine, once:
    sudo install -m 644 ntcopy-archive-keyring.gpg /usr/share/keyrings/
    echo 'deb [signed-by=/usr/share/keyrings/ntcopy-archive-keyring.gpg] URL/ ./' | sudo tee /etc/apt/sources.list.d/ntcopy.list
    sudo apt update && sudo apt install ntcopy
SAY
