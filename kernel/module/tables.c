// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of operations.
 *
 * For each kind of socket there is one copy of the original for each mode.  They
 * are filled in when the module is loaded, and cannot be written to from then on.
 * A socket has no state of its own to allocate, to look up or to free: its
 * operations say everything.
 */

#include <linux/cache.h>
#include <linux/in.h>
#include <linux/init.h>
#include <linux/module.h>
#include <net/net_namespace.h>

#include "module.h"

struct ntcopy_kind ntcopy_kinds[NTCOPY_KINDS] __ro_after_init = {
	[NTCOPY_UNIX_STREAM] = {
		.family = AF_UNIX, .type = SOCK_STREAM, .send = ntcopy_send_unix,
	},
	[NTCOPY_UDP] = {
		.family = AF_INET, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP,
		.send = ntcopy_send_udp,
	},
	[NTCOPY_UDP6] = {
		.family = AF_INET6, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP,
		.send = ntcopy_send_udp,
	},
};

/**
 * ntcopy_kind_of - what can be done for a socket
 * @sk: The socket
 *
 * Return: its kind, or NULL if it cannot be helped.
 */
const struct ntcopy_kind *ntcopy_kind_of(const struct sock *sk)
{
	const struct ntcopy_kind *kind;
	int family = READ_ONCE(sk->sk_family);

	for (kind = ntcopy_kinds; kind < &ntcopy_kinds[NTCOPY_KINDS]; kind++) {
		if (kind->orig && kind->family == family && kind->type == sk->sk_type &&
		    (family == AF_UNIX || kind->protocol == sk->sk_protocol))
			return kind;
	}
	return NULL;
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
	unsigned long ops = (unsigned long)READ_ONCE(sock->ops);

	/* Another module may have copied one of ours: it is known by its address. */
	if (ops - (unsigned long)ntcopy_kinds >= sizeof(ntcopy_kinds))
		return NULL;
	return container_of((const struct proto_ops *)ops, struct ntcopy_ops, ops);
}

static void __init fill_table(struct ntcopy_kind *kind, u8 mode)
{
	struct ntcopy_ops *table = &kind->tables[mode];

	table->kind = kind;
	table->mode = mode;
	table->ops = *kind->orig;
	table->ops.sendmsg = ntcopy_sendmsg;
	/* See attach.c: who puts the reference of a socket. */
	if (kind->family != AF_INET6) {
		table->ops.owner = THIS_MODULE;
		table->ops.release = ntcopy_release;
	}
	if (kind->family == AF_UNIX)
		table->ops.accept = ntcopy_accept;
}

/* The originals are not exported: ask a socket of our own. */
static int __init learn(struct ntcopy_kind *kind)
{
	struct socket *sock;
	int ret;
	u8 mode;

	ret = sock_create_kern(&init_net, kind->family, kind->type, kind->protocol, &sock);
	if (ret < 0)
		return ret;
	kind->orig = sock->ops;
	kind->destruct = sock->sk->sk_destruct;
	/* What was learned is to stay true. */
	__module_get(kind->orig->owner);
	sock_release(sock);
	for (mode = 0; mode < NTCOPY_SOCK_MODES; mode++)
		fill_table(kind, mode);
	return 0;
}

void ntcopy_tables_exit(void)
{
	int i;

	for (i = 0; i < NTCOPY_KINDS; i++)
		if (ntcopy_kinds[i].orig)
			module_put(ntcopy_kinds[i].orig->owner);
}

/* A kernel may do without IPv6. */
int __init ntcopy_tables_init(void)
{
	int i, ret;

	for (i = 0; i < NTCOPY_KINDS; i++) {
		ret = learn(&ntcopy_kinds[i]);
		if (ret < 0 && ret != -EAFNOSUPPORT) {
			ntcopy_tables_exit();
			return ret;
		}
	}
	return 0;
}
