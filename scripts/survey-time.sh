#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# How long `ntcopy survey report` takes, and how much memory, over a generated
# store of 10,000 records of 40 CPU models; and which machines it names.
# usage: scripts/survey-time.sh [NTCOPY [SEED]]
set -eu
cd "$(dirname "$0")/.."

ntcopy=${1:-target/release/ntcopy}
seed=${2:-1}

[ -x /usr/bin/time ] || {
	echo "survey-time: /usr/bin/time is missing (Debian: time)" >&2
	exit 3
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"${CARGO:-cargo}" run --release --locked -q -p ntcopy-survey --example generated_fleet -- \
	"$folder/survey.sqlite" "$seed"
du -h "$folder/survey.sqlite" | sed 's/\t.*/ of store/'

# What is said goes to the first argument, time and memory to the terminal.
timed() {
	out=$1
	shift
	/usr/bin/time -f "%e s, %M KiB at most: ntcopy survey report $*" \
		"$ntcopy" survey report --store "$folder/survey.sqlite" "$@" >"$out"
}
timed "$folder/text"
timed "$folder/json" --json
timed "$folder/none" --out "$folder/survey.html"
timed "$folder/none" --json --drop-ins "$folder/drop-ins"
du -h "$folder/survey.html" | sed 's/\t.*/ of page/'
sed -n '/^Machines unlike/,/^==/p' "$folder/text" | sed '$d'
