// SPDX-License-Identifier: GPL-2.0
/*
 * Unix streams: in pieces of the size that the original makes an skb of, so that
 * a send that ends half way ends where it always did.
 */

#include <linux/mm.h>
#include <linux/skbuff.h>
#include <net/sock.h>

#include "module.h"

/* As in net/unix/af_unix.c */
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

	if (is_full(send->sock->sk, send->msg))
		return send_part(send, bytes, flags, NTCOPY_NOT_SUPPORTED);
	if (!ntcopy_fill(&pages, send, bytes)) {
		ntcopy_free_pages(&pages);
		return send_part(send, bytes, flags, NTCOPY_NOT_SUPPORTED);
	}
	return ntcopy_send_pages(send, &pages, bytes, flags);
}

/* A send that accepted something raises no SIGPIPE. */
static unsigned int flags_after(size_t sent)
{
	return sent ? MSG_NOSIGNAL : 0;
}

static int send_pieces(struct ntcopy_send *send, size_t len, unsigned int flags)
{
	size_t sent = 0, bytes;
	int ret;

	while (sent < len) {
		bytes = piece_bytes(send->sock->sk, len - sent);
		ret = send_piece(send, bytes, flags | flags_after(sent));
		if (ret < 0)
			return sent ? sent : ret;
		sent += ret;
		if (ret < bytes)
			break;
	}
	return sent;
}

/* Pieces that one decision is made for: it costs more than in the original. */
#define DECIDED_AT_ONCE	4

static int send_decided(struct ntcopy_send *send, size_t len, unsigned int flags)
{
	int ret;

	if (ntcopy_pays(send, NULL, len))
		ret = send_pieces(send, len, flags);
	else
		ret = send_part(send, len, flags, NTCOPY_FITS_CACHE);
	ntcopy_copied(send, ret);
	return ret;
}

int ntcopy_send_unix(struct ntcopy_send *send, size_t len)
{
	struct msghdr *msg = send->msg;
	size_t sent = 0, bytes;
	int ret;

	if (msg->msg_controllen || msg->msg_namelen || msg->msg_flags & MSG_OOB)
		return ntcopy_send_plain(send, msg, len, NTCOPY_NOT_SUPPORTED);
	if (!send->adaptive)
		return send_pieces(send, len, 0);

	while (sent < len) {
		bytes = DECIDED_AT_ONCE * piece_bytes(send->sock->sk, len - sent);
		bytes = min(bytes, len - sent);
		ret = send_decided(send, bytes, flags_after(sent));
		if (ret < 0)
			return sent ? sent : ret;
		sent += ret;
		if (ret < bytes)
			break;
	}
	return sent;
}
