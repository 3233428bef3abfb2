// SPDX-License-Identifier: GPL-2.0
/*
 * What a network namespace has of us: /proc/net/ntcopy_stat.
 */

#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/u64_stats_sync.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "module.h"

struct ntcopy_stat {
	u64_stats_t		bytes[NTCOPY_FATES];
	struct u64_stats_sync	syncp;
};

static const char * const names[NTCOPY_FATES] = {
	[NTCOPY_NONTEMPORAL]	= NTCOPY_STAT_NONTEMPORAL,
	[NTCOPY_FITS_CACHE]	= NTCOPY_STAT_FITS_CACHE,
	[NTCOPY_TOO_SMALL]	= NTCOPY_STAT_TOO_SMALL,
	[NTCOPY_READ_BY_KERNEL]	= NTCOPY_STAT_READ_BY_KERNEL,
	[NTCOPY_NOT_SUPPORTED]	= NTCOPY_STAT_NOT_SUPPORTED,
};

struct ntcopy_net {
	struct ntcopy_stat __percpu	*stat;
};

static unsigned int net_id __read_mostly;

static struct ntcopy_net *ntcopy_net(const struct net *net)
{
	return net_generic(net, net_id);
}

/**
 * ntcopy_count - count what became of a hinted send
 * @sk: The sending socket
 * @bytes: How many bytes had each fate
 */
void ntcopy_count(const struct sock *sk, const size_t bytes[NTCOPY_FATES])
{
	struct ntcopy_net *nt = ntcopy_net(sock_net(sk));
	struct ntcopy_stat *stat = get_cpu_ptr(nt->stat);
	unsigned long flags;
	int fate;

	flags = u64_stats_update_begin_irqsave(&stat->syncp);
	for (fate = 0; fate < NTCOPY_FATES; fate++)
		u64_stats_add(&stat->bytes[fate], bytes[fate]);
	u64_stats_update_end_irqrestore(&stat->syncp, flags);
	put_cpu_ptr(nt->stat);
}

static u64 sum(const struct ntcopy_net *nt, int fate)
{
	const struct ntcopy_stat *stat;
	unsigned int start;
	u64 all = 0, bytes;
	int cpu;

	for_each_possible_cpu(cpu) {
		stat = per_cpu_ptr(nt->stat, cpu);
		do {
			start = u64_stats_fetch_begin(&stat->syncp);
			bytes = u64_stats_read(&stat->bytes[fate]);
		} while (u64_stats_fetch_retry(&stat->syncp, start));
		all += bytes;
	}
	return all;
}

static int show(struct seq_file *seq, void *v)
{
	const struct ntcopy_net *nt = ntcopy_net(seq->private);
	int fate;

	for (fate = 0; fate < NTCOPY_FATES; fate++)
		seq_printf(seq, "%s %llu\n", names[fate], sum(nt, fate));
	return 0;
}

static int __net_init net_init(struct net *net)
{
	struct ntcopy_net *nt = ntcopy_net(net);
	int cpu;

	nt->stat = alloc_percpu(struct ntcopy_stat);
	if (!nt->stat)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(nt->stat, cpu)->syncp);

	if (proc_create_net_single("ntcopy_stat", 0444, net->proc_net, show, NULL))
		return 0;
	free_percpu(nt->stat);
	return -ENOMEM;
}

static void __net_exit net_exit(struct net *net)
{
	struct ntcopy_net *nt = ntcopy_net(net);

	remove_proc_entry("ntcopy_stat", net->proc_net);
	free_percpu(nt->stat);
}

static struct pernet_operations net_ops = {
	.init	= net_init,
	.exit	= net_exit,
	.id	= &net_id,
	.size	= sizeof(struct ntcopy_net),
};

int ntcopy_stat_init(void)
{
	return register_pernet_subsys(&net_ops);
}

void ntcopy_stat_exit(void)
{
	unregister_pernet_subsys(&net_ops);
}
