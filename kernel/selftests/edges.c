// SPDX-License-Identifier: GPL-2.0
/*
 * Sends that do not go all the way: memory that is not there, sockets that are
 * full.  The same counts and the same errors, hinted or not.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "identical.h"

#define PAGES	24

FIXTURE(faults) {};
FIXTURE_SETUP(faults) {}
FIXTURE_TEARDOWN(faults) {}

FIXTURE_VARIANT(faults) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(faults, unix_stream_adaptive) { VARIANT(unix_stream, adaptive) };
FIXTURE_VARIANT_ADD(faults, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(faults, unix_dgram_adaptive) { VARIANT(unix_dgram, adaptive) };
FIXTURE_VARIANT_ADD(faults, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(faults, unix_seqpacket_adaptive) { VARIANT(unix_seqpacket, adaptive) };
FIXTURE_VARIANT_ADD(faults, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(faults, tcp_adaptive) { VARIANT(tcp, adaptive) };
FIXTURE_VARIANT_ADD(faults, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(faults, tcp6_adaptive) { VARIANT(tcp6, adaptive) };
FIXTURE_VARIANT_ADD(faults, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(faults, udp_adaptive) { VARIANT(udp, adaptive) };
FIXTURE_VARIANT_ADD(faults, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(faults, udp6_adaptive) { VARIANT(udp6, adaptive) };
FIXTURE_VARIANT_ADD(faults, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(faults, udp_gso_adaptive) { VARIANT(udp_gso, adaptive) };
FIXTURE_VARIANT_ADD(faults, udp_gso_obeyed) { VARIANT(udp_gso, obeyed) };
FIXTURE_VARIANT_ADD(faults, udplite_adaptive) { VARIANT(udplite, adaptive) };
FIXTURE_VARIANT_ADD(faults, udplite_obeyed) { VARIANT(udplite, obeyed) };
FIXTURE_VARIANT_ADD(faults, udplite_partial_adaptive) { VARIANT(udplite_partial, adaptive) };
FIXTURE_VARIANT_ADD(faults, udplite_partial_obeyed) { VARIANT(udplite_partial, obeyed) };
FIXTURE_VARIANT_ADD(faults, ping_adaptive) { VARIANT(ping, adaptive) };
FIXTURE_VARIANT_ADD(faults, ping_obeyed) { VARIANT(ping, obeyed) };
FIXTURE_VARIANT_ADD(faults, raw_adaptive) { VARIANT(raw, adaptive) };
FIXTURE_VARIANT_ADD(faults, raw_obeyed) { VARIANT(raw, obeyed) };
FIXTURE_VARIANT_ADD(faults, raw6_adaptive) { VARIANT(raw6, adaptive) };
FIXTURE_VARIANT_ADD(faults, raw6_obeyed) { VARIANT(raw6, obeyed) };
FIXTURE_VARIANT_ADD(faults, raw_hdrincl_adaptive) { VARIANT(raw_hdrincl, adaptive) };
FIXTURE_VARIANT_ADD(faults, raw_hdrincl_obeyed) { VARIANT(raw_hdrincl, obeyed) };
FIXTURE_VARIANT_ADD(faults, packet_dgram_adaptive) { VARIANT(packet_dgram, adaptive) };
FIXTURE_VARIANT_ADD(faults, packet_dgram_obeyed) { VARIANT(packet_dgram, obeyed) };
FIXTURE_VARIANT_ADD(faults, mptcp_adaptive) { VARIANT(mptcp, adaptive) };
FIXTURE_VARIANT_ADD(faults, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(faults, sctp_stream_adaptive) { VARIANT(sctp_stream, adaptive) };
FIXTURE_VARIANT_ADD(faults, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(faults, sctp_seqpacket_adaptive) { VARIANT(sctp_seqpacket, adaptive) };
FIXTURE_VARIANT_ADD(faults, sctp_seqpacket_obeyed) { VARIANT(sctp_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(faults, vsock_stream_adaptive) { VARIANT(vsock_stream, adaptive) };
FIXTURE_VARIANT_ADD(faults, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
/*
 * Not vsock seqpacket: what a faulting send had queued there comes before the
 * next record, hint or no hint.
 */
FIXTURE_VARIANT_ADD(faults, tls_adaptive) { VARIANT(tls, adaptive) };
FIXTURE_VARIANT_ADD(faults, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(faults, alg_hash_adaptive) { VARIANT(alg_hash, adaptive) };
FIXTURE_VARIANT_ADD(faults, alg_hash_obeyed) { VARIANT(alg_hash, obeyed) };
FIXTURE_VARIANT_ADD(faults, netlink_adaptive) { VARIANT(netlink, adaptive) };
FIXTURE_VARIANT_ADD(faults, netlink_obeyed) { VARIANT(netlink, obeyed) };
FIXTURE_VARIANT_ADD(faults, unix_stream_socket) { VARIANT(unix_stream, socket) };
FIXTURE_VARIANT_ADD(faults, unix_stream_all) { VARIANT(unix_stream, all) };
FIXTURE_VARIANT_ADD(faults, tcp_socket) { VARIANT(tcp, socket) };
FIXTURE_VARIANT_ADD(faults, tcp_all) { VARIANT(tcp, all) };

/*
 * What a faulting send took arrives with the next send that is whole, if not
 * before: MPTCP keeps it back until then.
 */
static void scene_whole(struct scene *scene, const unsigned char *data, long len,
			const unsigned char *next)
{
	long ret;

	if (scene->family->traits & OPAQUE)
		scene_expect(scene, data, len);
	ret = scene_send(scene, next, 4000, 0);
	if (!(scene->family->traits & OPAQUE))
		scene_expect(scene, data, len);
	scene_expect(scene, next, ret);
}

/* Sends from offset on; page hole is not there.  Ends with a send that is whole. */
static void send_into_hole(struct scene *scene, size_t hole, size_t offset,
			   bool unmapped)
{
	size_t page = sysconf(_SC_PAGESIZE), len;
	unsigned char *data = pages(PAGES);
	long ret;

	fill(data, PAGES * page, hole * 64 + offset);
	len = scene_max(scene, PAGES * page - offset);
	if (hole * page >= offset + len)
		hole = (offset + len - 1) / page;
	if (unmapped)
		munmap(data + hole * page, page);
	else
		make_hole(data + hole * page);
	note(scene, "page %zu, from %zu", hole, offset);
	scene_open(scene);
	ret = scene_send(scene, data + offset, len, 0);
	if (ret > 0 && (size_t)ret > hole * page - offset)
		note(scene, "accepted what is not there");
	scene_whole(scene, data + offset, ret, hole ? data : data + page);
	scene_close(scene);
	munmap(data, (PAGES + 1) * page);
}

static void scene_holes(struct scene *scene)
{
	static const size_t holes[] = { 0, 1, 7, 11, 15, PAGES - 1 };
	static const size_t offsets[] = { 0, 1, 3, 7, 9, 61 };
	size_t h, o;

	for (h = 0; h < ARRAY_SIZE(holes); h++)
		for (o = 0; o < ARRAY_SIZE(offsets); o++)
			send_into_hole(scene, holes[h], offsets[o], (h + o) % 2);
}

TEST_FAMILY(faults, pages_that_are_missing)
{
	identical(_metadata, scene_holes, variant->family, variant->mode);
}

/* A segment before, and the first bytes of one that ends in a hole. */
static void scene_bad_segments(struct scene *scene)
{
	static const size_t good[] = { 1, 7, 100, 4095, 4097, 30000 };
	unsigned char *data = pages(PAGES), *flat = pages(PAGES);
	size_t page = sysconf(_SC_PAGESIZE), i, tail;
	struct iovec iov[3];

	fill(data, PAGES * page, 99);
	for (i = 0; i < 3 * ARRAY_SIZE(good); i++) {
		tail = i % 5;
		iov[0].iov_base = data + i;
		iov[0].iov_len = good[i % ARRAY_SIZE(good)];
		iov[1].iov_base = data + PAGES * page - tail;
		iov[1].iov_len = 100;
		iov[2] = iov[0];
		memcpy(flat, iov[0].iov_base, iov[0].iov_len);
		memcpy(flat + iov[0].iov_len, iov[1].iov_base, tail);
		scene_open(scene);
		scene_whole(scene, flat, scene_sendv(scene, iov, 3, 0), data);
		iov[1].iov_base = (void *)(1UL << 62);
		scene_whole(scene, flat, scene_sendv(scene, iov, 3, 0), data);
		scene_close(scene);
	}
}

TEST_FAMILY(faults, segments_that_are_missing)
{
	identical(_metadata, scene_bad_segments, variant->family, variant->mode);
}

FIXTURE(full) {};
FIXTURE_SETUP(full) {}
FIXTURE_TEARDOWN(full) {}

FIXTURE_VARIANT(full) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(full, unix_stream_adaptive) { VARIANT(unix_stream, adaptive) };
FIXTURE_VARIANT_ADD(full, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(full, unix_dgram_adaptive) { VARIANT(unix_dgram, adaptive) };
FIXTURE_VARIANT_ADD(full, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(full, unix_seqpacket_adaptive) { VARIANT(unix_seqpacket, adaptive) };
FIXTURE_VARIANT_ADD(full, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(full, tcp_adaptive) { VARIANT(tcp, adaptive) };
FIXTURE_VARIANT_ADD(full, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(full, tcp6_adaptive) { VARIANT(tcp6, adaptive) };
FIXTURE_VARIANT_ADD(full, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(full, mptcp_adaptive) { VARIANT(mptcp, adaptive) };
FIXTURE_VARIANT_ADD(full, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(full, sctp_stream_adaptive) { VARIANT(sctp_stream, adaptive) };
FIXTURE_VARIANT_ADD(full, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(full, vsock_stream_adaptive) { VARIANT(vsock_stream, adaptive) };
FIXTURE_VARIANT_ADD(full, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(full, vsock_seqpacket_adaptive) { VARIANT(vsock_seqpacket, adaptive) };
FIXTURE_VARIANT_ADD(full, vsock_seqpacket_obeyed) { VARIANT(vsock_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(full, netlink_adaptive) { VARIANT(netlink, adaptive) };
FIXTURE_VARIANT_ADD(full, netlink_obeyed) { VARIANT(netlink, obeyed) };
FIXTURE_VARIANT_ADD(full, unix_stream_socket) { VARIANT(unix_stream, socket) };
FIXTURE_VARIANT_ADD(full, unix_stream_all) { VARIANT(unix_stream, all) };

/*
 * How much a full socket has taken is up to timing where the other end is
 * served by somebody else.
 */
static void scene_dont_wait(struct scene *scene)
{
	bool exact = scene->family->traits & SYNC && !via_module();
	size_t len = scene_max(scene, MIB), used = 0;
	unsigned char *data = pages(64 * MIB / 4096);
	int size = 300000, mode_flag = scene->mode->flag;
	long ret = 0;

	fill(data, 64 * MIB, 31);
	scene_open(scene);
	if (scene->family->domain == AF_UNIX)
		setsockopt(scene->pair.tx, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	while (used + len <= 64 * MIB) {
		ret = send(scene->pair.tx, data + used, len, mode_flag | MSG_DONTWAIT);
		if (exact)
			note(scene, "send %ld", ret);
		if (ret < 0)
			break;
		scene->transcript->accepted += ret;
		used += ret;
	}
	note(scene, "in the end: %s", ret < 0 ? strerror(errno) : "it takes anything");
	ret = scene_receive(scene, data, used);
	note(scene, "all arrived: %d", (size_t)ret == used);
	/* Only the bytes that it took are different then, and not in the transcript. */
	if (!exact)
		scene->transcript->uneven = true;
}

TEST_FAMILY(full, sends_that_do_not_wait)
{
	identical(_metadata, scene_dont_wait, variant->family, variant->mode);
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* Only a unix socket is full at the same byte each time. */
FIXTURE(waiting) {};
FIXTURE_SETUP(waiting) {}
FIXTURE_TEARDOWN(waiting) {}

FIXTURE_VARIANT(waiting) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(waiting, unix_stream_adaptive) { VARIANT(unix_stream, adaptive) };
FIXTURE_VARIANT_ADD(waiting, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(waiting, unix_dgram_adaptive) { VARIANT(unix_dgram, adaptive) };
FIXTURE_VARIANT_ADD(waiting, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(waiting, unix_seqpacket_adaptive) { VARIANT(unix_seqpacket, adaptive) };
FIXTURE_VARIANT_ADD(waiting, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };

static void fill_up(struct scene *scene, const unsigned char *data)
{
	size_t len = scene_max(scene, MIB);
	int size = 300000;

	scene_open(scene);
	setsockopt(scene->pair.tx, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	while (scene_send(scene, data, len, 0) == (long)len)
		;
	scene_send(scene, data, len, 0);
	scene_close(scene);
}

static void scene_time_out(struct scene *scene)
{
	struct timeval limit = { .tv_usec = 20000 };
	unsigned char *data = pages(MIB / 4096);
	int size = 300000, i;

	fill(data, MIB, 37);
	scene_open(scene);
	setsockopt(scene->pair.tx, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(scene->pair.tx, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	for (i = 0; i < 20; i++)
		scene_send(scene, data, scene_max(scene, MIB), 0);
}

TEST_FAMILY(waiting, sends_that_time_out)
{
	identical(_metadata, scene_time_out, variant->family, variant->mode);
}

static void scene_interrupted(struct scene *scene)
{
	struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
	struct sigaction action = { .sa_handler = on_alarm };
	unsigned char *data = pages(MIB / 4096);

	fill(data, MIB, 41);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	fill_up(scene, data);
	timer.it_interval.tv_usec = 0;
	timer.it_value.tv_usec = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
}

TEST_FAMILY(waiting, sends_that_a_signal_ends)
{
	identical(_metadata, scene_interrupted, variant->family, variant->mode);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
