#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The library where the workspace's own tests don't run it. What this machine lacks is
# named on the last line, and ends it with 3, once the rest is done.
#
# usage: scripts/check-library.sh targets|miri
#   targets  its tests with musl; compiled for aarch64 and i686, and without
#            std, a C compiler and a linker
#   miri     its tests in Miri, which follows every pointer: plain Rust stands
#            in for the assembly
set -eu
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
musl=x86_64-unknown-linux-musl
missing=

# has_target TARGET: whether there is a standard library for it, brought by rustup where that is here.
has_target() {
	libraries=$(rustc --print target-libdir --target "$1")
	[ -d "$libraries" ] || { command -v rustup >/dev/null 2>&1 && rustup -q target add "$1" >/dev/null 2>&1; } || {
		missing="$missing $1"
		return 1
	}
}

targets() {
	echo "library: no_std, without a C compiler"
	if has_target x86_64-unknown-none; then
		CC=false CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=false \
			"$cargo" check -q --locked -p ntcopy --no-default-features --target x86_64-unknown-none
	fi
	for target in aarch64-unknown-linux-gnu i686-unknown-linux-gnu; do
		if has_target "$target"; then
			echo "library: $target"
			"$cargo" check -q --locked -p ntcopy --features profile --tests --target "$target"
		fi
	done
	if has_target "$musl"; then
		echo "library: $musl"
		"$cargo" test -q --locked -p ntcopy --features profile --lib --target "$musl"
	fi
	[ -z "$missing" ] || {
		echo "library: no standard library for$missing; with rustup: rustup target add$missing" >&2
		echo "no standard library for$missing"
		exit 3
	}
}

miri() {
	if command -v rustup >/dev/null 2>&1; then
		rustup -q component add --toolchain nightly miri rust-src >/dev/null 2>&1 || true
	fi
	"$cargo" +nightly miri --version >/dev/null 2>&1 || {
		echo "Miri is not here; with rustup: rustup toolchain install nightly --component miri,rust-src"
		exit 3
	}
	"$cargo" +nightly miri test -q --locked -p ntcopy --no-default-features --lib
}

case ${1:-} in
targets) targets ;;
miri) miri ;;
*)
	sed -n 's/^# usage: /usage: /p' "$0" >&2
	exit 2
	;;
esac
echo "library: $1: done"
