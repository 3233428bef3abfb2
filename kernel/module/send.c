// SPDX-License-Identifier: GPL-2.0
/*
 * A send of an attached socket: whether it is hinted, and who copies its bytes.
 *
 * It goes in pieces of the size that the original makes an skb of, so that a send
 * that ends half way ends where it always did.
 */

#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/socket.h>

#include "module.h"

static bool disable;
module_param(disable, bool, 0644);
MODULE_PARM_DESC(disable, "make every send a plain one, whatever its socket says");

static unsigned int min_bytes = NTCOPY_MODULE_MIN_BYTES;
module_param(min_bytes, uint, 0644);
MODULE_PARM_DESC(min_bytes, "hint no send of fewer bytes; less than 256 KiB is for tests: it loses");

/* What is not copied here, or not from the user, or not by this kind of CPU. */
static bool can_be_nontemporal(const struct msghdr *msg)
{
	return NTCOPY_CAN_COPY && user_backed_iter(&msg->msg_iter) &&
	       !msg->msg_controllen && !msg->msg_namelen && !msg->msg_ubuf &&
	       !(msg->msg_flags & (MSG_OOB | MSG_SPLICE_PAGES | MSG_ZEROCOPY));
}

/* A segment below a page is copied normally; there may be no other. */
static bool has_large_segment(const struct iov_iter *from)
{
	unsigned long i;

	for (i = 0; iter_is_iovec(from) && i < from->nr_segs; i++)
		if (iter_iov(from)[i].iov_len >= PAGE_SIZE)
			return true;
	return iter_is_ubuf(from);
}

/* What the next skb of a plain send would hold. */
static size_t piece_bytes(const struct sock *sk, size_t left)
{
	int size = min_t(size_t, left, INT_MAX);

	size = min_t(int, size, (READ_ONCE(sk->sk_sndbuf) >> 1) - 64);
	return min_t(int, size, NTCOPY_PIECE_BYTES);
}

/* It would only be copied to be thrown away. */
static bool is_full(const struct sock *sk, const struct msghdr *msg)
{
	return msg->msg_flags & MSG_DONTWAIT &&
	       sk_wmem_alloc_get(sk) >= READ_ONCE(sk->sk_sndbuf);
}

/* The original makes pieces of it by itself. */
static int send_plain(struct socket *sock, struct msghdr *from, size_t bytes)
{
	struct msghdr msg = *from;
	int ret;

	iov_iter_truncate(&msg.msg_iter, bytes);
	ret = ntcopy_orig->sendmsg(sock, &msg, bytes);
	if (ret > 0)
		iov_iter_advance(&from->msg_iter, ret);
	return ret;
}

/*
 * A piece that faults, or finds no memory, is left to the original.
 * Sets @bypassed if bytes of any went past the caches.
 */
static int send_pieces(struct socket *sock, struct msghdr *msg, size_t len, bool *bypassed)
{
	unsigned int flags = msg->msg_flags;
	size_t sent = 0, bytes;
	int ret;

	while (sent < len) {
		bytes = piece_bytes(sock->sk, len - sent);
		if (bytes < PAGE_SIZE || is_full(sock->sk, msg) ||
		    !ntcopy_send_in_pages(sock, msg, bytes, &ret, bypassed))
			ret = send_plain(sock, msg, bytes);
		if (ret < 0) {
			ret = sent ? sent : ret;
			goto done;
		}
		sent += ret;
		if (ret < bytes)
			break;
		/* A send that accepted something raises no SIGPIPE. */
		msg->msg_flags |= MSG_NOSIGNAL;
	}
	ret = sent;
done:
	msg->msg_flags = flags;
	return ret;
}

static bool is_hinted(int number, size_t len, bool flag)
{
	unsigned int floor = READ_ONCE(min_bytes);

	if (!READ_ONCE(ntcopy_enabled) || len < floor)
		return false;
	/* The least number that there is means the floor. */
	return flag || number == NTCOPY_MODULE_MIN_BYTES || len >= number;
}

int ntcopy_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);
	bool flag = msg->msg_flags & MSG_NTCOPY;
	bool hinted, bypassed = false;
	int ret;

	msg->msg_flags &= ~MSG_NTCOPY;
	if (!table || table->min_bytes <= 0 || READ_ONCE(disable))
		return ntcopy_orig->sendmsg(sock, msg, len);

	hinted = is_hinted(table->min_bytes, len, flag);
	if (hinted && can_be_nontemporal(msg) && has_large_segment(&msg->msg_iter))
		ret = send_pieces(sock, msg, len, &bypassed);
	else
		ret = ntcopy_orig->sendmsg(sock, msg, len);
	if (ret > 0)
		ntcopy_count(sock->sk, ret, hinted, bypassed);
	return ret;
}
