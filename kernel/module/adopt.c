// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of operations.
 *
 * Of each original that a socket was met with there is one copy for each mode,
 * and they stay until the module goes.  So there is no state of a socket's own
 * to allocate, to look up or to free: its operations tell everything.
 */

#include <linux/in.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "module.h"

/* Guards the sets, and every change of a socket's operations that is ours. */
DEFINE_MUTEX(ntcopy_mutex);

static LIST_HEAD(sets);

/* What can be attached, and how it looks when nobody else has touched it. */
static struct kind {
	int				family;
	int				type;
	int				protocol;
	enum ntcopy_path		path;
	const struct proto_ops		*ops;
	int (*sendmsg)(struct sock *sk, struct msghdr *msg, size_t len);
} kinds[] = {
	{ AF_UNIX,  SOCK_STREAM, 0,	      NTCOPY_PATH_UNIX },
	{ AF_INET,  SOCK_STREAM, IPPROTO_TCP, NTCOPY_PATH_TCP },
	{ AF_INET6, SOCK_STREAM, IPPROTO_TCP, NTCOPY_PATH_TCP },
	{ AF_INET,  SOCK_DGRAM,  IPPROTO_UDP, NTCOPY_PATH_UDP },
	{ AF_INET6, SOCK_DGRAM,  IPPROTO_UDP, NTCOPY_PATH_UDP },
};

static struct kind *kind_of(const struct sock *sk)
{
	int i, family = READ_ONCE(sk->sk_family);

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].family == family && kinds[i].type == sk->sk_type &&
		    (family == AF_UNIX || kinds[i].protocol == sk->sk_protocol))
			return &kinds[i];
	}
	return NULL;
}

/* The operations of these tables are not exported: ask a socket of our own. */
static int learn(struct kind *kind, struct net *net)
{
	struct socket *sock;
	int ret;

	if (kind->ops)
		return 0;
	ret = sock_create_kern(net, kind->family, kind->type, kind->protocol, &sock);
	if (ret < 0)
		return ret;
	kind->ops = sock->ops;
	kind->sendmsg = sock->sk->sk_prot->sendmsg;
	/* Kept until the module goes: what was learned stays true so long. */
	__module_get(kind->ops->owner);
	sock_release(sock);
	return 0;
}

/**
 * ntcopy_genuine_ops - the operations of such sockets that nobody has replaced
 * @sk: A socket.  The caller holds ntcopy_mutex.
 *
 * Return: the operations, or an error: EOPNOTSUPP for sockets that cannot be
 * helped.
 */
const struct proto_ops *ntcopy_genuine_ops(const struct sock *sk)
{
	struct kind *kind = kind_of(sk);
	int ret;

	if (!kind)
		return ERR_PTR(-EOPNOTSUPP);
	ret = learn(kind, sock_net(sk));
	return ret < 0 ? ERR_PTR(ret) : kind->ops;
}

/**
 * ntcopy_ops_of - the table of ours that a socket uses
 * @sock: The socket
 *
 * Return: the table, or NULL if its operations are not ours (any more).
 */
const struct ntcopy_ops *ntcopy_ops_of(const struct socket *sock)
{
	/* Paired with smp_store_release() of those who set it */
	const struct proto_ops *ops = READ_ONCE(sock->ops);

	if (!ops || ops->release != ntcopy_release)
		return NULL;
	return container_of(ops, struct ntcopy_ops, ops);
}

static void fill_table(struct ntcopy_set *set, u8 mode)
{
	struct ntcopy_ops *table = &set->tables[mode];

	table->set = set;
	table->mode = mode;
	table->ops = *set->orig;
	table->ops.owner = THIS_MODULE;
	table->ops.release = ntcopy_release;
	table->ops.accept = ntcopy_accept;
	if (set->orig->setsockopt)
		table->ops.setsockopt = ntcopy_setsockopt;
	table->ops.sendmsg = ntcopy_sendmsg;
}

static struct ntcopy_set *new_set(const struct proto_ops *orig, const struct kind *kind,
				  struct module *pinned)
{
	struct ntcopy_set *set = kzalloc(sizeof(*set), GFP_KERNEL);
	u8 mode;

	if (!set)
		return NULL;
	__module_get(orig->owner);
	__module_get(pinned);
	set->orig = orig;
	set->pinned = pinned;
	set->path = kind->path;
	set->sendmsg = kind->sendmsg;
	for (mode = 0; mode < NTCOPY_SOCK_MODES; mode++)
		fill_table(set, mode);
	list_add(&set->list, &sets);
	return set;
}

/**
 * ntcopy_adopt - tables of ours for the operations that a socket has
 * @sock: The socket; its operations are not ours.  The caller holds a reference
 *	to their owner, and ntcopy_mutex.
 * @pinned: Another module in whose memory they may be, or NULL
 *
 * Return: the set of tables, or NULL if there is no memory, or no way to help.
 */
const struct ntcopy_set *ntcopy_adopt(const struct socket *sock, struct module *pinned)
{
	struct kind *kind = kind_of(sock->sk);
	const struct proto_ops *orig = sock->ops;
	struct ntcopy_set *set;

	if (!kind || learn(kind, sock_net(sock->sk)) < 0)
		return NULL;
	list_for_each_entry(set, &sets, list)
		if (set->orig == orig)
			return set;
	return new_set(orig, kind, pinned);
}

/* The module goes: no socket has a table any more. */
void ntcopy_drop_sets(void)
{
	struct ntcopy_set *set, *next;
	int i;

	/* Whoever found a table under RCU has done with it. */
	synchronize_rcu();
	list_for_each_entry_safe(set, next, &sets, list) {
		list_del(&set->list);
		module_put(set->orig->owner);
		module_put(set->pinned);
		kfree(set);
	}
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].ops)
			module_put(kinds[i].ops->owner);
}
