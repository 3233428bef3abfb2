// SPDX-License-Identifier: GPL-2.0
/* net.core.ntcopy and net.core.ntcopy_cache_bytes */

#include <linux/nontemporal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "module.h"

/* The last one is the machine's, and the first namespace's to set. */
#define OF_EACH_NAMESPACE	1
#define OF_THE_FIRST		2

/* With an empty one at the end: some kernels take no count. */
static const struct ctl_table template[OF_THE_FIRST + 1] = {
	{
		.procname	= "ntcopy",
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

/* A new namespace begins with the settings of the first one. */
static void set_defaults(struct net *net, struct ntcopy_net *nt)
{
	const struct ntcopy_net *first = ntcopy_net(&init_net);

	nt->mode = NTCOPY_SYSCTL_RULE;
	/* That one is the first to be set up, when the module is loaded. */
	if (!net_eq(net, &init_net) && first->header)
		nt->mode = READ_ONCE(first->mode);
}

int ntcopy_sysctl_init(struct net *net, struct ntcopy_net *nt)
{
	size_t count = net_eq(net, &init_net) ? OF_THE_FIRST : OF_EACH_NAMESPACE;
	struct ctl_table *table;

	set_defaults(net, nt);
	table = kmemdup(template, sizeof(template), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	table[0].data = &nt->mode;
	memset(&table[count], 0, sizeof(*table));
	nt->header = register_net_sysctl_sz(net, "net/core", table, count);
	if (!nt->header) {
		kfree(table);
		return -ENOMEM;
	}
	nt->table = table;
	return 0;
}

void ntcopy_sysctl_exit(struct ntcopy_net *nt)
{
	unregister_net_sysctl_table(nt->header);
	kfree(nt->table);
}
