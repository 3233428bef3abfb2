#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# sparse for a kernel's CHECK. Release 0.6.4 knows neither of these two; MODULE_INFO()
# of 7.3 asserts the length of a literal.
#
# usage: make C=1 CHECK=scripts/sparse.sh ...
exec sparse -D__typeof_unqual__=__typeof__ '-D__builtin_strlen(text)=(sizeof(text)-1)' "$@"
