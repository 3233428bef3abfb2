#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by soak*.sh, which set $minutes and, where they boot one, $kernel to what
# holds without the options, and have a line of their comment for usage().

usage() {
	sed -n 's/^# usage: /usage: /p' "$0" >&2
	exit 2
}

# read_soak_arguments "$@": --minutes, --seed and --kernel into $minutes, $seed
# and $kernel. Without --seed it is a random one.
read_soak_arguments() {
	seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
	while [ $# -gt 1 ]; do
		case $1 in
		--minutes) minutes=$2 ;;
		--seed) seed=$2 ;;
		--kernel)
			[ -n "${kernel:-}" ] || usage
			kernel=$2
			;;
		*) usage ;;
		esac
		shift 2
	done
	[ $# -eq 0 ] || usage
	for number in "$minutes" "$seed"; do
		case $number in
		'' | *[!0-9]*) usage ;;
		esac
	done
}
