#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What is in a Debian: names, modes, owners, and the sums of files; without what apt,
# dpkg, ldconfig, depmod, man and passwd keep for themselves, what is gone at the next
# boot, and the key that DKMS makes for the machine as it first builds. Two of them are
# the same where a purge left no trace.
#
# usage: packaging/test/snapshot.sh ROOT
set -eu

cd "$1"
{
	find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/tmp -o -path ./run \
		-o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt \
		-o -path ./root/packages -o -path './var/lib/dkms/mok.*' \) -prune -o -printf '%y %m %U:%G %p %l\n'
	for folder in ./etc ./usr ./var/lib/systemd ./var/lib/dkms; do
		[ ! -d "$folder" ] || find "$folder" -xdev -type f ! -name ld.so.cache \
			! -path './etc/*-' ! -path './usr/lib/modules/*/modules.*' ! -path './var/lib/dkms/mok.*' \
			-exec sha256sum {} +
	done
} | LC_ALL=C sort
