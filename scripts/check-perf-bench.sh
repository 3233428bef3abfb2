#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Cross-check: `ntcopy bench memset` against the distribution's `perf bench mem
# memset`, on the functions that both have. Medians may differ by 10 %.
# usage: scripts/check-perf-bench.sh [NTCOPY [SIZE_MB [ROUNDS]]]
set -eu
cd "$(dirname "$0")/.."

ntcopy=${1:-target/release/ntcopy}
size=${2:-512}
rounds=${3:-7}
allowed=10

command -v perf >/dev/null 2>&1 || {
	echo "check-perf-bench: perf is missing (Debian: linux-perf)" >&2
	exit 3
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Bytes per second, which is what the simple format prints.
perf_rate() {
	taskset -c "$cpu" perf bench --format=simple mem memset -l 5 -s "${size}MB" -f "$1"
}

cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
for round in $(seq "$rounds"); do
	for name in default x86-64-stosq x86-64-stosb; do
		perf_rate "$name" >"$folder/out" 2>"$folder/err" || {
			sed 's/^/check-perf-bench: perf: /' "$folder/err" >&2
			exit 3
		}
		echo "$name $(grep -Eo '[0-9]+\.[0-9]+' "$folder/out" | head -1)" >>"$folder/perf"
	done
	"$ntcopy" bench memset --size "${size}MiB" --pages small --cpus "$cpu" --pairs 5 --quick \
		--modes x86-64-stosb,x86-64-stosq --out "$folder/$round" >/dev/null 2>&1
done

python3 - "$folder" "$rounds" "$allowed" <<'PY'
import json, statistics, sys

folder, rounds, allowed = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
names = {"default": "libc", "x86-64-stosq": "x86-64-stosq", "x86-64-stosb": "x86-64-stosb"}
theirs, ours = {}, {}
for line in open(f"{folder}/perf"):
    name, rate = line.split()
    theirs.setdefault(names[name], []).append(float(rate))
for number in range(1, rounds + 1):
    for line in open(f"{folder}/{number}/record.jsonl"):
        line = json.loads(line)
        if line["type"] == "sample":
            ours.setdefault(line["mode"], []).append(line["bytes"] * 1e9 / line["elapsed_ns"])
bad = False
for name in names.values():
    perf, here = statistics.median(theirs[name]), statistics.median(ours[name])
    difference = 100 * (here / perf - 1)
    bad |= abs(difference) > allowed
    print(f"{name:14} perf {perf / 1e9:6.2f} GB/s   ntcopy {here / 1e9:6.2f} GB/s   {difference:+.1f} %")
sys.exit(bad)
PY
