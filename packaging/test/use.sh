#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Inside the Debian of test-dist.sh, with the packages installed: the program, its
# manual and completions, and the library as somebody who compiles against it.
#
# usage: packaging/test/use.sh VERSION USE.C
set -eu

version=$1
program=$2

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
says splice storaged --capabilities
says tls proxyd --capabilities
proxyd --check --config /etc/proxyd/proxyd.toml || die "proxyd refuses its own settings"
# The kernel of the machine around this Debian may not know the flag.
says /usr/lib/ntcopy/libntcopy-preload.so ntcopy run --anyway -- printenv LD_PRELOAD

for page in ntcopy.1 ntcopy-bench-unix.1 ntcopy-run.1 ntcopy.3 msg_ntcopy.7 storaged.8 proxyd.8 \
	ntcopy-module.8; do
	name=${page%.*}
	man -w "${page##*.}" "$name" >/dev/null || die "no manual page $page"
done
bash -c '. /usr/share/bash-completion/completions/ntcopy && complete -p ntcopy' >/dev/null ||
	die "bash learns no completion"
[ -s /usr/share/zsh/vendor-completions/_ntcopy ] || die "zsh learns no completion"
[ -s /usr/share/fish/vendor_completions.d/ntcopy.fish ] || die "fish learns no completion"
ldconfig -p | grep -q 'libntcopy\.so\.0 ' || die "the loader does not know libntcopy.so.0"

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
