#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The fuzz target of what proxyd reads from a network, for SECONDS (120).
# With AddressSanitizer, and cargo-fuzz needn't be installed. What is found stays below
# the target folder, in fuzz/proxyd.
#
# usage: scripts/fuzz.sh [SECONDS]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-120}
case $seconds in
'' | *[!0-9]*)
	echo "usage: scripts/fuzz.sh [SECONDS]" >&2
	exit 2
	;;
esac
host=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
# With this, a released compiler takes a nightly one's flags.
export RUSTC_BOOTSTRAP=1
# What cargo fuzz run would pass.
cover="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
cover="$cover -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
cover="$cover -Cllvm-args=-sanitizer-coverage-pc-table"
cover="$cover -Cllvm-args=-sanitizer-coverage-trace-compares"

fuzz=crates/proxyd/fuzz
echo "fuzz: building"
RUSTFLAGS="$cover -Zsanitizer=address --cfg fuzzing -Cdebug-assertions" \
	CARGO_TARGET_DIR="$target/proxyd" \
	cargo build -q --locked --release --target "$host" --manifest-path "$fuzz/Cargo.toml"
for file in "$fuzz"/fuzz_targets/*.rs; do
	name=${file##*/}
	name=${name%.rs}
	corpus=$target/proxyd/corpus/$name
	mkdir -p "$corpus"
	# The first folder is added to; those of the repository are only read.
	set -- "$corpus"
	[ ! -d "$fuzz/corpus/$name" ] || set -- "$@" "$fuzz/corpus/$name"
	echo "fuzz: $name, for $seconds seconds"
	"$target/proxyd/$host/release/$name" -max_total_time="$seconds" -max_len=4096 \
		-artifact_prefix="$target/proxyd/" -verbosity=0 -print_final_stats=1 "$@"
done
echo "fuzz: nothing found"
