// SPDX-License-Identifier: GPL-2.0
/*
 * TCP: it copies non-temporally by itself for devices whose tx-nocache-copy is
 * on.  That is a bit of the route's features, which the socket caches, so it can
 * be on for one send.  Nothing else about the send is different.
 *
 * The bit is lost if the socket looks up its route while it waits for memory;
 * and another send that comes while this one waits has it, too.
 */

#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/socket.h>
#include <net/inet_sock.h>
#include <net/sock.h>
#include <net/tls.h>

#include "module.h"

/* Another protocol is between: TLS, a sockmap, espintcp. */
static enum ntcopy_fate fate_of_others(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_TLS)
	const struct tcp_ulp_ops *ulp = inet_csk(sk)->icsk_ulp_ops;
	const struct tls_context *ctx;

	if (ulp && !strcmp(ulp->name, "tls")) {
		ctx = tls_get_ctx(sk);
		if (ctx && ctx->tx_conf == TLS_SW)
			return NTCOPY_SOFTWARE_TLS;
	}
#endif
	return NTCOPY_NOT_SUPPORTED;
}

/* Where the first bytes go to, or NULL: to a new page. */
static const void *destination(const struct sock *sk)
{
	const struct page_frag *frag;

	frag = sk->sk_use_task_frag ? &current->task_frag : &sk->sk_frag;
	if (!frag->page || frag->offset >= frag->size)
		return NULL;
	return page_address(frag->page) + frag->offset;
}

static int send_nontemporal(struct ntcopy_send *send, struct sock *sk, size_t len)
{
	bool already = sk->sk_route_caps & NETIF_F_NOCACHE_COPY;
	enum ntcopy_fate fate = NTCOPY_NOT_SUPPORTED;
	int ret;

	sk->sk_route_caps |= NETIF_F_NOCACHE_COPY;
	ret = send->set->orig->sendmsg_locked(sk, send->msg, len);
	if (sk->sk_route_caps & NETIF_F_NOCACHE_COPY)
		fate = NTCOPY_NONTEMPORAL;
	if (!already)
		sk->sk_route_caps &= ~NETIF_F_NOCACHE_COPY;
	if (ret > 0)
		send->bytes[fate] += ret;
	return ret;
}

static int send_locked(struct ntcopy_send *send, struct sock *sk, size_t len)
{
	int ret;

	if (ntcopy_pays(send, destination(sk), len)) {
		ret = send_nontemporal(send, sk, len);
	} else {
		ret = send->set->orig->sendmsg_locked(sk, send->msg, len);
		if (ret > 0)
			send->bytes[NTCOPY_FITS_CACHE] += ret;
	}
	ntcopy_copied(send, ret);
	return ret;
}

int ntcopy_send_tcp(struct ntcopy_send *send, size_t len)
{
	struct sock *sk = send->sock->sk;
	struct msghdr *msg = send->msg;
	bool ours;
	int ret;

	if (READ_ONCE(sk->sk_prot)->sendmsg != send->set->sendmsg)
		return ntcopy_send_plain(send, msg, len, fate_of_others(sk));
	/* What is not bound, or goes with the first packet, is copied elsewhere. */
	if (!READ_ONCE(inet_sk(sk)->inet_num) || msg->msg_flags & MSG_FASTOPEN ||
	    ntcopy_defers_connect(sk) || !send->set->orig->sendmsg_locked)
		return ntcopy_send_plain(send, msg, len, NTCOPY_NOT_SUPPORTED);

	sock_rps_record_flow(sk);
	lock_sock(sk);
	/* Nobody changes it now. */
	ours = sk->sk_prot->sendmsg == send->set->sendmsg;
	if (ours)
		ret = send_locked(send, sk, len);
	release_sock(sk);
	return ours ? ret : ntcopy_send_plain(send, msg, len, fate_of_others(sk));
}
