#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the source tarball, which has all that a build without a network needs,
# and of nothing but that tarball the four Debian packages. The same commit and
# the same tools give the same bytes, in whatever folder. lintian must find
# neither errors nor warnings. packaging/README.md says why it is done this way.
#
# usage: scripts/dist.sh [DIR]     default: out/dist
#
# SOURCE_DATE_EPOCH   the time that all files carry; else the commit's
# TMPDIR              needs 6 GB while it builds
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/out/dist}

say() {
	echo "dist: $*"
}

die() {
	echo "dist: $*" >&2
	exit 1
}

for tool in cargo dh dpkg-buildpackage git tar xz; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "dist: $tool is missing: scripts/setup.sh build dist" >&2
		exit 3
	}
done

# git TREE COMMAND...: as the user would, whoever owns the folder.
in_git() {
	git -c safe.directory="$root" -C "$root" "$@"
}

in_git rev-parse --git-dir >/dev/null 2>&1 || {
	echo "dist: $root is no git checkout. What make dist has packed is built by" \
		"'dpkg-buildpackage -b' in it" >&2
	exit 3
}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
module=$(sed -n 's/^#define NTCOPY_VERSION[[:space:]]*"\(.*\)"/\1/p' "$root/kernel/module/module.h")
[ "$version" = "$module" ] ||
	die "Cargo.toml is of version '$version', kernel/module/module.h of '$module': make them one"
epoch=${SOURCE_DATE_EPOCH:-$(in_git log -1 --format=%ct)}
name=ntcopy-$version

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-dist-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
umask 022

# quietly LOG COMMAND...: shows the end of the log if the command fails.
quietly() {
	log=$work/$1.log
	shift
	"$@" >"$log" 2>&1 || {
		tail -n 60 "$log" >&2
		die "failed: $*"
	}
}

# The checkout as it is, without what git does not know, into a folder.
export_checkout() {
	[ -z "$(in_git --no-optional-locks status --porcelain)" ] || say "with changes that are not committed"
	mkdir -p "$1"
	in_git ls-files -z | tar -C "$root" --null -T - -cf - | tar -C "$1" -xf -
}

# fill FILE: puts the version and the date in.
fill() {
	date=$(LC_ALL=C date -u -R -d "@$epoch")
	sed -i -e "s/@VERSION@/$version/g" -e "s/@DATE@/$date/g" "$1"
}

pack_source() {
	source=$work/source/$name
	export_checkout "$source"
	quietly vendor env -C "$source" cargo vendor --locked --versioned-dirs vendor
	mkdir -p "$source/.cargo"
	cat >>"$source/.cargo/config.toml" <<-'CONFIG'

		# The crates are in vendor/: no network is needed, and none is used.
		[source.crates-io]
		replace-with = "vendored-sources"

		[source.vendored-sources]
		directory = "vendor"

		[net]
		offline = true
	CONFIG
	cp -R "$source/packaging/debian" "$source/debian"
	mv "$source/debian/changelog.in" "$source/debian/changelog"
	for file in changelog ntcopy-dkms.README.Debian ntcopy-dkms.postinst ntcopy-dkms.prerm; do
		fill "$source/debian/$file"
	done
	tar -C "$work/source" --sort=name --format=gnu --mtime="@$epoch" --owner=0 --group=0 \
		--numeric-owner --mode=u+rwX,go+rX,go-w -cf "$work/$name.tar" "$name"
	# Two threads on any machine: with one the blocks would be others.
	xz -6 -T2 "$work/$name.tar"
	rm -rf "$work/source"
}

build_packages() {
	enter="unshare -rn"
	$enter true 2>/dev/null || {
		enter=
		say "this system can't take the network away from the build; cargo only gets --offline"
	}
	mkdir -p "$work/build"
	tar -C "$work/build" -xf "$work/$name.tar.xz"
	# The toolchain may be rustup's, of which dpkg knows nothing: hence -d.
	# shellcheck disable=SC2086 # a command and its option
	quietly build env -i -C "$work/build/$name" PATH="$PATH" HOME="$HOME" LC_ALL=C TZ=UTC \
		RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" SOURCE_DATE_EPOCH="$epoch" \
		DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)} nocheck" \
		$enter dpkg-buildpackage -b -us -uc -d
}

# Those that Debian's own reviewers would look at first.
judge() {
	if ! command -v lintian >/dev/null 2>&1; then
		say "lintian was not asked: it is not installed (scripts/setup.sh dist)"
		return
	fi
	lintian --no-cfg --allow-root --fail-on error,warning "$work"/build/*.deb >"$work/lintian.log" 2>&1 || {
		cat "$work/lintian.log" >&2
		die "lintian refuses them"
	}
	cat "$work/lintian.log"
	say "lintian has no error and no warning"
}

say "source"
pack_source
say "packages, from the source alone"
build_packages
judge
mkdir -p "$out"
rm -f "$out"/*.deb "$out"/ntcopy-*.tar.xz "$out/SHA256SUMS"
mv "$work/$name.tar.xz" "$work"/build/*.deb "$out/"
(cd "$out" && sha256sum -- *.deb *.tar.xz >SHA256SUMS)
for file in "$out"/*.deb "$out"/*.tar.xz; do
	say "$file ($(du -k "$file" | cut -f1) KiB)"
done
