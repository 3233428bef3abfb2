// SPDX-License-Identifier: GPL-2.0
/* What a network namespace has of us: its counters, in a file of its own. */

#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/u64_stats_sync.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "module.h"

enum { BYTES, HINTED, BYPASSED, COUNTERS };

static const char * const names[COUNTERS] = {
	[BYTES]		= NTCOPY_STAT_BYTES,
	[HINTED]	= NTCOPY_STAT_HINTED,
	[BYPASSED]	= NTCOPY_STAT_BYPASSED,
};

struct ntcopy_stat {
	u64_stats_t		bytes[COUNTERS];
	struct u64_stats_sync	syncp;
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
 * ntcopy_count - count a send of a socket that opted in
 * @sk: The socket
 * @bytes: How many were accepted
 * @hinted: The send was hinted
 * @bypassed: At least one piece of it went past the caches
 */
void ntcopy_count(const struct sock *sk, size_t bytes, bool hinted, bool bypassed)
{
	struct ntcopy_net *nt = ntcopy_net(sock_net(sk));
	struct ntcopy_stat *stat = get_cpu_ptr(nt->stat);
	unsigned long flags;

	flags = u64_stats_update_begin_irqsave(&stat->syncp);
	u64_stats_add(&stat->bytes[BYTES], bytes);
	if (hinted)
		u64_stats_add(&stat->bytes[HINTED], bytes);
	if (bypassed)
		u64_stats_add(&stat->bytes[BYPASSED], bytes);
	u64_stats_update_end_irqrestore(&stat->syncp, flags);
	put_cpu_ptr(nt->stat);
}

static u64 sum(const struct ntcopy_net *nt, int counter)
{
	const struct ntcopy_stat *stat;
	unsigned int start;
	u64 all = 0, bytes;
	int cpu;

	for_each_possible_cpu(cpu) {
		stat = per_cpu_ptr(nt->stat, cpu);
		do {
			start = u64_stats_fetch_begin(&stat->syncp);
			bytes = u64_stats_read(&stat->bytes[counter]);
		} while (u64_stats_fetch_retry(&stat->syncp, start));
		all += bytes;
	}
	return all;
}

static int show(struct seq_file *seq, void *v)
{
	const struct ntcopy_net *nt = ntcopy_net(seq->private);
	int counter;

	for (counter = 0; counter < COUNTERS; counter++)
		seq_printf(seq, "%s %llu\n", names[counter], sum(nt, counter));
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

	if (proc_create_net_single("ntcopy", 0444, net->proc_net, show, NULL))
		return 0;
	free_percpu(nt->stat);
	return -ENOMEM;
}

static void __net_exit net_exit(struct net *net)
{
	struct ntcopy_net *nt = ntcopy_net(net);

	remove_proc_entry("ntcopy", net->proc_net);
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
