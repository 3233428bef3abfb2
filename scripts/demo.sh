#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The whole story in one command: build the program and, beside it, a kernel that
# knows MSG_NTCOPY; boot that as a process, measure plain and hinted sends; write
# report.html. The last five lines are what it comes to.
#
# usage: scripts/demo.sh NTCOPY LOGS
# NTCOPY is where `make build` puts the program, LOGS a folder for what the builds
# say; CARGO and MAKE are those to use. The records go where `ntcopy advise` finds
# them: $XDG_DATA_HOME/ntcopy/records/demo, in place of an earlier demo's.
set -eu

ntcopy=$1
logs=$2
cargo=${CARGO:-cargo}
case ${XDG_DATA_HOME-} in
/*) records=$XDG_DATA_HOME/ntcopy/records/demo ;;
*) records=${HOME:?}/.local/share/ntcopy/records/demo ;;
esac

# Where the bytes in flight outgrow the caches, and whether the source does.
sockets=1,2,4,8,16,32,64,128
datasets=1MiB,256MiB

say() {
	printf '\n== %s\n' "$*"
}

# The processes that this script started and that may still be at work when it ends, each with
# those of its own in a session: Ctrl-C reaches this script alone.
compiler=
builder=
end() {
	for process in $compiler $builder; do
		kill -- "-$process" 2>/dev/null || true
	done
	wait
}
trap end EXIT
trap 'printf "\ndemo: ended; make demo goes on with what is built\n" >&2; exit 130' INT TERM

# crates: cargo's words, a line a crate, as one line on a terminal, else a few.
crates() {
	count=0
	while read -r word name rest; do
		case $word in
		Compiling)
			count=$((count + 1))
			if [ -t 2 ]; then
				printf '\r\033[Kcompiling: %s, %s' "$count" "$name" >&2
			elif [ $((count % 50)) = 1 ]; then
				echo "compiling: $count, $name" >&2
			fi
			;;
		warning:* | error*) printf '\n%s\n' "$word $name $rest" >&2 ;;
		esac
	done
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# compiled LOG COMMAND...: runs it, tells how far it is, and keeps what it says.
compiled() {
	log=$logs/$1
	shift
	: >"$log"
	setsid "$@" >"$log" 2>&1 &
	compiler=$!
	tail -n +1 -f --pid="$compiler" "$log" | crates
	status=0
	wait "$compiler" || status=$?
	compiler=
	[ "$status" = 0 ] || {
		tail -n 40 "$log" >&2
		exit "$status"
	}
}

# The kernel by a program of its own, which is compiled in a fraction of the time
# of `ntcopy`: downloading, unpacking and linking leave CPUs to the crates.
kernel_beside() {
	# With the features that `make build` gives, so that nothing is compiled twice.
	compiled kernel_build.log "$cargo" build --release --locked --no-default-features \
		-p ntcopy-cli -p ntcopy-preload -p ntcopy-kernel --example kernel_build
	setsid "$(dirname "$ntcopy")/examples/kernel_build" auto 2>"$logs/kernel.log" &
	builder=$!
}

# Its words as they come, once nothing else is to be said.
kernel_awaited() {
	tail -n +1 -f --pid="$builder" "$logs/kernel.log" >&2 &
	words=$!
	status=0
	wait "$builder" || status=$?
	builder=
	wait "$words" || true
	[ "$status" = 0 ] || exit "$status"
}

# Rounds, for the crossover; another program's hot set beside the sends; free-running, as published.
rm -rf "$records"
mkdir -p "$records" "$logs"

say "1/5 the program, and beside it a Linux kernel that knows MSG_NTCOPY (both kept)"
kernel_beside
compiled program.log "${MAKE:-make}" --no-print-directory build
kernel_awaited

say "2/5 sends of 1 MiB out of little and out of much data: 1 to 128 sockets"
"$ntcopy" bench unix --kernel auto --sockets "$sockets" --object 1MiB --dataset "$datasets" \
	--modes hinted --pairs 7 --out "$records/rounds"

say "3/5 what sends leave of the cache to other programs on the same CPU"
"$ntcopy" bench retention --kernel auto --quick --out "$records/retention"

say "4/5 the three published configurations"
"$ntcopy" bench unix --kernel auto --published --quick --budget 60 --modes hinted \
	--out "$records/published"

say "5/5 what it comes to"
# Of what `ntcopy advise` goes by, so that both say the same.
"$ntcopy" report --out report.html
echo "next:    $ntcopy advise says what to set, $ntcopy try -- PROGRAM tries it on yours"
