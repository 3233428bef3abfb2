// SPDX-License-Identifier: GPL-2.0
/*
 * The decision of the series, as it is, in a module: that can be unloaded, and
 * is not told everything that the kernel knows.
 */

#include <linux/percpu.h>

#include "compat.h"

/* A module's per-CPU variables have one section, and no such part of it. */
#undef DEFINE_PER_CPU_READ_MOSTLY
#define DEFINE_PER_CPU_READ_MOSTLY	DEFINE_PER_CPU

#include "nontemporal.c"
#include "module.h"

#ifdef CONFIG_GENERIC_CPU_CACHEINFO
/* What get_cpu_cacheinfo() is there: of the last level, its size is asked for. */
struct cpu_cacheinfo *ntcopy_cpu_cacheinfo(unsigned int cpu)
{
#ifdef CONFIG_X86
	static struct cacheinfo last_level;
	static struct cpu_cacheinfo info = { .info_list = &last_level, .num_leaves = 1 };

	/* In KiB, as found at boot. */
	last_level.size = boot_cpu_data.x86_cache_size * 1024;
	return last_level.size ? &info : NULL;
#else
	return NULL;
#endif
}
#endif

void ntcopy_adaptive_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		kvfree(per_cpu(nontemporal_cpu, cpu));
}
