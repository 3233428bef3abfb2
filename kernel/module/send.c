// SPDX-License-Identifier: GPL-2.0
/*
 * A send of an attached socket: whether it is hinted, and who copies its bytes.
 */

#include <linux/moduleparam.h>
#include <linux/nontemporal.h>
#include <linux/sock_diag.h>
#include <linux/socket.h>

#include "module.h"

static bool disable;
module_param(disable, bool, 0644);
MODULE_PARM_DESC(disable, "make every send a plain one, whatever its socket says");

/**
 * ntcopy_send_plain - have the original operations copy as they always do
 * @send: The send
 * @msg: What is to be sent: @send's, or a part of that
 * @len: How many bytes
 * @fate: Why they are not copied non-temporally
 *
 * Return: the bytes that were accepted, or an error.
 */
int ntcopy_send_plain(struct ntcopy_send *send, struct msghdr *msg, size_t len,
		      enum ntcopy_fate fate)
{
	int ret = send->kind->orig->sendmsg(send->sock, msg, len);

	if (ret > 0)
		send->bytes[fate] += ret;
	return ret;
}

/* What is not copied here, or not from the user, or not by this kind of CPU. */
static bool can_be_nontemporal(const struct msghdr *msg)
{
	return NTCOPY_CAN_COPY && user_backed_iter(&msg->msg_iter) &&
	       !msg->msg_ubuf &&
	       !(msg->msg_flags & (MSG_SPLICE_PAGES | MSG_ZEROCOPY));
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

static int send_hinted(struct ntcopy_send *send, size_t len)
{
	struct msghdr *msg = send->msg;

	if (len < PAGE_SIZE)
		return ntcopy_send_plain(send, msg, len, NTCOPY_TOO_SMALL);
	if (!can_be_nontemporal(msg))
		return ntcopy_send_plain(send, msg, len, NTCOPY_NOT_SUPPORTED);
	if (!has_large_segment(&msg->msg_iter))
		return ntcopy_send_plain(send, msg, len, NTCOPY_TOO_SMALL);
	return send->kind->send(send, len);
}

static bool is_hinted(const struct ntcopy_ops *table, u8 mode, bool flag)
{
	if (mode == NTCOPY_SYSCTL_OFF || table->mode == NTCOPY_SOCK_DETACHED)
		return false;
	return table->mode >= NTCOPY_SOCK_EVERY ||
	       (table->mode == NTCOPY_SOCK_FLAGGED && flag);
}

int ntcopy_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);
	bool flag = msg->msg_flags & MSG_NTCOPY;
	struct ntcopy_send send = { .sock = sock, .msg = msg };
	u8 mode = READ_ONCE(ntcopy_mode);
	u32 cookie[2];
	int ret;

	msg->msg_flags &= ~MSG_NTCOPY;
	/* It has become one of IPv4 just now. */
	if (!table)
		return READ_ONCE(sock->ops)->sendmsg(sock, msg, len);

	if (READ_ONCE(disable) || !is_hinted(table, mode, flag))
		return table->kind->orig->sendmsg(sock, msg, len);

	send.kind = table->kind;
	sock_diag_save_cookie(sock->sk, cookie);
	send.sender = cookie[0] % (1 << NONTEMPORAL_SENDER_BITS);
	send.bypass = mode != NTCOPY_SYSCTL_RULE || table->mode == NTCOPY_SOCK_OBEY ||
		      nontemporal_pays(send.sender);
	ret = send_hinted(&send, len);
	if (ret > 0)
		ntcopy_count(sock->sk, send.bytes);
	return ret;
}
