// SPDX-License-Identifier: GPL-2.0
/* The hint together with other flags. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <linux/errqueue.h>	/* after time.h */

#include "identical.h"

FIXTURE(more) {};
FIXTURE_SETUP(more) {}
FIXTURE_TEARDOWN(more) {}

FIXTURE_VARIANT(more) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(more, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(more, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(more, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(more, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(more, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(more, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(more, udp_gso_obeyed) { VARIANT(udp_gso, obeyed) };
FIXTURE_VARIANT_ADD(more, udplite_obeyed) { VARIANT(udplite, obeyed) };
FIXTURE_VARIANT_ADD(more, raw_obeyed) { VARIANT(raw, obeyed) };
FIXTURE_VARIANT_ADD(more, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(more, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(more, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(more, vsock_seqpacket_obeyed) { VARIANT(vsock_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(more, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(more, alg_hash_obeyed) { VARIANT(alg_hash, obeyed) };
FIXTURE_VARIANT_ADD(more, alg_skcipher_obeyed) { VARIANT(alg_skcipher, obeyed) };
FIXTURE_VARIANT_ADD(more, tcp_all) { VARIANT(tcp, all) };
FIXTURE_VARIANT_ADD(more, udp_all) { VARIANT(udp, all) };

/*
 * Parts with MSG_MORE, and a last one without.  Where the parts become one
 * datagram, that arrives; else each does.
 */
static void scene_more(struct scene *scene)
{
	static const size_t parts[] = { 10, 5000, 1, 17, 4096, 30000, 333 };
	const struct family *family = scene->family;
	unsigned char *data = pages(10);
	bool one_record = family->domain == AF_INET || family->domain == AF_INET6 ||
			  family->traits & OPAQUE;
	size_t used = 0, i;
	long ret;

	/* A datagram to which more is added later is checksummed while copied. */
	scene->transcript->mixed = true;
	fill(data, 10 * 4096, 51);
	scene_open(scene);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		ret = scene_send(scene, data + used, parts[i],
				 i + 1 < ARRAY_SIZE(parts) ? MSG_MORE : 0);
		if (ret > 0 && !one_record)
			scene_expect(scene, data + used, ret);
		used += ret > 0 ? ret : 0;
	}
	if (one_record)
		scene_expect(scene, data, used);
}

TEST_FAMILY(more, parts_of_one_send)
{
	identical(_metadata, scene_more, variant->family, variant->mode);
}

/* The same, by an option of the socket. */
static void scene_corked(struct scene *scene)
{
	const struct family *family = scene->family;
	int level = family->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	int option = family->type == SOCK_STREAM ? TCP_CORK : UDP_CORK;
	unsigned char *data = pages(10);
	int cork = 1, i;

	scene->transcript->mixed = true;
	fill(data, 10 * 4096, 52);
	scene_open(scene);
	note(scene, "cork: %d", setsockopt(scene->pair.tx, level, option, &cork, sizeof(cork)));
	for (i = 0; i < 8; i++)
		scene_send(scene, data + i * 4099, 4099, 0);
	cork = 0;
	note(scene, "off: %d", setsockopt(scene->pair.tx, level, option, &cork, sizeof(cork)));
	scene_expect(scene, data, 8 * 4099);
}

FIXTURE(cork) {};
FIXTURE_SETUP(cork) {}
FIXTURE_TEARDOWN(cork) {}

FIXTURE_VARIANT(cork) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(cork, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(cork, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(cork, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(cork, udplite_obeyed) { VARIANT(udplite, obeyed) };
FIXTURE_VARIANT_ADD(cork, mptcp_obeyed) { VARIANT(mptcp, obeyed) };

TEST_FAMILY(cork, sends_to_a_corked_socket)
{
	identical(_metadata, scene_corked, variant->family, variant->mode);
}

FIXTURE(oob) {};
FIXTURE_SETUP(oob) {}
FIXTURE_TEARDOWN(oob) {}

FIXTURE_VARIANT(oob) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(oob, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(oob, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(oob, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(oob, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(oob, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(oob, tls_obeyed) { VARIANT(tls, obeyed) };

static void note_receive(struct scene *scene, int flags)
{
	static unsigned char got[64 * KIB];
	struct pollfd poll_fd = { .fd = scene->pair.rx, .events = POLLIN | POLLPRI };
	__u64 sum = 0;
	ssize_t ret, i;

	poll(&poll_fd, 1, 1000);
	ret = recv(scene->pair.rx, got, sizeof(got), flags | MSG_DONTWAIT);
	for (i = 0; i < ret; i++)
		sum = sum * 31 + got[i];
	note(scene, "received %zd: %llx %s", ret, (unsigned long long)sum,
	     ret < 0 ? strerror(errno) : "");
}

/* The last byte of a send with MSG_OOB goes out of band, the others do not. */
static void scene_oob(struct scene *scene)
{
	static const size_t lengths[] = { 1, 2, 20000 };
	unsigned char *data = pages(5);
	size_t i;
	long ret;

	scene->transcript->mixed = true;	/* the one byte is copied on its own */
	fill(data, 5 * 4096, 53);
	scene_open(scene);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ret = scene_send(scene, data, lengths[i], MSG_OOB);
		if (ret < 0)
			break;
		note_receive(scene, MSG_OOB);
		if (ret > 1)
			scene_expect(scene, data, ret - 1);
		scene_both(scene, data + 5, 6000);
	}
}

TEST_FAMILY(oob, a_byte_out_of_band)
{
	identical(_metadata, scene_oob, variant->family, variant->mode);
}

FIXTURE(zerocopy) {};
FIXTURE_SETUP(zerocopy) {}
FIXTURE_TEARDOWN(zerocopy) {}

FIXTURE_VARIANT(zerocopy) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(zerocopy, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, raw_obeyed) { VARIANT(raw, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, packet_dgram_obeyed) { VARIANT(packet_dgram, obeyed) };
FIXTURE_VARIANT_ADD(zerocopy, tcp_all) { VARIANT(tcp, all) };

static void note_completion(struct scene *scene)
{
	char control[256];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	struct pollfd poll_fd = { .fd = scene->pair.tx };
	struct sock_extended_err *error;
	struct cmsghdr *cmsg;

	poll(&poll_fd, 1, 300);
	if (recvmsg(scene->pair.tx, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		note(scene, "no completion: %s", strerror(errno));
		return;
	}
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		error = (void *)CMSG_DATA(cmsg);
		note(scene, "completion: origin %d, %u to %u, code %d", error->ee_origin,
		     error->ee_info, error->ee_data, error->ee_code);
	}
}

static void scene_zerocopy(struct scene *scene)
{
	static const size_t lengths[] = { 1, 5000, 60000 };
	unsigned char *data = pages(15);
	int one = 1;
	bool told;
	size_t i;

	scene->transcript->mixed = true;	/* what is not copied */
	fill(data, 15 * 4096, 57);
	scene_open(scene);
	told = !setsockopt(scene->pair.tx, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one));
	if (!told)
		note(scene, "SO_ZEROCOPY: %s", strerror(errno));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		scene_expect(scene, data, scene_send(scene, data, lengths[i], MSG_ZEROCOPY));
		if (told)
			note_completion(scene);
	}
}

TEST_FAMILY(zerocopy, with_msg_zerocopy)
{
	identical(_metadata, scene_zerocopy, variant->family, variant->mode);
}

FIXTURE(refused) {};
FIXTURE_SETUP(refused) {}
FIXTURE_TEARDOWN(refused) {}

FIXTURE_VARIANT(refused) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(refused, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(refused, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(refused, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(refused, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(refused, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(refused, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(refused, udp_gso_obeyed) { VARIANT(udp_gso, obeyed) };
FIXTURE_VARIANT_ADD(refused, udplite_obeyed) { VARIANT(udplite, obeyed) };
FIXTURE_VARIANT_ADD(refused, ping_obeyed) { VARIANT(ping, obeyed) };
FIXTURE_VARIANT_ADD(refused, raw_obeyed) { VARIANT(raw, obeyed) };
FIXTURE_VARIANT_ADD(refused, packet_dgram_obeyed) { VARIANT(packet_dgram, obeyed) };
FIXTURE_VARIANT_ADD(refused, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(refused, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(refused, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(refused, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(refused, alg_hash_obeyed) { VARIANT(alg_hash, obeyed) };
FIXTURE_VARIANT_ADD(refused, netlink_obeyed) { VARIANT(netlink, obeyed) };

/* Flags that some families refuse, a message that is too long, no peer at all. */
static void scene_refused(struct scene *scene)
{
	static const int flags[] = {
		MSG_EOR, MSG_DONTROUTE, MSG_CONFIRM, MSG_FASTOPEN, MSG_CTRUNC, 0x2000, 1 << 23,
		1 << 30,
	};
	unsigned char *data = pages(15);
	size_t i, max = scene->family->max;
	const struct mode *mode = scene->mode;
	long ret;
	int fd;

	scene->transcript->mixed = true;
	scene->transcript->uneven = true;	/* of 16 MiB, a socket takes what it can */
	fill(data, 15 * 4096, 59);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		scene_open(scene);
		note(scene, "flags %#x", flags[i]);
		scene_expect(scene, data, scene_send(scene, data, 5000, flags[i]));
		scene_close(scene);
	}
	scene_open(scene);
	if (max) {
		ret = send(scene->pair.tx, pages(4096), 16 * MIB, mode->flag | MSG_DONTWAIT);
		note(scene, "too long: %s", ret < 0 ? strerror(errno) : "goes well");
		scene->transcript->accepted += ret > 0 ? ret : 0;
	}
	fd = socket(scene->family->domain, scene->family->type, scene->family->protocol);
	note(scene, "no peer: %s", send(fd, data, 5000, mode->flag | MSG_NOSIGNAL) < 0 ?
	     strerror(errno) : "goes well");
	note(scene, "no socket: %s", send(0, data, 5000, mode->flag) < 0 ?
	     strerror(errno) : "goes well");
}

TEST_FAMILY(refused, what_a_family_refuses)
{
	identical(_metadata, scene_refused, variant->family, variant->mode);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
