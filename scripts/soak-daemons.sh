#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# storaged behind proxyd while clients vanish, drip, send bad bytes and pipeline,
# backends are killed and come back, and the proxy is reloaded:
# crates/proxyd/tests/soak says what must hold. Prints the seed.
#
# usage: scripts/soak-daemons.sh [--minutes N] [--seed N]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
minutes=10
# shellcheck source=scripts/soak-arguments.sh
. "$root/scripts/soak-arguments.sh"
read_soak_arguments "$@"

cd "$root"
exec env SOAK_SECONDS=$((minutes * 60)) SOAK_SEED="$seed" \
	"${CARGO:-cargo}" test -q --locked -p proxyd --test soak -- --ignored --nocapture \
	--exact both_daemons_stand_ten_minutes_of_it
