#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the image of scripts/image.sh as a user without rights: umoci, of the Open
# Container Initiative, unpacks it, bubblewrap starts it, without root, capabilities,
# network or a writable file system, but for /tmp and /dev/shm. In
# it: `ntcopy probe`; a measurement in the user-mode kernel; storaged and proxyd; and,
# with the 64 MiB of /dev/shm that most engines give, the words about what is missing.
# A layer of which a byte was changed must be refused.
#
# usage: scripts/test-image.sh [DIR]      default: out/image
#
# Where root runs it, it goes on as the user nobody.
set -eu

# Bytes of /dev/shm: what most engines give, and what a measurement wants.
small=67108864
large=3221225472

root=$(cd "$(dirname "$0")/.." && pwd)
image=$(cd "${1:-$root/out/image}" && pwd)

say() {
	echo "test-image: $*"
}

die() {
	echo "test-image: $*" >&2
	exit 1
}

for tool in umoci bwrap python3; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "test-image: $tool is missing: scripts/setup.sh image" >&2
		exit 3
	}
done
if [ "$(id -u)" = 0 ]; then
	work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-test-image-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM HUP
	# The user nobody may not be able to read the checkout and the layout.
	cp -R "$image" "$work/image"
	cp "$0" "$work/test-image.sh"
	cp "$root/Cargo.toml" "$work/Cargo.toml"
	chown -R nobody "$work"
	NTCOPY_TEST_IMAGE=$work setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs \
		env HOME="$work" TMPDIR="$work" "$work/test-image.sh" "$work/image"
	exit
fi
work=${NTCOPY_TEST_IMAGE:-}
if [ -n "$work" ]; then
	version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$work/Cargo.toml" | head -n 1)
else
	version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
	work=$(mktemp -d "${TMPDIR:-/tmp}/ntcopy-test-image-XXXXXX")
	trap 'chmod -R u+rwX "$work"; rm -rf "$work"' EXIT
fi
trap 'exit 130' INT TERM HUP

umoci unpack --rootless --image "$image:$version" "$work/bundle" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	die "umoci does not unpack it"
}
# Arguments of bwrap that set what the image sets: environment and directory.
python3 - "$work/bundle/config.json" >"$work/settings" <<'SETTINGS'
import json
import sys

process = json.load(open(sys.argv[1], encoding="utf-8"))["process"]
assert process["args"] == ["/usr/bin/ntcopy", "probe"], process
print("--chdir", process["cwd"])
for pair in process["env"]:
    name, _, value = pair.partition("=")
    if name in ("PATH", "HOME") or name.startswith("NTCOPY"):
        print("--setenv", name, value)
SETTINGS

# in_image SHM_BYTES PROGRAM ARGUMENT...: runs it as an engine does without privileges, with
# SHM_BYTES of /dev/shm.
in_image() {
	shm=$1
	shift
	# shellcheck disable=SC2046 # a list of arguments
	bwrap --ro-bind "$work/bundle/rootfs" / --proc /proc --dev /dev --size "$shm" --tmpfs /dev/shm \
		--perms 1777 --tmpfs /tmp --unshare-all --uid 65532 --gid 65532 --clearenv \
		$(cat "$work/settings") --new-session --die-with-parent -- "$@"
}

# says WORDS SHM PROGRAM...: it ends well and says the words.
says() {
	words=$1
	shift
	code=0
	in_image "$@" >"$work/said" 2>&1 || code=$?
	[ "$code" = 0 ] || {
		cat "$work/said" >&2
		die "ends with $code: $*"
	}
	grep -q -- "$words" "$work/said" || {
		cat "$work/said" >&2
		die "does not say '$words': $*"
	}
}

says "^uid=65532" $small id
says "ntcopy $version" $small ntcopy --version
says MSG_NTCOPY $small ntcopy probe
say "probe, as uid 65532 without capabilities"
# A directory of a read-only system, and nothing half-made in it.
says "MSG_NTCOPY\|hinted" $large ntcopy kernel boot -- sh -c 'ntcopy unix-nt-bench 1048576 64 1 524288 524288 && ntcopy stat --once'
grep -q 'non-temporal' "$work/said" || die "the kernel in the image counts nothing"
say "a hinted load in the kernel of the image: $(grep -m 1 'non-temporal' "$work/said" | tr -s ' ')"
says '"ratio"' $large ntcopy bench unix --kernel um --quick --sockets 1 --object 64KiB --json --out /tmp/record
say "bench unix --kernel um --quick"
# shellcheck disable=SC2016 # the shell in the container expands it
says "^object of a container$" $small sh -c '
	mkdir /tmp/objects
	storaged --listen unix:/tmp/storaged.sock --data /tmp/objects &
	until [ -S /tmp/storaged.sock ]; do sleep 0.1; done
	proxyd --listen tcp:127.0.0.1:8080 --backend unix:/tmp/storaged.sock &
	head="/folder/object HTTP/1.1\r\nHost: proxyd\r\nConnection: close\r\n"
	for request in "PUT ${head}Content-Length: 21\r\n\r\nobject of a container" "GET $head\r\n"; do
		tries=0
		until { busybox printf "$request"; sleep 1; } | busybox nc 127.0.0.1 8080; do
			tries=$((tries + 1))
			[ $tries -lt 50 ] || exit 1
			busybox usleep 100000
		done
	done'
say "an object went in and came back through proxyd and storaged"
code=0
in_image $small ntcopy kernel boot -- true >"$work/said" 2>&1 || code=$?
[ "$code" = 3 ] || die "with 64 MiB of /dev/shm it ends with $code: $(cat "$work/said")"
grep -q '/dev/shm' "$work/said" || die "does not name /dev/shm: $(cat "$work/said")"
say "with 64 MiB of /dev/shm, exit 3: $(head -c 300 "$work/said" | tr '\n' ' ')"

layer=$(python3 -c 'import json, sys
index = json.load(open(sys.argv[1] + "/index.json"))
blob = sys.argv[1] + "/blobs/sha256/" + index["manifests"][0]["digest"].split(":")[1]
print(json.load(open(blob))["layers"][1]["digest"].split(":")[1])' "$image")
cp -R "$image" "$work/changed"
printf 'x' | dd of="$work/changed/blobs/sha256/$layer" bs=1 seek=1000 conv=notrunc status=none
! umoci unpack --rootless --image "$work/changed:$version" "$work/refused" >"$work/log" 2>&1 ||
	die "a layer with another byte was taken"
say "a layer with another byte was refused"
say "done: $version, unpacked by $(umoci --version), run by $(bwrap --version)"
