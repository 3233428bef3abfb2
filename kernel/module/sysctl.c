// SPDX-License-Identifier: GPL-2.0
/* net.core.ntcopy and net.core.ntcopy_cache_bytes, in the first network namespace */

#include <linux/nontemporal.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "module.h"

u8 ntcopy_mode __read_mostly = NTCOPY_SYSCTL_RULE;

#define SETTINGS	2

/* With an empty one at the end: some kernels take no count. */
static struct ctl_table table[SETTINGS + 1] = {
	{
		.procname	= "ntcopy",
		.data		= &ntcopy_mode,
		.maxlen		= sizeof(u8),
		.mode		= 0644,
		.proc_handler	= proc_dou8vec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_TWO,
	},
	{
		.procname	= "ntcopy_cache_bytes",
		.data		= &nontemporal_cache_bytes,
		.maxlen		= sizeof(unsigned long),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
	},
};

static struct ctl_table_header *header;

int ntcopy_sysctl_init(void)
{
	header = register_net_sysctl_sz(&init_net, "net/core", table, SETTINGS);
	return header ? 0 : -ENOMEM;
}

void ntcopy_sysctl_exit(void)
{
	unregister_net_sysctl_table(header);
}
