#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A full record of this machine: bench/record/<date>-<cpu>/{rounds,published}.
# README's table is made from the first. Wants a quiet machine and some
# minutes; takes the place of a record of the same day.
#
# usage: scripts/record.sh NTCOPY
set -eu

ntcopy=$1
cpu=$("$ntcopy" probe --json | sed -n 's/.*"signature": "\([^"]*\)".*/\1/p' | head -n 1)
place=bench/record/$(date -u +%F)-${cpu:?the CPU does not say what it is}

rm -rf "$place"
mkdir -p "$place"
"$ntcopy" kernel build
"$ntcopy" bench unix --kernel um --sockets 1,2,4,8,16,32,64,128 --object 1MiB \
	--dataset 1MiB,256MiB --out "$place/rounds"
"$ntcopy" bench unix --kernel um --published --out "$place/published"
"$ntcopy" report "$place/rounds" --splice README.md
echo "record: $place; README.md has its table"
