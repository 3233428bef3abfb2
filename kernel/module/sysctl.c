// SPDX-License-Identifier: GPL-2.0
/* net.core.ntcopy, in the first network namespace */

#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "module.h"

u8 ntcopy_enabled __read_mostly = 1;

static struct ctl_table table[] = {
	{
		.procname	= "ntcopy",
		.data		= &ntcopy_enabled,
		.maxlen		= sizeof(u8),
		.mode		= 0644,
		.proc_handler	= proc_dou8vec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_ONE,
	},
};

static struct ctl_table_header *header;

int ntcopy_sysctl_init(void)
{
	header = register_net_sysctl_sz(&init_net, "net/core", table, ARRAY_SIZE(table));
	return header ? 0 : -ENOMEM;
}

void ntcopy_sysctl_exit(void)
{
	unregister_net_sysctl_table(header);
}
