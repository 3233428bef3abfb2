// SPDX-License-Identifier: GPL-2.0
/*
 * Sends that do not go all the way: memory that is not there, sockets that are
 * full.  The same counts and the same errors, hinted or not.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
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

FIXTURE_VARIANT_ADD(faults, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(faults, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(faults, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(faults, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(faults, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(faults, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(faults, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(faults, udp_gso_obeyed) { VARIANT(udp_gso, obeyed) };
FIXTURE_VARIANT_ADD(faults, udplite_obeyed) { VARIANT(udplite, obeyed) };
FIXTURE_VARIANT_ADD(faults, udplite_partial_obeyed) { VARIANT(udplite_partial, obeyed) };
FIXTURE_VARIANT_ADD(faults, ping_obeyed) { VARIANT(ping, obeyed) };
FIXTURE_VARIANT_ADD(faults, raw_obeyed) { VARIANT(raw, obeyed) };
FIXTURE_VARIANT_ADD(faults, raw6_obeyed) { VARIANT(raw6, obeyed) };
FIXTURE_VARIANT_ADD(faults, raw_hdrincl_obeyed) { VARIANT(raw_hdrincl, obeyed) };
FIXTURE_VARIANT_ADD(faults, packet_dgram_obeyed) { VARIANT(packet_dgram, obeyed) };
FIXTURE_VARIANT_ADD(faults, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(faults, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(faults, sctp_seqpacket_obeyed) { VARIANT(sctp_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(faults, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
/*
 * Not vsock seqpacket: what a faulting send had queued there comes before the
 * next record, hint or no hint.
 */
FIXTURE_VARIANT_ADD(faults, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(faults, alg_hash_obeyed) { VARIANT(alg_hash, obeyed) };
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

/*
 * A page of four that are copied in turn, wherever the four begin and whatever
 * the destination's alignment is: a segment goes before.
 */
static void send_into_block(struct scene *scene, size_t hole, size_t offset, size_t before)
{
	unsigned char *data = pages(PAGES), *flat = pages(PAGES + 1);
	struct iovec iov[2] = { { data, before }, { data + offset, 0 } };
	size_t len = scene_max(scene, PAGES * PAGE - offset - before);

	fill(data, PAGES * PAGE, hole * 64 + offset + before);
	iov[1].iov_len = len;
	memcpy(flat, data, before);
	memcpy(flat + before, data + offset, len);
	make_hole(data + hole * PAGE);
	note(scene, "page %zu, from %zu, after %zu", hole, offset, before);
	scene_open(scene);
	scene_whole(scene, flat, scene_sendv(scene, iov, 2, 0), data);
	scene_close(scene);
	munmap(data, (PAGES + 1) * PAGE);
	munmap(flat, (PAGES + 2) * PAGE);
}

static void scene_blocks(struct scene *scene)
{
	static const size_t offsets[] = { 0, 64, 100, 4095 }, before[] = { 0, 1, 63 };
	size_t page, i;

	for (page = 4; page < 8; page++)
		for (i = 0; i < ARRAY_SIZE(offsets) * ARRAY_SIZE(before); i++)
			send_into_block(scene, page, offsets[i % ARRAY_SIZE(offsets)],
					before[i / ARRAY_SIZE(offsets)]);
	/* The last page of all, and one of those that are left after the last four. */
	send_into_block(scene, PAGES - 1, 0, 0);
	send_into_block(scene, PAGES - 2, 4032, 0);
}

TEST_FAMILY(faults, one_page_of_four)
{
	identical(_metadata, scene_blocks, variant->family, variant->mode);
}

/* The first buffer of a send that faults, 48 KiB, is not sent, and the error is told. */
TEST(a_unix_stream_takes_nothing_of_a_buffer_that_faults)
{
	static const size_t offsets[] = { 0, 1, 64, 100, 4095 };
	static const int flags[] = { 0, MSG_NTCOPY };
	unsigned char *data, *received = pages(PAGES);
	struct pair pair = { .tx = -1, .rx = -1 };
	size_t hole, o, f;

	if (via_module())
		SKIP(return, "the module has no such buffers");
	ASSERT_EQ(set_mode("1"), 0);
	for (hole = 1; hole < 12; hole++) {
		data = pages(PAGES);
		fill(data, PAGES * PAGE, hole);
		make_hole(data + hole * PAGE);
		for (o = 0; o < ARRAY_SIZE(offsets); o++)
			for (f = 0; f < ARRAY_SIZE(flags); f++) {
				ASSERT_EQ(unix_stream.open(&unix_stream, &pair), 0);
				EXPECT_EQ(send(pair.tx, data + offsets[o],
					       PAGES * PAGE - offsets[o], flags[f]), -1);
				EXPECT_EQ(errno, EFAULT);
				EXPECT_EQ(recv(pair.rx, received, 1, MSG_DONTWAIT), -1);
				close_pair(&pair);
			}
		munmap(data, (PAGES + 1) * PAGE);
	}
}

static short writable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	return poll(&poll_fd, 1, 0) == 1 ? poll_fd.revents : 0;
}

/* A quarter of SO_SNDBUF may be queued: with one buffer more can be sent, with two not. */
TEST(a_unix_stream_is_writable_while_one_buffer_is_queued)
{
	unsigned char *data = pages(PAGES), *received = pages(PAGES);
	struct pair pair = { .tx = -1, .rx = -1 };
	int size = 106496, flags;

	if (via_module())
		SKIP(return, "the module has no such buffers");
	for (flags = 0; flags <= MSG_NTCOPY; flags += MSG_NTCOPY) {
		ASSERT_EQ(unix_stream.open(&unix_stream, &pair), 0);
		ASSERT_EQ(setsockopt(pair.tx, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
		ASSERT_EQ(send(pair.tx, data, 16 * PAGE, flags), (long)(16 * PAGE));
		EXPECT_EQ(writable(pair.tx), 0);
		ASSERT_EQ(recv(pair.rx, received, 12 * PAGE, 0), (long)(12 * PAGE));
		EXPECT_EQ(writable(pair.tx), POLLOUT);
		close_pair(&pair);
	}
}

/* Of a little more than a page: in pages alone each of them would take three. */
TEST(a_send_buffer_holds_as_many_small_sends)
{
	unsigned char *data = pages(2);
	int pair[2], size = 106496, count = 0;

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ASSERT_EQ(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	while (send(pair[0], data, PAGE + 1, MSG_DONTWAIT) == (long)PAGE + 1)
		count++;
	EXPECT_GE(count, 40);
	close(pair[0]);
	close(pair[1]);
}

/* A page that comes and goes while others are sent. */
struct flicker {
	unsigned char *page;
	int fd;
	off_t at;
	bool stop;
};

static void *flicker(void *arg)
{
	struct flicker *f = arg;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		munmap(f->page, PAGE);
		sched_yield();
		if (mmap(f->page, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, f->fd, f->at) ==
		    MAP_FAILED)
			abort();
		sched_yield();
	}
	return NULL;
}

FIXTURE(meanwhile) {};
FIXTURE_SETUP(meanwhile) {}
FIXTURE_TEARDOWN(meanwhile) {}

FIXTURE_VARIANT(meanwhile) {
	const struct family *family;
};

FIXTURE_VARIANT_ADD(meanwhile, unix_stream) { .family = &unix_stream };
FIXTURE_VARIANT_ADD(meanwhile, unix_dgram) { .family = &unix_dgram };
FIXTURE_VARIANT_ADD(meanwhile, tcp) { .family = &tcp };
FIXTURE_VARIANT_ADD(meanwhile, udp) { .family = &udp };
FIXTURE_VARIANT_ADD(meanwhile, sctp_stream) { .family = &sctp_stream };

#define FLICKERING	6	/* of the pages that are sent */
#define SENT		(15 * PAGE)

/* What a send accepts arrives; what it refuses, it refuses for the page. */
TEST_FAMILY(meanwhile, a_page_is_unmapped)
{
	struct flicker f = { .fd = memfd_create("data", MFD_CLOEXEC), .at = FLICKERING * PAGE };
	unsigned char *whole, *data, *received = pages(SENT / PAGE);
	struct pair pair = { .tx = -1, .rx = -1 };
	pthread_t thread;
	int i, ret;
	long sent;

	if (!can_be_hinted(variant->family))
		SKIP(return, "the module has no %s", variant->family->name);
	ASSERT_EQ(set_mode("1"), 0);
	ASSERT_EQ(ftruncate(f.fd, SENT), 0);
	whole = mmap(NULL, SENT, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	fill(whole, SENT, 33);
	data = mmap(NULL, SENT, PROT_READ, MAP_SHARED, f.fd, 0);
	f.page = data + f.at;
	ret = variant->family->open(variant->family, &pair);
	if (ret < 0)
		SKIP(return, "%s: %s", variant->family->name, strerror(-ret));
	ASSERT_EQ(pthread_create(&thread, NULL, flicker, &f), 0);
	for (i = 0; i < 2000; i++) {
		sent = send(pair.tx, data, SENT, MSG_NTCOPY);
		if (sent < 0) {
			ASSERT_EQ(errno, EFAULT);
			continue;
		}
		ASSERT_LE(sent, (long)SENT);
		ASSERT_EQ(recv(pair.rx, received, sent, MSG_WAITALL), sent);
		ASSERT_EQ(memcmp(received, whole, sent), 0);
		sched_yield();
	}
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close_pair(&pair);
}

FIXTURE(full) {};
FIXTURE_SETUP(full) {}
FIXTURE_TEARDOWN(full) {}

FIXTURE_VARIANT(full) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(full, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(full, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(full, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(full, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(full, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(full, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(full, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(full, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(full, vsock_seqpacket_obeyed) { VARIANT(vsock_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(full, netlink_obeyed) { VARIANT(netlink, obeyed) };
FIXTURE_VARIANT_ADD(full, unix_stream_socket) { VARIANT(unix_stream, socket) };
FIXTURE_VARIANT_ADD(full, unix_stream_all) { VARIANT(unix_stream, all) };

/*
 * How much a full socket has taken is up to timing where the other end is
 * served by another thread.
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

FIXTURE_VARIANT_ADD(waiting, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(waiting, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
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
