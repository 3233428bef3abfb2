// SPDX-License-Identifier: GPL-2.0
/* The rule of the series, as it is, in a module. */

#include <linux/cacheinfo.h>

#include "compat.h"

/* It is not exported; cacheinfo.c asks the CPU. */
#define get_cpu_cacheinfo_level(cpu, level)	((struct cacheinfo *)NULL)

#include "nontemporal.c"
