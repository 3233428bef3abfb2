#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The whole story in one command: build the kernel that knows MSG_NTCOPY, boot
# it as a process, measure with the flag off, obeyed and by the rule, say who won, write a page.
#
# usage: scripts/demo.sh NTCOPY OUT_DIR
set -eu

ntcopy=$1
out=$2

# Where the bytes in flight outgrow the caches, and whether the source does.
sockets=1,2,4,8,16,32,64,128
datasets=1MiB,256MiB

say() {
	printf '\n== %s\n' "$*"
}

# By rounds, for the crossover; a victim beside the sends; free-running, as published.
rm -rf "$out/rounds" "$out/retention" "$out/published"
mkdir -p "$out"

say "1/5 a Linux kernel that knows MSG_NTCOPY (built once, then kept)"
"$ntcopy" kernel build

say "2/5 how much is in flight decides: 1 to 128 sockets of 1 MiB"
"$ntcopy" bench unix --kernel um --sockets "$sockets" --object 1MiB --dataset "$datasets" \
	--pairs 7 --out "$out/rounds"

say "3/5 who keeps the cache?"
"$ntcopy" bench retention --kernel um --quick --out "$out/retention"

say "4/5 the three published configurations"
"$ntcopy" bench unix --kernel um --published --quick --out "$out/published"

say "5/5 the page, and what follows for this machine"
"$ntcopy" report "$out/rounds" "$out/retention" "$out/published" --out "$out/report.html"
cp "$out/report.html" report.html
"$ntcopy" advise --records "$out/rounds" "$out/retention" "$out/published"
echo
echo "report.html is written; open it in any browser."
