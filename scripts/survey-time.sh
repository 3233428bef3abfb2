#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# How long `ntcopy survey report` takes, and how much memory, over a generated
# store of 10,000 records of 40 CPU models, in which 12 machines carry another
# model's behaviour; and which machines it names. Fails where a form of the report
# takes longer than 5 s or more than 1 GiB, where the drop-ins of all models take
# longer than 60 s, and where fewer than 11 of the 12 are named or more than 3
# others.
#
# usage: scripts/survey-time.sh [NTCOPY [SEED]]
set -eu
cd "$(dirname "$0")/.."

ntcopy=${1:-target/release/ntcopy}
seed=${2:-1}
# Seconds for a report; for one that reads a record of each model besides and asks
# for advice on it, for which no user waits at a terminal; and KiB for either.
report_s=5
drop_ins_s=60
most_kib=1048576
named_least=11
others_most=3

[ -x /usr/bin/time ] || {
	echo "survey-time: /usr/bin/time is missing (Debian: time): scripts/setup.sh survey-time" >&2
	exit 3
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
failed=0

wrong() {
	echo "survey-time: $*" >&2
	failed=1
}

"${CARGO:-cargo}" run --release --locked -q -p ntcopy-survey --example generated_fleet -- \
	"$folder/survey.sqlite" "$seed" >"$folder/generated"
records=$(sed -n '1s/ records in .*//p' "$folder/generated")
[ "$records" = 10000 ] || wrong "the store has '$records' records, not 10000"
# One a line, by the machine's name.
sed -n 's/^  \([0-9a-f]*\) .* carries .*/\1/p' "$folder/generated" | sort >"$folder/carriers"
carriers=$(wc -l <"$folder/carriers")
[ "$carriers" = 12 ] || wrong "$carriers machines carry another model's behaviour, not 12"
du -h "$folder/survey.sqlite" | sed 's/\t.*/ of store/'

# timed SECONDS WORDS OUT OPTIONS...: what is said goes to OUT, and time and memory to the terminal.
timed() {
	limit=$1
	words=$2
	out=$3
	shift 3
	/usr/bin/time -o "$folder/time" -f '%e %M' \
		"$ntcopy" survey report --store "$folder/survey.sqlite" "$@" >"$out"
	read -r seconds kib <"$folder/time"
	echo "$words: $seconds s of at most $limit, $kib KiB of at most $most_kib"
	awk "BEGIN { exit !($seconds <= $limit) }" || wrong "$words took $seconds s, more than $limit"
	[ "$kib" -le "$most_kib" ] || wrong "$words took $kib KiB, more than $most_kib"
}
timed "$report_s" "text" "$folder/text"
timed "$report_s" "JSON" "$folder/json" --json
timed "$report_s" "page" "$folder/none" --out "$folder/survey.html"
timed "$drop_ins_s" "JSON and drop-ins of 40 models" "$folder/advised" --json \
	--drop-ins "$folder/drop-ins"
du -h "$folder/survey.html" | sed 's/\t.*/ of page/'
models=$(find "$folder/drop-ins" -mindepth 1 -maxdepth 1 -type d | wc -l)
echo "$models of 40 models have drop-ins"
[ "$models" -gt 0 ] || wrong "no model has drop-ins"

# The machines that are named, in the report for programs.
python3 -c 'import json, sys
for one in json.load(open(sys.argv[1]))["unlike"]: print(one["machine"])' "$folder/json" |
	sort >"$folder/named"
named=$(comm -12 "$folder/named" "$folder/carriers" | wc -l)
others=$(comm -23 "$folder/named" "$folder/carriers" | wc -l)
echo "named: $named of $carriers machines that carry another model's behaviour, and $others others"
[ "$named" -ge "$named_least" ] || wrong "only $named of $carriers are named: at least $named_least"
[ "$others" -le "$others_most" ] || wrong "$others others are named: at most $others_most"
sed -n '/^Machines unlike/,/^==/p' "$folder/text" | sed '$d'
exit "$failed"
