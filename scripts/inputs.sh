#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Prints a hash of all that a run in a booted kernel depends on: what is given (the
# kernel, the programs that run in it, words), what boots it (the sources of ntcopy's
# kernel part and of the program, their dependencies and compiler, QEMU), and this
# machine (CPU, running kernel, C library, NTCOPY_ variables). What such a run said
# holds for as long as its hash does.
#
# usage: scripts/inputs.sh [--suite] [FILE|=WORD]...
#
# --suite: the programs of kernel/selftests, by what they are built of.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)

# Subcommands that those which boot a kernel and load a module do not use.
elsewhere='(bench|survey|advise|calibrate|compare|footprint|try|records)'

# The folders and files that go into the program that boots.
sources() {
	cd "$root"
	! grep -rnE "(^|[^a-z_])$elsewhere::" crates/ntcopy-cli/src/cmd/kernel* crates/ntcopy-cli/src/cmd/module* >&2 || {
		echo "inputs: a boot depends on what this leaves out, above" >&2
		exit 1
	}
	for crate in ntcopy ntcopy-kernel ntcopy-cli; do
		find "crates/$crate" -maxdepth 1 -type f
		find "crates/$crate/src" -type f | grep -Ev "ntcopy-cli/src/cmd/$elsewhere(/|\.rs)"
	done >"$list"
	find uapi Cargo.toml Cargo.lock scripts/inputs.sh -type f >>"$list"
	LC_ALL=C sort "$list" | tr '\n' '\0' | xargs -0 sha256sum
	"${CARGO:-cargo}" --version --verbose
}

machine() {
	sed -n '/^$/q; /^\(model name\|microcode\|flags\|cache size\)/p' /proc/cpuinfo
	nproc
	uname -srv
	ldd "$(command -v sh)" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | xargs -r sha256sum
	env | grep '^NTCOPY_' | grep -v '^NTCOPY_ANEW=' | LC_ALL=C sort || true
	for emulator in qemu-system-x86_64 /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd; do
		if path=$(command -v "$emulator"); then
			sha256sum "$path"
		fi
	done
}

# The suite's sources, compiler, and the packages that its harness is out of.
suite() {
	find kernel/selftests scripts/selftests.sh -type f -print0 | LC_ALL=C sort -z |
		xargs -0 sha256sum
	"${CC:-cc}" --version
	if [ -n "${NTCOPY_LINUX-}" ]; then
		sha256sum "$NTCOPY_LINUX"/tools/testing/selftests/kselftest*.h
	else
		packages=$("$root/scripts/cache.sh")/packages
		find "$packages/" -name 'linux-source-*.deb' | LC_ALL=C sort
	fi
}

given() {
	for input; do
		case $input in
		--suite) (cd "$root" && suite) ;;
		=*) echo "word ${input#=}" ;;
		*) sha256sum <"$input" ;;
		esac
	done
}

list=$(mktemp)
trap 'rm -f "$list"' EXIT
# Not a pipe: what can't be read is an error, and no hash of the rest.
all=$(
	given "$@"
	sources
	machine
)
echo "$all" | sha256sum | cut -c 1-32
