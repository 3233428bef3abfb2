#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Upstream's own network tests, unmodified, from the source that the kernel was
# made of: each with hints ignored (net.core.ntcopy=0) and with every send
# hinted and obeyed, however small (3). What comes out must be the same. Which
# tests, and what each needs: kernel/upstream-tests.toml.
#
# usage: scripts/upstream-tests.sh NTCOPY [--only TEST]... [KERNEL]...
#
#   --only    this test, whatever came of it before
#   KERNEL    um or um:6.12; default: um
#
# Goes on where an interrupted run ended; results of another kernel or list are
# not taken. They are kept in out/upstream-tests. Ends with 1 where a test behaves
# differently, and with 3 where programs are missing.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
list=$root/kernel/upstream-tests.toml
cache=$("$root/scripts/cache.sh")
results=$root/out/upstream-tests
# A guest that dies with each test would otherwise be booted for ever.
most_boots=40

say() {
	echo "upstream-tests: $*"
}

die() {
	say "$*" >&2
	exit 1
}

[ $# -gt 0 ] || die "usage: scripts/upstream-tests.sh NTCOPY [--only TEST]... [KERNEL]..."
ntcopy=$(realpath "$1")
shift
only=
kernels=
while [ $# -gt 0 ]; do
	case $1 in
	--only)
		only="$only --only $2"
		shift
		;;
	-*) die "unknown option $1" ;;
	*) kernels="$kernels $1" ;;
	esac
	shift
done

python() {
	verb=$1
	shift
	# shellcheck disable=SC2086 # options
	python3 "$root/scripts/upstream-tests.py" "$verb" --list "$list" --kernel "$kernel" $only "$@"
}

# The newest package of the kernel's series that `ntcopy kernel build` keeps.
source_package() {
	case $1 in
	*:6.12 | *:6.12,*) series=6.12 ;;
	*) series='7.*' ;;
	esac
	find "$cache/packages/" -name "linux-source-${series}_*.deb" | sort -V | tail -n 1
}

# Where the tests of a kernel's source lie, unpacked and with their headers.
# $1: the kernel
prepare_tree() {
	package=$(source_package "$1")
	[ -n "$package" ] || die "no source package for $1 in $cache/packages"
	tree=$cache/upstream-tests/$(basename "$package" .deb)
	[ -e "$tree/ready" ] && return
	say "unpacking the tests of $(basename "$package" .deb)"
	rm -rf "$tree.partial"
	mkdir -p "$tree.partial"
	dpkg-deb --fsys-tarfile "$package" |
		tar x -O --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$tree.partial" --strip-components=1 --wildcards \
			'*/Makefile' '*/Kbuild*' '*/scripts/*' '*/include/*' '*/arch/x86/*' \
			'*/tools/testing/selftests/*' '*/tools/lib/*' '*/tools/build/*' '*/tools/arch/*' \
			'*/usr/*'
	make -s -C "$tree.partial" ARCH=x86 headers >"$tree.partial/headers.log" 2>&1 || {
		tail -n 5 "$tree.partial/headers.log" >&2
		die "the kernel's headers cannot be made"
	}
	touch "$tree.partial/ready"
	rm -rf "$tree"
	mv "$tree.partial" "$tree"
}

# Builds what is not there yet. The tests' own makefiles do it.
build_programs() {
	net=$tree/tools/testing/selftests/net
	for program in $(python programs --tree "$net"); do
		[ -e "$net/$program" ] && continue
		folder=$net/$(dirname "$program")
		make -s -C "$folder" "$(realpath "$folder")/$(basename "$program")" \
			>"$tree/build.log" 2>&1 || {
			grep -m5 -E 'error|Error' "$tree/build.log" >&2
			die "$program cannot be built; all of it: $tree/build.log"
		}
	done
	# What modprobe(8) is asked for is built into these kernels, or they don't have it; the test
	# itself finds out which.
	mkdir -p "$tree/bin"
	printf '#!/bin/sh\nexit 0\n' >"$tree/bin/modprobe"
	chmod +x "$tree/bin/modprobe"
}

# One boot in one mode. $1: the kernel, $2: the mode, $3: seconds
boot() {
	cpus=2
	[ "$1" != um:6.12 ] || cpus=1
	# shellcheck disable=SC2086 # options
	PATH=$tree/bin:$PATH LC_ALL=C TERM=dumb "$ntcopy" kernel boot --kernel "$1" --cpus "$cpus" \
		--sysctl "net.core.ntcopy=$2" --timeout "$3" --console "$console" --write "$results" --write "$tree" -- \
		python3 "$root/scripts/upstream-tests.py" run --list "$list" --tree "$net" \
		--results "$file" --mode "$2" --kernel "$1" $only
}

# $1: the kernel
run_kernel() {
	kernel_path=$("$ntcopy" kernel build --kernel "$1")
	prepare_tree "$1"
	build_programs
	name=$(echo "$1" | tr :+ --)
	file=$results/$name${only:+-only}.jsonl
	console=$results/$name.console
	key="$(basename "$(dirname "$kernel_path")") $(cksum <"$list")"
	mkdir -p "$results"
	if [ -n "$only" ] || [ "$(cat "$file.key" 2>/dev/null)" != "$key" ]; then
		rm -f "$file"
		echo "$key" >"$file.key"
	fi
	say "$1: $("$ntcopy" kernel boot --kernel "$1" -- uname -r)"
	boots=0
	while :; do
		todo=$(python todo --tree "$net" --results "$file" | sed -n 1p)
		[ -n "$todo" ] || break
		boots=$((boots + 1))
		[ "$boots" -le "$most_boots" ] || die "$1: $most_boots boots, and still not done"
		boot "$1" "${todo% *}" "$((${todo#* } + 60))" ||
			say "the guest did not end well; going on with what is left"
		if grep -E 'BUG:|WARNING:|Oops|Kernel panic|INFO: task' "$console" >&2; then
			die "$1: the kernel complained, above; all of it: $console"
		fi
	done
	python judge --tree "$net" --results "$file" || failed=1
}

"$root/scripts/setup.sh" build upstream
failed=
for kernel in ${kernels:-um}; do
	run_kernel "$kernel"
done
[ -z "$failed" ]
