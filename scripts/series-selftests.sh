#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Writes kernel/selftests into the last patch of each series, as
# tools/testing/selftests/net/ntcopy/ of a kernel tree. A patch keeps its words
# and what it changes in files that are there already. What needs ntcopy.ko stays
# here, and so do the tools that are no tests: families, soak.
#
# usage: scripts/series-selftests.sh [--check]
#
# --check writes nothing, and ends with 1 where a patch is not what kernel/selftests
# would make of it, or a cover letter counts other tests than the suite has.
set -eu

# Of no other settings than these, whose ever they are.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 LC_ALL=C

root=$(cd "$(dirname "$0")/.." && pwd)
suite=$root/kernel/selftests
folder=tools/testing/selftests/net/ntcopy
# Beside the programs that the Makefile names.
common="config settings Makefile scene.c scene_io.c stat.c family.c family_other.c device.c ring.c
	identical.h page_area.h ring.h scene.h"

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

programs=$(sed -n '/^TEST_GEN_PROGS :=/,/^#/s/^\t\([a-z_]*\) \\$/\1/p' "$suite/Makefile")

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

# The folder as the kernel tree has it, in a repository that knows nothing else.
make_tree() {
	tree=$work/tree/$folder
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
	chmod 644 "$tree"/* "$tree/.gitignore"
	git -C "$work/tree" init -q
	git -C "$work/tree" add -Af .
	git -C "$work/tree" -c core.abbrev=9 diff --cached --no-renames --no-ext-diff --no-color \
		>"$work/new-files"
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

# write PATCH: what it has to be, on the output.
write() {
	# Of files that are there already: from the first of them to the first that is ours.
	awk -v ours="diff --git a/$folder/" '
		index($0, "diff --git ") == 1 { on = index($0, ours) != 1 }
		on' "$1" >"$work/diffs"
	cat "$work/new-files" >>"$work/diffs"
	sed '/^---$/q' "$1"
	awk -v ours="$folder/" "$stat" "$work/diffs"
	echo
	cat "$work/diffs"
}

# A cover letter counts the tests that crates/ntcopy-cli/tests/suite/mod.rs demands.
check_count() {
	count=$(awk '/^pub const PROGRAMS/ { on = 1; next }
		on && /^\]/ { exit }
		on { gsub(/[^0-9]/, "", $2); sum += $2 }
		END { print sum }' "$root/crates/ntcopy-cli/tests/suite/mod.rs")
	for letter in "$root"/kernel/series/*/0000-*.txt; do
		grep -q "\b$count tests\b" "$letter" ||
			die "${letter#"$root"/} does not say that the suite has $count tests"
	done
}

make_tree
for patch in "$root"/kernel/series/*/*-selftests-*.patch; do
	[ -e "$patch" ] || die "no series has a patch with the selftests"
	write "$patch" >"$work/patch"
	if [ -z "$check" ]; then
		cp "$work/patch" "$patch"
	elif ! cmp -s "$work/patch" "$patch"; then
		die "${patch#"$root"/} is not what kernel/selftests makes of it: run scripts/series-selftests.sh"
	fi
done
[ -z "$check" ] || check_count
