// SPDX-License-Identifier: GPL-2.0
/*
 * A send of an attached socket: whether it is hinted, and who copies its bytes.
 */

#include <linux/socket.h>
#include <net/net_namespace.h>

#include "module.h"

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
	int ret = send->set->orig->sendmsg(send->sock, msg, len);

	if (ret > 0)
		send->bytes[fate] += ret;
	return ret;
}

/* What is not copied here, or not from the user, or not by this CPU. */
static bool can_be_nontemporal(const struct msghdr *msg)
{
	return IS_ENABLED(CONFIG_X86_64) && user_backed_iter(&msg->msg_iter) &&
	       !msg->msg_ubuf &&
	       !(msg->msg_flags & (MSG_SPLICE_PAGES | MSG_ZEROCOPY));
}

static int send_on_path(struct ntcopy_send *send, size_t len)
{
	switch (send->set->path) {
	case NTCOPY_PATH_UNIX:
		return ntcopy_send_unix(send, len);
	case NTCOPY_PATH_TCP:
		return ntcopy_send_tcp(send, len);
	case NTCOPY_PATH_UDP:
		return ntcopy_send_udp(send, len);
	}
	return ntcopy_send_plain(send, send->msg, len, NTCOPY_NOT_SUPPORTED);
}

static int send_hinted(struct ntcopy_send *send, size_t len, unsigned int min_bytes)
{
	struct msghdr *msg = send->msg;
	int ret;

	if (len < min_bytes)
		return ntcopy_send_plain(send, msg, len, NTCOPY_TOO_SMALL);
	if (!len || !can_be_nontemporal(msg))
		return ntcopy_send_plain(send, msg, len, NTCOPY_NOT_SUPPORTED);

	send->timed = send->adaptive && nontemporal_begin(&msg->msg_iter);
	ret = send_on_path(send, len);
	if (send->timed)
		nontemporal_end(&msg->msg_iter);
	return ret;
}

static bool is_hinted(const struct ntcopy_ops *table, u8 mode, bool flag)
{
	if (mode == NTCOPY_SYSCTL_OFF || table->mode == NTCOPY_SOCK_DETACHED)
		return false;
	return flag || mode == NTCOPY_SYSCTL_ALL || table->mode != NTCOPY_SOCK_NONE;
}

int ntcopy_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	const struct ntcopy_ops *table = ntcopy_ops_of(sock);
	bool flag = msg->msg_flags & MSG_NTCOPY;
	struct ntcopy_send send = { .sock = sock, .msg = msg };
	const struct ntcopy_net *settings;
	unsigned int min_bytes;
	u8 mode;
	int ret;

	msg->msg_flags &= ~MSG_NTCOPY;
	/* Somebody replaces its operations just now; they are never ours. */
	if (!table)
		return READ_ONCE(sock->ops)->sendmsg(sock, msg, len);

	settings = ntcopy_net(sock_net(sock->sk));
	mode = READ_ONCE(settings->mode);
	if (!is_hinted(table, mode, flag))
		return table->set->orig->sendmsg(sock, msg, len);

	min_bytes = READ_ONCE(settings->min_bytes);
	send.set = table->set;
	send.small = min_bytes < PAGE_SIZE;
	send.adaptive = mode == NTCOPY_SYSCTL_ADAPTIVE && table->mode != NTCOPY_SOCK_OBEY;
	ret = send_hinted(&send, len, min_bytes);
	if (ret > 0)
		ntcopy_count(sock->sk, send.bytes);
	return ret;
}
