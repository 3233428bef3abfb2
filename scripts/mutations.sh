#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Would the suite notice? Puts one deliberate mistake at a time into the patched
# kernel, builds it again, runs a program of kernel/selftests in it, and demands
# that the test named beside the mistake fails.
#
# usage: scripts/mutations.sh NTCOPY [NAME...]     default: every mutation
#
# A kernel with a mistake is kept in the cache's folder mutants/, by the kernel
# that it was made of (its source, series and configuration) and by its row of
# kernel/selftests/mutations.txt: only what is new is built. What the test said in it
# is kept, too, by all that such a run depends on (scripts/inputs.sh), and judged anew
# each time; NTCOPY_ANEW=1 runs it again. Kernels of another series go when the first
# of this one is made.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cache=$("$root/scripts/cache.sh")

die() {
	echo "mutations: $*" >&2
	exit 1
}

[ $# -gt 0 ] || {
	echo "usage: scripts/mutations.sh NTCOPY [NAME...]" >&2
	exit 2
}
ntcopy=$1
shift
chosen="$*"

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-mutations-XXXXXX")
trap 'rm -rf "$work"; rm -f "$cache/mutants"/*/.partial-$$' EXIT
trap 'exit 130' INT TERM

table=$root/kernel/selftests/mutations.txt

# field NAME KEY: what the table says of a mutation.
field() {
	sed -n "/^name: $1\$/,/^\$/s/^$2: //p" "$table"
}

# A cache of our own, so that no mutated kernel is ever taken for a good one.
# Packages and the harness are those that are there already.
own_cache() {
	mkdir -p "$1/kernels"
	for shared in packages selftests; do
		mkdir -p "$cache/$shared"
		ln -s "$cache/$shared" "$1/$shared"
	done
}

prepare() {
	good=$("$ntcopy" kernel build --kernel um)
	mutants=$cache/mutants/$(basename "$(dirname "$good")")
	own_cache "$work/cache"
	cp -r "$(dirname "$good")" "$work/cache/kernels/"
	kernel=$work/cache/kernels/$(basename "$(dirname "$good")")/linux
	[ -x "$kernel" ] || die "no kernel where one was expected, at $kernel"
}

# mutant NAME: where it is kept.
mutant() {
	row=$(sed -n "/^name: $1\$/,/^\$/p" "$table" | sha256sum | cut -c 1-12)
	echo "$mutants/$1-$row"
}

# Sources that can be changed, with all their objects; only for what is not kept.
prepare_source() {
	[ -z "$source" ] || return 0
	own_cache "$work/build"
	export CCACHE_DIR="${CCACHE_DIR:-$cache/ccache}"
	NTCOPY_KEEP_SOURCE=1 NTCOPY_CACHE="$work/build" "$ntcopy" kernel build --kernel um >/dev/null
	source=$(find "$work/build/sources" -mindepth 1 -maxdepth 1)
	[ -d "$source" ] || die "the build has left no source"
	find "$cache/mutants" -mindepth 1 -maxdepth 1 ! -path "$mutants" -exec rm -rf {} + 2>/dev/null || true
	mkdir -p "$mutants"
}

# Calls make as ntcopy-kernel does, so that only what has changed is compiled.
make_kernel() {
	if command -v ccache >/dev/null 2>&1; then
		set -- "CC=ccache gcc"
	else
		set --
	fi
	KBUILD_BUILD_TIMESTAMP="Thu Jan  1 00:00:00 UTC 1970" KBUILD_BUILD_VERSION=1 \
		KBUILD_BUILD_USER=ntcopy KBUILD_BUILD_HOST=ntcopy \
		CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$source" LC_ALL=C \
		make -C "$source" LOCALVERSION= ARCH=um SUBARCH=x86_64 "$@" "-j$(nproc)" \
		>"$work/make.log" 2>&1 || {
		grep -m5 -E 'error:|\*\*\*' "$work/make.log" >&2
		return 1
	}
}

# make_mutant NAME: puts the mistake in, compiles, and takes it out again.
make_mutant() {
	prepare_source
	file=$source/$(field "$1" file)
	change=$(field "$1" change)
	cp -p "$file" "$work/original"
	perl -0pi -e "$change" "$file"
	cmp -s "$file" "$work/original" && die "$1 changes nothing in $file: the code has moved on"
	make_kernel || die "$1 does not compile"
	cp -p "$work/original" "$file"
	touch "$file"
	# Half of one must never be found there.
	cp "$source/linux" "$mutants/.partial-$$"
	mv "$mutants/.partial-$$" "$(mutant "$1")"
}

# Where what a program said in a mutant is kept.
said_before() {
	append=$(field "$1" append)
	inputs=$("$root/scripts/inputs.sh" --suite "$(mutant "$1")" "$root/scripts/mutations.sh" \
		"=$2" "=$append")
	echo "$cache/outputs/mutant-$inputs"
}

# Runs what the row names, with its words for the kernel; prints what it said.
look() {
	if [ "$1" = fences ]; then
		"$root/scripts/check-fences.py" "$kernel" 2>&1
	else
		[ -x "$work/bin/$1" ] || "$root/scripts/selftests.sh" "$work/bin" "$1" || exit
		NTCOPY_CACHE="$work/cache" NTCOPY_SELFTEST_BIG_MIB=2 "$ntcopy" kernel boot --kernel um --timeout 300 \
			${2:+--append "$2"} -- "$work/bin/$1" 2>&1
	fi
}

# keep PLACE: what was said, whole or not at all.
keep() {
	mkdir -p "$cache/outputs"
	cp "$work/said" "$1.$$"
	mv "$1.$$" "$1"
}

# Whether the named test failed, and not just anything.
noticed() {
	if [ "$1" = fences ]; then
		grep -q "^check-fences: $2[.a-z0-9]*: " "$work/said"
	else
		grep -qE "^not ok [0-9]+ $2( |\$)" "$work/said"
	fi
}

try() {
	what=$(field "$1" what)
	program=$(field "$1" test)
	test=${program#* }
	program=${program%% *}
	[ -x "$(mutant "$1")" ] || make_mutant "$1"
	before=
	[ "$program" = fences ] || before=$(said_before "$1" "$program")
	if [ -n "$before" ] && [ -e "$before" ] && [ -z "${NTCOPY_ANEW-}" ]; then
		touch "$before"
		cp "$before" "$work/said"
		again=" (kept)"
	else
		again=
		cp "$(mutant "$1")" "$kernel"
		look "$program" "$(field "$1" append)" >"$work/said" || true
	fi
	if noticed "$program" "$test"; then
		echo "mutations: $1 ($what): noticed by $program, $test$again"
		[ -z "$before" ] || [ -n "$again" ] || keep "$before"
		return
	fi
	echo "mutations: $1 ($what): NOT noticed by $program, $test" >&2
	tail -n 20 "$work/said" >&2
	missed="$missed $1"
}

begun=$(date +%s)
names=${chosen:-$(sed -n 's/^name: //p' "$table")}
for name in $names; do
	[ -n "$(field "$name" test)" ] || die "there is no mutation '$name' in $table"
done
source=
prepare
"$root/scripts/check-fences.py" "$kernel"
missed=
count=0
for name in $names; do
	try "$name"
	count=$((count + 1))
done
[ -z "$missed" ] || die "not noticed:$missed"
echo "mutations: all $count noticed, in $(($(date +%s) - begun)) s"
