#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Inside the Debian of test-dist.sh, with the packages installed: the program, its
# manual and completions, and the library, with a program that is compiled against it.
#
# usage: packaging/test/use.sh VERSION USE.C PAGES
#
# PAGES: a file with the names of the manual pages that are written by hand
set -eu

version=$1
program=$2
by_hand=$3

die() {
	echo "use: $*" >&2
	exit 1
}

# says WORDS COMMAND...: the command succeeds, and its output has the words.
says() {
	words=$1
	shift
	said=$("$@" 2>&1) || die "$* ends with $?: $said"
	case $said in
	*"$words"*) ;;
	*) die "$* does not say '$words': $said" ;;
	esac
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for command in ntcopy storaged proxyd; do
	says "$command $version" "$command" --version
done
says MSG_NTCOPY ntcopy probe
proxyd --check --config /etc/proxyd/proxyd.toml || die "proxyd refuses its own settings"
# The kernel of the machine around this Debian may not know the flag.
says /usr/lib/ntcopy/libntcopy-preload.so ntcopy run --anyway -- printenv LD_PRELOAD

# is_there PAGE: man finds it, in the section that it is of.
is_there() {
	man -w "${1##*.}" "${1%.*}" >/dev/null 2>&1
}

# Each page by hand, and each that the program makes of its own help.
pages=0
while read -r page; do
	is_there "$page" || die "no manual page $page"
	pages=$((pages + 1))
done <"$by_hand"
for page in $(dpkg -L ntcopy | sed -n 's,.*/\(ntcopy[a-z-]*\.[18]\|storaged\.8\|proxyd\.8\)\.gz$,\1,p'); do
	is_there "$page" || die "no manual page $page"
	pages=$((pages + 1))
done
[ "$pages" -gt 40 ] || die "only $pages manual pages are known to look for"
echo "use: $pages manual pages"

# script_of SHELL FILE COMMAND...: the shell's completions are there and it can read them.
script_of() {
	shell=$1
	file=$2
	shift 2
	[ -s "$file" ] || die "$shell learns no completion: no $file"
	if ! command -v "$shell" >/dev/null; then
		echo "use: $shell is not installed: its completions were not read"
		return
	fi
	# What a shell keeps for its user stays out of this Debian.
	if ! words=$(HOME=$work "$@" "$file" 2>&1) || [ -n "$words" ]; then
		die "$shell on $file: $words"
	fi
}
bash -c '. /usr/share/bash-completion/completions/ntcopy && complete -p ntcopy' >/dev/null ||
	die "bash learns no completion"
script_of zsh /usr/share/zsh/vendor-completions/_ntcopy zsh -n
script_of fish /usr/share/fish/vendor_completions.d/ntcopy.fish fish --no-execute

says "$version" pkg-config --modversion ntcopy
# shellcheck disable=SC2046 # options
cc -Wall -Wextra -Werror "$program" $(pkg-config --cflags --libs ntcopy) -o "$work/shared"
says "libntcopy $version" "$work/shared"
readelf -d "$work/shared" | grep -q 'NEEDED.*\[libntcopy\.so\.0\]' ||
	die "the program is not linked with libntcopy.so.0"
# shellcheck disable=SC2046
cc -static "$program" $(pkg-config --static --cflags --libs ntcopy) -o "$work/static" \
	2>"$work/words" || die "no static program: $(cat "$work/words")"
says "libntcopy $version" "$work/static"
echo "use: $("$work/shared")"
