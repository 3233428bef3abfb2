#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Writes the kernel patches as they are sent: whole, so that git am and patch take them.
# Beneath its `---`, a patch of kernel/series has a line for each file that it adds and
# that this tree has already:
#
#	with kernel/module/copy_nontemporal.c as arch/x86/lib/copy_nontemporal.c
#
# The file is put into the patch in that place. A folder stands for the files in it.
# A patch that another series has, too, begins with a line for its message, and has what
# differs of its diffs below it, if any does:
#
#	like kernel/series/7.3/unix/0002-iov_iter.patch [PATCH 6.12 2/2]
#
# made/suite and made/pages are made of kernel/selftests: the suite as a kernel tree has
# it, without what needs ntcopy.ko, and the test of pages for selftests/mm.
#
# usage: scripts/series.sh FOLDER [SERIES...]     default: all of kernel/series
#
# Needs sh, sed and awk alone: crates/ntcopy-kernel embeds what this writes.
set -eu
export LC_ALL=C

[ $# -gt 0 ] || {
	echo "usage: scripts/series.sh FOLDER [SERIES...]" >&2
	exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
out=$1
shift
[ $# -gt 0 ] || set -- "$root"/kernel/series/*

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-series-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

die() {
	echo "series: $*" >&2
	exit 1
}

suite=$root/kernel/selftests
# Beside the programs that the Makefile names.
common="config settings scene.c scene_io.c stat.c family.c family_other.c device.c ring.c
	identical.h ring.h scene.h"

# The flag's and the option's numbers, where the C library does not have them yet.
numbers() {
	cat <<-'END'
		/* SPDX-License-Identifier: GPL-2.0 */
		/* MSG_NTCOPY: its numbers, and the lines of its counters. */
		#ifndef MSG_NTCOPY_H
		#define MSG_NTCOPY_H

		#include <sys/socket.h>

	END
	sed -n 's/^#define \(MSG_NTCOPY\|SO_NTCOPY\|NTCOPY_MIN_BYTES\|NTCOPY_FLAGGED\)\t\+\([0-9a-fx]*\).*/#ifndef \1\n#define \1\t\2\n#endif/p' \
		"$root/uapi/ntcopy/uapi.h"
	echo
	sed -n 's/^\(#define NTCOPY_STAT_[A-Z_]*\t*"[^"]*"\).*/\1/p' "$root/uapi/ntcopy/uapi.h"
	printf '\n#endif /* MSG_NTCOPY_H */\n'
}

# Outside of a kernel tree the tests also run where a module stands in for the option.
forget_module() {
	sed -i -e '/^\t\/\* A stock kernel.s pieces/d' -e '/^\t\/\* The module.* \*\/$/d' \
		-e '/^\tif (via_module())$/{N;d}' \
		-e '/^\tif (!via_module())$/{N;s/.*\n\t//}' \
		-e 's/ || via_module()//; s/ && !via_module()//; s/!via_module() && //' \
		-e 's/via_module() ? &unix_stream : //; s/  The module looks at .* first\.//' \
		-e '/^\t*if (!can_be_hinted(.*))$/{N;d}' \
		-e '/^\t*if (can_be_hinted(.*))$/{N;s/.*\n\t//}' \
		-e '/if (!can_be_hinted(.*) ||$/{N;s/!can.*\n\t* *//}' \
		-e '/^bool via_module(void);$/d; /^struct counts module_counts(void);$/d; /^bool can_be_hinted(.*);$/d' "$tree"/*.[ch]
	! grep -n 'via_module\|can_be_hinted\|[Tt]he module' "$tree"/* ||
		die "the suite still asks for the module"
}

make_suite() {
	tree=$work/made/suite
	mkdir -p "$tree"
	programs=$(sed -n '/^TEST_GEN_PROGS :=/,/^#/s/^\t\([a-z_]*\) \\$/\1/p' "$suite/Makefile" |
		grep -vxe ntcopy_pages -e user_copies)
	for file in $common; do
		cp "$suite/$file" "$tree/"
	done
	for program in $programs; do
		cp "$suite/$program.c" "$tree/"
		echo "$program"
	done >"$tree/.gitignore"
	cp "$suite/hint_in_tree.c" "$tree/hint.c"
	forget_module
	numbers >"$tree/msg_ntcopy.h"
	sed -i "s:<ntcopy/uapi.h>:\"msg_ntcopy.h\":" "$tree/scene.h"
	grep -vx "	\(ntcopy_pages\|user_copies\) .*" "$suite/Makefile" | sed 's/ page_area\.h / /' >"$tree/Makefile"
}

make_pages() {
	tree=$work/made/pages
	mkdir -p "$tree"
	sed 's/"page_area\.h"/"page_nt.h"/; s#"kselftest_harness\.h"#"../kselftest_harness.h"#' \
		"$suite/ntcopy_pages.c" >"$tree/page_nt.c"
	sed 's/PAGE_AREA_H/PAGE_NT_H/' "$suite/page_area.h" >"$tree/page_nt.h"
}

# new_file FILE NAME: the diff that adds it.
new_file() {
	printf 'diff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n' "$2" "$2" "$2"
	echo "@@ -0,0 +1,$(wc -l <"$1") @@"
	sed 's/^/+/' "$1"
}

# files SOURCE NAME: each file of it, and its name in a kernel tree.
files() {
	case $1 in
	made/*) source=$work/$1 ;;
	*) source=$root/$1 ;;
	esac
	if [ -d "$source" ]; then
		find "$source" -type f | sort | sed "s#^$source/\(.*\)#$source/\1 $2/\1#"
	elif [ -f "$source" ]; then
		echo "$source $2"
	else
		die "there is no $1"
	fi
}

# shellcheck disable=SC2016 # awk's own fields
stat='
	/^diff --git / { name = substr($3, 3); names[++count] = name }
	/^new file / { created[name] = $4 }
	/^\+/ && !/^\+\+\+ / { added[name]++; all++ }
	/^-/ && !/^--- / { removed[name]++; less++ }
	END {
		for (i = 1; i <= count; i++)
			printf(" %-49s | %4d\n", names[i], added[names[i]] + removed[names[i]])
		printf(" %d files changed, %d insertions(+), %d deletions(-)\n", count, all, less)
		for (i = 1; i <= count; i++)
			if (names[i] in created)
				print " create mode " created[names[i]] " " names[i]
	}'

# whole PATCH: on the output, as it is sent.
whole() {
	message=$1
	diffs=$1
	read -r like other prefix <"$1"
	if [ "$like" = like ]; then
		message=$root/$other
		grep -q '^diff --git ' "$1" || diffs=$message
	else
		prefix=$(sed -n 's/^Subject: \(\[[^]]*\]\).*/\1/p' "$1")
	fi
	sed -n '/^diff --git /,$p' "$diffs" >"$work/diffs"
	sed -n '/^---$/,/^diff --git /s/^with \(.*\) as \(.*\)$/\1 \2/p' "$message" >"$work/with"
	while read -r source name; do
		files "$source" "$name"
	done <"$work/with" >"$work/files"
	while read -r file name; do
		new_file "$file" "$name"
	done <"$work/files" >>"$work/diffs"
	sed -e "s#^Subject: \[[^]]*\]#Subject: $prefix#" -e '/^---$/q' "$message"
	awk "$stat" "$work/diffs"
	echo
	cat "$work/diffs"
}

make_suite
make_pages
for series; do
	for patch in "$series"/*/*; do
		to=$out/$(basename "$series")/$(basename "$(dirname "$patch")")
		mkdir -p "$to"
		case $patch in
		*.patch) whole "$patch" >"$to/$(basename "$patch")" ;;
		*) cp "$patch" "$to/" ;;
		esac
	done
done
