// SPDX-License-Identifier: GPL-2.0
/*
 * UDP: a datagram is copied to pages as a whole, where the original passes them
 * on as they are.  Where it would read them for a checksum, and where they would
 * become a part of a datagram that is sent later, it copies as always.
 */

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "module.h"

#define DATAGRAM_MAX	0xffff

/* Whether what a device gets is checksummed by it, and may be in pages. */
static enum ntcopy_fate fate_on_device(const struct net_device *dev, unsigned int mtu,
				       bool ipv6, size_t len)
{
	netdev_features_t checksums = NETIF_F_HW_CSUM |
				      (ipv6 ? NETIF_F_IPV6_CSUM : NETIF_F_IP_CSUM);

	len += sizeof(struct udphdr) + (ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	if (len > min(mtu, READ_ONCE(dev->mtu)) || !(dev->features & checksums))
		return NTCOPY_READ_BY_KERNEL;
	return dev->features & NETIF_F_SG ? NTCOPY_NONTEMPORAL : NTCOPY_NOT_SUPPORTED;
}

/* Only these addresses are known without a look at routes. */
static bool is_loopback(const struct msghdr *msg, bool *ipv6)
{
	const struct sockaddr_in6 *in6 = msg->msg_name;
	const struct sockaddr_in *in = msg->msg_name;

	*ipv6 = false;
	if (msg->msg_namelen >= sizeof(*in) && in->sin_family == AF_INET)
		return ipv4_is_loopback(in->sin_addr.s_addr);
	if (msg->msg_namelen < SIN6_LEN_RFC2133 || in6->sin6_family != AF_INET6)
		return false;
	if (ipv6_addr_v4mapped(&in6->sin6_addr))
		return ipv4_is_loopback(in6->sin6_addr.s6_addr32[3]);
	*ipv6 = true;
	return ipv6_addr_loopback(&in6->sin6_addr);
}

static bool is_ipv6_connection(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return READ_ONCE(sk->sk_family) == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr);
#else
	return false;
#endif
}

/* Segments of one size are cut by the device, and checksummed by it. */
static bool is_segmented(const struct sock *sk, struct msghdr *msg)
{
	struct cmsghdr *cmsg;

	if (READ_ONCE(udp_sk(sk)->gso_size))
		return true;
	if (!msg->msg_controllen)
		return false;
	for_each_cmsghdr(cmsg, msg) {
		/* The original is going to say so; and there is no next one. */
		if (!CMSG_OK(msg, cmsg))
			return false;
		if (cmsg->cmsg_level == SOL_UDP && cmsg->cmsg_type == UDP_SEGMENT)
			return true;
	}
	return false;
}

static enum ntcopy_fate fate_on_route(const struct sock *sk, const struct msghdr *msg,
				      size_t len)
{
	const struct net_device *lo = sock_net(sk)->loopback_dev;
	enum ntcopy_fate fate = NTCOPY_NOT_SUPPORTED;
	struct dst_entry *dst;
	bool ipv6;

	if (msg->msg_name) {
		if (!is_loopback(msg, &ipv6))
			return NTCOPY_NOT_SUPPORTED;
		return fate_on_device(lo, lo->mtu, ipv6, len);
	}
	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	if (dst)
		fate = fate_on_device(dst->dev, dst_mtu(dst), is_ipv6_connection(sk), len);
	rcu_read_unlock();
	return fate;
}

static enum ntcopy_fate fate_of(const struct sock *sk, struct msghdr *msg, size_t len)
{
	bool segmented = is_segmented(sk, msg);

	if (len > DATAGRAM_MAX || DIV_ROUND_UP(len, PAGE_SIZE) > ntcopy_max_skb_frags())
		return NTCOPY_NOT_SUPPORTED;
	if (msg->msg_flags & MSG_MORE || ntcopy_udp_corked(sk) || READ_ONCE(udp_sk(sk)->pending))
		return segmented ? NTCOPY_NOT_SUPPORTED : NTCOPY_READ_BY_KERNEL;
	return segmented ? NTCOPY_NONTEMPORAL : fate_on_route(sk, msg, len);
}

int ntcopy_send_udp(struct ntcopy_send *send, size_t len)
{
	enum ntcopy_fate fate = fate_of(send->sock->sk, send->msg, len);
	struct ntcopy_pages pages;

	if (fate == NTCOPY_NONTEMPORAL)
		fate = ntcopy_fill(&pages, send, len);
	if (fate != NTCOPY_NONTEMPORAL)
		return ntcopy_send_plain(send, send->msg, len, fate);
	return ntcopy_send_pages(send, &pages, len, 0);
}
