#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Whether this tree says the same as an earlier commit, byte for byte: every record
# in bench/record and packaging/abi as table, Markdown, JSON and page, compared, as
# advice and in a survey; and the whole command line's help. What the earlier
# commit says is kept in out/same/COMMIT.
#
# usage: scripts/same.sh [COMMIT]    default: the merge base with main, or HEAD there
#
# Exit codes: 0 the same; 1 something differs; which files, and where, was printed.
set -eu
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
target=$(pwd)/${CARGO_TARGET_DIR:-target}
case ${CARGO_TARGET_DIR:-} in /*) target=$CARGO_TARGET_DIR ;; esac
base=$(git rev-parse --verify "${1:-$(git merge-base HEAD main)}^{commit}")
kept=out/same/$base

# programs SOURCE PLACE: builds a tree, and keeps its programs.
programs() {
	mkdir -p "$2"
	(cd "$1" && CARGO_TARGET_DIR=$target "$cargo" build --locked -q -p ntcopy-cli)
	cp "$target/debug/ntcopy" "$2/ntcopy"
}

# said PLACE: writes all that the programs there say into PLACE/said. The records are this tree's.
said() {
	place=$(cd "$1" && pwd)
	rm -rf "${place:?}/said"
	mkdir -p "${place:?}/said"
	# The same words on every command line: pages print theirs.
	records=$(find bench/record packaging/abi -name record.jsonl -exec dirname {} + | sort)
	cp "$place/ntcopy" out/same/ntcopy
	for record in $records; do
		name=$place/said/$(echo "$record" | tr / -)
		out/same/ntcopy report "$record" >"$name.table"
		out/same/ntcopy report "$record" --markdown >"$name.md"
		out/same/ntcopy report "$record" --json >"$name.json"
		out/same/ntcopy report "$record" --out out/same/page.html
		mv out/same/page.html "$name.html"
	done
	before=
	for folder in $(folders); do
		name=$place/said/$(basename "$folder")
		out/same/ntcopy advise "$folder" --json >"$name.advice.json" || :
		out/same/ntcopy advise "$folder" >"$name.advice" 2>&1 || :
		for other in $before; do
			to=$name.$(basename "$other").compare
			out/same/ntcopy report "$other" --against "$folder" >"$to" 2>&1 || :
			out/same/ntcopy report "$other" --against "$folder" --json >"$to.json" 2>&1 || :
			rm -f out/same/page.html
			out/same/ntcopy report "$other" --against "$folder" --out out/same/page.html || :
			[ ! -e out/same/page.html ] || mv out/same/page.html "$to.html"
		done
		before=$folder
	done
	surveyed "$place"
	helped >"$place/said/help"
	for name in unix retention memcpy memset order pages http net pingpong; do
		out/same/ntcopy bench "$name" --list >"$place/said/$name.defaults"
	done
	rm -rf out/same/home out/same/ntcopy
}

# helped COMMAND...: its help, and that of all commands below it
helped() {
	out/same/ntcopy "$@" --help
	for below in $(out/same/ntcopy "$@" --help | awk '
		/^[A-Z]/ { list = /^(Commands|Experiments|What most|Measuring|Kernels, )/ }
		list && /^  [a-z]/ && $1 != "help" { print $1 }'); do
		helped "$@" "$below"
	done
}

# folders: those with a machine's records, not what lies beside them.
folders() {
	find bench/record -mindepth 1 -maxdepth 1 -type d | sort
}

# surveyed PLACE
surveyed() {
	# The same place for both: it is printed.
	home=$(pwd)/out/same/home
	rm -rf "${home:?}"
	mkdir -p "$home"
	export HOME="$home" NTCOPY_SURVEY_STORE="$home/survey.sqlite"
	# shellcheck disable=SC2046 # a list of folders
	out/same/ntcopy survey add $(folders) 2>/dev/null >"$1/said/survey.added"
	out/same/ntcopy survey report >"$1/said/survey"
	out/same/ntcopy survey report --json >"$1/said/survey.json"
	out/same/ntcopy survey report --out out/same/page.html
	mv out/same/page.html "$1/said/survey.html"
}

if [ ! -e "$kept/done" ]; then
	echo "same: what $base says, into $kept"
	mkdir -p "$kept/source"
	git archive "$base" | tar -x -C "$kept/source"
	programs "$kept/source" "$kept"
	rm -rf "$kept/source"
	: >"$kept/done"
fi
programs . out/same/now
said "$kept"
said out/same/now

failed=0
(cd "$kept/said" && find . -type f | sort) >out/same/files.base
(cd out/same/now/said && find . -type f | sort) >out/same/files.now
diff out/same/files.base out/same/files.now || failed=1
while read -r file; do
	[ ! -e "out/same/now/said/$file" ] || cmp "$kept/said/$file" "out/same/now/said/$file" || failed=1
done <out/same/files.base
[ $failed = 0 ] || {
	echo "same: differs from $base" >&2
	exit 1
}
echo "same: $(wc -l <out/same/files.base) files, byte for byte those of $base"
