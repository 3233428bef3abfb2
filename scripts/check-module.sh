#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ntcopy.ko: its sources, and the suite through it. The sources: whether the header that
# the series makes is so byte for byte, the range of versions in the two files that state
# it, checkpatch, and for each kernel W=1 and sparse. Then the module is loaded into
# the kernel, in QEMU, and the selftests run: on kernels that were not built here, and
# on ours with KASAN, lockdep and kmemleak; on these also while allocations and user
# copies fail in the middle of sends. What the guest's kernel says of itself fails
# this, and so does a reference that is left when all sockets are closed.
#
# usage: scripts/check-module.sh NTCOPY [KERNEL...]
#        default: stock stock:7.3 generic x86:6.12+module x86+module
#
# The guests' output is kept in out/module (NTCOPY_OUT). PROGRAMS chooses the
# programs.
set -eu

[ $# -gt 0 ] || {
	echo "usage: scripts/check-module.sh NTCOPY [KERNEL...]" >&2
	exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
module=$root/kernel/module
ntcopy=$1
shift
[ $# -gt 0 ] || set -- stock stock:7.3 generic x86:6.12+module x86+module
cache=$("$root/scripts/cache.sh")
logs=${NTCOPY_OUT:-$root/out/module}
own="module module_life module_memory module_races module_replace"
programs=${PROGRAMS:-$own options counters edges flags calls control gone holes bytes}
work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-module-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$logs"

die() {
	echo "check-module: $*" >&2
	exit 1
}

# include/linux/nontemporal.h is what two patches make of it.
check_header() {
	"$root/scripts/series.sh" "$work/series" "$root/kernel/series/7.3"
	mkdir "$work/header"
	for patch in "$work"/series/7.3/net/*.patch; do
		(cd "$work/header" && git apply --include=include/linux/nontemporal.h "$patch") ||
			die "$patch does not apply"
	done
	cmp "$work/header/include/linux/nontemporal.h" "$module/include/linux/nontemporal.h" ||
		die "include/linux/nontemporal.h is not the series'"
}

# dkms.conf has to take what compat.h takes, and nothing else.
check_range() {
	# shellcheck disable=SC2016 # perl's own variables
	pattern=$(sed -n 's/^BUILD_EXCLUSIVE_KERNEL="\(.*\)"$/\1/p' "$module/dkms.conf")
	range=$(sed -n 's/^#if LINUX_VERSION_CODE \(<\|>=\) KERNEL_VERSION(\([0-9]*\), \([0-9]*\), 0)$/\2 \3/p' \
		"$module/compat.h" | head -n 2 | tr '\n' ' ')
	# shellcheck disable=SC2086 # four numbers
	set -- $range
	[ $# -eq 4 ] || die "compat.h does not state its range"
	for version in 5.19 6.0 6.4 6.5 6.6 6.9 6.10 6.12 6.19 6.99 7.0 7.3 7.4 7.30 8.0; do
		major=${version%.*}
		minor=${version#*.}
		code=$((major * 1000 + minor))
		want=no got=no
		[ $code -lt $(($1 * 1000 + $2)) ] || [ $code -ge $(($3 * 1000 + $4)) ] || want=yes
		! echo "$version.4-amd64" | grep -Eq "$pattern" || got=yes
		[ $want = $got ] || die "dkms.conf takes $version: $got; compat.h: $want"
	done
}

check_style() {
	source=$(find "$cache/packages/" -name 'linux-source-7.*.deb' | sort -V | tail -n 1)
	[ -n "$source" ] || die "no source of Linux 7.x: run 'ntcopy kernel build' first"
	mkdir "$work/style"
	dpkg-deb --fsys-tarfile "$source" | tar x -O --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$work/style" --strip-components=1 --wildcards '*/scripts/checkpatch.pl' \
			'*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch'
	# compat.h is about versions; a table of sysctls that is filled in is not constant;
	# a name in an asm goto is no division.
	(cd "$module" && perl "$work/style/scripts/checkpatch.pl" --no-tree --strict --quiet \
		--ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED,MACRO_ARG_REUSE \
		--ignore COMPLEX_MACRO,FUNCTION_ARGUMENTS,CONST_STRUCT \
		-f ./*.c ./*.h include/linux/*.h Kbuild Makefile &&
		cp include/asm/nontemporal.h "$work/style/" && cd "$work/style" &&
		perl scripts/checkpatch.pl --no-tree --strict --quiet --ignore SPACING \
			-f nontemporal.h) || die "checkpatch complains"
}

# headers_of KERNEL: what `ntcopy module build` has built against.
headers_of() {
	case $1 in
	stock*)
		found=$(find "$cache/headers/" -path "*/usr/src/linux-headers-$release" -prune)
		[ -d "$found" ] || die "$1: no headers of $release below $cache/headers, or several"
		echo "$found"
		;;
	*) echo "$(dirname "$("$ntcopy" kernel build --kernel "$1")")/headers" ;;
	esac
}

# once_more KERNEL HEADERS: compiles again, with every warning there is, and sparse.
once_more() {
	out=$work/$name
	log=$logs/$name-build.log
	mkdir "$out"
	cp -r "$module/." "$root/uapi/ntcopy.h" "$out/"
	# Beside headers of a newer system lies their compiler.
	compiler=${2%/usr/src/*}/bin/gcc
	[ -x "$compiler" ] || compiler=${CC:-gcc}
	make -C "$2" M="$out" CC="$compiler" W=1 C=1 CHECK="$root/scripts/sparse.sh" modules >"$log" 2>&1 ||
		die "$1: does not compile, see $log"
	! grep -E 'ntcopy.*(warning|error)|^[a-z_/]+\.[ch]:[0-9]+' "$log" ||
		die "$1: the compiler or sparse complains, see $log"
}

# through KERNEL KO WHAT COMMAND...: the command with the module loaded; then it goes,
# and nothing holds it. The guest's output into $log.
through() {
	kernel=$1
	ko=$2
	what=$3
	shift 3
	log=$logs/$name-$what.log
	echo "check-module: $kernel: $what runs; its output: $log"
	begun=$(date +%s)
	code=0
	# shellcheck disable=SC2016 # the guest's shell expands these
	NTCOPY_SELFTEST_BIG_MIB=4 "$ntcopy" kernel boot --kernel "$kernel" --cpus 2 --timeout 7200 -- sh -c '
		ntcopy=$1
		"$ntcopy" module load "$2" || exit
		shift 2
		code=0
		"$@" 2>&1 || code=1
		echo "references left: $(cat /sys/module/ntcopy/refcnt)"
		"$ntcopy" module unload || code=1
		echo "taint: $(cat /proc/sys/kernel/tainted)"
		exit $code' through "$ntcopy" "$ko" "$@" >"$log" 2>"$log.err" || code=$?
	[ $code -ne 130 ] || exit 130
	judge
}

# What the last boot's output says.
judge() {
	passed=$(grep -c '^ok ' "$log" || true)
	skipped=$(grep -c '^ok .*# SKIP' "$log" || true)
	failed=$(grep -c '^not ok ' "$log" || true)
	echo "check-module: $kernel: $what: $((passed - skipped)) passed, $skipped skipped," \
		"$failed failed; exit code $code, $(($(date +%s) - begun)) s"
	if [ $code -ne 0 ] || [ "$failed" -ne 0 ] || [ "$passed" -eq 0 ]; then
		grep '^not ok ' "$log" >&2 || true
		tail -n 100 "$log.err" >&2
		die "$kernel: $what: failed"
	fi
	# Out of tree (12), and unsigned (13) where there are signatures; no other.
	case $kernel in stock*) taint=$((4096 + 8192)) ;; *) taint=4096 ;; esac
	grep -q "^taint: $taint\$" "$log" ||
		die "$kernel: $what: tainted: $(grep '^taint' "$log"), not $taint"
}

suite() {
	# shellcheck disable=SC2016,SC2086 # the guest's shell expands these; a list of programs
	through "$1" "$2" suite sh -c '
		bin=$1
		shift
		code=0
		for program; do
			echo "# program $program"
			"$bin/$program" || code=1
		done
		exit $code' suite "$work/bin" $programs
}

# Sends while what they need is refused. It says something if they were hinted.
faults() {
	through "$1" "$2" faults sh "$root/kernel/selftests/faults.sh" "$work/bin" 1
	grep -q '^# nontemporal_bytes [1-9]' "$log" || die "$1: faults: nothing was hinted"
}

check_header
check_range
check_style
# shellcheck disable=SC2086 # a list
"$root/scripts/selftests.sh" "$work/bin" $programs soak
for kernel; do
	name=$(echo "$kernel" | tr ':+' '--')
	ko=$("$ntcopy" module build --kernel "$kernel")
	release=$(modinfo -F vermagic "$ko" | cut -d ' ' -f 1)
	once_more "$kernel" "$(headers_of "$kernel")"
	suite "$kernel" "$ko"
	# Ours can make allocations and copies fail.
	case $kernel in x86*+module) faults "$kernel" "$ko" ;; esac
done
