#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Writes kernel/selftests into the series' patches with tests: the suite into the
# last patch of net/, as tools/testing/selftests/net/ntcopy/ of a kernel tree, and
# the test of pages into that of mm/, as selftests/mm/page_nt.c. A patch keeps its
# words and what it changes in files that are there already. What needs ntcopy.ko
# stays here, and so do the tools that are no tests: families, soak.
#
# usage: scripts/series-selftests.sh [--check]
#
# --check writes nothing, and ends with 1 where a patch is not what kernel/selftests
# would make of it, or a cover letter counts other tests than there are.
set -eu

# git takes these settings only, and none of a user's or the system's.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 LC_ALL=C

root=$(cd "$(dirname "$0")/.." && pwd)
suite=$root/kernel/selftests
folder=tools/testing/selftests/net/ntcopy
# Beside the programs that the Makefile names.
common="config settings Makefile scene.c scene_io.c stat.c family.c family_other.c device.c ring.c
	identical.h ring.h scene.h"
# The one that goes to selftests/mm, and its header.
pages=ntcopy_pages

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-series-selftests-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

die() {
	echo "series-selftests: $*" >&2
	exit 1
}

check=
case ${1-} in
'') ;;
--check) check=1 ;;
*)
	echo "usage: scripts/series-selftests.sh [--check]" >&2
	exit 2
	;;
esac

programs=$(sed -n '/^TEST_GEN_PROGS :=/,/^#/s/^\t\([a-z_]*\) \\$/\1/p' "$suite/Makefile" |
	grep -vx $pages)

# The flag's and the option's numbers, where the C library does not have them yet.
numbers() {
	cat <<-'END'
		/* SPDX-License-Identifier: GPL-2.0 */
		/* MSG_NTCOPY: its numbers, and the lines of its counters. */
		#ifndef NTCOPY_H
		#define NTCOPY_H

		#include <sys/socket.h>

	END
	sed -n 's/^#define \(MSG_NTCOPY\|SO_NTCOPY\|NTCOPY_SOCK_[A-Z]*\)\t\+\([0-9a-fx]*\).*/#ifndef \1\n#define \1\t\2\n#endif/p' \
		"$root/uapi/ntcopy.h"
	echo
	sed -n 's/^\(#define NTCOPY_STAT_[A-Z_]*\t*"[^"]*"\).*/\1/p' "$root/uapi/ntcopy.h"
	printf '\n#endif /* NTCOPY_H */\n'
}

# new_files TREE: the diff that makes what is in it, of a repository that knows nothing else.
new_files() {
	git -C "$1" init -q
	git -C "$1" add -Af .
	git -C "$1" -c core.abbrev=9 diff --cached --no-renames --no-ext-diff --no-color
}

make_net() {
	tree=$work/net/$folder
	mkdir -p "$tree"
	for file in $common; do
		cp "$suite/$file" "$tree/"
	done
	for program in $programs; do
		cp "$suite/$program.c" "$tree/"
	done
	cp "$suite/hint_in_tree.c" "$tree/hint.c"
	numbers >"$tree/ntcopy.h"
	for program in $programs; do
		echo "$program"
	done >"$tree/.gitignore"
	grep -v "^	$pages " "$suite/Makefile" | sed 's/ page_area\.h / /' >"$tree/Makefile"
	chmod 644 "$tree"/* "$tree/.gitignore"
	new_files "$work/net" >"$work/net-files"
}

make_mm() {
	tree=$work/mm/tools/testing/selftests/mm
	mkdir -p "$tree"
	sed 's/"page_area\.h"/"page_nt.h"/; s#"kselftest_harness\.h"#"../kselftest_harness.h"#' \
		"$suite/$pages.c" >"$tree/page_nt.c"
	sed 's/PAGE_AREA_H/PAGE_NT_H/' "$suite/page_area.h" >"$tree/page_nt.h"
	chmod 644 "$tree"/*
	new_files "$work/mm" >"$work/mm-files"
}

# What git says of a patch above its diffs, with every version of git the same.
# shellcheck disable=SC2016 # awk's own fields
stat='
	/^diff --git / { name = substr($3, 3); names[++count] = name }
	/^\+/ && !/^\+\+\+ / { added[name]++; all++ }
	/^-/ && !/^--- / { exit 1 }
	END {
		for (i = 1; i <= count; i++)
			printf(" %-49s | %4d +\n", names[i], added[names[i]])
		printf(" %d files changed, %d insertions(+)\n", count, all)
		for (i = 1; i <= count; i++)
			if (index(names[i], ours) == 1)
				print " create mode 100644 " names[i]
	}'

# write PATCH FILES OURS: what it has to be, on the output. FILES is the diff of those whose
# names begin with OURS.
write() {
	# The diffs of files that are there already: from the first to the first that is ours.
	awk -v ours="diff --git a/$3" '
		index($0, "diff --git ") == 1 { on = index($0, ours) != 1 }
		on' "$1" >"$work/diffs"
	cat "$2" >>"$work/diffs"
	sed '/^---$/q' "$1"
	awk -v ours="$3" "$stat" "$work/diffs"
	echo
	cat "$work/diffs"
}

# renew PATCH FILES OURS: writes it, or says that it is not what it would be.
renew() {
	[ -e "$1" ] || die "${1#"$root"/}: there is no such patch"
	write "$1" "$2" "$3" >"$work/patch"
	if [ -z "$check" ]; then
		cp "$work/patch" "$1"
	elif ! cmp -s "$work/patch" "$1"; then
		die "${1#"$root"/} is not what kernel/selftests makes of it: run scripts/series-selftests.sh"
	fi
}

# Cover letters count the tests that crates/ntcopy-cli/tests/suite/mod.rs demands.
check_count() {
	mod=$root/crates/ntcopy-cli/tests/suite/mod.rs
	sed -n '/^pub const PROGRAMS/,/^\]/s/^ *("\([a-z_]*\)", \([0-9]*\)),$/\1 \2/p' "$mod" >"$work/counts"
	of_pages=$(awk -v pages=$pages '$1 == pages { print $2 }' "$work/counts")
	of_net=$(awk -v pages=$pages '$1 != pages { sum += $2 } END { print sum }' "$work/counts")
	for letter in "$root"/kernel/series/*/net/0000-*; do
		grep -q "\b$of_net tests\b" "$letter" ||
			die "${letter#"$root"/} does not say that the suite has $of_net tests"
	done
	for letter in "$root"/kernel/series/*/mm/0000-*; do
		grep -q "\b$of_pages tests\b" "$letter" ||
			die "${letter#"$root"/} does not say that there are $of_pages tests"
	done
}

make_net
make_mm
for series in "$root"/kernel/series/*; do
	renew "$(echo "$series"/net/*-selftests-*.patch)" "$work/net-files" "$folder/"
	renew "$(echo "$series"/mm/*-selftests-*.patch)" "$work/mm-files" tools/testing/selftests/mm/page_nt
done
[ -z "$check" ] || check_count
