// SPDX-License-Identifier: GPL-2.0
/*
 * The bytes that arrive are those that were sent, whatever their number, their
 * alignment and the segments that they come in; in every family, with the hint
 * as without.
 */
#include <unistd.h>

#include "identical.h"

#define SHORTEST_LONG	301
#define SEGMENTS_MAX	1024

FIXTURE(bytes) {};
FIXTURE_SETUP(bytes) {}
FIXTURE_TEARDOWN(bytes) {}

FIXTURE_VARIANT(bytes) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(bytes, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(bytes, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(bytes, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(bytes, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(bytes, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udp_gso_obeyed) { VARIANT(udp_gso, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udp6_gso_obeyed) { VARIANT(udp6_gso, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udplite_obeyed) { VARIANT(udplite, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udplite6_obeyed) { VARIANT(udplite6, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udplite_partial_obeyed) { VARIANT(udplite_partial, obeyed) };
FIXTURE_VARIANT_ADD(bytes, udplite6_partial_obeyed) { VARIANT(udplite6_partial, obeyed) };
FIXTURE_VARIANT_ADD(bytes, ping_obeyed) { VARIANT(ping, obeyed) };
FIXTURE_VARIANT_ADD(bytes, raw_obeyed) { VARIANT(raw, obeyed) };
FIXTURE_VARIANT_ADD(bytes, raw6_obeyed) { VARIANT(raw6, obeyed) };
FIXTURE_VARIANT_ADD(bytes, raw_hdrincl_obeyed) { VARIANT(raw_hdrincl, obeyed) };
FIXTURE_VARIANT_ADD(bytes, packet_dgram_obeyed) { VARIANT(packet_dgram, obeyed) };
FIXTURE_VARIANT_ADD(bytes, packet_raw_obeyed) { VARIANT(packet_raw, obeyed) };
FIXTURE_VARIANT_ADD(bytes, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(bytes, mptcp6_obeyed) { VARIANT(mptcp6, obeyed) };
FIXTURE_VARIANT_ADD(bytes, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(bytes, sctp_seqpacket_obeyed) { VARIANT(sctp_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(bytes, sctp6_stream_obeyed) { VARIANT(sctp6_stream, obeyed) };
FIXTURE_VARIANT_ADD(bytes, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(bytes, vsock_seqpacket_obeyed) { VARIANT(vsock_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(bytes, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(bytes, alg_hash_obeyed) { VARIANT(alg_hash, obeyed) };
FIXTURE_VARIANT_ADD(bytes, alg_skcipher_obeyed) { VARIANT(alg_skcipher, obeyed) };
FIXTURE_VARIANT_ADD(bytes, netlink_obeyed) { VARIANT(netlink, obeyed) };
/* The other ways to hint. */
FIXTURE_VARIANT_ADD(bytes, unix_stream_ignored) { VARIANT(unix_stream, ignored) };
FIXTURE_VARIANT_ADD(bytes, unix_stream_socket) { VARIANT(unix_stream, socket) };
FIXTURE_VARIANT_ADD(bytes, unix_stream_all) { VARIANT(unix_stream, all) };
FIXTURE_VARIANT_ADD(bytes, tcp_ignored) { VARIANT(tcp, ignored) };
FIXTURE_VARIANT_ADD(bytes, tcp_socket) { VARIANT(tcp, socket) };
FIXTURE_VARIANT_ADD(bytes, tcp_all) { VARIANT(tcp, all) };
FIXTURE_VARIANT_ADD(bytes, udp6_ignored) { VARIANT(udp6, ignored) };
FIXTURE_VARIANT_ADD(bytes, udp6_socket) { VARIANT(udp6, socket) };
FIXTURE_VARIANT_ADD(bytes, udp6_all) { VARIANT(udp6, all) };

/* What keeps records keeps empty ones, too; a digest of nothing is one. */
static void send_nothing(struct scene *scene, const unsigned char *data)
{
	long ret = scene_send(scene, data, 0, 0);
	char header[64];

	if (scene->family->traits & OPAQUE)
		scene_expect(scene, data, ret);
	else if (!ret && scene->family->type != SOCK_STREAM)
		note(scene, "empty record: %zd",
		     recv(scene->pair.rx, header, sizeof(header), MSG_DONTWAIT));
}

static void scene_short_lengths(struct scene *scene)
{
	unsigned char *data = pages(1);
	size_t len;

	fill(data, 4096, 7);
	scene_open(scene);
	send_nothing(scene, data);
	for (len = 1; len < SHORTEST_LONG; len++)
		scene_both(scene, data + (len * 13) % 64, len);
}

TEST_FAMILY(bytes, short_lengths)
{
	identical(_metadata, scene_short_lengths, variant->family, variant->mode);
}

static void around(struct scene *scene, const unsigned char *data, size_t len)
{
	size_t max = scene_max(scene, len + 1);

	for (len--; len <= max; len++)
		scene_both(scene, data + len % 64, len);
}

/*
 * Every page boundary of a small skb; the sizes at which skbs of one family or
 * another end; and powers of two beyond.
 */
static void scene_boundaries(struct scene *scene)
{
	static const size_t ends[] = {
		2048, 3 * KIB, 1400 * 44, 32 * KIB - 320, 36 * KIB, 65487, 65495, 65507, 65515,
		65535, 17 * 4 * KIB, 120000, 128 * KIB, 200000, 256 * KIB, 512 * KIB, MIB,
	};
	unsigned char *data = pages(2 * MIB / 4096);
	size_t i;

	fill(data, 2 * MIB, 3);
	scene_open(scene);
	for (i = 1; i <= 17; i++)
		around(scene, data, i * 4 * KIB);
	for (i = 0; i < ARRAY_SIZE(ends); i++)
		around(scene, data, ends[i]);
}

TEST_FAMILY(bytes, lengths_around_boundaries)
{
	identical(_metadata, scene_boundaries, variant->family, variant->mode);
}

/*
 * 64 segments a send, each from another offset of its cache line, all to the
 * same offset of theirs; and such a send for each of these.
 */
static void scene_alignments(struct scene *scene)
{
	unsigned char *data = pages(64), *flat = pages(16);
	struct iovec iov[2 * 64];
	size_t from, to, len, used;

	fill(data, 64 * 4096, 11);
	scene_open(scene);
	for (to = 0; to < 64; to++) {
		used = 0;
		for (from = 0; from < 64; from++) {
			struct iovec *pad = &iov[2 * from], *segment = pad + 1;

			len = 64 + (from * 64 + to) * 7 % 131;
			pad->iov_base = data + 63 * 4096;
			pad->iov_len = (64 + to - used % 64) % 64;
			segment->iov_base = data + from * 576 + from;
			segment->iov_len = len;
			memcpy(flat + used, pad->iov_base, pad->iov_len);
			used += pad->iov_len;
			memcpy(flat + used, segment->iov_base, len);
			used += len;
		}
		scene_expect(scene, flat, scene_sendv(scene, iov, ARRAY_SIZE(iov), 0));
	}
}

TEST_FAMILY(bytes, alignments_64_by_64)
{
	identical(_metadata, scene_alignments, variant->family, variant->mode);
}

static void send_segments(struct scene *scene, unsigned char *data, unsigned char *flat,
			  size_t count)
{
	struct iovec iov[SEGMENTS_MAX];
	size_t used = 0, i, len;

	for (i = 0; i < count; i++) {
		len = any(scene, 7) ? any(scene, 59) : 0;
		iov[i].iov_base = data + any(scene, 4096);
		iov[i].iov_len = i % 256 == 8 ? len * 100 : len;
		memcpy(flat + used, iov[i].iov_base, iov[i].iov_len);
		used += iov[i].iov_len;
	}
	if (used)
		scene_expect(scene, flat, scene_sendv(scene, iov, count, 0));
}

static void scene_segments(struct scene *scene)
{
	static const size_t counts[] = {
		1, 2, 3, 5, 8, 9, 16, 17, 33, 64, 100, 255, 256, 511, 1023, SEGMENTS_MAX,
	};
	unsigned char *data = pages(4), *flat = pages(20);
	size_t i;

	fill(data, 4 * 4096, 5);
	scene_open(scene);
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		send_segments(scene, data, flat, counts[i]);
}

TEST_FAMILY(bytes, segments_some_of_them_empty)
{
	identical(_metadata, scene_segments, variant->family, variant->mode);
}

/* Many sends before the first receive: their order is kept. */
static void scene_order(struct scene *scene)
{
	unsigned char *data = pages(256);
	size_t len[64], used = 0, i;
	long ret;

	if (scene->family->traits & OPAQUE) {
		note(scene, "each send is answered on its own");
		scene->transcript->mixed = true;
	}
	fill(data, 256 * 4096, 17);
	scene_open(scene);
	for (i = 0; i < ARRAY_SIZE(len) && !(scene->family->traits & OPAQUE); i++) {
		len[i] = 1 + any(scene, 12000);
		ret = scene_send(scene, data + used, len[i], 0);
		used += ret > 0 ? ret : 0;
	}
	if (used)
		note(scene, "got %zu of %zu", scene_receive(scene, data, used), used);
}

TEST_FAMILY(bytes, order_is_kept)
{
	identical(_metadata, scene_order, variant->family, variant->mode);
}

/* Sends of up to 64 MiB, or of as much as the environment says. */
FIXTURE(big) {};
FIXTURE_SETUP(big) {}
FIXTURE_TEARDOWN(big) {}

FIXTURE_VARIANT(big) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(big, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(big, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(big, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(big, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };

static size_t biggest(void)
{
	const char *text = getenv("NTCOPY_SELFTEST_BIG_MIB");
	unsigned long mib = text ? strtoul(text, NULL, 10) : 64;

	return (mib < 1 || mib > 64 ? 64 : mib) * MIB;
}

static void scene_big(struct scene *scene)
{
	const size_t most = biggest(), lens[] = { 2 * MIB, most };
	unsigned char *data;
	size_t i, len;

	data = pages(most / 4096 + 2);
	fill(data, most + 8192, 23);
	for (i = most > lens[0] ? 0 : 1; i < ARRAY_SIZE(lens); i++) {
		len = lens[i];
		scene_open(scene);
		scene_stream(scene, data + 1, len - 1);
		scene_close(scene);
		scene_open(scene);
		scene_stream(scene, data + 63, len + 1);
		scene_close(scene);
	}
}

TEST_FAMILY(big, sends_of_many_skbs)
{
	if (biggest() != 64 * MIB)
		ksft_print_msg("the biggest send has %lu MiB, not 64\n", biggest() / MIB);
	identical(_metadata, scene_big, variant->family, variant->mode);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
