// SPDX-License-Identifier: GPL-2.0
/* The rule of the series, as it is, in a module, which can be unloaded. */

#include <linux/cacheinfo.h>
#include <linux/cpuhotplug.h>
#include <linux/once.h>
#include <linux/percpu.h>

#include "compat.h"

/* A module's per-CPU variables have one section, and no such part of it. */
#undef DEFINE_PER_CPU_READ_MOSTLY
#define DEFINE_PER_CPU_READ_MOSTLY	DEFINE_PER_CPU

/* It is not exported; cacheinfo.c asks the CPU. */
#define get_cpu_cacheinfo_level(cpu, level)	((struct cacheinfo *)NULL)

/* It is done once, as the module is loaded, and undone when it goes. */
static int ntcopy_cpuhp;

#undef DO_ONCE_SLEEPABLE
#define DO_ONCE_SLEEPABLE(function, ...)	(ntcopy_cpuhp = function(__VA_ARGS__))

#include "nontemporal.c"
#include "module.h"

void ntcopy_rule_exit(void)
{
	int cpu;

	if (ntcopy_cpuhp > 0)
		cpuhp_remove_state_nocalls(ntcopy_cpuhp);
	for_each_possible_cpu(cpu)
		kvfree(per_cpu(nontemporal_cpu, cpu));
}
