#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by what runs beside a booted systemd.

# allow_descriptors NAME: where this machine does not give as many as the unit asks for (no
# CAP_SYS_RESOURCE), sets the unit's limit to as many as it gives.
allow_descriptors() {
	most=$(prlimit --noheadings --output HARD --nofile | tr -d " ")
	if ! prlimit --nofile="$(systemctl show -P LimitNOFILE "$1")" true 2>/dev/null; then
		echo "this machine allows $most descriptors; $1's LimitNOFILE= is that, for this once"
		mkdir -p "/run/systemd/system/$1.service.d"
		printf '[Service]\nLimitNOFILE=%s\n' "$most" >"/run/systemd/system/$1.service.d/limit.conf"
		systemctl daemon-reload
	fi
}
