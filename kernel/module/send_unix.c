// SPDX-License-Identifier: GPL-2.0
/*
 * Unix streams: in pieces of the size that the original makes an skb of, so that
 * a send that ends half way ends where it always did.
 */

#include <linux/mm.h>
#include <linux/skbuff.h>
#include <net/sock.h>

#include "module.h"

/* The same as in net/unix/af_unix.c */
#define UNIX_SKB_FRAGS_SZ	(PAGE_SIZE << get_order(32768))

/* What the next skb of a plain send would hold. */
static size_t piece_bytes(const struct sock *sk, size_t left)
{
	int size = min_t(size_t, left, INT_MAX);

	size = min_t(int, size, (READ_ONCE(sk->sk_sndbuf) >> 1) - 64);
	return min_t(int, size, SKB_MAX_HEAD(0) + UNIX_SKB_FRAGS_SZ);
}

/* It would only be copied to be thrown away. */
static bool is_full(const struct sock *sk, const struct msghdr *msg)
{
	return msg->msg_flags & MSG_DONTWAIT &&
	       sk_wmem_alloc_get(sk) >= READ_ONCE(sk->sk_sndbuf);
}

/* The original makes pieces of it by itself. */
static int send_part(struct ntcopy_send *send, size_t bytes, unsigned int flags,
		     enum ntcopy_fate fate)
{
	struct msghdr msg = *send->msg;
	int ret;

	iov_iter_truncate(&msg.msg_iter, bytes);
	msg.msg_flags |= flags;
	ret = ntcopy_send_plain(send, &msg, bytes, fate);
	if (ret > 0)
		iov_iter_advance(&send->msg->msg_iter, ret);
	return ret;
}

/* A piece that faults, or finds no memory, is left to the original. */
static int send_piece(struct ntcopy_send *send, size_t bytes, unsigned int flags)
{
	struct ntcopy_pages pages;
	enum ntcopy_fate fate;

	if (bytes < PAGE_SIZE)
		fate = NTCOPY_TOO_SMALL;
	else if (is_full(send->sock->sk, send->msg))
		fate = NTCOPY_NOT_SUPPORTED;
	else
		fate = ntcopy_fill(&pages, send, bytes);
	if (fate != NTCOPY_NONTEMPORAL)
		return send_part(send, bytes, flags, fate);
	return ntcopy_send_pages(send, &pages, bytes, flags);
}

int ntcopy_send_unix(struct ntcopy_send *send, size_t len)
{
	struct msghdr *msg = send->msg;
	size_t sent = 0, bytes;
	int ret;

	if (msg->msg_controllen || msg->msg_namelen || msg->msg_flags & MSG_OOB)
		return ntcopy_send_plain(send, msg, len, NTCOPY_NOT_SUPPORTED);

	while (sent < len) {
		bytes = piece_bytes(send->sock->sk, len - sent);
		/* A send that accepted something raises no SIGPIPE. */
		ret = send_piece(send, bytes, sent ? MSG_NOSIGNAL : 0);
		if (ret < 0)
			return sent ? sent : ret;
		sent += ret;
		if (ret < bytes)
			break;
	}
	return sent;
}
