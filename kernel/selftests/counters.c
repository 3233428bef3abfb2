// SPDX-License-Identifier: GPL-2.0
/* What is counted: bytes of sockets that opted in, of hinted sends, of those past the caches. */
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
	ASSERT_EQ(set_mode("1"), 0);
	ASSERT_EQ(unix_stream.open(&unix_stream, &self->pair), 0);
	self->before = read_counts();
}

FIXTURE_TEARDOWN(counters)
{
	close_pair(&self->pair);
	set_mode("1");
}

/* Since the last look, of sockets that opted in. */
static void expect_counts(struct __test_metadata *_metadata, struct counts *before,
			  long long bytes, long long hinted, long long bypassed)
{
	struct counts counts = counts_since(before);

	EXPECT_EQ(counts.bytes, bytes);
	EXPECT_EQ(counts.hinted, hinted);
	EXPECT_EQ(counts.bypassed, bypassed);
	*before = read_counts();
}

static void expect_all_hinted(struct __test_metadata *_metadata, struct counts *before,
			      long long bytes, bool bypassed)
{
	expect_counts(_metadata, before, bytes, bytes, bypassed ? bytes : 0);
}

#define EXPECT_COUNTS(bytes, hinted, bypassed) \
	expect_counts(_metadata, &self->before, bytes, hinted, bypassed)
#define EXPECT_PLAIN(bytes)	EXPECT_COUNTS(bytes, 0, 0)
#define EXPECT_DECLINED(bytes)	expect_all_hinted(_metadata, &self->before, bytes, false)
#define EXPECT_PAST(bytes)	expect_all_hinted(_metadata, &self->before, bytes, true)

static long send_one(int fd, int option, const void *data, size_t len, int flags)
{
	if (set_hint(fd, option) < 0)
		return -1;
	return send(fd, data, len, flags);
}

TEST_F(counters, of_hints_by_flag_and_by_option)
{
	int fd = self->pair.tx;

	EXPECT_EQ(send_one(fd, 0, self->data, MIB, 0), (long)MIB);
	EXPECT_PLAIN(0);
	EXPECT_EQ(send_one(fd, 0, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_PLAIN(0);
	EXPECT_EQ(send_one(fd, NTCOPY_FLAGGED, self->data, MIB, 0), (long)MIB);
	EXPECT_PLAIN(MIB);
	EXPECT_EQ(send_one(fd, NTCOPY_FLAGGED, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_PAST(MIB);
	EXPECT_EQ(send_one(fd, MIB, self->data, MIB, 0), (long)MIB);
	EXPECT_PAST(MIB);
	EXPECT_EQ(send_one(fd, 0, self->data, PAGE, 0), (long)PAGE);
	EXPECT_PLAIN(0);
}

TEST_F(counters, of_sends_around_the_number)
{
	static const struct {
		int number;
		size_t len;
		bool hinted;
	} rows[] = {
		{ 256 * KIB, 256 * KIB, true }, { 256 * KIB, 256 * KIB - 1, false },
		{ 256 * KIB, 1, false }, { NTCOPY_MIN_BYTES, PAGE, true },
		{ NTCOPY_MIN_BYTES, PAGE - 1, false }, { 100001, 100001, true },
		{ 100001, 100000, false }, { NTCOPY_FLAGGED, MIB, false },
	};
	struct pair pair = { .tx = -1, .rx = -1 };
	const struct family *families[] = { &unix_stream, &unix_dgram };
	size_t i, f;

	if (via_module())
		SKIP(return, "the module takes other numbers");
	for (f = 0; f < ARRAY_SIZE(families); f++) {
		ASSERT_EQ(families[f]->open(families[f], &pair), 0);
		self->before = read_counts();
		for (i = 0; i < ARRAY_SIZE(rows); i++) {
			if (families[f]->max && rows[i].len > families[f]->max)
				continue;
			EXPECT_EQ(send_one(pair.tx, rows[i].number, self->data, rows[i].len, 0),
				  (long)rows[i].len);
			EXPECT_COUNTS(rows[i].len, rows[i].hinted ? rows[i].len : 0,
				      rows[i].hinted ? rows[i].len : 0);
		}
		close_pair(&pair);
	}
}

/* What continues a send that was cut short is hinted, however short; what comes next not. */
TEST_F(counters, of_the_rest_of_a_send)
{
	int fd = self->pair.tx, size = 400000;
	static unsigned char received[MIB];
	long first, second;

	if (via_module())
		SKIP(return, "the module remembers no rest");
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	fill(self->data, MIB, 3);
	first = send_one(fd, 256 * KIB, self->data, MIB, MSG_DONTWAIT);
	ASSERT_GT(first, 0);
	ASSERT_LT(first, (long)MIB);
	EXPECT_PAST(first);
	EXPECT_EQ(send(fd, self->data + first, MIB - first, MSG_DONTWAIT), -1);
	EXPECT_EQ(errno, EAGAIN);
	ASSERT_EQ(recv(self->pair.rx, received, first, MSG_WAITALL), first);
	/* Less than the number, and less than what is left. */
	second = 100000;
	EXPECT_EQ(send(fd, self->data + first, second, MSG_DONTWAIT), second);
	EXPECT_PAST(second);
	/* That one was taken whole: nobody waits for more. */
	EXPECT_EQ(send(fd, self->data, 50000, MSG_DONTWAIT), 50000);
	EXPECT_PLAIN(50000);
	ASSERT_EQ(recv(self->pair.rx, received + first, second, MSG_WAITALL), second);
	EXPECT_EQ(memcmp(received, self->data, first + second), 0);
}

TEST_F(counters, of_no_rest_once_the_option_is_set_anew)
{
	int fd = self->pair.tx, size = 400000;
	static unsigned char received[MIB];
	long first;

	if (via_module())
		SKIP(return, "the module remembers no rest");
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	first = send_one(fd, 256 * KIB, self->data, MIB, MSG_DONTWAIT);
	ASSERT_GT(first, 0);
	ASSERT_LT(first, (long)MIB);
	EXPECT_PAST(first);
	ASSERT_EQ(recv(self->pair.rx, received, first, MSG_WAITALL), first);
	EXPECT_EQ(send_one(fd, 256 * KIB, self->data, 50000, 0), 50000);
	EXPECT_PLAIN(50000);
}

/* A plain send that is cut short leaves nothing. */
TEST_F(counters, of_no_rest_of_a_plain_send)
{
	int fd = self->pair.tx, size = 400000;
	static unsigned char received[MIB];
	long first;

	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	first = send_one(fd, NTCOPY_FLAGGED, self->data, MIB, MSG_DONTWAIT);
	ASSERT_GT(first, 0);
	ASSERT_LT(first, (long)MIB);
	EXPECT_PLAIN(first);
	ASSERT_EQ(recv(self->pair.rx, received, first, MSG_WAITALL), first);
	EXPECT_EQ(send(fd, self->data, 50000, 0), 50000);
	EXPECT_PLAIN(50000);
}

/* One segment of a page, and so many of 1,000 bytes. */
static long send_page_first(int fd, unsigned char *data, size_t count)
{
	struct iovec iov[40] = { { data, PAGE } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count + 1 };
	size_t i;

	for (i = 1; i <= count; i++)
		iov[i] = (struct iovec){ data + PAGE + i * 1000, 1000 };
	return sendmsg(fd, &msg, MSG_NTCOPY);
}

/* A large send has no head, which a page does not fit; up to 32 KiB one has. */
TEST_F(counters, of_a_page_at_the_start_of_a_stream)
{
	if (via_module())
		SKIP(return, "the module has no such buffers");
	EXPECT_EQ(send_page_first(self->pair.tx, self->data, 30), 4096 + 30000);
	EXPECT_PAST(4096 + 30000);
	EXPECT_EQ(send_page_first(self->pair.tx, self->data, 28), 4096 + 28000);
	EXPECT_DECLINED(4096 + 28000);
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
		EXPECT_DECLINED((long long)len);
		EXPECT_EQ(recv(pair.rx, received, len, MSG_WAITALL), (long)len);
		EXPECT_EQ(memcmp(received, self->data, len), 0);
		close_pair(&pair);
	}
}

TEST_F(counters, follow_the_sysctl)
{
	int fd = self->pair.tx;

	EXPECT_EQ(set_mode("0"), 0);
	EXPECT_EQ(send_one(fd, 256 * KIB, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_PLAIN(MIB);
	EXPECT_EQ(set_mode("1"), 0);
	EXPECT_EQ(send_one(fd, 256 * KIB, self->data, MIB, 0), (long)MIB);
	EXPECT_PAST(MIB);
}

/* For test suites that know nothing of the hint; not in every kernel. */
TEST_F(counters, of_a_setting_that_hints_every_send)
{
	int fd = self->pair.tx;

	if (set_mode("2") < 0)
		SKIP(return, "no mode all in this kernel");
	EXPECT_EQ(send_one(fd, 0, self->data, MIB, 0), (long)MIB);
	EXPECT_PAST(MIB);
	EXPECT_EQ(send_one(fd, 0, self->data, MIB, MSG_NTCOPY), (long)MIB);
	EXPECT_PAST(MIB);
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
	EXPECT_DECLINED(100000);
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
	EXPECT_EQ(set_hint(tx, NTCOPY_MIN_BYTES), 0);
	ret = sendto(tx, self->data, 100000, MSG_FASTOPEN, (void *)&at, size);
	EXPECT_EQ(write_file(checksum, "0"), 0);
	EXPECT_EQ(write_file(fastopen, before), 0);
	counts = counts_since(&self->before);
	EXPECT_GT(ret, 0);
	EXPECT_EQ(counts.bypassed, ret);
	EXPECT_EQ(counts.hinted, ret);
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
	EXPECT_PAST(ret);
	EXPECT_EQ(send(self->pair.tx, self->data + 40 * 4096, 4096, MSG_NTCOPY), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_PLAIN(0);
}

/* TCP copies more of the fragment that faults than it accepts. */
TEST_F(counters, of_a_tcp_send_that_faults)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	long ret;

	if (!can_be_hinted(&tcp))
		SKIP(return, "the module has no tcp");
	make_hole(self->data + 43 * 4096);
	ASSERT_EQ(tcp.open(&tcp, &pair), 0);
	ret = send(pair.tx, self->data, 50 * 4096, MSG_NTCOPY);
	EXPECT_GT(ret, 0);
	EXPECT_LE(ret, 43 * 4096);
	EXPECT_PAST(ret);
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
	EXPECT_PLAIN(0);
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
	EXPECT_PAST(ret);
	EXPECT_EQ(send(self->pair.tx, self->data, MIB, MSG_NTCOPY | MSG_DONTWAIT), -1);
	EXPECT_PLAIN(0);
}

TEST_F(counters, of_what_is_checksummed_while_copied)
{
	struct pair pair = { .tx = -1, .rx = -1 };

	if (!can_be_hinted(&ping))
		SKIP(return, "the module has no ping");
	ASSERT_EQ(ping.open(&ping, &pair), 0);
	memcpy(self->data, ping.head, ping.head_len);
	EXPECT_EQ(send(pair.tx, self->data, 9000, MSG_NTCOPY), 9000);
	EXPECT_DECLINED(9000);
	close_pair(&pair);
}

/* What UDP-Lite's checksum covers of a datagram is read back. */
TEST_F(counters, of_udplite_by_what_its_checksum_covers)
{
	static const struct {
		int covered;
		bool read;
	} rows[] = {
		{ 0, true },	/* all, whatever the length */
		{ 8, false }, { 8 + 8999, false }, { 8 + 9000, true }, { 20000, true },
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
		EXPECT_COUNTS(9000, 9000, rows[i].read ? 0 : 9000);
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
		EXPECT_EQ(send_one(pair.tx, NTCOPY_MIN_BYTES, self->data, 8192, MSG_NTCOPY), 8192);
		EXPECT_DECLINED(8192);
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
	EXPECT_DECLINED(100000);
	EXPECT_EQ(send_one(pair.tx, NTCOPY_MIN_BYTES, self->data, 100000, 0), 100000);
	EXPECT_DECLINED(100000);
	/* A record that is not full yet is copied; the others are encrypted where they are. */
	EXPECT_EQ(send(pair.tx, self->data, 8192, MSG_NTCOPY | MSG_MORE), 8192);
	EXPECT_DECLINED(8192);
	close_pair(&pair);
}

static long through_a_pipe(int fd, unsigned char *data, size_t len, bool by_reference)
{
	struct iovec iov = { .iov_base = data, .iov_len = len };
	int ends[2];
	long ret = -1;

	if (set_hint(fd, NTCOPY_MIN_BYTES) < 0 || pipe(ends) < 0)
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
	EXPECT_DECLINED(40 * 4100);
	close_pair(&pair);
}

TEST_F(counters, of_pages_that_are_not_copied)
{
	EXPECT_EQ(through_a_pipe(self->pair.tx, self->data, 60000, false), 60000);
	EXPECT_DECLINED(60000);
	EXPECT_EQ(through_a_pipe(self->pair.tx, self->data, 60000, true), 60000);
	EXPECT_DECLINED(60000);
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
	EXPECT_EQ(send_one(fd, NTCOPY_MIN_BYTES, NULL, 0, MSG_NTCOPY), 100);
	EXPECT_DECLINED(100);
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
	EXPECT_PAST(3 * PAGE);
	close_pair(&pair);
}

/* Where the pages of the kernel's buffer begin is no reason to copy otherwise. */
TEST_F(counters, of_a_kernel_buffer_that_is_not_aligned)
{
	struct pair pair = { .tx = -1, .rx = -1 };

	if (!can_be_hinted(&unix_dgram))
		SKIP(return, "the module has no unix dgram");
	ASSERT_EQ(unix_dgram.open(&unix_dgram, &pair), 0);
	EXPECT_EQ(through_a_pipe(pair.tx, self->data + PAGE / 2, PAGE, true), (long)PAGE);
	EXPECT_PAST(PAGE);
	close_pair(&pair);
}

/* Nothing is lost between CPUs. */
TEST_F_TIMEOUT(counters, of_many_senders_at_once, TIMEOUT_SECONDS)
{
	const struct family *family = via_module() ? &unix_stream : &unix_dgram;
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
	EXPECT_EQ(counts.bytes, 4 * 200 * (5001 + 501));
	EXPECT_EQ(counts.hinted, 4 * 200 * (5001 + 501));
	EXPECT_EQ(counts.bypassed, 4 * 200 * 5001);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
