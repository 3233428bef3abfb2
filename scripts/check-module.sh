#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ntcopy.ko on kernels that nobody here built: compiled against the headers that
# the distribution ships, with W=1 and sparse, loaded into its own kernels in
# QEMU, and put through the selftests. What the guest's kernel says of itself
# fails this, and so does a reference that is left when all sockets are closed.
# Before that: what nontemporal.c is a copy of, the range of versions in the two
# files that state it, and checkpatch.
#
# usage: scripts/check-module.sh NTCOPY [VERSION...]     default: 6.12 7.3
#
# Nothing is installed. The packages of headers are kept in the cache
# (NTCOPY_CACHE), the guests' output in out/module (NTCOPY_OUT). Headers whose
# compiler or whose tools this machine cannot run get the tools of their source
# package, and the compiler that is here. PROGRAMS chooses the programs.
set -eu

[ $# -gt 0 ] || {
	echo "usage: scripts/check-module.sh NTCOPY [VERSION...]" >&2
	exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
module=$root/kernel/module
ntcopy=$1
shift
[ $# -gt 0 ] || set -- 6.12 7.3
cache=${NTCOPY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ntcopy}
keep=$cache/module
logs=${NTCOPY_OUT:-$root/out/module}
programs=${PROGRAMS:-module module_life settings counters edges flags calls control gone bytes}
work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-module-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$keep" "$logs"

die() {
	echo "check-module: $*" >&2
	exit 1
}

# The text of a file that a patch adds.
added() {
	awk -v file="+++ b/$2" '
		$0 == file { on = 1; next }
		on && /^@@ / { next }
		on && /^\+/ { print substr($0, 2); next }
		on { exit }' "$1"
}

check_copies() {
	patch=$(echo "$root"/kernel/series/7.3/0007-*.patch)
	for file in lib/nontemporal.c include/linux/nontemporal.h; do
		added "$patch" $file >"$work/added"
		cmp "$work/added" "$module/${file#lib/}" || die "it is not what $patch adds"
	done
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
	# compat.h is about versions; a table of sysctls that is filled in is not constant.
	(cd "$module" && perl "$work/style/scripts/checkpatch.pl" --no-tree --strict --quiet \
		--ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED \
		--ignore COMPLEX_MACRO,FUNCTION_ARGUMENTS,CONST_STRUCT \
		-f ./*.c ./*.h include/linux/*.h Kbuild Makefile) || die "checkpatch complains"
}

# apt, with lists of its own for what the system has no list of.
apt_of() {
	case $1 in
	6.12) ;;
	*)
		mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
			"${NTCOPY_MIRROR:-http://deb.debian.org/debian} trixie-backports main" \
			>"$work/apt/list"
		echo "-o Dir::Etc::sourcelist=$work/apt/list -o Dir::Etc::sourceparts=/nonexistent" \
			"-o Dir::State::lists=$work/apt/lists -o Dir::Cache=$work/apt/cache" \
			"-o APT::Sandbox::User=root"
		;;
	esac
}

# The release of the stock kernel, such as 6.12.117+deb12-cloud-amd64.
release_of() {
	case $1 in 6.12) kernel=stock ;; *) kernel=stock:$1 ;; esac
	"$ntcopy" kernel boot --kernel "$kernel" -- uname -r
}

# Unpacks the headers of a release below $keep, and prints where they are.
headers_of() {
	flavour=$1
	base=${flavour%-cloud-amd64}
	base=${base%-amd64}
	at=$keep/$flavour
	[ -d "$at" ] || {
		options=$(apt_of "$2")
		mkdir "$work/debs"
		(
			cd "$work/debs"
			# shellcheck disable=SC2086 # options of apt
			[ -z "$options" ] || apt-get $options update -qq
			# shellcheck disable=SC2086
			apt-get $options download -qq "linux-headers-$flavour" \
				"linux-headers-$base-common" "linux-kbuild-$base" 2>/dev/null
		) >&2 || die "no headers for $flavour"
		for deb in "$work"/debs/*.deb; do
			dpkg-deb -x "$deb" "$work/root"
		done
		# With it, pahole would be wanted, for type information that nobody reads here.
		rm -f "$work"/root/usr/src/*/vmlinux
		mv -T "$work/root" "$at"
		rm -r "$work/debs"
	}
	echo "$at/usr/src"
}

# Tools that were linked against a newer C library are built from their source.
fix_tools() {
	kbuild=$(readlink -f "$1/linux-headers-$2/scripts")
	kbuild=${kbuild%/scripts}
	objtool=$(find "$kbuild/tools/objtool" -name 'objtool.real-x86' -o -name objtool | sort | tail -n 1)
	modpost=$(find "$kbuild/scripts/mod" -name 'modpost.real-lsb-64' -o -name modpost | sort | tail -n 1)
	! ldd "$objtool" "$modpost" 2>&1 | grep -q 'GLIBC_.* not found' || {
		source=$(find "$cache/packages/" -name "linux-source-$3_*.deb" | sort -V | tail -n 1)
		[ -n "$source" ] || die "no source of Linux $3: run 'ntcopy kernel build' first"
		echo "check-module: $2: builds the tools of its headers"
		mkdir "$work/linux"
		dpkg-deb --fsys-tarfile "$source" |
			tar x -O --wildcards './usr/src/linux-source-*.tar.xz' |
			tar xJ -C "$work/linux" --strip-components=1
		{
			make -s -C "$work/linux" x86_64_defconfig &&
				make -s -C "$work/linux" -j2 modules_prepare
		} >"$logs/tools.log" 2>&1 || die "see $logs/tools.log"
		cp "$work/linux/tools/objtool/objtool" "$objtool"
		cp "$work/linux/scripts/mod/modpost" "$modpost"
		rm -rf "$work/linux"
	}
}

# build HEADERS RELEASE: ntcopy.ko into $work/RELEASE
build() {
	out=$work/$2
	mkdir "$out"
	cp -r "$module/." "$root/uapi/ntcopy.h" "$out/"
	base=${2%-cloud-amd64}
	base=${base%-amd64}
	log=$logs/$2-build.log
	# A compiler older than the kernel's does not know every option of its makefiles.
	aligned=
	echo 'int x;' | "${CC:-gcc}" -fmin-function-alignment=16 -c -xc - -o /dev/null 2>/dev/null ||
		aligned=CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=
	make -C "$1/linux-headers-$base-common" KBUILD_OUTPUT="$1/linux-headers-$2" M="$out" \
		CC="${CC:-gcc}" $aligned W=1 C=1 CHECK='sparse -D__typeof_unqual__=__typeof__' \
		modules >"$log" 2>&1 || die "$2: does not compile, see $log"
	! grep -E 'ntcopy.*(warning|error)|^[a-z_/]+\.[ch]:[0-9]+' "$log" ||
		die "$2: the compiler or sparse complains, see $log"
	[ -e "$out/ntcopy.ko" ] || die "$2: no ntcopy.ko, see $log"
}

# The suite, with the module loaded; then it goes, and nothing holds it.
suite() {
	case $1 in 6.12) kernel=stock ;; *) kernel=stock:$1 ;; esac
	log=$logs/$2-suite.log
	echo "check-module: $2: the suite runs; its output: $log"
	code=0
	# shellcheck disable=SC2016,SC2086 # the guest's shell expands these; a list of programs
	NTCOPY_SELFTEST_BIG_MIB=4 "$ntcopy" kernel boot --kernel "$kernel" --cpus 2 --mem 1G \
		--timeout 3600 -- sh -c '
		ko=$1
		bin=$2
		shift 2
		insmod "$ko" || exit 1
		code=0
		for program; do
			echo "# program $program"
			"$bin/$program" 2>&1 || code=1
		done
		echo "references left: $(cat /sys/module/ntcopy/refcnt)"
		rmmod ntcopy || code=1
		echo "taint: $(cat /proc/sys/kernel/tainted)"
		exit $code' suite "$work/$2/ntcopy.ko" "$work/bin" $programs \
		>"$log" 2>"$log.err" || code=$?
	passed=$(grep -c '^ok ' "$log" || true)
	skipped=$(grep -c '^ok .*# SKIP' "$log" || true)
	failed=$(grep -c '^not ok ' "$log" || true)
	echo "check-module: $2: $((passed - skipped)) passed, $skipped skipped, $failed failed;" \
		"exit code $code"
	# Out of tree (12) and unsigned (13), and no other: 4096 + 8192.
	grep -q '^taint: 12288$' "$log" || die "$2: tainted: $(grep '^taint' "$log")"
	if [ $code -ne 0 ] || [ "$failed" -ne 0 ] || [ "$passed" -eq 0 ]; then
		grep '^not ok ' "$log" >&2 || true
		tail -n 60 "$log.err" >&2
		die "$2: the suite failed"
	fi
}

check_copies
check_range
check_style
# shellcheck disable=SC2086 # a list
"$root/scripts/selftests.sh" "$work/bin" $programs
for version; do
	release=$(release_of "$version")
	headers=$(headers_of "$release" "$version")
	fix_tools "$headers" "$release" "$version"
	build "$headers" "$release"
	suite "$version" "$release"
done
