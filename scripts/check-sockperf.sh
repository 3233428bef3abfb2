#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Holds `ntcopy bench pingpong` against the distribution's sockperf: both measure
# the same messages on this machine, in turns, and their medians have to be
# within 10 % of each other. Over TCP and UDP; over unix stream sockets too where
# this sockperf knows them, which that of Debian 12 does not.
#
# Usage: scripts/check-sockperf.sh [PROGRAM]
#   PROGRAM   ntcopy [default: target/release/ntcopy]
# Environment: SOCKPERF (a path), MESSAGES (bytes), ROUNDS, SECONDS_EACH.
#
# Exit code: 0 within 10 %; 1 not; 3 sockperf is not to be had here.
#
# The machine has to be quiet: a neighbour is taken for a difference.

set -eu

ntcopy=${1:-target/release/ntcopy}
messages=${MESSAGES:-256 14000}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-1}
port=11111

work=$(mktemp -d)
server=
stop_server() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
		server=
	fi
}
trap 'stop_server; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

not_available() {
	echo "check-sockperf: not available here: $1" >&2
	exit 3
}

[ -x "$ntcopy" ] || { echo "check-sockperf: $ntcopy is not there: cargo build --release" >&2; exit 1; }

# The installed program, or the package's, unpacked without being installed.
sockperf=${SOCKPERF:-$(command -v sockperf || true)}
if [ -z "$sockperf" ]; then
	command -v apt-get >/dev/null || not_available "no sockperf, and no apt-get to fetch it with"
	(cd "$work" && apt-get download sockperf) >"$work/apt" 2>&1 ||
		not_available "no sockperf, and apt-get download does not get it: $(tail -n 1 "$work/apt")"
	dpkg-deb -x "$work"/sockperf_*.deb "$work/sockperf"
	sockperf=$work/sockperf/usr/bin/sockperf
fi
"$sockperf" --version >"$work/version" 2>&1 || not_available "$sockperf does not run"
echo "sockperf: $(head -n 1 "$work/version")"

median_of() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# The options that name the other end to sockperf, in its server and its client.
end_of() { # family
	case $1 in
	unix) printf '%s\n' "$unix_end" ;;
	tcp) echo "-i 127.0.0.1 -p $port --tcp" ;;
	*) echo "-i 127.0.0.1 -p $port" ;;
	esac
}

# Sees to it that unix_end is how this sockperf takes a unix socket's path: by -i, or in a file of
# connections. Fails where it takes neither.
find_unix_end() {
	socket=$work/socket
	echo "T:$socket" >"$work/connections"
	for unix_end in "-i $socket --tcp" "-f $work/connections"; do
		# shellcheck disable=SC2086 # options
		"$sockperf" server $unix_end >"$work/server" 2>&1 &
		server=$!
		tries=0
		while [ "$tries" -lt 10 ] && [ ! -S "$socket" ] && kill -0 "$server" 2>/dev/null; do
			tries=$((tries + 1))
			sleep 0.1
		done
		if [ -S "$socket" ]; then
			stop_server
			rm -f "$socket"
			return
		fi
		stop_server
	done
	return 1
}

# Half a round trip's median in microseconds, by sockperf.
theirs() { # family bytes
	end=$(end_of "$1")
	# shellcheck disable=SC2086 # options
	"$sockperf" server $end >"$work/server" 2>&1 &
	server=$!
	tries=0
	# shellcheck disable=SC2086
	until "$sockperf" ping-pong $end --msg-size "$2" -t "$seconds" >"$work/theirs" 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 5 ] || { cat "$work/theirs" >&2; exit 1; }
		sleep 0.2
	done
	stop_server
	rm -f "$work/socket"
	sed -n 's/.*percentile 50.000 = *\([0-9.]*\).*/\1/p' "$work/theirs"
}

# The same by ntcopy. Hardware counters cost time at each switch between the two
# processes, and sockperf has none.
ours() { # family bytes
	NTCOPY_HARDWARE_COUNTERS=off "$ntcopy" bench pingpong --family "$1" --message "$2" --modes copy --duration "$seconds" \
		--pairs 5 --allow-not-a-timing --out "$work/record" >"$work/ours" 2>"$work/errors" ||
		{ cat "$work/errors" >&2; exit 1; }
	rm -rf "$work/record"
	sed -n 's/.*percentile 50.000 = *\([0-9.]*\).*/\1/p' "$work/ours"
}

families="tcp udp"
if find_unix_end; then
	families="unix $families"
else
	echo "unix sockets are not compared: this sockperf knows none"
fi
failed=0
printf '%-6s %8s %14s %14s %8s\n' family message 'ntcopy p50 us' 'sockperf p50' ratio
for family in $families; do
	for bytes in $messages; do
		: >"$work/a"
		: >"$work/b"
		round=0
		while [ "$round" -lt "$rounds" ]; do
			ours "$family" "$bytes" >>"$work/a"
			theirs "$family" "$bytes" >>"$work/b"
			round=$((round + 1))
		done
		a=$(median_of <"$work/a")
		b=$(median_of <"$work/b")
		ratio=$(awk "BEGIN { printf \"%.3f\", $a / $b }")
		printf '%-6s %8s %14s %14s %8s\n' "$family" "$bytes" "$a" "$b" "$ratio"
		if awk "BEGIN { exit !($ratio < 0.9 || $ratio > 1.1) }"; then
			failed=1
		fi
	done
done

echo
echo "The last run of each, $family:"
sed -n '/=====/,/<MIN>/p' "$work/ours"
grep -v 'Warmup\|^$' "$work/theirs" | sed 's/\x1b\[[0-9;]*m//g'

if [ "$failed" -ne 0 ]; then
	echo "check-sockperf: medians are more than 10 % apart" >&2
fi
exit "$failed"
