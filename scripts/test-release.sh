#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What a user does with a release, in a Debian 12 and a Debian 13 that know nothing:
# adds the flat repository, which is served over HTTP on the loopback, `apt install
# ntcopy`, `ntcopy probe`, upgrades, purges without a trace. And what must be refused:
# an index that was changed, one that is signed with another key, a package whose sum
# is another; a version that was published once and comes out differently; a key that
# is not there. Keys are made for this and thrown away. Needs root for chroot; the
# host's packages, keys and settings are not touched.
#
# The earlier release is this one's packages with its number: packaging/test/earlier.sh.
#
# usage: scripts/test-release.sh [PACKAGES] [SUITE]...
#
# PACKAGES   a folder of `make dist`; default: out/dist
# SUITE      bookworm, trixie; default: both
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
tests=$root/packaging/test
earlier=0.1.0
packages=$(cd "${1:-$root/out/dist}" && pwd)
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- bookworm trixie

say() {
	echo "test-release: $*"
}

die() {
	echo "test-release: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || {
	echo "test-release: needs root, for debootstrap and chroot" >&2
	exit 3
}
for tool in debootstrap chroot gpg apt-ftparchive python3; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "test-release: $tool is missing: scripts/setup.sh dist" >&2
		exit 3
	}
done
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
[ -s "$packages/ntcopy_${version}_amd64.deb" ] || die "there is no $packages/ntcopy_${version}_amd64.deb"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/ntcopy-test-release-XXXXXX")
debian=$work/debian
server=
clear_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	umount -l "$debian/proc" 2>/dev/null || true
	for home in "$work/keys" "$work/others"; do
		[ ! -d "$home" ] || GNUPGHOME=$home gpgconf --kill all 2>/dev/null || true
	done
	rm -rf --one-file-system "$work"
}
trap clear_up EXIT
trap 'exit 130' INT TERM HUP

# quietly COMMAND...: shows the end of what it said if it fails.
quietly() {
	"$@" >"$work/log" 2>&1 || {
		tail -n 40 "$work/log" >&2
		die "failed: $*"
	}
}

# refused WORDS COMMAND...: the command fails, and says the words.
refused() {
	words=$1
	shift
	! "$@" >"$work/log" 2>&1 || die "was not refused: $*"
	grep -q "$words" "$work/log" || {
		tail -n 20 "$work/log" >&2
		die "does not say '$words': $*"
	}
	say "refused: $(grep -m 1 "$words" "$work/log" | cut -c1-150)"
}

inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
		LC_ALL=C chroot "$debian" "$@"
}

# in_repo HOME KEY PACKAGES: makes or renews the repository by a key of that folder of keys.
in_repo() {
	GNUPGHOME=$1 "$root/scripts/apt-repo.sh" "$work/repo" "$2" "$3"
}

make_keys() {
	for home in keys others; do
		install -d -m 700 "$work/$home"
		GNUPGHOME=$work/$home quietly gpg --batch --passphrase '' --quick-gen-key \
			"$home of a test <$home@example.org>" ed25519 sign 2d
	done
}

serve() {
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	python3 -m http.server --bind 127.0.0.1 --directory "$work/repo" "$port" >"$work/server.log" 2>&1 &
	server=$!
}

# The repository after a change: apt must not take it. HOW CHANGE...
tampered() {
	how=$1
	shift
	cp -a "$work/repo" "$work/kept"
	"$@"
	# What apt has kept of the good index and its packages must not hide it.
	rm -rf "$debian/var/lib/apt/lists"/*127.0.0.1* "$debian"/var/cache/apt/*.bin
	inside apt-get clean
	if [ "$how" = index ]; then
		refused 'signature\|NO_PUBKEY\|not signed' inside apt-get update --error-on=any
		refused 'Unable to locate package\|has no installation candidate' inside apt-get install -yq ntcopy
	else
		quietly inside apt-get update -q
		refused 'Hash Sum mismatch\|unexpected size\|expected hash\|Mirror sync' inside apt-get install -yq ntcopy
	fi
	# Nothing half-installed stays.
	! inside dpkg-query -W ntcopy >/dev/null 2>&1 || die "something of it is installed"
	rm -rf "$work/repo"
	mv "$work/kept" "$work/repo"
	quietly inside apt-get update -q
}

change_index() {
	sed -i 's/^Label: ntcopy/Label: another/' "$work/repo/InRelease" "$work/repo/Release"
}

change_signer() {
	rm "$work/repo/InRelease" "$work/repo/Release.gpg"
	in_repo "$work/others" others@example.org "$packages" >/dev/null
}

change_package() {
	printf 'x' | dd of="$work/repo/ntcopy_${version}_amd64.deb" bs=1 seek=5000 conv=notrunc status=none
}

# use VERSION: that is installed, and works. The program says this version's number in any case.
use() {
	# shellcheck disable=SC2016 # dpkg expands it
	installed=$(inside dpkg-query -W -f '${Version}' ntcopy)
	[ "$installed" = "$1" ] || die "this is not $1: $installed"
	[ "$(inside ntcopy --version)" = "ntcopy $version" ] || die "ntcopy --version: $(inside ntcopy --version)"
	inside ntcopy probe >"$work/probe" || die "ntcopy probe fails"
	grep -q MSG_NTCOPY "$work/probe" || die "ntcopy probe does not name the flag"
}

try_suite() {
	suite=$1
	base=$("$tests/debian-root.sh" bare "$suite")
	rm -rf --one-file-system "$debian" "$work/repo" "$work/earlier"
	cp -a --reflink=auto "$base" "$debian"
	mount -t proc proc "$debian/proc"
	say "$suite: $(cat "$debian/etc/debian_version"), $(inside dpkg-query -W | wc -l) packages"

	"$tests/earlier.sh" "$packages" "$version" "$earlier" "$work/earlier"
	in_repo "$work/keys" keys@example.org "$work/earlier"
	install -m 644 "$work/repo/ntcopy-archive-keyring.gpg" "$debian/usr/share/keyrings/"
	echo "deb [signed-by=/usr/share/keyrings/ntcopy-archive-keyring.gpg] http://127.0.0.1:$port/ ./" \
		>"$debian/etc/apt/sources.list.d/ntcopy.list"
	quietly inside apt-get update -q
	quietly inside apt-get upgrade -yq
	# What ntcopy depends on comes first, so that a trace is one of ntcopy's.
	needed=$(inside apt-get install -s --no-install-recommends ntcopy libntcopy-dev |
		sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -v ntcopy || true)
	# shellcheck disable=SC2086 # a list of names
	[ -z "$needed" ] || quietly inside apt-get install -yq --no-install-recommends $needed
	"$tests/snapshot.sh" "$debian" >"$work/before"

	say "$suite: apt install ntcopy"
	quietly inside apt-get install -yq --no-install-recommends ntcopy libntcopy-dev
	use "$earlier"
	say "$suite: upgrade"
	echo '# changed by hand' >>"$debian/etc/storaged/storaged.toml"
	in_repo "$work/keys" keys@example.org "$packages" >/dev/null
	quietly inside apt-get update -q
	quietly inside apt-get upgrade -yq
	use "$version"
	grep -q 'changed by hand' "$debian/etc/storaged/storaged.toml" || die "settings were overwritten"
	inside apt-cache policy ntcopy | grep -q "^ *$earlier " || [ -e "$work/repo/ntcopy_${earlier}_amd64.deb" ] ||
		die "the earlier version is gone from the repository"
	say "$suite: purge"
	quietly inside apt-get purge -yq ntcopy libntcopy-dev libntcopy0
	"$tests/snapshot.sh" "$debian" >"$work/after"
	diff "$work/before" "$work/after" >"$work/difference" || {
		cat "$work/difference" >&2
		die "the purge left or changed these (before <, after >)"
	}

	say "$suite: what apt must refuse"
	tampered index change_index
	tampered index change_signer
	tampered package change_package
	quietly inside apt-get install -yq --no-install-recommends ntcopy
	use "$version"
	umount -l "$debian/proc"
}

# What scripts/apt-repo.sh must refuse, with the repository as it was.
refused_here() {
	sums=$(cd "$work/repo" && find . -type f -exec sha256sum {} + | sort)
	refused "no secret key" in_repo "$work/keys" nobody@example.org "$packages"
	refused "no packages in" in_repo "$work/keys" keys@example.org "$work"
	mkdir "$work/other"
	cp "$packages/ntcopy_${version}_amd64.deb" "$work/other/"
	printf 'x' >>"$work/other/ntcopy_${version}_amd64.deb"
	refused "never changes" in_repo "$work/keys" keys@example.org "$work/other"
	[ "$(cd "$work/repo" && find . -type f -exec sha256sum {} + | sort)" = "$sums" ] ||
		die "what was refused has changed the repository"
	[ -z "$(find "$work/repo" -name '.new-*')" ] || die "something half-made is left in the repository"
}

make_keys
mkdir "$work/repo"
serve
for suite; do
	try_suite "$suite"
done
refused_here
say "done: $version on $*"
