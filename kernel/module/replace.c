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
 * TCP_ULP the socket has its own operations back, and no TCP socket gets ours
 * while another system call is under way that read the others, whatever they
 * were replaced for: it may be held up for as long as its caller likes, and be a
 * TCP_ULP as well.  On a socket that has its ULP it may be a key for TLS, which
 * would write over ours, and nobody would know.
 */

#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sockptr.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "module.h"

/* A call that may replace a socket's operations is under way. */
struct replacing {
	struct list_head		list;
	struct socket			*sock;
	const struct ntcopy_ops		*table;	/* which the socket had */
};

/* Guarded by ntcopy_mutex. */
static LIST_HEAD(all_replacing);

static const struct replacing *find(const struct socket *sock)
{
	const struct replacing *replacing;

	list_for_each_entry(replacing, &all_replacing, list)
		if (replacing->sock == sock)
			return replacing;
	return NULL;
}

/* Whether there is such a call.  The caller holds ntcopy_mutex. */
bool ntcopy_is_replacing(const struct socket *sock)
{
	return find(sock);
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

struct users {
	const struct file	*file;
	long			own;
};

enum { SOLE = 1, SHARED };

/* A descriptor that is seen here holds its reference: it cannot be closed now. */
static int count_users(const void *arg, struct file *file, unsigned int fd)
{
	const struct users *users = arg;

	if (file != users->file)
		return 0;
	return file_count(file) <= 1 + users->own ? SOLE : SHARED;
}

/**
 * ntcopy_sole_user - whether nobody else is in a system call on a socket
 * @file: The socket's
 * @own: References to it that the caller has, beside that of the descriptor
 * @fd: The descriptor, or one below
 *
 * Another descriptor counts as somebody else: a process that shares its
 * descriptors with nobody takes no reference for a system call.  If the
 * descriptor was closed meanwhile, its reference is not there to be counted, and
 * what looks like it is somebody else's.
 */
bool ntcopy_sole_user(const struct file *file, long own, unsigned int fd)
{
	const struct users users = { .file = file, .own = own };

	/* Between the store of the operations and this look at references */
	smp_mb();
	return iterate_fd(current->files, fd, count_users, &users) == SOLE;
}

/* Whether nobody but the setsockopt() under way uses a socket. */
static bool is_sole_caller(const struct socket *sock)
{
	const struct files_struct *files = current->files;

	/* io_uring has references that stand for any number of calls. */
	if (!files || current->flags & PF_IO_WORKER)
		return false;
#ifdef CONFIG_IO_URING
	if (current->io_uring)
		return false;
#endif
	/* A caller that shares its descriptors has a reference of its own. */
	return ntcopy_sole_user(sock->file, atomic_read(&files->count) > 1, 0);
}

static const struct tcp_ulp_ops *ulp_of(const struct sock *sk)
{
	return ntcopy_is_tcp(sk) ? inet_csk(sk)->icsk_ulp_ops : NULL;
}

/*
 * The operations of an attached socket are no longer ours, be they its own again
 * or replaced.  The caller holds the socket's lock, so that nobody copies ours
 * before it is known whether anybody might.
 */
static void put_back(struct socket *sock, const struct ntcopy_ops *table)
{
	const struct tcp_ulp_ops *ulp = ulp_of(sock->sk);
	const struct proto_ops *orig = sock->ops;
	const struct ntcopy_set *set;

	/* They may be in the memory of the ULP's module, and owned by another. */
	set = ntcopy_adopt(sock, ulp ? ulp->owner : NULL);
	if (set) {
		ntcopy_set_ops(sock, set, table->mode);
		if (!ntcopy_is_tcp(sock->sk) || is_sole_caller(sock))
			return;
	}
	atomic64_dec(ntcopy_counter(table->mode));
	ntcopy_let_go(sock, orig);
}

/*
 * Returns the table that the socket had, or NULL if it was let go meanwhile.
 * Where another call has replaced it already, the one that ends last follows.
 */
static const struct ntcopy_ops *begin(struct replacing *replacing, struct socket *sock,
				      bool window)
{
	const struct replacing *other;
	const struct ntcopy_ops *table;

	lock_sock(sock->sk);
	mutex_lock(&ntcopy_mutex);
	table = ntcopy_ops_of(sock);
	/* Paired with READ_ONCE() in ntcopy_ops_of() */
	if (table && window)
		WRITE_ONCE(sock->ops, table->set->orig);
	other = find(sock);
	if (!table && other)
		table = other->table;
	if (table) {
		replacing->sock = sock;
		replacing->table = table;
		list_add(&replacing->list, &all_replacing);
	}
	mutex_unlock(&ntcopy_mutex);
	release_sock(sock->sk);
	return table;
}

static void end(struct replacing *replacing)
{
	struct socket *sock = replacing->sock;

	/* Of another family by now, perhaps.  Not under the socket's lock. */
	mutex_lock(&ntcopy_mutex);
	ntcopy_genuine_ops(sock->sk);
	mutex_unlock(&ntcopy_mutex);

	lock_sock(sock->sk);
	mutex_lock(&ntcopy_mutex);
	list_del(&replacing->list);
	/* The last of several calls on a socket does what is to be done. */
	if (!ntcopy_is_replacing(sock) && !ntcopy_ops_of(sock))
		put_back(sock, replacing->table);
	mutex_unlock(&ntcopy_mutex);
	release_sock(sock->sk);
}

/* As the kernel takes the name of a ULP: cut off, and without an error for it. */
static int copy_name(char name[TCP_ULP_NAME_MAX], sockptr_t optval, unsigned int optlen)
{
	long ret;

	if (optlen < 1)
		return -EINVAL;
	memset(name, 0, TCP_ULP_NAME_MAX);
	ret = strncpy_from_sockptr(name, optval, min(optlen, TCP_ULP_NAME_MAX - 1U));
	return ret < 0 ? -EFAULT : 0;
}

/* What a new socket of a program's says to a ULP. */
static int ask_ulp(const struct sock *sk, sockptr_t name)
{
	struct socket *sock;
	int ret;

	ret = sock_create_kern(sock_net(sk), READ_ONCE(sk->sk_family), SOCK_STREAM, IPPROTO_TCP,
			       &sock);
	if (ret < 0)
		return ret;
	/* MPTCP takes the kernel's own sockets, and no others. */
	sock->sk->sk_kern_sock = 0;
	ret = sock->ops->setsockopt(sock, SOL_TCP, TCP_ULP, name, TCP_ULP_NAME_MAX - 1);
	sock->sk->sk_kern_sock = 1;
	sock_release(sock);
	return ret;
}

/*
 * A TCP_ULP that is going to fail had better do so on a socket that nobody else
 * has seen: see put_back().  Of those that there are, TLS alone wants a socket
 * that is connected, none takes a listening one, and espintcp wants one that has
 * no other use.
 */
static int try_ulp(const struct sock *sk, const char *name)
{
	int ret;

	if (ulp_of(sk))
		return 0;
	ret = ask_ulp(sk, KERNEL_SOCKPTR((void *)name));
	if (ret == -ENOTCONN && READ_ONCE(sk->sk_state) == TCP_ESTABLISHED && !strcmp(name, "tls"))
		return 0;
	if (!ret && READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return -ENOTCONN;
	if (!ret && READ_ONCE(sk->sk_user_data))
		return -EBUSY;
	return ret;
}

static int set_replacing(struct socket *sock, int level, int optname, sockptr_t optval,
			 unsigned int optlen)
{
	bool window = level == SOL_TCP && ntcopy_is_tcp(sock->sk);
	const struct ntcopy_ops *table;
	char name[TCP_ULP_NAME_MAX];
	struct replacing replacing;
	const struct proto_ops *ops;
	int ret;

	if (window) {
		/* Read once: what was tried is what is done. */
		ret = copy_name(name, optval, optlen);
		if (!ret)
			ret = try_ulp(sock->sk, name);
		if (ret < 0)
			return ret;
		optval = KERNEL_SOCKPTR(name);
		optlen = sizeof(name) - 1;
	}
	table = begin(&replacing, sock, window);
	ops = table ? table->set->orig : READ_ONCE(sock->ops);
	ret = ops->setsockopt(sock, level, optname, optval, optlen);
	if (table)
		end(&replacing);
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
