// SPDX-License-Identifier: GPL-2.0
/*
 * Others who replace the operations of a socket.
 *
 * TLS, espintcp and IPV6_ADDRFORM write theirs over ours, within setsockopt().
 * That is ours too, and puts tables of ours over those: if nobody called our
 * release(), nobody would put the reference that the socket holds.
 *
 * TLS and espintcp also copy the operations that they find to where every such
 * socket will use them from then on.  Nobody may find ours then.  So for a
 * TCP_ULP the socket has its own operations back, and no socket gets ours while
 * another system call is under way that read the others: it may be held up for
 * as long as its caller likes, and be a TCP_ULP as well.
 */

#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sockptr.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "module.h"

/* A call that may replace a socket's operations is under way. */
struct replacing {
	struct list_head	list;
	const struct socket	*sock;
};

/* Guarded by ntcopy_mutex. */
static LIST_HEAD(all_replacing);

/* Whether there is such a call.  The caller holds ntcopy_mutex. */
bool ntcopy_is_replacing(const struct socket *sock)
{
	const struct replacing *replacing;

	list_for_each_entry(replacing, &all_replacing, list)
		if (replacing->sock == sock)
			return true;
	return false;
}

bool ntcopy_is_tcp(const struct sock *sk)
{
	return sk->sk_type == SOCK_STREAM && sk->sk_protocol == IPPROTO_TCP;
}

/* The tables were filled before anybody may find them. */
void ntcopy_set_ops(struct socket *sock, const struct ntcopy_set *set, u8 mode)
{
	/* Paired with READ_ONCE() in ntcopy_ops_of() */
	smp_store_release(&sock->ops, &set->tables[mode].ops);
}

/**
 * ntcopy_sole_user - whether nobody else is in a system call on a socket
 * @file: The socket's
 * @own: References to it that the caller has, beside that of the descriptor
 *
 * Another descriptor counts as somebody else: a process that shares its
 * descriptors with nobody takes no reference for a system call.
 */
bool ntcopy_sole_user(struct file *file, long own)
{
	/* Between the store of the operations and this look at references */
	smp_mb();
	return file && file_count(file) <= 1 + own;
}

/*
 * A socket gets its own operations back, but somebody may have read ours, and be
 * about to call through them: so its reference to us stays, for good.
 */
void ntcopy_let_go(struct socket *sock, const struct proto_ops *orig)
{
	/* Paired with READ_ONCE() in ntcopy_ops_of() */
	smp_store_release(&sock->ops, orig);
	pr_warn_once("ntcopy: a socket was let go; the module cannot be unloaded any more\n");
}

static const struct tcp_ulp_ops *ulp_of(const struct sock *sk)
{
	return ntcopy_is_tcp(sk) ? inet_csk(sk)->icsk_ulp_ops : NULL;
}

/* The operations of an attached socket are no longer ours: copy those as well. */
static void follow(struct socket *sock, const struct ntcopy_ops *table)
{
	const struct tcp_ulp_ops *ulp = ulp_of(sock->sk);
	const struct ntcopy_set *set;

	/* They may be in the memory of the ULP's module, and owned by another. */
	set = ntcopy_adopt(sock, ulp ? ulp->owner : NULL);
	if (set) {
		ntcopy_set_ops(sock, set, table->mode);
		return;
	}
	atomic64_dec(ntcopy_counter(table->mode));
	ntcopy_let_go(sock, sock->ops);
}

/* TCP_ULP has failed.  Nobody who read the others may find ours again. */
static void take_back(struct socket *sock, const struct ntcopy_ops *table, long own)
{
	const struct proto_ops *orig = sock->ops;

	ntcopy_set_ops(sock, table->set, table->mode);
	if (ntcopy_sole_user(sock->file, own))
		return;
	atomic64_dec(ntcopy_counter(table->mode));
	ntcopy_let_go(sock, orig);
}

/* Returns the table that the socket had, or NULL if it was let go meanwhile. */
static const struct ntcopy_ops *begin(struct replacing *replacing, struct socket *sock,
				      bool window)
{
	const struct ntcopy_ops *table;

	lock_sock(sock->sk);
	mutex_lock(&ntcopy_mutex);
	table = ntcopy_ops_of(sock);
	if (table) {
		replacing->sock = sock;
		list_add(&replacing->list, &all_replacing);
		/* Paired with READ_ONCE() in ntcopy_ops_of() */
		if (window)
			WRITE_ONCE(sock->ops, table->set->orig);
	}
	mutex_unlock(&ntcopy_mutex);
	release_sock(sock->sk);
	return table;
}

static void end(struct replacing *replacing, struct socket *sock,
		const struct ntcopy_ops *table, bool window)
{
	/* A caller that shares its descriptors has a reference of its own. */
	long own = current->files && atomic_read(&current->files->count) > 1;

	/* Of another family by now, perhaps.  Not under the socket's lock. */
	mutex_lock(&ntcopy_mutex);
	ntcopy_genuine_ops(sock->sk);
	mutex_unlock(&ntcopy_mutex);

	lock_sock(sock->sk);
	mutex_lock(&ntcopy_mutex);
	list_del(&replacing->list);
	/* The last of several calls on a socket does what is to be done. */
	if (!ntcopy_is_replacing(sock) && !ntcopy_ops_of(sock)) {
		if (window && !ulp_of(sock->sk))
			take_back(sock, table, own);
		else
			follow(sock, table);
	}
	mutex_unlock(&ntcopy_mutex);
	release_sock(sock->sk);
}

/*
 * A TCP_ULP that is going to fail had better do so on a socket that nobody else
 * has seen: see take_back().
 */
static int try_ulp(const struct sock *sk, sockptr_t name, unsigned int len)
{
	struct socket *sock;
	int ret;

	ret = sock_create_kern(sock_net(sk), sk->sk_family, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (ret < 0)
		return ret;
	ret = sock->ops->setsockopt(sock, SOL_TCP, TCP_ULP, name, len);
	sock_release(sock);
	if (ret == -ENOTCONN)
		return ulp_of(sk) || READ_ONCE(sk->sk_state) == TCP_ESTABLISHED ? 0 : ret;
	return ret;
}

static int set_replacing(struct socket *sock, int level, int optname, sockptr_t optval,
			 unsigned int optlen)
{
	bool window = level == SOL_TCP && ntcopy_is_tcp(sock->sk);
	const struct ntcopy_ops *table;
	struct replacing replacing;
	const struct proto_ops *ops;
	int ret;

	if (window) {
		ret = try_ulp(sock->sk, optval, optlen);
		if (ret < 0)
			return ret;
	}
	table = begin(&replacing, sock, window);
	ops = table ? table->set->orig : READ_ONCE(sock->ops);
	ret = ops->setsockopt(sock, level, optname, optval, optlen);
	if (table)
		end(&replacing, sock, table, window);
	return ret;
}

static bool replaces_ops(int level, int optname)
{
	return level == SOL_TLS || (level == SOL_TCP && optname == TCP_ULP) ||
	       (level == SOL_IPV6 && optname == IPV6_ADDRFORM);
}

int ntcopy_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
		      unsigned int optlen)
{
	const struct ntcopy_ops *table;
	const struct proto_ops *ops;

	if (replaces_ops(level, optname))
		return set_replacing(sock, level, optname, optval, optlen);
	table = ntcopy_ops_of(sock);
	ops = table ? table->set->orig : READ_ONCE(sock->ops);
	return ops->setsockopt(sock, level, optname, optval, optlen);
}
