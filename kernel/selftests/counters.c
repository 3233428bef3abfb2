// SPDX-License-Identifier: GPL-2.0
/* /proc/net/ntcopy_stat: every byte that a hinted send accepted, once, by its fate. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
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
	/* Below a page, so that the heads of buffers are hinted like the rest. */
	ASSERT_EQ(set_min_bytes("1"), 0);
	ASSERT_EQ(unix_stream.open(&unix_stream, &self->pair), 0);
	self->before = read_counts();
}

FIXTURE_TEARDOWN(counters)
{
	close_pair(&self->pair);
	set_mode("2");
	set_min_bytes("4096");
}

/* Since the last look, so many bytes of one fate, and of no other. */
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
	EXPECT_FATE(FATE_NONTEMPORAL, MIB);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_HINT, self->data, 123457, 0), 123457);
	EXPECT_FATE(FATE_NONTEMPORAL, 123457);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, 4097, MSG_NTCOPY), 4097);
	EXPECT_FATE(FATE_NONTEMPORAL, 4097);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, 4097, 0), 4097);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
}

/* Records, as a stream's buffers have heads of less than a page. */
TEST_F(counters, of_what_is_too_small)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int fd;

	if (!can_be_hinted(&unix_dgram))
		SKIP(return, "the module has no unix dgram");
	ASSERT_EQ(unix_dgram.open(&unix_dgram, &pair), 0);
	fd = pair.tx;
	ASSERT_EQ(set_min_bytes("4096"), 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, 4096, MSG_NTCOPY), 4096);
	EXPECT_FATE(FATE_NONTEMPORAL, 4096);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, 4095, MSG_NTCOPY), 4095);
	EXPECT_FATE(FATE_TOO_SMALL, 4095);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, 1, 0), 1);
	EXPECT_FATE(FATE_TOO_SMALL, 1);
	EXPECT_EQ(set_min_bytes("100000"), 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, 99999, MSG_NTCOPY), 99999);
	EXPECT_FATE(FATE_TOO_SMALL, 99999);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, 100000, MSG_NTCOPY), 100000);
	EXPECT_FATE(FATE_NONTEMPORAL, 100000);
	EXPECT_EQ(set_min_bytes("0"), 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, 1, MSG_NTCOPY), 1);
	EXPECT_FATE(FATE_NONTEMPORAL, 1);
	close_pair(&pair);
}

/* A splice would copy them again: less than a page in front of each 32 KiB. */
TEST_F(counters, of_the_heads_of_a_streams_buffers)
{
	unsigned char *received = pages(MIB / 4096);
	struct counts counts;
	size_t i;

	for (i = 0; i < MIB; i++)
		self->data[i] = i * 7 + i / 251;
	ASSERT_EQ(set_min_bytes("4096"), 0);
	EXPECT_EQ(send(self->pair.tx, self->data, MIB, MSG_NTCOPY), (long)MIB);
	counts = counts_since(&self->before);
	EXPECT_EQ(counts.bytes[FATE_NONTEMPORAL] + counts.bytes[FATE_TOO_SMALL], (long long)MIB);
	EXPECT_EQ(counts_sum(&counts), (long long)MIB);
	EXPECT_GT(counts.bytes[FATE_TOO_SMALL], 0);
	EXPECT_LT(counts.bytes[FATE_TOO_SMALL], (long long)(33 * 4096));
	EXPECT_EQ(recv(self->pair.rx, received, MIB, MSG_WAITALL), (long)MIB);
	EXPECT_EQ(memcmp(received, self->data, MIB), 0);
}

/* Of one send. */
static long long too_small_of(struct __test_metadata *_metadata, const struct pair *pair,
			      unsigned char *data, long len)
{
	struct counts before = read_counts(), counts;

	EXPECT_EQ(send(pair->tx, data, len, MSG_NTCOPY), len);
	counts = counts_since(&before);
	EXPECT_EQ(counts_sum(&counts), len);
	EXPECT_EQ(counts.bytes[FATE_NONTEMPORAL], len - counts.bytes[FATE_TOO_SMALL]);
	EXPECT_LT(counts.bytes[FATE_TOO_SMALL], 2 * 4096);
	EXPECT_EQ(recv(pair->rx, data, len, MSG_WAITALL), len);
	return counts.bytes[FATE_TOO_SMALL];
}

/*
 * The same of what is left over at a stream's end and is in no head: 3900 bytes,
 * after a head and 32 KiB or, where a buffer takes 48832 bytes, after one of these.
 */
TEST_F(counters, of_a_last_piece_below_a_page)
{
	long long one, other;

	if (via_module())
		SKIP(return, "the module has no such buffers");
	ASSERT_EQ(set_min_bytes("4096"), 0);
	one = too_small_of(_metadata, &self->pair, self->data, 3776 + 32768 + 3900);
	other = too_small_of(_metadata, &self->pair, self->data, 48832 + 3900);
	EXPECT_TRUE(one >= 3900 || other >= 3900) {
		TH_LOG("too small: %lld and %lld bytes", one, other);
	}
}

TEST_F(counters, follow_the_sysctl)
{
	int fd = self->pair.tx;

	EXPECT_EQ(set_mode("0"), 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
	EXPECT_EQ(set_mode("3"), 0);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_NONE, self->data, MIB, 0), (long)MIB);
	EXPECT_FATE(FATE_NONTEMPORAL, MIB);
}

/* A socket that says obey is not asked what the caches hold. */
TEST_F(counters, of_an_obeying_socket_know_no_cache)
{
	int i, fd = self->pair.tx;

	if (set_mode("1") < 0)
		SKIP(return, "no adaptive mode in this kernel");
	for (i = 0; i < 4; i++)
		EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, 100000, 0), 100000);
	EXPECT_FATE(FATE_NONTEMPORAL, 400000);
	EXPECT_EQ(send_one(fd, NTCOPY_SOCK_OBEY, self->data, 100000, MSG_NTCOPY), 100000);
	EXPECT_FATE(FATE_NONTEMPORAL, 100000);
}

/* One buffer, through one socket that is emptied each time. */
static void send_often(struct __test_metadata *_metadata, const struct pair *pair,
		       unsigned char *data)
{
	int i;

	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(send(pair->tx, data, 16384, MSG_NTCOPY), 16384);
		ASSERT_EQ(recv(pair->rx, data + 65536, 16384, MSG_WAITALL), 16384);
	}
}

#define CACHE_PATH	"/proc/sys/net/core/ntcopy_cache_bytes"

/* With the size of the cache said, there is nothing left to learn. */
TEST_F(counters, of_what_fits_a_cache_of_known_size)
{
	if (set_mode("1") < 0)
		SKIP(return, "no adaptive mode in this kernel");
	ASSERT_EQ(set_in_first_namespace(CACHE_PATH, "1099511627776"), 0);
	send_often(_metadata, &self->pair, self->data);
	EXPECT_FATE(FATE_FITS_CACHE, 1000 * 16384);
	ASSERT_EQ(set_in_first_namespace(CACHE_PATH, "1"), 0);
	send_often(_metadata, &self->pair, self->data);
	EXPECT_FATE(FATE_NONTEMPORAL, 1000 * 16384);
	EXPECT_EQ(set_in_first_namespace(CACHE_PATH, "0"), 0);
}

/* Left to itself it tries both; how often each is its own affair. */
TEST_F(counters, of_what_the_kernel_decides)
{
	struct counts counts;

	if (set_mode("1") < 0)
		SKIP(return, "no adaptive mode in this kernel");
	send_often(_metadata, &self->pair, self->data);
	counts = counts_since(&self->before);
	EXPECT_EQ(counts_sum(&counts), 1000 * 16384);
	EXPECT_EQ(counts.bytes[FATE_FITS_CACHE] + counts.bytes[FATE_NONTEMPORAL], 1000 * 16384);
	EXPECT_GT(counts.bytes[FATE_FITS_CACHE], 0);
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
	EXPECT_FATE(FATE_CHECKSUMMED, 100000);
	close_pair(&pair);
}

TEST_F(counters, of_a_send_that_faults_half_way)
{
	long ret;

	make_hole(self->data + 40 * 4096);
	ret = send(self->pair.tx, self->data + 5, 50 * 4096, MSG_NTCOPY);
	EXPECT_GT(ret, 0);
	EXPECT_LE(ret, 40 * 4096 - 5);
	EXPECT_FATE(FATE_NONTEMPORAL, ret);
	EXPECT_EQ(send(self->pair.tx, self->data + 40 * 4096, 4096, MSG_NTCOPY), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
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
	EXPECT_FATE(FATE_NONTEMPORAL, ret);
	EXPECT_EQ(send(self->pair.tx, self->data, MIB, MSG_NTCOPY | MSG_DONTWAIT), -1);
	EXPECT_FATE(FATE_NONTEMPORAL, 0);
}

/* The header is looked at on its own first, and the sum is of the rest. */
TEST_F(counters, of_what_is_checksummed_while_copied)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	struct counts counts;

	if (!can_be_hinted(&ping))
		SKIP(return, "the module has no ping");
	ASSERT_EQ(ping.open(&ping, &pair), 0);
	memcpy(self->data, ping.head, ping.head_len);
	EXPECT_EQ(send(pair.tx, self->data, 9000, MSG_NTCOPY), 9000);
	counts = counts_since(&self->before);
	EXPECT_EQ(counts.bytes[FATE_CHECKSUMMED], 9000 - (long long)ping.head_len);
	EXPECT_EQ(counts.bytes[FATE_NONTEMPORAL], (long long)ping.head_len);
	EXPECT_EQ(counts_sum(&counts), 9000);
	close_pair(&pair);
}

/* As much of a datagram as UDP-Lite's checksum covers is read back. */
TEST_F(counters, of_udplite_by_what_its_checksum_covers)
{
	static const struct {
		int covered;
		enum fate fate;
	} rows[] = {
		{ 0, FATE_CHECKSUMMED },	/* all, whatever the length */
		{ 8, FATE_NONTEMPORAL },
		{ 8 + 8999, FATE_NONTEMPORAL },
		{ 8 + 9000, FATE_CHECKSUMMED },
		{ 20000, FATE_CHECKSUMMED },
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

/* Nobody but the kernel reads what is sent there.  Ciphers are loaded first. */
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
		EXPECT_FATE(FATE_NOT_SUPPORTED, 8192);
		close_pair(&pair);
	}
}

TEST_F_TIMEOUT(counters, of_software_tls, TIMEOUT_SECONDS)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret;

	ret = tls.open(&tls, &pair);
	if (ret < 0)
		SKIP(return, "TLS: %s", strerror(-ret));
	EXPECT_EQ(send(pair.tx, self->data, 100000, MSG_NTCOPY), 100000);
	EXPECT_FATE(FATE_SOFTWARE_TLS, 100000);
	EXPECT_EQ(send_one(pair.tx, NTCOPY_SOCK_OBEY, self->data, 100000, 0), 100000);
	EXPECT_FATE(FATE_SOFTWARE_TLS, 100000);
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

/* In pieces of less than a page, too, and where a normal copy would be cheaper. */
TEST_F(counters, of_a_device_that_has_all_copied_so)
{
	static const char * const modes[] = { "2", "1" };
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret, i, j;

	if (via_module())
		SKIP(return, "the module has no test over a device");
	ret = open_over_device("tx-nocache-copy", &pair);
	if (ret == -EPERM || ret == -EOPNOTSUPP)
		SKIP(return, "veth: %s", strerror(-ret));
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(set_min_bytes("4096"), 0);
	for (i = 0; i < (int)ARRAY_SIZE(modes); i++) {
		ASSERT_EQ(set_mode(modes[i]), 0);
		self->before = read_counts();
		for (j = 0; j < 40; j++) {
			EXPECT_EQ(send(pair.tx, self->data, 4100, MSG_NTCOPY), 4100);
			EXPECT_EQ(recv(pair.rx, self->data, 4100, MSG_WAITALL), 4100);
		}
		EXPECT_FATE(FATE_NONTEMPORAL, 40 * 4100);
	}
	close_pair(&pair);
}

TEST_F(counters, of_pages_that_are_not_copied)
{
	EXPECT_EQ(through_a_pipe(self->pair.tx, self->data, 60000, false), 60000);
	EXPECT_FATE(FATE_NOT_SUPPORTED, 60000);
	EXPECT_EQ(through_a_pipe(self->pair.tx, self->data, 60000, true), 60000);
	EXPECT_FATE(FATE_NOT_SUPPORTED, 60000);
}

/* A datagram socket has no use for the pipe's pages: an iterator of the kernel's. */
TEST_F(counters, of_a_kernel_buffer_that_is_copied)
{
	struct pair pair = { .tx = -1, .rx = -1 };

	if (!can_be_hinted(&unix_dgram))
		SKIP(return, "the module has no unix dgram");
	ASSERT_EQ(unix_dgram.open(&unix_dgram, &pair), 0);
	EXPECT_EQ(through_a_pipe(pair.tx, self->data, 60000, false), 60000);
	EXPECT_FATE(FATE_NONTEMPORAL, 60000);
	close_pair(&pair);
}

/* Nothing is lost between CPUs. */
TEST_F(counters, of_many_senders_at_once)
{
	const struct family *family = via_module() ? &udp : &unix_dgram;
	struct counts counts;
	int i, k, status;

	ASSERT_EQ(set_min_bytes("4096"), 0);
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
