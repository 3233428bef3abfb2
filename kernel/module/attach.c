// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets are attached, inherit that, are detached and closed.
 *
 * References.  An attached socket holds one to this module, which the socket
 * layer puts when our release() has returned: it puts that of the owner of the
 * operations.  So no code of ours runs without one.  The socket's reference to
 * the original owner stays where it was, and release() puts it.
 *
 * Detaching does not bring the original operations back.  Another task may have
 * read our pointer, and sleep before it calls through it.  The socket gets a table
 * that hints nothing, and holds on to the module until it is closed.
 */

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "module.h"

static atomic64_t attached = ATOMIC64_INIT(0);
static atomic64_t lingering = ATOMIC64_INIT(0);

/* The one that a socket with this table is counted in. */
static atomic64_t *counter(const struct ntcopy_ops *table)
{
	return table->min_bytes == NTCOPY_DETACHED ? &lingering : &attached;
}

void ntcopy_count_sockets(u64 *attached_count, u64 *lingering_count)
{
	*attached_count = atomic64_read(&attached);
	*lingering_count = atomic64_read(&lingering);
}

static int change(struct socket *sock, int min_bytes)
{
	const struct ntcopy_ops *old, *table = ntcopy_ops_for(min_bytes);
	int ret = 0;

	if (!ntcopy_can_help(sock->sk))
		return -EOPNOTSUPP;
	lock_sock(sock->sk);
	old = ntcopy_ops_of(sock);
	if (!old && min_bytes == NTCOPY_DETACHED)
		goto unlock;
	if (!old && READ_ONCE(sock->ops) != ntcopy_orig) {
		ret = -EBUSY;
		goto unlock;
	}
	if (old)
		atomic64_dec(counter(old));
	else
		__module_get(THIS_MODULE);
	/* Paired with READ_ONCE() in ntcopy_ops_of() */
	smp_store_release(&sock->ops, &table->ops);
	atomic64_inc(counter(table));
unlock:
	release_sock(sock->sk);
	return ret;
}

/**
 * ntcopy_attach - have a socket's sends hinted, or set which
 * @sock: The socket
 * @min_bytes: As SO_NTCOPY has it
 *
 * Return: 0, or an error: see uapi/ntcopy/uapi.h.
 */
int ntcopy_attach(struct socket *sock, int min_bytes)
{
	return change(sock, min_bytes);
}

/**
 * ntcopy_detach - leave a socket alone
 * @sock: The socket
 *
 * Return: 0, also if it was not attached, or an error: see uapi/ntcopy/uapi.h.
 */
int ntcopy_detach(struct socket *sock)
{
	return change(sock, NTCOPY_DETACHED);
}

/**
 * ntcopy_query - say what a socket is
 * @sock: The socket
 * @arg: The answer
 *
 * It takes no lock.
 *
 * Return: 0, or an error: see uapi/ntcopy/uapi.h.
 */
int ntcopy_query(const struct socket *sock, struct ntcopy_socket *arg)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);

	arg->min_bytes = 0;
	arg->flags = 0;
	if (table && table->min_bytes != NTCOPY_DETACHED) {
		arg->min_bytes = table->min_bytes;
		arg->flags = NTCOPY_SOCKET_ATTACHED;
	}
	return ntcopy_can_help(sock->sk) ? 0 : -EOPNOTSUPP;
}

/* The last user of the socket has gone: its operations no longer change. */
int ntcopy_release(struct socket *sock)
{
	/* What accept() was to make of it, but did not, holds nothing of the original. */
	bool whole = sock->sk;
	int ret;

	if (whole)
		atomic64_dec(counter(ntcopy_ops_of(sock)));
	ret = ntcopy_orig->release(sock);
	if (whole)
		module_put(ntcopy_orig->owner);
	return ret;
}

/*
 * The socket layer gave newsock the operations that it read from the listener,
 * and took a reference to their owner, us; in kernel_accept() it does so after
 * this has returned.  What the listener says by now counts, as far as it can.
 */
int ntcopy_accept(struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg)
{
	const struct ntcopy_ops *table;
	int ret;

	ret = ntcopy_orig->accept(sock, newsock, arg);
	if (ret < 0)
		return ret;

	__module_get(ntcopy_orig->owner);
	table = ntcopy_ops_of(sock);
	if (newsock->ops && table->min_bytes == NTCOPY_DETACHED) {
		/* The listener holds a reference to us until we are out of here. */
		newsock->ops = ntcopy_orig;
		module_put(THIS_MODULE);
		return ret;
	}
	if (newsock->ops)
		newsock->ops = &table->ops;
	atomic64_inc(counter(table));
	return ret;
}
