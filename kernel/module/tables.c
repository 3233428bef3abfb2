// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of operations.
 *
 * There is one copy of those of unix streams for each number that a socket can
 * have.  They are filled in when the module is loaded, and cannot be written to
 * from then on.  A socket has no state of its own to allocate, to look up or to
 * free: its operations say everything.
 */

#include <linux/cache.h>
#include <linux/init.h>
#include <linux/module.h>
#include <net/net_namespace.h>

#include "module.h"

#define POWERS	13	/* of two, from NTCOPY_MODULE_MIN_BYTES on */

/* In ascending order: detached, none, the powers, those with the flag alone. */
static struct ntcopy_ops tables[POWERS + 3] __ro_after_init;

const struct proto_ops *ntcopy_orig __ro_after_init;

/**
 * ntcopy_can_help - whether sends of a socket can be hinted
 * @sk: The socket
 */
bool ntcopy_can_help(const struct sock *sk)
{
	return sk->sk_family == AF_UNIX && sk->sk_type == SOCK_STREAM;
}

/**
 * ntcopy_ops_of - the table of ours that a socket uses
 * @sock: The socket
 *
 * Return: the table, or NULL if its operations are not ours.
 */
const struct ntcopy_ops *ntcopy_ops_of(const struct socket *sock)
{
	/* Paired with smp_store_release() of those who set it */
	unsigned long ops = (unsigned long)READ_ONCE(sock->ops);

	/* Another module may have copied one of ours: it is known by its address. */
	if (ops - (unsigned long)tables >= sizeof(tables))
		return NULL;
	return container_of((const struct proto_ops *)ops, struct ntcopy_ops, ops);
}

/**
 * ntcopy_ops_for - the table of a number
 * @min_bytes: From how many bytes on a send is to be hinted, or NTCOPY_DETACHED
 *
 * Return: the table of this number, or of the next larger one that there is.
 */
const struct ntcopy_ops *ntcopy_ops_for(int min_bytes)
{
	const struct ntcopy_ops *table = tables;

	while (table->min_bytes < min_bytes)
		table++;
	return table;
}

static void __init fill(struct ntcopy_ops *table, int min_bytes)
{
	table->min_bytes = min_bytes;
	table->ops = *ntcopy_orig;
	table->ops.owner = THIS_MODULE;
	table->ops.sendmsg = ntcopy_sendmsg;
	table->ops.release = ntcopy_release;
	table->ops.accept = ntcopy_accept;
}

void ntcopy_tables_exit(void)
{
	module_put(ntcopy_orig->owner);
}

/* The original is not exported: ask a socket of our own. */
int __init ntcopy_tables_init(void)
{
	struct ntcopy_ops *table = tables;
	struct socket *sock;
	int ret, i;

	ret = sock_create_kern(&init_net, AF_UNIX, SOCK_STREAM, 0, &sock);
	if (ret < 0)
		return ret;
	ntcopy_orig = sock->ops;
	/* What was learned is to stay true. */
	__module_get(ntcopy_orig->owner);
	sock_release(sock);

	fill(table++, NTCOPY_DETACHED);
	fill(table++, 0);
	for (i = 0; i < POWERS; i++)
		fill(table++, NTCOPY_MODULE_MIN_BYTES << i);
	fill(table++, NTCOPY_FLAGGED);
	return 0;
}
