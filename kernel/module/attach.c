// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets are attached, inherit that, are detached and closed.
 *
 * References.  An attached socket holds one to this module, which the socket
 * layer puts when our release() has returned: it puts that of the owner of the
 * operations.  So no code of ours runs without one.  The socket's reference to
 * the original owner stays where it was, and release() puts it.
 *
 * UDP over IPv6 is different: IPV6_ADDRFORM, alone in all of the kernel, writes
 * the operations of IPv4 over a socket's, and our release() would not be called
 * then.  So it keeps that of the original, and the reference is put by the
 * destructor of the socket, which RCU calls.
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

/* The one that a socket of this mode is counted in. */
static atomic64_t *counter(u8 mode)
{
	return mode == NTCOPY_SOCK_DETACHED ? &lingering : &attached;
}

void ntcopy_count_sockets(u64 *attached_count, u64 *lingering_count)
{
	*attached_count = atomic64_read(&attached);
	*lingering_count = atomic64_read(&lingering);
}

/* A socket that was of IPv6 is gone. */
static void destruct(struct sock *sk, u8 mode)
{
	ntcopy_kinds[NTCOPY_UDP6].destruct(sk);
	atomic64_dec(counter(mode));
	module_put(THIS_MODULE);
}

static void destruct_attached(struct sock *sk)
{
	destruct(sk, NTCOPY_SOCK_NONE);
}

static void destruct_detached(struct sock *sk)
{
	destruct(sk, NTCOPY_SOCK_DETACHED);
}

static void (*destructor(u8 mode))(struct sock *sk)
{
	return mode == NTCOPY_SOCK_DETACHED ? destruct_detached : destruct_attached;
}

/* Whether another module owns the operations, or the destructor: older L2TP's. */
static bool is_of_others(const struct socket *sock, const struct ntcopy_kind *kind,
			 const struct ntcopy_ops *table)
{
	if (kind->family == AF_INET6 &&
	    sock->sk->sk_destruct != (table ? destructor(table->mode) : kind->destruct))
		return true;
	return !table && READ_ONCE(sock->ops) != kind->orig;
}

/* The caller holds the socket's lock, as IPV6_ADDRFORM does. */
static void set_ops(struct socket *sock, const struct ntcopy_kind *kind, u8 mode)
{
	if (kind->family == AF_INET6) {
		sock_set_flag(sock->sk, SOCK_RCU_FREE);
		sock->sk->sk_destruct = destructor(mode);
	}
	/* Paired with READ_ONCE() in ntcopy_ops_of() */
	smp_store_release(&sock->ops, &kind->tables[mode].ops);
	atomic64_inc(counter(mode));
}

static int change(struct socket *sock, u8 mode)
{
	const struct ntcopy_kind *kind;
	const struct ntcopy_ops *table;
	int ret = 0;

	if (!ntcopy_kind_of(sock->sk))
		return -EOPNOTSUPP;
	lock_sock(sock->sk);
	kind = ntcopy_kind_of(sock->sk);
	table = ntcopy_ops_of(sock);
	if (!table && mode == NTCOPY_SOCK_DETACHED)
		goto unlock;
	ret = is_of_others(sock, kind, table) ? -EBUSY : 0;
	if (ret < 0)
		goto unlock;
	if (table)
		atomic64_dec(counter(table->mode));
	else
		__module_get(THIS_MODULE);
	set_ops(sock, kind, mode);
unlock:
	release_sock(sock->sk);
	return ret;
}

/**
 * ntcopy_attach - have a socket's sends hinted, or set how
 * @sock: The socket
 * @mode: NTCOPY_SOCK_*
 *
 * Return: 0, or an error: see uapi/ntcopy.h.
 */
int ntcopy_attach(struct socket *sock, u32 mode)
{
	return change(sock, mode);
}

/**
 * ntcopy_detach - leave a socket alone
 * @sock: The socket
 *
 * Return: 0, also if it was not attached, or an error: see uapi/ntcopy.h.
 */
int ntcopy_detach(struct socket *sock)
{
	return change(sock, NTCOPY_SOCK_DETACHED);
}

/**
 * ntcopy_query - say what a socket is
 * @sock: The socket
 * @arg: The answer
 *
 * Libraries ask before each send: it takes no lock.
 *
 * Return: 0, or an error: see uapi/ntcopy.h.
 */
int ntcopy_query(const struct socket *sock, struct ntcopy_socket *arg)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);

	arg->mode = NTCOPY_SOCK_NONE;
	arg->flags = 0;
	if (table && table->mode != NTCOPY_SOCK_DETACHED) {
		arg->mode = table->mode;
		arg->flags = NTCOPY_SOCKET_ATTACHED;
	}
	return ntcopy_kind_of(sock->sk) ? 0 : -EOPNOTSUPP;
}

/* The last user of the socket has gone: its operations no longer change. */
int ntcopy_release(struct socket *sock)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);
	const struct proto_ops *orig = table->kind->orig;
	/* What accept() was to make of it, but did not, holds nothing of orig. */
	bool whole = sock->sk;
	int ret;

	if (whole)
		atomic64_dec(counter(table->mode));
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
	/* Before 6.6 the listener's were read twice: it may have become ours in between. */
	bool ours = !newsock->ops || ntcopy_ops_of(newsock);
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);
	const struct proto_ops *orig = table->kind->orig;
	int ret;

	ret = orig->accept(sock, newsock, NTCOPY_ACCEPT_ARGS);
	if (ret < 0 || !ours)
		return ret;

	__module_get(orig->owner);
	table = ntcopy_ops_of(sock);
	if (newsock->ops && table->mode == NTCOPY_SOCK_DETACHED) {
		/* The listener holds a reference to us until we are out of here. */
		newsock->ops = orig;
		module_put(THIS_MODULE);
		return ret;
	}
	if (newsock->ops)
		newsock->ops = &table->ops;
	atomic64_inc(counter(table->mode));
	return ret;
}
