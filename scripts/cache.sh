#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Prints where kernels, their sources and the like are kept, as `ntcopy` finds it: a
# relative XDG_CACHE_HOME is as good as none.
set -eu

case ${XDG_CACHE_HOME-} in
/*) caches=$XDG_CACHE_HOME ;;
*) caches=$HOME/.cache ;;
esac
echo "${NTCOPY_CACHE:-$caches/ntcopy}"
