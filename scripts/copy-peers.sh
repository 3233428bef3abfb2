#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes other projects' copies, which come as an archive or in a header, into
# libraries that `ntcopy bench memcpy --modes llvm-libc,rte-memcpy` finds:
#
#   scripts/copy-peers.sh DIR && LD_LIBRARY_PATH=DIR ntcopy bench memcpy ...
#
# What it takes: Debian's libllvmlibc-22-dev (or another number), libdpdk-dev,
# gcc. ROOT is where they are, if they were only unpacked (dpkg -x). What is not
# there is named, exit code 3; the others are made.
#
# usage: [ROOT=/] scripts/copy-peers.sh DIR
set -eu

to=${1:?usage: [ROOT=/] scripts/copy-peers.sh DIR}
root=${ROOT:-}
mkdir -p "$to"
missing=

# One function, whatever the library calls its own.
source_of() {
	cat <<-C
		$2
		void *ntcopy_peer_memcpy(void *to, const void *from, size_t len, unsigned int flags)
		{
			(void)flags;
			return $1(to, from, len);
		}
	C
}

make_library() {
	name=$1
	shift
	gcc -O3 -fPIC -shared -fno-builtin -Wall -Wextra -o "$to/libntcopy-peer-$name.so" -x c - "$@"
	echo "copy-peers: $to/libntcopy-peer-$name.so"
}

archive=$(find "$root/usr/lib" -path '*/llvm-*/lib/libllvmlibc.a' 2>/dev/null | sort -V | tail -n 1)
if [ -n "$archive" ]; then
	# Its memcpy is inside, and the one of this system is not to take its place.
	source_of memcpy '#include <string.h>' |
		make_library llvm-libc -x none "$archive" -Wl,-Bsymbolic -Wl,--exclude-libs,ALL
else
	missing="$missing libllvmlibc-22-dev"
fi

headers=$root/usr/include/dpdk
arch_headers=$root/usr/include/x86_64-linux-gnu/dpdk
if [ -e "$arch_headers/rte_memcpy.h" ]; then
	# The header chooses by the compiler's options for the CPU; AVX-512 has to be asked for.
	source_of rte_memcpy '#include <stddef.h>
#include <rte_config.h>
#include <rte_memcpy.h>' |
		make_library rte-memcpy -march=native -DRTE_MEMCPY_AVX512 -DALLOW_INTERNAL_API \
			-isystem "$arch_headers" -isystem "$headers"
else
	missing="$missing libdpdk-dev"
fi

[ -z "$missing" ] || {
	echo "copy-peers: not installed:$missing" >&2
	exit 3
}
