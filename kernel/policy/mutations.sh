#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Breaks nontemporal.c as each line of mutations.txt says, and runs the tests: one
# of them has to fail. Ends with lines that count, and 1 if a mutation was not
# noticed or changed nothing.
set -eu

cd "$(dirname "$0")"
out=${OUT:-../../out/policy}
mkdir -p "$out"
caught=0
missed=0
while IFS='|' read -r name how; do
	case $name in
	'#'* | '') continue ;;
	esac
	name=${name% }
	sed "$how" ../module/nontemporal.c >"$out/mutant.c"
	if cmp -s ../module/nontemporal.c "$out/mutant.c"; then
		echo "not ok - $name: nothing in nontemporal.c looks like that any more"
		missed=$((missed + 1))
		continue
	fi
	# A warning of an unused name is no reason not to compile a mutant.
	"${CC:-cc}" -O2 -std=gnu11 -w -I"$out/include" -I../module/include -I. -include kernel.h \
		-DSOURCE="\"$(realpath "$out/mutant.c")\"" -o "$out/mutant" policy.c caches.c
	if timeout 120 "$out/mutant" first >"$out/mutant.log"; then
		echo "not ok - $name: no test noticed"
		missed=$((missed + 1))
	else
		echo "ok - $name: $(sed -n 's/^not ok [0-9]* //p' "$out/mutant.log")"
		caught=$((caught + 1))
	fi
done <mutations.txt
echo "$caught mutations caught, $missed not"
[ "$missed" -eq 0 ]
