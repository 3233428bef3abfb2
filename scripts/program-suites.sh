#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The test suites of memcached and Redis, from the distribution's source packages of
# the versions that are installed, in a booted kernel that knows the flag: by
# themselves, and under `ntcopy run` with large sends hinted. Each test must
# come out alike, and the kernel must count hinted bytes in the second case alone.
# Redis is the packaged program; memcached's suite wants programs that no package has,
# which are built of its source.
#
# usage: scripts/program-suites.sh NTCOPY [--only PROGRAM]... [KERNEL]
#
#   --only    memcached or redis
#   KERNEL    as of `ntcopy kernel boot --kernel`; default: um
#
# Sources are kept in the cache, results and logs in out/program-suites. A test that
# differs is run again three times each way, and is a difference if it differs every
# time. Goes on where an interrupted run of the same programs ended. Exit code: 0 alike;
# 1 not; 3 something is missing.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cache=$("$root/scripts/cache.sh")/programs
results=$root/out/program-suites
# No whole suite takes this long on any machine that was seen.
longest_s=14400

say() {
	echo "program-suites: $*" >&2
}

# die CODE WORD...
die() {
	code=$1
	shift
	say "$*"
	exit "$code"
}

usage() {
	sed -n 's/^# usage: /usage: /p' "$0" >&2
	exit 2
}

[ $# -gt 0 ] || usage
ntcopy=$(realpath "$1")
shift
programs=
kernel=um
while [ $# -gt 0 ]; do
	case $1 in
	--only)
		case ${2-} in
		memcached | redis) programs="$programs $2" ;;
		*) die 2 "--only '${2-}' is neither memcached nor redis" ;;
		esac
		shift
		;;
	-*) usage ;;
	*) kernel=$1 ;;
	esac
	shift
done
programs=${programs:-memcached redis}

# The package whose version says which source is wanted. $1: the program
package_of() {
	case $1 in
	redis) echo redis-server ;;
	*) echo "$1" ;;
	esac
}

# apt with lists of source packages in a folder of its own: where the machine gets its
# packages from, but as sources, and with the same keys.
apt() {
	verb=$1
	shift
	apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$cache/apt/parts" \
		-o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" \
		-o APT::Sandbox::User="$(id -un)" -q "$verb" "$@"
}

update_lists() {
	rm -rf "$cache/apt/parts"
	mkdir -p "$cache/apt/parts" "$cache/apt/lists/partial" "$cache/apt/cache"
	eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
	# shellcheck disable=SC2154 # by apt-config
	for file in "$list" "$parts"/*.list "$parts"/*.sources; do
		[ -e "$file" ] || continue
		sed -e 's/^deb\([[:space:]]\)/deb-src\1/' -e 's/^Types:.*/Types: deb-src/' "$file" \
			>"$cache/apt/parts/$(basename "$file")"
	done
	# A source that answers nothing is not the last word: what is wanted may be in another.
	apt update >"$cache/apt/log" 2>&1 || true
}

# Sets $tree: the source of the installed version, unpacked and built. $1: the program
prepare_tree() {
	version=$(dpkg-query -W -f '${source:Version}' "$(package_of "$1")")
	tree=$cache/$1-${version#*:}
	[ -e "$tree/ready" ] && return
	say "$1: getting the source of $version"
	rm -rf "$tree.partial"
	mkdir -p "$tree.partial/package"
	[ -n "${is_updated-}" ] || update_lists
	is_updated=1
	(cd "$tree.partial/package" && apt source --only-source --download-only "$1=$version") \
		>>"$cache/apt/log" 2>&1 || {
		grep '^E:' "$cache/apt/log" >&2 || tail -n 3 "$cache/apt/log" >&2
		say "apt has no source of $1 $version, above. If the package is old, this may help:"
		echo "    apt-get update && apt-get install --only-upgrade $(package_of "$1")" >&2
		exit 3
	}
	# That they are what the signed lists name, apt has checked.
	dpkg-source --no-check -x "$tree.partial/package/"*.dsc "$tree.partial/source" >/dev/null
	say "$1: building what its suite needs"
	"build_$1" "$tree.partial/source" >"$tree.partial/build.log" 2>&1 || {
		tail -n 5 "$tree.partial/build.log" >&2
		die 1 "$1 cannot be built; all of it: $tree.partial/build.log"
	}
	rm -rf "$tree.partial/package" "$tree.partial/"*.orig.*
	touch "$tree.partial/ready"
	rm -rf "$tree"
	mv "$tree.partial" "$tree"
}

# Its tests want a build with debugtime and the like, and a program in C.
build_memcached() {
	cd "$1"
	./configure --enable-sasl --enable-tls
	make -j "$(nproc)" memcached memcached-debug testapp sizes timedrun
	cd "$root"
}

build_redis() {
	for path in /usr/bin/redis-*; do
		ln -sf "$path" "$1/src/"
	done
}

# Boots a guest for one way, in the background. $1: program, $2: plain or hinted, then options
start() {
	program=$1
	way=$2
	shift 2
	# shellcheck disable=SC2086 # options
	"$ntcopy" kernel boot --kernel "$kernel" --mem 3G --timeout "$longest_s" \
		--console "$results/$program-$way.console" --write "$results" -- \
		python3 "$root/scripts/program-suites.py" run "$program" "$way" --ntcopy "$ntcopy" \
		--tree "$tree/source" --results "$results" "$@" &
	guests="$guests $!"
}

# Both ways side by side, so that what else the machine does troubles them alike.
# $1: program, then options
run_both() {
	guests=
	program=$1
	shift
	start "$program" plain "$@"
	start "$program" hinted "$@"
	for guest in $guests; do
		wait "$guest" || {
			say "$program: a guest ended with $?; what it said: $results/$program-*.console"
			failed=1
		}
	done
	guests=
}

# shellcheck disable=SC2329 # by trap
stop() {
	trap - EXIT INT TERM HUP
	# shellcheck disable=SC2086 # numbers
	[ -z "$guests" ] || kill $guests 2>/dev/null || true
	wait
	exit "$1"
}

# Two guests are four processes that hand over to each other; where they wait for a CPU, a
# spin keeps it from the one that is waited for.
[ "$(nproc)" -ge 4 ] || export NTCOPY_UM_SPIN="${NTCOPY_UM_SPIN-0}"

guests=
trap 'stop $?' EXIT
trap 'stop 130' INT
trap 'stop 143' TERM HUP

"$root/scripts/setup.sh" suites
# Builds the kernel, if it is not there yet.
"$ntcopy" kernel boot --kernel "$kernel" -- true
mkdir -p "$results"
failed=
for program in $programs; do
	prepare_tree "$program"
	say "$program ${version#*:}"
	key="$version $kernel $(cksum <"$ntcopy") $(cksum <"$root/scripts/program-suites.py")"
	if [ "$(cat "$results/$program-key" 2>/dev/null)" != "$key" ]; then
		rm -rf "${results:?}/$program" "$results/$program"-*
		echo "$key" >"$results/$program-key"
	fi
	run_both "$program"
	again=$(python3 "$root/scripts/program-suites.py" differing "$program" --results "$results")
	if [ -n "$again" ]; then
		say "$program: again, three times each way:" "$again"
		# shellcheck disable=SC2086 # a list of names without spaces
		run_both "$program" --turns 1,2,3 --item $again
	fi
	python3 "$root/scripts/program-suites.py" judge "$program" --results "$results" || failed=1
	# It is done: the next run begins anew.
	rm "$results/$program-key"
done
[ -z "$failed" ]
