#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Holds the Job of `ntcopy survey run --on kubernetes`, and the manifest of the image,
# packaging/kubernetes/ntcopy.yaml, against the API schemas that
# Kubernetes published with its releases, strictly: a field that a schema does not
# have is an error. The schemas come with kubernetes-validate, from Python's package
# index, which is kept in ~/.cache/ntcopy.
#
# usage: scripts/check-kubernetes-schema.sh NTCOPY
set -eu

validator=1.37.0
# The oldest that takes the Job, one between, and the newest, which the tests' types are of too.
releases="1.29 1.33 1.37"

ntcopy=${1:?usage: scripts/check-kubernetes-schema.sh NTCOPY}
site=${NTCOPY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ntcopy}/kubernetes-validate-$validator

if [ ! -d "$site" ]; then
	echo "fetching kubernetes-validate $validator"
	rm -rf "$site.part"
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check \
		--target "$site.part" "kubernetes-validate==$validator" || {
		rm -rf "$site.part"
		echo "not available here: kubernetes-validate $validator cannot be fetched" >&2
		exit 3
	}
	mv "$site.part" "$site"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-kubernetes-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# is_valid RELEASE FILE
is_valid() {
	PYTHONPATH=$site python3 -m kubernetes_validate --strict --kubernetes-version "$1" "$2"
}

# job FILE ARGUMENT...: the Job with these options, checked
job() {
	file=$work/$1
	shift
	"$ntcopy" survey run --on kubernetes --image example.org/ntcopy:1 --fleet fleet "$@" \
		>"$file" 2>/dev/null
	for release in $releases; do
		is_valid "$release" "$file"
	done
}

job any.json --count 40
job named.json --nodes n1,n2 --quick --experiments memcpy,retention --namespace bench --retries 5
job chosen.json --count 3 --toleration all --toleration gpu=yes:NoSchedule --node-selector pool=big

for release in $releases; do
	is_valid "$release" "$(dirname "$0")/../packaging/kubernetes/ntcopy.yaml"
done

# A check that finds nothing in a wrong one would be none.
sed 's/"restartPolicy"/"restartPolcy"/' "$work/any.json" >"$work/wrong.json"
for release in $releases; do
	if is_valid "$release" "$work/wrong.json" >"$work/said" 2>&1; then
		echo "a field that does not exist was not noticed by $release" >&2
		exit 1
	fi
	grep -q restartPolcy "$work/said"
done
echo "the Job and the manifest are what Kubernetes $releases describe, and a wrong one was refused"
