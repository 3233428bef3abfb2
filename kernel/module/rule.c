// SPDX-License-Identifier: GPL-2.0
/* The rule of the series, as it is, in a module. */

#include <linux/cacheinfo.h>

#include "compat.h"

/* It is not exported; cacheinfo.c asks the CPU. */
static const struct cpu_cacheinfo no_caches;
#define get_cpu_cacheinfo(cpu)	(&no_caches)

/* Nor do older kernels know a Zen 4, or other CPUs the loops. */
#define _ASM_X86_NONTEMPORAL_H
#define NONTEMPORAL_LEVEL	2

#include "nontemporal.c"
