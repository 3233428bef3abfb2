// SPDX-License-Identifier: GPL-2.0
/* Connected pairs of sockets: what is neither a unix socket nor plain IP. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_alg.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/tls.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scene.h"

#ifndef SOL_TLS
#define SOL_TLS			282
#endif
#ifndef SOL_ALG
#define SOL_ALG			279
#endif
#ifndef VMADDR_CID_LOCAL
#define VMADDR_CID_LOCAL	1
#endif
#define ETH_P_TESTS		0x88b5	/* IEEE 802: for local experiments */

static int vsock_socket(const struct family *family)
{
	int fd = own_error(socket(AF_VSOCK, family->type, 0));
	__u64 size = SOCKET_BUFFER;
	int ret;

	if (fd < 0)
		return fd;
	if (setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &size, sizeof(size)) < 0 ||
	    setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &size, sizeof(size)) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static int open_vsock(const struct family *family, struct pair *pair)
{
	struct sockaddr_vm addr = {
		.svm_family = AF_VSOCK, .svm_port = VMADDR_PORT_ANY, .svm_cid = VMADDR_CID_LOCAL,
	};
	int server = vsock_socket(family), ret = 0;
	socklen_t len = sizeof(addr);

	if (server < 0)
		return server;
	pair->tx = vsock_socket(family);
	if (pair->tx < 0 || bind(server, (void *)&addr, len) < 0 || listen(server, 1) < 0 ||
	    getsockname(server, (void *)&addr, &len) < 0 ||
	    connect(pair->tx, (void *)&addr, len) < 0)
		ret = -errno;
	if (!ret) {
		pair->rx = accept(server, NULL, NULL);
		ret = own_error(pair->rx);
	}
	close(server);
	return ret < 0 ? ret : 0;
}

/* Both ends bound to lo: the one that sends needs no address then. */
static int open_packet(const struct family *family, struct pair *pair)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_TESTS),
		.sll_ifindex = if_nametoindex("lo"),
	};
	int ret;

	pair->rx = own_error(socket(AF_PACKET, family->type, 0));
	if (pair->rx < 0)
		return pair->rx;
	ret = set_buffers(pair->rx);
	if (ret < 0)
		return ret;
	pair->tx = own_error(socket(AF_PACKET, family->type, 0));
	if (pair->tx < 0)
		return pair->tx;
	ret = set_buffers(pair->tx);
	if (ret < 0)
		return ret;
	if (bind(pair->rx, (void *)&addr, sizeof(addr)) < 0)
		return -errno;
	return own_error(bind(pair->tx, (void *)&addr, sizeof(addr)));
}

static int open_tls(const struct family *family, struct pair *pair)
{
	struct tls12_crypto_info_aes_gcm_128 crypto = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};
	int ret = open_inet(family, pair);

	if (ret < 0)
		return ret;
	if (setsockopt(pair->tx, IPPROTO_TCP, TCP_ULP, "tls", 4) < 0 ||
	    setsockopt(pair->rx, IPPROTO_TCP, TCP_ULP, "tls", 4) < 0 ||
	    setsockopt(pair->tx, SOL_TLS, TLS_TX, &crypto, sizeof(crypto)) < 0)
		return -errno;
	return own_error(setsockopt(pair->rx, SOL_TLS, TLS_RX, &crypto, sizeof(crypto)));
}

static int open_netlink(const struct family *family, struct pair *pair)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(addr);
	int ret;

	pair->rx = own_error(socket(AF_NETLINK, SOCK_RAW, family->protocol));
	if (pair->rx < 0)
		return pair->rx;
	pair->tx = own_error(socket(AF_NETLINK, SOCK_RAW, family->protocol));
	if (pair->tx < 0)
		return pair->tx;
	ret = set_buffers(pair->rx);
	if (!ret)
		ret = set_buffers(pair->tx);
	if (ret < 0)
		return ret;
	if (bind(pair->rx, (void *)&addr, len) < 0 ||
	    getsockname(pair->rx, (void *)&addr, &len) < 0)
		return -errno;
	return own_error(connect(pair->tx, (void *)&addr, len));
}

static int open_alg(const char *type, const char *name, bool keyed, struct pair *pair)
{
	static const unsigned char key[16] = { 1, 2, 3 };
	struct sockaddr_alg addr = { .salg_family = AF_ALG };
	int server = own_error(socket(AF_ALG, SOCK_SEQPACKET, 0)), ret = 0;

	if (server < 0)
		return server;
	memcpy(addr.salg_type, type, strlen(type));
	memcpy(addr.salg_name, name, strlen(name));
	if (bind(server, (void *)&addr, sizeof(addr)) < 0 ||
	    (keyed && setsockopt(server, SOL_ALG, ALG_SET_KEY, key, sizeof(key)) < 0))
		ret = -errno;
	if (!ret) {
		pair->tx = accept(server, NULL, NULL);
		pair->rx = pair->tx;
		ret = own_error(pair->tx);
	}
	close(server);
	return ret < 0 ? ret : set_buffers(pair->tx);
}

static int open_alg_hash(const struct family *family, struct pair *pair)
{
	(void)family;
	return open_alg("hash", "sha256", false, pair);
}

/* Says "encrypt", with an initial vector of zeroes, and that more follows. */
static int open_alg_skcipher(const struct family *family, struct pair *pair)
{
	union {
		char space[CMSG_SPACE(4) + CMSG_SPACE(4 + 16)];
		struct cmsghdr align;
	} control = { { 0 } };
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	__u32 value = ALG_OP_ENCRYPT;
	int ret;

	(void)family;
	ret = open_alg("skcipher", "ctr(aes)", true, pair);
	if (ret < 0)
		return ret;
	cmsg->cmsg_level = SOL_ALG;
	cmsg->cmsg_type = ALG_SET_OP;
	cmsg->cmsg_len = CMSG_LEN(4);
	memcpy(CMSG_DATA(cmsg), &value, 4);
	cmsg = CMSG_NXTHDR(&msg, cmsg);
	cmsg->cmsg_level = SOL_ALG;
	cmsg->cmsg_type = ALG_SET_IV;
	cmsg->cmsg_len = CMSG_LEN(4 + 16);
	value = 16;
	memcpy(CMSG_DATA(cmsg), &value, 4);
	return own_error(sendmsg(pair->tx, &msg, MSG_MORE));
}

static const unsigned char frame_header[14] = { [12] = ETH_P_TESTS >> 8, ETH_P_TESTS & 255 };

const struct family vsock_stream = {
	.name = "vsock stream", .domain = AF_VSOCK, .type = SOCK_STREAM,
	.traits = HINTED, .open = open_vsock,
};

/* virtio_transport_send_pkt_info() sends 64 KiB at a time, and takes none of it back. */
const struct family vsock_seqpacket = {
	.name = "vsock seqpacket", .domain = AF_VSOCK, .type = SOCK_SEQPACKET,
	.traits = HINTED | RECORDS | TEARS, .max = 200000, .open = open_vsock,
};

const struct family packet_dgram = {
	.name = "packet dgram", .domain = AF_PACKET, .type = SOCK_DGRAM,
	.traits = HINTED | RECORDS | SYNC | LOSSY, .max = 65535, .open = open_packet,
};

const struct family packet_raw = {
	.name = "packet raw", .domain = AF_PACKET, .type = SOCK_RAW,
	.traits = HINTED | RECORDS | SYNC | LOSSY, .max = 65535, .head = frame_header,
	.head_len = sizeof(frame_header), .skip = sizeof(frame_header), .open = open_packet,
};

const struct family tls = {
	.name = "tls", .domain = AF_INET, .type = SOCK_STREAM, .traits = HINTED | LISTENS,
	.reads = true, .open = open_tls,
};

const struct family netlink = {
	.name = "netlink", .domain = AF_NETLINK, .type = SOCK_RAW, .protocol = NETLINK_USERSOCK,
	.traits = HINTED | RECORDS | SYNC, .reads = true, .max = 200000,
	.open = open_netlink,
};

const struct family alg_hash = {
	.name = "alg hash", .domain = AF_ALG, .type = SOCK_SEQPACKET,
	.traits = HINTED | RECORDS | OPAQUE | SYNC, .reads = true, .max = 65000,
	.open = open_alg_hash,
};

const struct family alg_skcipher = {
	.name = "alg skcipher", .domain = AF_ALG, .type = SOCK_SEQPACKET,
	.traits = HINTED | RECORDS | OPAQUE | SYNC, .reads = true, .max = 65000,
	.open = open_alg_skcipher,
};

const struct family * const all_families[] = {
	&unix_stream, &unix_dgram, &unix_seqpacket, &tcp, &tcp6, &udp, &udp6, &udp_gso,
	&udp6_gso, &udplite, &udplite6, &udplite_partial, &udplite6_partial, &ping, &raw, &raw6,
	&raw_hdrincl, &packet_dgram, &packet_raw, &mptcp, &mptcp6, &sctp_stream,
	&sctp_seqpacket, &sctp6_stream, &vsock_stream, &vsock_seqpacket, &tls, &alg_hash,
	&alg_skcipher, &netlink,
};

const size_t all_families_count = ARRAY_SIZE(all_families);
