// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets are attached, inherit that, are detached and closed.
 *
 * References.  An attached socket holds one to this module, which the socket
 * layer puts when our release() has returned: it puts that of the owner of the
 * operations.  So no code of ours runs without one.  The socket's reference to
 * the original owner stays where it was, and release() puts it.
 *
 * Detaching does not bring the original operations back.  Somebody may have read
 * our pointer, and be asleep before he calls through it: so the socket gets a
 * table that hints nothing, and holds on to the module until it is closed.
 */

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/printk.h>

#include "module.h"

static atomic64_t attached = ATOMIC64_INIT(0);
static atomic64_t lingering = ATOMIC64_INIT(0);

/* The one that a socket of this mode is counted in. */
atomic64_t *ntcopy_counter(u8 mode)
{
	return mode == NTCOPY_SOCK_DETACHED ? &lingering : &attached;
}

void ntcopy_count_sockets(u64 *attached_count, u64 *lingering_count)
{
	*attached_count = atomic64_read(&attached);
	*lingering_count = atomic64_read(&lingering);
}

/*
 * Whether there are calls that replace the operations of such sockets, and one
 * that read the genuine ones may be under way: TCP_ULP, and IPV6_ADDRFORM.
 */
static bool may_be_replaced(const struct sock *sk)
{
	return ntcopy_is_tcp(sk) ||
	       (sk->sk_type == SOCK_DGRAM && READ_ONCE(sk->sk_family) == AF_INET6);
}

/* The caller holds the socket's lock, which those who replace operations take. */
static int attach_new(struct socket *sock, int fd, const struct proto_ops *genuine, u32 mode)
{
	bool alone = may_be_replaced(sock->sk);
	const struct ntcopy_set *set;

	if (READ_ONCE(sock->ops) != genuine)
		return -EBUSY;
	if (alone && !ntcopy_sole_user(sock->file, 1, fd))
		return -EBUSY;
	set = ntcopy_adopt(sock, NULL);
	if (!set)
		return -ENOMEM;

	__module_get(THIS_MODULE);
	ntcopy_set_ops(sock, set, mode);
	if (alone && !ntcopy_sole_user(sock->file, 1, fd)) {
		ntcopy_let_go(sock, genuine);
		return -EBUSY;
	}
	atomic64_inc(&attached);
	return 0;
}

/* Another mode for a socket that is attached, and be it DETACHED. */
static void set_mode(struct socket *sock, const struct ntcopy_ops *table, u8 mode)
{
	ntcopy_set_ops(sock, table->set, mode);
	atomic64_dec(ntcopy_counter(table->mode));
	atomic64_inc(ntcopy_counter(mode));
}

/*
 * The mutex is taken last, and held for moments only: a socket's lock is had by
 * whoever sleeps in a send, for as long as he can make that last.
 */
static int change(struct socket *sock, int fd, u8 mode)
{
	const struct proto_ops *genuine;
	const struct ntcopy_ops *table;
	int ret = 0;

	/* It asks a socket of its own, the first time: not under a socket's lock. */
	mutex_lock(&ntcopy_mutex);
	genuine = ntcopy_genuine_ops(sock->sk);
	mutex_unlock(&ntcopy_mutex);
	if (IS_ERR(genuine))
		return PTR_ERR(genuine);

	lock_sock(sock->sk);
	mutex_lock(&ntcopy_mutex);
	table = ntcopy_ops_of(sock);
	if (ntcopy_is_replacing(sock))
		ret = -EBUSY;
	else if (table)
		set_mode(sock, table, mode);
	else if (mode != NTCOPY_SOCK_DETACHED)
		ret = attach_new(sock, fd, genuine, mode);
	mutex_unlock(&ntcopy_mutex);
	release_sock(sock->sk);
	return ret;
}

/**
 * ntcopy_attach - have a socket's sends hinted, or set how
 * @sock: The socket, to whose file the caller holds a reference of his own
 * @fd: The descriptor by which he found it
 * @mode: NTCOPY_SOCK_*
 *
 * Return: 0, or an error: see uapi/ntcopy.h.
 */
int ntcopy_attach(struct socket *sock, int fd, u32 mode)
{
	return change(sock, fd, mode);
}

/**
 * ntcopy_detach - leave a socket alone
 * @sock: The socket
 * @fd: The descriptor by which the caller found it
 *
 * Return: 0, also if it was not attached, or an error: see uapi/ntcopy.h.
 */
int ntcopy_detach(struct socket *sock, int fd)
{
	return change(sock, fd, NTCOPY_SOCK_DETACHED);
}

/**
 * ntcopy_query - say what a socket is
 * @sock: The socket
 * @arg: The answer
 *
 * Return: 0, or an error: see uapi/ntcopy.h.
 */
int ntcopy_query(struct socket *sock, struct ntcopy_socket *arg)
{
	const struct proto_ops *genuine;
	const struct ntcopy_ops *table;

	mutex_lock(&ntcopy_mutex);
	genuine = ntcopy_genuine_ops(sock->sk);
	table = ntcopy_ops_of(sock);
	arg->mode = NTCOPY_SOCK_NONE;
	arg->flags = 0;
	if (table && table->mode != NTCOPY_SOCK_DETACHED) {
		arg->mode = table->mode;
		arg->flags = NTCOPY_SOCKET_ATTACHED;
	}
	mutex_unlock(&ntcopy_mutex);
	return PTR_ERR_OR_ZERO(genuine);
}

/* The last user of the socket has gone: nobody changes its operations now. */
int ntcopy_release(struct socket *sock)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);
	const struct proto_ops *orig = table->set->orig;
	/* What accept() was to make of it, but did not, holds nothing of orig. */
	bool whole = sock->sk;
	int ret;

	if (whole)
		atomic64_dec(ntcopy_counter(table->mode));
	ret = orig->release(sock);
	if (whole)
		module_put(orig->owner);
	return ret;
}

/*
 * The socket layer gave newsock the operations that it read from the listener,
 * and took a reference to their owner, us; in kernel_accept() it does so after
 * this has returned.  What the listener says by now counts, as far as it can.
 */
int ntcopy_accept(struct socket *sock, struct socket *newsock, NTCOPY_ACCEPT_PARAMS)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(newsock), *now;
	const struct proto_ops *orig;
	int ret;

	/* Before 6.6 the listener's were read twice: it became ours in between. */
	if (newsock->ops && !table)
		return newsock->ops->accept(sock, newsock, NTCOPY_ACCEPT_ARGS);
	if (!table)
		table = ntcopy_ops_of(sock);
	/* The listener's own were put back for a moment: kernel_accept() only. */
	if (!table)
		return -EAGAIN;
	orig = table->set->orig;
	ret = orig->accept(sock, newsock, NTCOPY_ACCEPT_ARGS);
	if (ret < 0)
		return ret;

	__module_get(orig->owner);
	now = ntcopy_ops_of(sock);
	if (!newsock->ops || !now || now->set != table->set)
		now = table;
	if (newsock->ops && now->mode == NTCOPY_SOCK_DETACHED) {
		/* The listener holds a reference to us until we are out of here. */
		newsock->ops = orig;
		module_put(THIS_MODULE);
		return ret;
	}
	if (newsock->ops)
		newsock->ops = &now->ops;
	atomic64_inc(ntcopy_counter(now->mode));
	return ret;
}
