#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Everything that can be said about the code without running it.
set -eu
cd "$(dirname "$0")/.."

for tool in rustfmt clippy-driver; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "lint: $tool is missing; with rustup: rustup component add rustfmt clippy" >&2
		exit 3
	}
done

echo "lint: cargo fmt"
cargo fmt --all --check
echo "lint: clippy"
cargo clippy --workspace --all-targets --locked -q -- -D warnings
# The library as a program gets it that names no feature of it.
cargo clippy -p ntcopy --all-targets --locked -q -- -D warnings
# The program of the demo, without surveys.
cargo clippy -p ntcopy-cli --no-default-features --locked -q -- -D warnings
echo "lint: the fuzz targets' lock files"
for manifest in crates/*/fuzz/Cargo.toml; do
	cargo metadata --locked --format-version 1 --manifest-path "$manifest" >/dev/null
done
echo "lint: documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked -q
echo "lint: shell"
shellcheck scripts/*.sh packaging/test/*.sh crates/*/*.sh crates/*/tests/*.sh .ci/run
echo "lint: man pages"
for page in docs/man/*.[1-8]; do
	words=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)
	[ -z "$words" ] || {
		echo "$words" >&2
		exit 1
	}
done
echo "lint: links of the documents"
scripts/check-links.py --self-test
scripts/check-links.py
echo "lint: words of the documents"
scripts/check-words.py --self-test
scripts/check-words.py
echo "lint: size of the records"
kib=$(git ls-files -z bench/record | xargs -0 du -k --apparent-size --total | tail -n 1 | cut -f 1)
[ "$kib" -le 10240 ] || {
	echo "lint: bench/record: $kib KiB, 10240 are its budget: take away what INDEX.toml need not name" >&2
	exit 1
}
echo "lint: uapi/ntcopy/uapi.h"
printf '#include <ntcopy/uapi.h>\nint flag = MSG_NTCOPY;\n' |
	gcc -Wall -Wextra -Werror -std=c99 -pedantic -Iuapi -fsyntax-only -xc -
