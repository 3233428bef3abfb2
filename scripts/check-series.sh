#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Holds the kernel patches against the source that they are for: git am and patch take each,
# in the order of the folders unix, net, mm, test, um; checkpatch --strict has nothing to
# say; the cover letters count the tests that there are, and net's is no longer than it may
# be; each mistake of mutations.toml finds what it changes; and what is posted of unix and
# net adds no more lines than $most that are neither test nor documentation.
# With --build each compiles by itself for x86-64, with W=1 and sparse, without a
# word about a file that the series touches. Before those of the bench, what single
# objects do not show: a kernel links, with modules of protocols that copy through
# the iterator; so does a user-mode kernel, which has no non-temporal copy then; the
# selftests compile in their place; and what the series touches compiles for i386, which
# lacks the copy, and with all options of allmodconfig, by gcc and by a clang that the
# kernel takes. The kernels are
# two small ones, a quarter of an hour for a series on two CPUs; each says how long it
# took.
#
# usage: scripts/check-series.sh [--build] [SERIES...]
#
# A SERIES is the name of a folder in kernel/series/, which scripts/series.sh exports
# first, or a folder that it has exported; without one it is 7.3. The source is
# NTCOPY_LINUX, or the package that `ntcopy kernel build` keeps: of 6.12 for a folder with
# that name, else the newest 7.x.
set -eu

build=
if [ "${1-}" = --build ]; then
	build=1
	shift
fi
if [ $# -gt 1 ]; then
	[ -z "${NTCOPY_LINUX-}" ] || {
		echo "check-series: NTCOPY_LINUX is one source: give one series with it" >&2
		exit 1
	}
	for series in "$@"; do
		"$0" ${build:+--build} "$series"
	done
	exit
fi
root=$(cd "$(dirname "$0")/.." && pwd)
series=${1:-7.3}
[ -d "$series" ] || series=$root/kernel/series/$series
[ -d "$series" ] || {
	echo "check-series: no folder $series" >&2
	exit 1
}
cache=$("$root/scripts/cache.sh")
CHECK=${CHECK:-$root/scripts/sparse.sh}

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-series-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

case $(basename "$series") in
6.12) source='linux-source-6.12_*.deb' kind=um:6.12 ;;
*) source='linux-source-7.*.deb' kind=um ;;
esac

die() {
	echo "check-series: $*" >&2
	exit 1
}

# Cover letters count the tests that crates/xtask/src/suite.rs demands.
check_count() {
	mod=$root/crates/xtask/src/suite.rs
	sed -n '/^pub const PROGRAMS/,/^\]/s/^ *("\([a-z_]*\)", \([0-9]*\)),$/\1 \2/p' "$mod" >"$work/counts"
	pages=$(sed -n 's/^ntcopy_pages //p' "$work/counts")
	net=$(awk '$1 != "ntcopy_pages" { sum += $2 } END { print sum }' "$work/counts")
	for letter in "$series"/net/0000-*; do
		grep -q "\b$net tests\b" "$letter" ||
			die "${letter#"$root"/} does not say that the suite has $net tests"
	done
	longest=$(wc -l <"$series"/net/0000-cover-letter.txt)
	[ "$longest" -le 80 ] || die "the letter of net has $longest lines, more than 80"
	for letter in "$series"/mm/0000-*; do
		[ ! -e "$letter" ] || grep -q "\b$pages tests\b" "$letter" ||
			die "${letter#"$root"/} does not say that there are $pages tests"
	done
}

case $series in
"$root"/kernel/series/*)
	check_count
	"$root/scripts/series.sh" "$work/whole" "$series"
	series=$work/whole/$(basename "$series")
	;;
esac
# In the order in which they apply, as crates/ntcopy-kernel/src/series.rs has it.
parts="unix net mm test um"
patches=$(for part in $parts; do
	[ -d "$series/$part" ] || continue
	find "$series/$part" -name '*.patch' | LC_ALL=C sort
done)
[ -n "$patches" ] || die "no patches in $series"

# What the patches touch, less what they create.
touched() {
	# shellcheck disable=SC2086 # a list of files
	sed -n 's#^--- a/##p' $patches | sort -u
}

helpers="scripts/checkpatch.pl scripts/spelling.txt scripts/const_structs.checkpatch
	scripts/checkpatch-spell.txt .gitattributes"

# The sources of a tree of the user's, less what was built in it.
list_source() {
	if [ -e .git ]; then
		git ls-files -z
	else
		find . -type f -print0
	fi
}

# Copies the files to look at, or everything, into $work/linux.
fetch_source() {
	mkdir "$work/linux"
	if [ -n "${NTCOPY_LINUX-}" ]; then
		if [ -n "$build" ]; then
			(cd "$NTCOPY_LINUX" && list_source | tar c --null -T -) | tar x -C "$work/linux"
		else
			{
				touched
				echo "$helpers" | tr -s ' \t' '\n'
			} >"$work/names"
			(cd "$NTCOPY_LINUX" && tar c --ignore-failed-read -T "$work/names" 2>/dev/null) |
				tar x -C "$work/linux"
		fi
		return
	fi
	package=$(find "$cache/packages/" -name "$source" 2>/dev/null | sort -V | tail -n 1)
	[ -n "$package" ] ||
		die "no kernel source: run 'ntcopy kernel build --kernel $kind' first, or set NTCOPY_LINUX"
	dpkg-deb --fsys-tarfile "$package" |
		tar x -O --wildcards './usr/src/linux-source-*.tar.xz' >"$work/source.tar.xz"
	if [ -n "$build" ]; then
		tar xf "$work/source.tar.xz" -C "$work/linux" --strip-components=1
	else
		touched | sed 's#^#*/#' >"$work/names"
		for helper in $helpers; do
			echo "*/$helper" >>"$work/names"
		done
		# A helper that this version lacks is no loss; a touched file is, and git am says so.
		tar xf "$work/source.tar.xz" -C "$work/linux" --strip-components=1 \
			--wildcards -T "$work/names" 2>/dev/null || true
	fi
	rm -f "$work/source.tar.xz"
}

in_tree() {
	git -C "$work/linux" -c user.name=check -c user.email=check@localhost "$@"
}

# configure OUT ARCH: with what the series touches, and without what takes long.
configure() {
	make -s -C "$work/linux" O="$1" ARCH="$2" "$2_defconfig"
	"$work/linux/scripts/config" --file "$1/.config" \
		-d MODULES -e TLS -e MPTCP -e IP_DCCP -e IP_SCTP -e VSOCKETS -e DEBUG_INFO_NONE \
		-d DRM -d SOUND -d USB_SUPPORT -d WLAN
	make -s -C "$work/linux" O="$1" ARCH="$2" olddefconfig prepare
}

# The objects of x86-64 that the series touches and that the tree has by now.
objects() {
	# shellcheck disable=SC2086 # a list of files
	sed -n 's#^+++ b/\(.*\)\.c$#\1#p' $patches | sort -u | while read -r object; do
		case $object in
		arch/um/* | arch/x86/um/* | tools/*) ;;
		*) [ ! -e "$work/linux/$object.c" ] || echo "$object.o" ;;
		esac
	done
}

# make_objects OUT ARGUMENT...: the touched objects, with W=1. Two jobs of the kernel's make
# lead to arch/x86/lib/, and would both compile what is there.
make_objects() {
	out=$1
	shift
	x86=$(objects | grep '^arch/') || true
	# shellcheck disable=SC2046,SC2086 # lists of files
	{
		[ -z "$x86" ] || make -s -C "$work/linux" O="$out" "$@" W=1 $x86
	} && make -s -C "$work/linux" O="$out" "$@" -j"$(nproc)" W=1 $(objects | grep -v '^arch/')
}

# Builds what the series touches, and leaves in $work/warnings what W=1 and sparse say
# about files of the series. What else includes them is in the whole kernels.
compile() {
	log=$work/build.log
	make -s -C "$work/linux" O="$work/out" olddefconfig
	make_objects "$work/out" C=1 CHECK="$CHECK" >"$log" 2>&1 || {
		# What make gave up on, first: sparse calls things errors that do not stop make.
		grep -m3 -F "***" "$log" >&2 || true
		grep -m5 "error:" "$log" >&2 || true
		die "$1 does not build by itself"
	}
	if grep -q 'is not available or not up to date' "$log"; then
		sparse=', but sparse was not run: CHECK must name one that this kernel takes'
	fi
	list_warnings
}

# What $log says about files of the series, into $work/warnings.
list_warnings() {
	# shellcheck disable=SC2086 # a list of files
	names=$(sed -n 's#^+++ b/##p' $patches | sort -u | paste -sd'|' | sed 's/\./\\./g')
	sed -n -E "/(warning|error):/s#^.*\b(($names):)[0-9]+(:[0-9]+)?:#\1#p" "$log" | sort -u >"$work/warnings"
}

# make_whole NAME ARCH TARGET...: builds them of the configuration in $work/NAME.config.
make_whole() {
	whole=$work/$1
	arch=$2
	begun=$(date +%s)
	shift 2
	mkdir "$whole"
	{
		make -s -C "$work/linux" O="$whole" ARCH="$arch" SUBARCH=x86_64 \
			KCONFIG_ALLCONFIG="$whole.config" allnoconfig &&
			make -s -C "$work/linux" O="$whole" ARCH="$arch" SUBARCH=x86_64 \
				-j"$(nproc)" "$@"
	} >"$work/whole.log" 2>&1 || {
		grep -m5 -E 'error:|ERROR:|undefined|\*\*\*' "$work/whole.log" >&2 || true
		die "the series as a whole does not build for $arch: $*"
	}
	echo "check-series: $arch: $*: built in $(($(date +%s) - begun)) s"
}

# modpost finds symbols that a module wants and that are not exported.
link_modules() {
	modules="TLS IP_SCTP VSOCKETS VSOCKETS_LOOPBACK PACKET_DIAG"
	{
		cat "$root/kernel/config/x86.config" "$root/kernel/config/6.12.config"
		echo CONFIG_MODULES=y
		for option in $modules; do
			echo "CONFIG_$option=m"
		done
	} >"$work/modules.config"
	make_whole modules x86_64 vmlinux modules
	for module in net/tls/tls net/sctp/sctp net/vmw_vsock/vsock; do
		[ -e "$work/modules/$module.ko" ] || die "$module.ko was not built as a module"
	done
}

link_um() {
	cat "$root/kernel/config/um.config" >"$work/um.config"
	[ "$kind" != um:6.12 ] || cat "$root/kernel/config/um-6.12.config" >>"$work/um.config"
	make_whole um um linux
}

# In the kernel's own place and by its own Makefile, on the headers that it exports.
compile_selftests() {
	folder=$work/linux/tools/testing/selftests/net/ntcopy
	[ -d "$folder" ] || return 0
	mkdir "$work/selftests"
	{
		make -s -C "$work/linux" O="$work/out" headers &&
			make -s -C "$folder" OUTPUT="$work/selftests" USERCFLAGS=-Werror \
				KHDR_INCLUDES="-isystem $work/out/usr/include"
	} >"$work/selftests.log" 2>&1 || {
		tail -n 20 "$work/selftests.log" >&2
		die "the selftests do not compile in the source tree"
	}
	echo "check-series: selftests: $(find "$work/selftests" -type f -perm -100 | wc -l) programs"
}

# find_clang LEAST: the newest clang here that is no older, or nothing.
find_clang() {
	for clang in /usr/bin/clang /usr/bin/clang-[0-9]*; do
		version=$("$clang" -dumpversion 2>/dev/null) || continue
		printf '%s %s\n%s\n' "$version" "$clang" "$1" | sort -V | sed -n '2s/.* //p' | grep /
	done | sort -V | tail -n 1
}

# compile_all_options COMPILER: the touched objects, with every option there is.
compile_all_options() {
	all=$work/all-options
	log=$work/all-options.log
	begun=$(date +%s)
	rm -rf "$all"
	mkdir "$all"
	{
		make -s -C "$work/linux" O="$all" CC="$1" allmodconfig &&
			make -s -C "$work/linux" O="$all" CC="$1" -j"$(nproc)" prepare &&
			make_objects "$all" CC="$1"
	} >"$log" 2>&1 || {
		grep -m5 -E 'error:|\*\*\*' "$log" >&2 || true
		die "the series does not compile with allmodconfig by $1"
	}
	# clang leaves some builtins out where there is no SSE.
	objdump -d "$all/arch/x86/lib/copy_nontemporal.o" | grep -q prefetcht0 ||
		die "$1: the copy has lost its prefetch"
	list_warnings
	complain_about_new_warnings "allmodconfig by $1"
	echo "check-series: allmodconfig: $(objects | wc -l) objects by $1 in $(($(date +%s) - begun)) s"
}

try_all_options() {
	compile_all_options gcc
	least=$(SRCARCH=x86 sh "$work/linux/scripts/min-tool-version.sh" llvm)
	clang=$(find_clang "$least")
	if [ -z "$clang" ]; then
		echo "check-series: not compiled by clang: this source wants $least or later: apt-get install clang-19"
		return
	fi
	compile_all_options "$clang"
}

# Where there is no such copy, and where the hint makes an iterator larger.
compile_32_bit() {
	log=$work/32-bit.log
	mkdir "$work/32-bit"
	# shellcheck disable=SC2046 # a list of files
	{
		configure "$work/32-bit" i386 &&
			make -s -C "$work/linux" O="$work/32-bit" ARCH=i386 -j"$(nproc)" W=1 \
				$(objects | grep -v -e nontemporal -e ^mm/)
	} >"$log" 2>&1 || {
		grep -m5 -E 'error:|\*\*\*' "$log" >&2 || true
		die "the series does not compile for i386"
	}
	list_warnings
	complain_about_new_warnings i386
	echo "check-series: i386: compiled"
}

try_whole() {
	compile_32_bit
	link_modules
	link_um
	compile_selftests
	try_all_options
}

# Lines that patches add, comments and all, but for documentation and tests. 6.12 has
# UDP-Lite and DCCP more.
case $series in */6.12) most=420 ;; *) most=400 ;; esac
count_lines() {
	lines=$(cat "$series"/unix/*.patch "$series"/net/*.patch | awk '
		/^diff --git / { on = $4 !~ "^b/(Documentation|tools/testing)/" }
		/^\+/ && !/^\+\+\+ / && on { count++ }
		END { print count }')
	[ "$lines" -le $most ] || die "unix and net add $lines lines, more than $most"
	echo "check-series: unix and net add $lines lines that are neither test nor documentation"
}

# Each deliberate mistake is one in 7.3 and must find there what it changes.
find_mistakes() {
	python3 - "$root/kernel/selftests/mutations.toml" <<-'END' |
		import sys, tomllib
		with open(sys.argv[1], "rb") as table:
		    for name, mistake in tomllib.load(table).items():
		        print(name, mistake["file"], mistake["change"], sep="\t")
	END
		while IFS="$(printf '\t')" read -r name file change; do
			perl -0p -e "$change" "$work/linux/$file" >"$work/mistake"
			! cmp -s "$work/mistake" "$work/linux/$file" ||
				die "mutations.toml: $name changes nothing in $file"
		done
}

# Lines move, so a warning of the untouched source is known by its text.
complain_about_new_warnings() {
	grep -vxFf "$work/base-warnings" "$work/warnings" >"$work/new-warnings" || return 0
	cat "$work/new-warnings" >&2
	die "$1: warnings from W=1 or sparse, above"
}

count_lines
fetch_source
in_tree init -q
in_tree add -Af .
in_tree commit -qm base
sparse=
if [ -n "$build" ]; then
	configure "$work/out" x86_64
	compile 'the source without patches'
	mv "$work/warnings" "$work/base-warnings"
fi

count=0
tried=
for patch in $patches; do
	name=${patch#"$series"/}
	case $name in
	um/*)
		[ -z "$build" ] || [ -n "$tried" ] || try_whole
		tried=1
		;;
	esac
	patch -sfp1 --dry-run -d "$work/linux" <"$patch" || die "$name: patch does not take it"
	in_tree am -q "$patch" 2>"$work/am.log" || {
		cat "$work/am.log" >&2
		die "$name does not apply"
	}
	# Who posts a patch signs it off. A file may be new without a line in MAINTAINERS, which
	# knows ours by their names.
	# A bench's patch gives UML what include/linux/uaccess.h asks for by such a name. And
	# checkpatch takes the %l before the label of an asm goto for an operator.
	ignore=FILE_PATH_CHANGES,MISSING_SIGN_OFF
	case $name in
	um/*) ignore=$ignore,DEFINE_ARCH_HAS ;;
	*-x86-lib-*) ignore=$ignore,SPACING ;;
	esac
	(cd "$work/linux" &&
		perl scripts/checkpatch.pl --strict --no-tree --quiet --ignore="$ignore" "$patch") ||
		die "$name: checkpatch has something to say, above"
	case $name in
	um/*) ;;
	*)
		[ -z "$build" ] || {
			compile "$name"
			complain_about_new_warnings "$name"
		}
		;;
	esac
	count=$((count + 1))
	echo "check-series: $name"
done
[ -z "$build" ] || [ -n "$tried" ] || try_whole
[ "$(basename "$series")" != 7.3 ] || find_mistakes
echo "check-series: $count patches apply${build:+, build} and are clean$sparse"
