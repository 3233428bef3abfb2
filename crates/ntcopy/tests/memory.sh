#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What the tests alone don't see: AddressSanitizer, valgrind, a random program for SECONDS (30),
# and the library without the standard library. What this machine lacks is said, and ends it with 3.
#
# AddressSanitizer doesn't look into inline assembly, and valgrind knows no AVX-512; the pages that
# may not be touched, in tests/contract.rs, see every path.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}
host=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-$(cd ../.. && pwd)/target}
# A released compiler takes a nightly one's flags with this variable.
export RUSTC_BOOTSTRAP=1

echo "memory: no_std"
cargo build -q --locked -p ntcopy --no-default-features
cargo test -q --locked -p ntcopy --no-default-features --tests

echo "memory: AddressSanitizer"
RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$target/asan" \
	cargo test -q --locked -p ntcopy --features profile --target "$host" --tests

echo "memory: valgrind"
command -v valgrind >/dev/null 2>&1 || {
	echo "memory: valgrind is missing; with apt: apt install valgrind" >&2
	exit 3
}
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind -q --error-exitcode=9" \
	cargo test -q --locked -p ntcopy --target "$host" \
	--test every_length --test contract --test oracle

echo "memory: fuzzing for $seconds seconds"
# What cargo fuzz run would pass, which needn't be installed for this.
cover="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
cover="$cover -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
cover="$cover -Cllvm-args=-sanitizer-coverage-pc-table"
cover="$cover -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="$cover -Zsanitizer=address --cfg fuzzing -Cdebug-assertions" \
	CARGO_TARGET_DIR="$target/fuzz" \
	cargo build -q --release --target "$host" --manifest-path fuzz/Cargo.toml
corpus=$target/fuzz/corpus
mkdir -p "$corpus"
"$target/fuzz/$host/release/operations" -max_total_time="$seconds" -max_len=2048 \
	-artifact_prefix="$target/fuzz/" -verbosity=0 -print_final_stats=1 "$corpus"
echo "memory: nothing found"
