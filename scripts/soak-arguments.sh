#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by soak*.sh, which set $minutes and, where they boot one, $kernel to what
# holds without the options, and have a line of their comment for usage(). One that
# sets $programs takes --programs and --cpus, too.

usage() {
	sed -n '/^# usage: /,/^[^#]/{ s/^# //p; }' "$0" >&2
	exit 2
}

# read_soak_arguments "$@": --minutes, --seed, --kernel, --programs and --cpus into
# variables of these names. Without --seed it is a random one.
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
		--programs | --cpus)
			[ -n "${programs:-}" ] || usage
			[ "$1" = --cpus ] && cpus=$2 || programs=$2
			;;
		*) usage ;;
		esac
		shift 2
	done
	[ $# -eq 0 ] || usage
	for number in "$minutes" "$seed" "${programs:-1}" "${cpus:-1}"; do
		case $number in
		'' | *[!0-9]*) usage ;;
		esac
	done
}
