#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The whole story in one command: build the program and, beside it, a kernel that
# knows MSG_NTCOPY; boot that as a process, measure with the flag off, obeyed and
# by the rule; write a page. The last line is what the page says first.
#
# usage: scripts/demo.sh NTCOPY OUT_DIR
# NTCOPY is where `make build` puts the program; CARGO and MAKE are those to use.
set -eu

ntcopy=$1
out=$2
cargo=${CARGO:-cargo}

# Where the bytes in flight outgrow the caches, and whether the source does.
sockets=1,2,4,8,16,32,64,128
datasets=1MiB,256MiB

say() {
	printf '\n== %s\n' "$*"
}

# The process that this script started and that may still be at work when it ends.
builder=
end() {
	[ -z "$builder" ] || kill "$builder" 2>/dev/null || true
}
trap end EXIT
trap 'exit 130' INT TERM

# The kernel by a program of its own, which is compiled in a fraction of the time
# of `ntcopy`: downloading, unpacking and linking leave CPUs to the crates.
kernel_beside() {
	# With the features that `make build` gives, so that nothing is compiled twice.
	"$cargo" build --release --locked --no-default-features \
		-p ntcopy-cli -p ntcopy-preload -p ntcopy-kernel --example kernel_build
	"$(dirname "$ntcopy")/examples/kernel_build" um 2>"$out/kernel.log" &
	builder=$!
}

# Its words as they come, once nothing else is to be said.
kernel_awaited() {
	tail -n +1 -f --pid="$builder" "$out/kernel.log" >&2 &
	words=$!
	status=0
	wait "$builder" || status=$?
	builder=
	wait "$words" || true
	[ "$status" = 0 ] || exit "$status"
}

# By rounds, for the crossover; a victim beside the sends; free-running, as published.
rm -rf "$out/rounds" "$out/retention" "$out/published"
mkdir -p "$out"

say "1/5 the program, and beside it a Linux kernel that knows MSG_NTCOPY (both kept)"
kernel_beside
"${MAKE:-make}" --no-print-directory build
kernel_awaited

say "2/5 how much is in flight decides: 1 to 128 sockets of 1 MiB"
"$ntcopy" bench unix --kernel um --sockets "$sockets" --object 1MiB --dataset "$datasets" \
	--modes nt,adaptive --pairs 7 --out "$out/rounds"

say "3/5 who keeps the cache?"
"$ntcopy" bench retention --kernel um --quick --out "$out/retention"

say "4/5 the three published configurations"
"$ntcopy" bench unix --kernel um --published --quick --budget 60 --modes nt,adaptive --out "$out/published"

say "5/5 the page, and what follows for this machine"
"$ntcopy" advise "$out/rounds" "$out/retention" "$out/published"
echo
echo "report.html is written; open it in any browser. It begins with:"
"$ntcopy" report "$out/rounds" "$out/retention" "$out/published" --out "$out/report.html"
cp "$out/report.html" report.html
