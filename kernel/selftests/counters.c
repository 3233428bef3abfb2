// SPDX-License-Identifier: GPL-2.0
/* /proc/net/ntcopy_stat: every byte that a hinted send accepted, once, by its fate. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "identical.h"

FIXTURE(counters)
{
	struct pair pair;
	struct counts before;
	unsigned char *data;
};

FIXTURE_SETUP(counters)
{
	self->data = pages(MIB / 4096);
	ASSERT_EQ(set_mode("2"), 0);
	ASSERT_EQ(unix_stream.open(&unix_stream, &self->pair), 0);
	self->before = read_counts();
}

FIXTURE_TEARDOWN(counters)
{
	close_pair(&self->pair);
	set_mode("2");
	set_cache_bytes("0");
}

/* Since the last look, these bytes of one fate, and none of another. */
static void expect_fate(struct __test_metadata *_metadata, struct counts *before,
			enum fate fate, long long bytes)
{
	struct counts counts = counts_since(before);

	EXPECT_EQ(counts.bytes[fate], bytes);
	EXPECT_EQ(counts_sum(&counts), bytes);
	*before = read_counts();
}

#define EXPECT_FATE(fate, bytes)	expect_fate(_metadata, &self->before, fate, bytes)

static long send_one(int fd, int option, const void *data, size_t len, int flags)
{
	if (set_hint(fd, option) < 0)
		return -1;
	return send(fd, data, len, flags);
}

TEST_F(counters, of_hints_by_flag_and_by_option)
{
	int fd = self->pair.tx;

	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, MIB, 0), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_FLAGGED, self->data, MIB, 0), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_FLAGGED, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, MIB);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_EVERY, self->data, 30 * PAGE, 0), 30 * (long)PAGE);
	EXPECT_FATE(FATE_NONTEMPORAL, 30 * PAGE);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, PAGE, MSG_NTCOPY), (long)PAGE);
	EXPECT_FATE(FATE_NONTEMPORAL, PAGE);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, PAGE, 0), (long)PAGE);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
}

/* Records, which have one buffer. */
TEST_F(counters, of_what_is_too_small)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int fd;

	if (!can_be_hinted(&unix_dgram))
		SKIP(return, "the module has no unix dgram");
	ASSERT_EQ(unix_dgram.open(&unix_dgram, &pair), 0);
	fd = pair.tx;
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_FLAGGED, self->data, 4096, MSG_NTCOPY), 4096);
	EXPECT_FATE(FATE_NONTEMPORAL, 4096);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_FLAGGED, self->data, 4095, MSG_NTCOPY), 4095);
	EXPECT_FATE(FATE_TOO_SMALL, 4095);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, 1, 0), 1);
	EXPECT_FATE(FATE_TOO_SMALL, 1);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_FLAGGED, self->data, 100000, MSG_NTCOPY), 100000);
	EXPECT_FATE(FATE_NONTEMPORAL, 100000);
	close_pair(&pair);
}

#define STREAM_BUFFER	(64 * KIB)	/* of a large send: its skbs */
#define MOST_PAGES	8UL		/* of a fragment */

/*
 * Where the fragment ends in which a unix stream has byte at of a send: pages are
 * allocated in powers of two, the largest first, as long as there are such.
 */
static size_t fragment_end(size_t at, size_t total)
{
	size_t start = at - at % STREAM_BUFFER, end = start + STREAM_BUFFER, step;

	if (end > total)
		end = total;
	while (start <= at) {
		step = MOST_PAGES;
		while (step > 1 && step * PAGE > (end - start + PAGE - 1) / PAGE * PAGE)
			step /= 2;
		start += step * PAGE < end - start ? step * PAGE : end - start;
	}
	return start;
}

/* How much of a send is in pieces below a page, each segment's to each fragment. */
static long long too_small(const struct iovec *iov, size_t count)
{
	size_t total = 0, at = 0, left, piece, i;
	long long small = 0;

	for (i = 0; i < count; i++)
		total += iov[i].iov_len;
	for (i = 0; i < count; i++)
		for (left = iov[i].iov_len; left; left -= piece, at += piece) {
			piece = fragment_end(at, total) - at;
			if (piece > left)
				piece = left;
			small += piece < PAGE ? piece : 0;
		}
	return small;
}

/* One send, by its counts and by its bytes. */
static void expect_pieces(struct __test_metadata *_metadata, const struct pair *pair,
			  const struct iovec *iov, size_t count)
{
	static unsigned char received[2 * MIB], flat[2 * MIB];
	struct msghdr msg = { .msg_iov = (void *)iov, .msg_iovlen = count };
	struct counts before = read_counts(), counts;
	size_t len = 0, i;

	for (i = 0; i < count; i++) {
		memcpy(flat + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	ASSERT_EQ(sendmsg(pair->tx, &msg, MSG_NTCOPY), (long)len);
	counts = counts_since(&before);
	EXPECT_EQ(counts_sum(&counts), (long long)len);
	EXPECT_EQ(counts.bytes[FATE_TOO_SMALL], too_small(iov, count)) {
		TH_LOG("%zu bytes in %zu pieces", len, count);
	}
	EXPECT_EQ(counts.bytes[FATE_NONTEMPORAL], (long long)len - too_small(iov, count));
	ASSERT_EQ(recv(pair->rx, received, len, MSG_WAITALL), (long)len);
	EXPECT_EQ(memcmp(received, flat, len), 0);
}

/* Whole skbs have no piece below a page; their last one may end in one. */
TEST_F(counters, of_the_last_piece_of_a_stream)
{
	static const struct {
		size_t len, small;
	} rows[] = {
		{ MIB, 0 }, { MIB - 1, 0 }, { MIB + 1, 1 }, { 4096, 0 }, { 4095, 4095 },
		{ 65536, 0 }, { 65536 + 3776, 3776 }, { 65536 + 4095, 4095 }, { 65536 + 4096, 0 },
		{ 4096 + 1, 0 }, { 2 * 4096 + 1, 1 }, { 3 * 4096 + 1, 0 }, { 9 * 4096 - 1, 4095 },
		{ 123457, 577 },
	};
	struct iovec iov = { .iov_base = self->data };
	size_t i;

	if (via_module())
		SKIP(return, "the module has no such buffers");
	fill(self->data, MIB, 5);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		iov.iov_len = rows[i].len;
		if (iov.iov_len > MIB)
			iov.iov_base = pages(MIB / 4096 + 1);
		EXPECT_EQ(too_small(&iov, 1), (long long)rows[i].small);
		expect_pieces(_metadata, &self->pair, &iov, 1);
	}
}

/* An answer to a request for a hundred keys: a head, a value, a line's end. */
TEST_F(counters, of_many_small_pieces)
{
	static const struct family * const families[] = {
		&unix_stream, &unix_dgram, &unix_seqpacket, &tcp, &tcp6,
	};
	static unsigned char received[300 * 1024];
	struct pair pair = { .tx = -1, .rx = -1 };
	struct iovec iov[300];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = ARRAY_SIZE(iov) };
	size_t i, f, len = 0;

	fill(self->data, MIB, 9);
	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = self->data + len;
		iov[i].iov_len = i % 3 == 1 ? 1024 : 30;
		len += iov[i].iov_len;
	}
	for (f = 0; f < ARRAY_SIZE(families); f++) {
		if (!can_be_hinted(families[f]))
			continue;
		ASSERT_EQ(families[f]->open(families[f], &pair), 0);
		self->before = read_counts();
		EXPECT_EQ(sendmsg(pair.tx, &msg, MSG_NTCOPY), (long)len);
		EXPECT_FATE(FATE_TOO_SMALL, (long long)len);
		EXPECT_EQ(recv(pair.rx, received, len, MSG_WAITALL), (long)len);
		EXPECT_EQ(memcmp(received, self->data, len), 0);
		close_pair(&pair);
	}
}

/* Pieces above a page, of which fragments' ends leave less. */
TEST_F(counters, of_pieces_that_cross_fragments)
{
	struct iovec iov[20];
	size_t i;

	if (via_module())
		SKIP(return, "the module has no such buffers");
	fill(self->data, MIB, 15);
	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = self->data + i * 6000;
		iov[i].iov_len = 5000;
	}
	/* Around bytes 32768 and 98304 neither part is a page long, around 65536 one is. */
	EXPECT_EQ(too_small(iov, ARRAY_SIZE(iov)), 5000 + 536 + 5000);
	expect_pieces(_metadata, &self->pair, iov, ARRAY_SIZE(iov));
}

TEST_F(counters, of_small_and_large_pieces)
{
	struct scene scene = { .random = 25 };
	struct iovec iov[40];
	size_t i, round, count;

	if (via_module())
		SKIP(return, "the module has no such buffers");
	fill(self->data, MIB, 21);
	for (round = 0; round < 300; round++) {
		count = 1 + any(&scene, ARRAY_SIZE(iov));
		for (i = 0; i < count; i++) {
			iov[i].iov_len = any(&scene, 3) ? 1 + any(&scene, 300) :
					 any(&scene, 3) ? 4090 + any(&scene, 1000) :
							  any(&scene, 40000);
			iov[i].iov_base = self->data + any(&scene, MIB - iov[i].iov_len);
		}
		expect_pieces(_metadata, &self->pair, iov, count);
	}
}

TEST_F(counters, follow_the_sysctl)
{
	int fd = self->pair.tx;

	EXPECT_EQ(set_mode("0"), 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
	EXPECT_EQ(set_mode("2"), 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_EVERY, self->data, MIB, 0), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, MIB);
}

/* For test suites that know nothing of the hint; not in every kernel. */
TEST_F(counters, of_a_mode_that_hints_every_send)
{
	int fd = self->pair.tx;

	if (set_mode("3") < 0)
		SKIP(return, "no mode all in this kernel");
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, MIB, 0), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, MIB);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, MIB);
}

/* A socket that says obey is not asked what the caches hold. */
TEST_F(counters, of_an_obeying_socket_know_no_cache)
{
	int i, fd = self->pair.tx;
	const size_t len = 30 * PAGE;

	if (set_mode("1") < 0)
		SKIP(return, "no rule in this kernel");
	ASSERT_EQ(set_cache_bytes("1099511627776"), 0);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, len, 0), (long)len);
	EXPECT_FATE(FATE_NONTEMPORAL, 4 * len);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, len, MSG_NTCOPY), (long)len);
	EXPECT_FATE(FATE_NONTEMPORAL, len);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_EVERY, self->data, len, 0), (long)len);
	EXPECT_FATE(FATE_FITS_CACHE, len);
}

/* A part of the data again and again, with as many bytes in flight. */
static void send_often(struct __test_metadata *_metadata, const struct pair *pair,
		       unsigned char *data, size_t bytes, size_t in_flight, size_t total)
{
	static unsigned char received[64 * KIB];
	const long piece = sizeof(received);
	size_t done, sent;

	for (done = 0; done < total; done += in_flight) {
		for (sent = 0; sent < in_flight; sent += piece)
			ASSERT_EQ(send(pair->tx, data + (done + sent) % bytes, piece,
				       MSG_NTCOPY), piece);
		for (sent = 0; sent < in_flight; sent += piece)
			ASSERT_EQ(recv(pair->rx, received, piece, MSG_WAITALL), piece);
	}
}

/* What is larger than any cache, and what smaller than any copy. */
TEST_F(counters, of_what_fits_a_cache_of_known_size)
{
	if (set_mode("1") < 0)
		SKIP(return, "no rule in this kernel");
	ASSERT_EQ(set_cache_bytes("1099511627776"), 0);
	send_often(_metadata, &self->pair, self->data, 64 * KIB, 64 * KIB, 16 * MIB);
	EXPECT_FATE(FATE_FITS_CACHE, 16 * (long long)MIB);
	ASSERT_EQ(set_cache_bytes("1"), 0);
	send_often(_metadata, &self->pair, self->data, 64 * KIB, 64 * KIB, 16 * MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, 16 * (long long)MIB);
}

static void stay_on_this_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

/*
 * A source that comes round within no cache, and few bytes in flight or many: these
 * count alone.  Each time after a while, as it is a mean.
 */
TEST_F_TIMEOUT(counters, of_few_bytes_in_flight_and_of_many, TIMEOUT_SECONDS)
{
	int size = 16 * MIB, round;
	unsigned char *data;

	if (set_mode("1") < 0)
		SKIP(return, "no rule in this kernel");
	ASSERT_EQ(setsockopt(self->pair.tx, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)), 0);
	stay_on_this_cpu();
	data = pages(32 * MIB / 4096);
	memset(data, 1, 32 * MIB);
	ASSERT_EQ(set_cache_bytes("1048576"), 0);
	for (round = 0; round < 2; round++) {
		send_often(_metadata, &self->pair, data, 32 * MIB, 64 * KIB, 32 * MIB);
		self->before = read_counts();
		send_often(_metadata, &self->pair, data, 32 * MIB, 64 * KIB, 8 * MIB);
		EXPECT_FATE(FATE_FITS_CACHE, 8 * (long long)MIB);
		send_often(_metadata, &self->pair, data, 32 * MIB, 4 * MIB, 32 * MIB);
		self->before = read_counts();
		send_often(_metadata, &self->pair, data, 32 * MIB, 4 * MIB, 8 * MIB);
		EXPECT_FATE(FATE_NONTEMPORAL, 8 * (long long)MIB);
	}
	/* It is the number that counts, not the cache of this CPU. */
	ASSERT_EQ(set_cache_bytes("1099511627776"), 0);
	self->before = read_counts();
	send_often(_metadata, &self->pair, data, 32 * MIB, 4 * MIB, 8 * MIB);
	EXPECT_FATE(FATE_FITS_CACHE, 8 * (long long)MIB);
	munmap(data, 32 * MIB);
}

/* A number in a file of the cache at @index of @cpu; -1: there is none. */
static long read_cache(int cpu, int index, const char *name, int base)
{
	char path[80], text[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu,
		 index, name);
	return read_file(path, text, sizeof(text)) < 0 ? -1 : strtol(text, NULL, base);
}

/* This CPU's part of level 2, on a Zen 4 of level 3; 0: the kernel does not say. */
static long spared_cache(void)
{
	int cpu = sched_getcpu(), index;
	char cpuinfo[4096];	/* the first CPU is in it */
	bool zen4;
	long level;

	if (read_file("/proc/cpuinfo", cpuinfo, sizeof(cpuinfo)) < 0)
		return 0;
	/* One model of those that the kernel knows by X86_FEATURE_ZEN4 does. */
	zen4 = strstr(cpuinfo, "\nvendor_id\t: AuthenticAMD\n") &&
	       strstr(cpuinfo, "\ncpu family\t: 25\n") && strstr(cpuinfo, "\nmodel\t\t: 17\n");
	for (index = 0; (level = read_cache(cpu, index, "level", 10)) > 0; index++)
		if (level == (zen4 ? 3 : 2))
			return read_cache(cpu, index, "size", 10) * KIB /
			       __builtin_popcountl(read_cache(cpu, index, "shared_cpu_map", 16));
	return 0;
}

/* What the rule grants if nobody set a number is a third of that. */
TEST_F_TIMEOUT(counters, of_the_cache_that_this_cpu_spares, TIMEOUT_SECONDS)
{
	size_t limit, few, many;
	int size;

	if (set_mode("1") < 0)
		SKIP(return, "no rule in this kernel");
	stay_on_this_cpu();
	limit = spared_cache() / 3;
	if (limit < 128 * KIB || limit > 8 * MIB)
		SKIP(return, "cacheinfo: not in this kernel, or of no size to be tried");
	few = limit / 2 / (64 * KIB) * 64 * KIB;
	many = limit * 3 / (64 * KIB) * 64 * KIB;
	size = 2 * many;
	ASSERT_EQ(setsockopt(self->pair.tx, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)), 0);
	send_often(_metadata, &self->pair, self->data, MIB, few, 24 * limit);
	self->before = read_counts();
	send_often(_metadata, &self->pair, self->data, MIB, few, few);
	EXPECT_FATE(FATE_FITS_CACHE, (long long)few);
	send_often(_metadata, &self->pair, self->data, MIB, many, 24 * limit);
	self->before = read_counts();
	send_often(_metadata, &self->pair, self->data, MIB, many, many);
	EXPECT_FATE(FATE_NONTEMPORAL, (long long)many);
}

/* MPTCP's own checksum reads what was just copied. */
TEST_F(counters, of_mptcp_with_checksums)
{
	static const char path[] = "/proc/sys/net/mptcp/checksum_enabled";
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret;

	if (!can_be_hinted(&mptcp))
		SKIP(return, "the module has no mptcp");
	if (write_file(path, "1") < 0)
		SKIP(return, "mptcp: not in this kernel");
	ret = mptcp.open(&mptcp, &pair);
	EXPECT_EQ(write_file(path, "0"), 0);
	ASSERT_EQ(ret, 0);
	EXPECT_EQ(send(pair.tx, self->data, 100000, MSG_NTCOPY), 100000);
	EXPECT_FATE(FATE_READ_BY_KERNEL, 100000);
	close_pair(&pair);
}

/* A SYN's bytes are copied before the checksum is asked about. */
TEST_F(counters, of_mptcp_with_checksums_and_a_syn_with_bytes)
{
	static const char checksum[] = "/proc/sys/net/mptcp/checksum_enabled";
	static const char fastopen[] = "/proc/sys/net/ipv4/tcp_fastopen";
	struct sockaddr_storage at;
	socklen_t size = loopback(AF_INET, &at);
	struct counts counts;
	char before[16];
	int listener, tx;
	long ret;

	if (!can_be_hinted(&mptcp))
		SKIP(return, "the module has no mptcp");
	ASSERT_GT(read_file(fastopen, before, sizeof(before)), 0);
	if (write_file(checksum, "1") < 0)
		SKIP(return, "mptcp: not in this kernel");
	/* Both ends, without a cookie, and whoever listens. */
	EXPECT_EQ(write_file(fastopen, "0x607"), 0);
	listener = socket(AF_INET, SOCK_STREAM, mptcp.protocol);
	tx = socket(AF_INET, SOCK_STREAM, mptcp.protocol);
	EXPECT_EQ(bind(listener, (void *)&at, size), 0);
	EXPECT_EQ(listen(listener, 1), 0);
	EXPECT_EQ(getsockname(listener, (void *)&at, &size), 0);
	EXPECT_EQ(set_hint(tx, NTCOPY_SOCK_EVERY), 0);
	ret = sendto(tx, self->data, 100000, MSG_FASTOPEN, (void *)&at, size);
	EXPECT_EQ(write_file(checksum, "0"), 0);
	EXPECT_EQ(write_file(fastopen, before), 0);
	counts = counts_since(&self->before);
	EXPECT_GT(ret, 0);
	EXPECT_GT(counts.bytes[FATE_NONTEMPORAL], 0);
	EXPECT_EQ(counts_sum(&counts), ret);
	close(tx);
	close(listener);
}

TEST_F(counters, of_a_send_that_faults_half_way)
{
	long ret;

	make_hole(self->data + 40 * 4096);
	ret = send(self->pair.tx, self->data + 5, 50 * 4096, MSG_NTCOPY);
	EXPECT_GT(ret, 0);
	EXPECT_LE(ret, 40 * 4096 - 5);
	/* Whole buffers, in fragments that have no small piece. */
	EXPECT_FATE(FATE_NONTEMPORAL, ret);
	EXPECT_EQ(send(self->pair.tx, self->data + 40 * 4096, 4096, MSG_NTCOPY), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
}

/* The buffer that faults has two fragments: what was copied to the first one is dropped. */
TEST_F(counters, of_pieces_of_a_send_that_faults)
{
	struct iovec iov[] = {
		{ .iov_base = self->data, .iov_len = 100 },
		{ .iov_base = self->data + PAGE, .iov_len = 50 * PAGE },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = ARRAY_SIZE(iov) };
	struct counts counts;
	long ret;

	if (via_module())
		SKIP(return, "the module has no such buffers");
	make_hole(self->data + 47 * PAGE);
	ret = sendmsg(self->pair.tx, &msg, MSG_NTCOPY);
	ASSERT_GT(ret, 100);
	EXPECT_LE(ret, (long)(100 + 46 * PAGE));
	counts = counts_since(&self->before);
	EXPECT_EQ(counts.bytes[FATE_TOO_SMALL], 100);
	EXPECT_EQ(counts.bytes[FATE_NONTEMPORAL], ret - 100);
}

/* TCP copies more of the fragment that faults than it accepts. */
TEST_F(counters, of_a_tcp_send_that_faults)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	struct counts counts;
	int fate;
	long ret;

	if (!can_be_hinted(&tcp))
		SKIP(return, "the module has no tcp");
	make_hole(self->data + 43 * 4096);
	ASSERT_EQ(tcp.open(&tcp, &pair), 0);
	ret = send(pair.tx, self->data, 50 * 4096, MSG_NTCOPY);
	EXPECT_GT(ret, 0);
	EXPECT_LE(ret, 43 * 4096);
	counts = counts_since(&self->before);
	EXPECT_EQ(counts_sum(&counts), ret);
	for (fate = 0; fate < FATES; fate++)
		EXPECT_GE(counts.bytes[fate], 0);
	close_pair(&pair);
}

TEST_F(counters, of_records_that_fault)
{
	static const struct family * const families[] = {
		&unix_dgram, &unix_seqpacket, &udp, &udp6, &raw_hdrincl, &netlink,
	};
	struct pair pair = { .tx = -1, .rx = -1 };
	size_t i;

	make_hole(self->data + 4096);
	for (i = 0; i < ARRAY_SIZE(families); i++) {
		ASSERT_EQ(families[i]->open(families[i], &pair), 0);
		EXPECT_EQ(send(pair.tx, self->data, 8192, MSG_NTCOPY), -1);
		EXPECT_EQ(errno, EFAULT);
		close_pair(&pair);
	}
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
}

TEST_F(counters, of_a_full_socket)
{
	int size = 100000;
	long ret;

	ASSERT_EQ(setsockopt(self->pair.tx, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	ret = send(self->pair.tx, self->data, MIB, MSG_NTCOPY | MSG_DONTWAIT);
	EXPECT_GT(ret, 0);
	EXPECT_LT(ret, (long)MIB);
	/* A stock kernel's pieces have a head in front of their pages. */
	if (!via_module())
		EXPECT_EQ(ret % (long)PAGE, 0);
	EXPECT_FATE(FATE_NONTEMPORAL, ret);
	EXPECT_EQ(send(self->pair.tx, self->data, MIB, MSG_NTCOPY | MSG_DONTWAIT), -1);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
}

/* The header is looked at on its own first, as a piece below a page: it is read, too. */
TEST_F(counters, of_what_is_checksummed_while_copied)
{
	struct pair pair = { .tx = -1, .rx = -1 };

	if (!can_be_hinted(&ping))
		SKIP(return, "the module has no ping");
	ASSERT_EQ(ping.open(&ping, &pair), 0);
	memcpy(self->data, ping.head, ping.head_len);
	EXPECT_EQ(send(pair.tx, self->data, 9000, MSG_NTCOPY), 9000);
	EXPECT_FATE(FATE_READ_BY_KERNEL, 9000);
	close_pair(&pair);
}

/* What UDP-Lite's checksum covers of a datagram is read back. */
TEST_F(counters, of_udplite_by_what_its_checksum_covers)
{
	static const struct {
		int covered;
		enum fate fate;
	} rows[] = {
		{ 0, FATE_READ_BY_KERNEL },	/* all, whatever the length */
		{ 8, FATE_NONTEMPORAL },
		{ 8 + 8999, FATE_NONTEMPORAL },
		{ 8 + 9000, FATE_READ_BY_KERNEL },
		{ 20000, FATE_READ_BY_KERNEL },
	};
	struct pair pair = { .tx = -1, .rx = -1 };
	size_t i;
	int ret;

	ret = udplite.open(&udplite, &pair);
	if (ret < 0)
		SKIP(return, "udplite: %s", strerror(-ret));
	if (!can_be_hinted(&udplite))
		SKIP(return, "the module has no udplite");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		ASSERT_EQ(set_coverage(pair.tx, rows[i].covered), 0);
		EXPECT_EQ(send(pair.tx, self->data, 9000, MSG_NTCOPY), 9000);
		EXPECT_FATE(rows[i].fate, 9000);
	}
	close_pair(&pair);
}

/* The kernel alone reads what is sent there.  Ciphers are loaded first. */
TEST_F_TIMEOUT(counters, of_sockets_that_the_kernel_reads, TIMEOUT_SECONDS)
{
	static const struct family * const families[] = { &netlink, &alg_skcipher };
	struct pair pair = { .tx = -1, .rx = -1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(families); i++) {
		if (!can_be_hinted(families[i]) ||
		    families[i]->open(families[i], &pair) < 0)
			continue;
		EXPECT_EQ(send_one(pair.tx, NTCOPY_SOCK_OBEY, self->data, 8192, MSG_NTCOPY), 8192);
		EXPECT_FATE(FATE_READ_BY_KERNEL, 8192);
		close_pair(&pair);
	}
}

TEST_F_TIMEOUT(counters, of_software_tls, TIMEOUT_SECONDS)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret;

	if (!can_be_hinted(&tls))
		SKIP(return, "the module has no tls");
	ret = tls.open(&tls, &pair);
	if (ret < 0)
		SKIP(return, "TLS: %s", strerror(-ret));
	EXPECT_EQ(send(pair.tx, self->data, 100000, MSG_NTCOPY), 100000);
	EXPECT_FATE(FATE_READ_BY_KERNEL, 100000);
	EXPECT_EQ(send_one(pair.tx, NTCOPY_SOCK_OBEY, self->data, 100000, 0), 100000);
	EXPECT_FATE(FATE_READ_BY_KERNEL, 100000);
	close_pair(&pair);
}

static long through_a_pipe(int fd, unsigned char *data, size_t len, bool by_reference)
{
	struct iovec iov = { .iov_base = data, .iov_len = len };
	int ends[2];
	long ret = -1;

	if (set_hint(fd, NTCOPY_SOCK_OBEY) < 0 || pipe(ends) < 0)
		return -1;
	if (by_reference ? vmsplice(ends[1], &iov, 1, 0) == (long)len
			 : write(ends[1], data, len) == (long)len)
		ret = splice(ends[0], NULL, fd, NULL, len, 0);
	close(ends[0]);
	close(ends[1]);
	return ret;
}

/* Such a device has a copy of its own, which does not look at the hint. */
TEST_F(counters, of_a_device_that_has_all_copied_so)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret, i;

	if (via_module())
		SKIP(return, "the module has no test over a device");
	ret = open_over_device("tx-nocache-copy", &pair);
	if (ret == -EPERM || ret == -EOPNOTSUPP)
		SKIP(return, "veth: %s", strerror(-ret));
	ASSERT_EQ(ret, 0);
	self->before = read_counts();
	for (i = 0; i < 40; i++) {
		EXPECT_EQ(send(pair.tx, self->data, 4100, MSG_NTCOPY), 4100);
		EXPECT_EQ(recv(pair.rx, self->data, 4100, MSG_WAITALL), 4100);
	}
	EXPECT_FATE(FATE_NOT_SUPPORTED, 40 * 4100);
	close_pair(&pair);
}

TEST_F(counters, of_pages_that_are_not_copied)
{
	EXPECT_EQ(through_a_pipe(self->pair.tx, self->data, 60000, false), 60000);
	EXPECT_FATE(FATE_NOT_SUPPORTED, 60000);
	EXPECT_EQ(through_a_pipe(self->pair.tx, self->data, 60000, true), 60000);
	EXPECT_FATE(FATE_NOT_SUPPORTED, 60000);
}

/* The frames lie in memory that the kernel has already: the send itself is empty. */
TEST_F(counters, of_a_ring_of_packets)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_LOOP),
		.sll_ifindex = if_nametoindex("lo"), .sll_halen = ETH_ALEN,
	};
	struct tpacket_req ring = {
		.tp_block_size = PAGE, .tp_block_nr = 1,
		.tp_frame_size = PAGE, .tp_frame_nr = 1,
	};
	struct tpacket_hdr *frame;
	int fd;

	if (via_module())
		SKIP(return, "the module has no packet sockets");
	fd = socket(AF_PACKET, SOCK_DGRAM, 0);
	if (fd < 0)
		SKIP(return, "packet sockets: %s", strerror(errno));
	ASSERT_EQ(setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &ring, sizeof(ring)), 0);
	frame = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(frame, MAP_FAILED);
	ASSERT_EQ(bind(fd, (void *)&to, sizeof(to)), 0);
	frame->tp_len = 100;
	frame->tp_status = TP_STATUS_SEND_REQUEST;
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, NULL, 0, MSG_NTCOPY), 100);
	EXPECT_FATE(FATE_NOT_SUPPORTED, 100);
	munmap(frame, PAGE);
	close(fd);
}

/* A datagram socket has no use for the pipe's pages: an iterator of the kernel's. */
TEST_F(counters, of_a_kernel_buffer_that_is_copied)
{
	struct pair pair = { .tx = -1, .rx = -1 };

	if (!can_be_hinted(&unix_dgram))
		SKIP(return, "the module has no unix dgram");
	ASSERT_EQ(unix_dgram.open(&unix_dgram, &pair), 0);
	EXPECT_EQ(through_a_pipe(pair.tx, self->data, 3 * PAGE, false), 3 * (long)PAGE);
	EXPECT_FATE(FATE_NONTEMPORAL, 3 * PAGE);
	close_pair(&pair);
}

/* Nothing is lost between CPUs. */
TEST_F_TIMEOUT(counters, of_many_senders_at_once, TIMEOUT_SECONDS)
{
	const struct family *family = via_module() ? &udp : &unix_dgram;
	struct counts counts;
	int i, k, status;

	for (i = 0; i < 4; i++) {
		if (fork())
			continue;
		for (k = 0; k < 200; k++) {
			if (family->open(family, &self->pair) < 0 ||
			    send(self->pair.tx, self->data, 5001, MSG_NTCOPY) != 5001 ||
			    send(self->pair.tx, self->data, 501, MSG_NTCOPY) != 501)
				_exit(1);
			close_pair(&self->pair);
		}
		_exit(0);
	}
	for (i = 0; i < 4; i++) {
		ASSERT_LE(0, wait(&status));
		EXPECT_EQ(status, 0);
	}
	counts = counts_since(&self->before);
	EXPECT_EQ(counts.bytes[FATE_NONTEMPORAL], 4 * 200 * 5001);
	EXPECT_EQ(counts.bytes[FATE_TOO_SMALL], 4 * 200 * 501);
	EXPECT_EQ(counts_sum(&counts), 4 * 200 * (5001 + 501));
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
