// SPDX-License-Identifier: GPL-2.0
/*
 * Attached sockets whose operations others replace: TLS takes them over, or they
 * turn into ones of IPv4.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "module_replace.h"
#include "ring.h"

/* Since 6.7; the headers may be older. */
#define URING_SETSOCKOPT	3

/* A ULP that is not there changes nothing, in either order. */
static void expect_no_ulp(struct __test_metadata *_metadata, const struct family *family)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int fds[2];

	ASSERT_EQ(family->open(family, &pair), 0);
	fds[0] = pair.tx;
	fds[1] = pair.rx;
	EXPECT_EQ(attach(pair.tx, NTCOPY_SOCK_HINT), 0);
	EXPECT_EQ(set_ulp(pair.tx, "nosuchulp"), -ENOENT);
	EXPECT_EQ(mode_of(pair.tx), NTCOPY_SOCK_HINT);
	EXPECT_SENT(fds, 0, 60000);
	EXPECT_EQ(set_ulp(pair.tx, "a_name_that_is_longer_than_any"), -ENOENT);
	EXPECT_EQ(set_ulp(pair.tx, ""), -EINVAL);
	EXPECT_EQ(own_error(setsockopt(pair.tx, IPPROTO_TCP, TCP_ULP, (void *)8, 3)), -EFAULT);
	EXPECT_EQ(own_error(setsockopt(pair.tx, SOL_TLS, TLS_TX, (void *)8, 40)), -ENOPROTOOPT);
	EXPECT_EQ(mode_of(pair.tx), NTCOPY_SOCK_HINT);
	EXPECT_SENT(fds, 0, 60000);
	close_pair(&pair);
}

/* Looked for on disk, which takes a while. */
TEST_F_TIMEOUT(module, survives_a_ulp_that_is_not_there, TIMEOUT_SECONDS)
{
	expect_no_ulp(_metadata, &tcp);
	expect_no_ulp(_metadata, &tcp6);
}

static void expect_refused(struct __test_metadata *_metadata, int fd, const char *name,
			   int error)
{
	int ret = set_ulp(fd, name);

	EXPECT_TRUE(ret == error || ret == -ENOENT) {
		TH_LOG("%s: %s", name, strerror(-ret));
	}
	EXPECT_EQ(mode_of(fd), NTCOPY_SOCK_HINT);
}

/* Who fails on every such socket does so before anything has changed. */
TEST_F_TIMEOUT(module, survives_ulps_that_take_no_such_socket, TIMEOUT_SECONDS)
{
	static const int domains[] = { AF_INET, AF_INET6 };
	int fds[ARRAY_SIZE(domains)], copies[ARRAY_SIZE(domains)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		fds[i] = socket(domains[i], SOCK_STREAM, 0);
		EXPECT_EQ(attach(fds[i], NTCOPY_SOCK_HINT), 0);
		copies[i] = dup(fds[i]);
		expect_refused(_metadata, fds[i], "mptcp", -EOPNOTSUPP);
		expect_refused(_metadata, fds[i], "tls", -ENOTCONN);
		ASSERT_EQ(listen(fds[i], 1), 0);
		expect_refused(_metadata, fds[i], "mptcp", -EOPNOTSUPP);
		expect_refused(_metadata, fds[i], "tls", -ENOTCONN);
		expect_refused(_metadata, fds[i], "espintcp", -ENOTCONN);
	}
	EXPECT_EQ(info().attached, self->before.attached + ARRAY_SIZE(domains));
	EXPECT_EQ(info().lingering, self->before.lingering);
	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		close(copies[i]);
		close(fds[i]);
	}
}

/* TLS on an unconnected socket fails, and on the way copies what it finds. */
static void expect_tls(struct __test_metadata *_metadata, const struct family *family)
{
	struct pair pair = { .tx = -1, .rx = -1 }, plain = { .tx = -1, .rx = -1 };
	struct counts before, counts;
	int fd = socket(family->domain, SOCK_STREAM, 0), fds[2];

	EXPECT_EQ(attach(fd, NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(set_ulp(fd, "tls"), -ENOTCONN);
	EXPECT_EQ(mode_of(fd), NTCOPY_SOCK_OBEY);
	close(fd);

	ASSERT_EQ(family->open(family, &pair), 0);
	EXPECT_EQ(attach(pair.tx, NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(set_ulp(pair.tx, "tls"), 0);
	EXPECT_EQ(set_ulp(pair.tx, "tls"), -EEXIST);
	EXPECT_EQ(set_ulp(pair.rx, "tls"), 0);
	EXPECT_EQ(mode_of(pair.tx), NTCOPY_SOCK_OBEY);
	/* No key yet: it goes as it is. */
	fds[0] = pair.tx;
	fds[1] = pair.rx;
	EXPECT_SENT(fds, 0, 60000);
	EXPECT_EQ(set_key(pair.tx, TLS_TX), 0);
	EXPECT_EQ(set_key(pair.rx, TLS_RX), 0);
	EXPECT_EQ(mode_of(pair.tx), NTCOPY_SOCK_OBEY);
	before = read_counts();
	EXPECT_EQ(sent(fds, 0), 60000);
	counts = counts_since(&before);
	EXPECT_EQ(counts.bytes[FATE_SOFTWARE_TLS], 60000);
	EXPECT_EQ(counts_sum(&counts), 60000);
	EXPECT_EQ(detach(pair.tx), 0);
	EXPECT_EQ(sent(fds, MSG_NTCOPY), 60000);

	/* A socket with TLS that was never attached has nothing of ours. */
	ASSERT_EQ(family->open(family, &plain), 0);
	EXPECT_EQ(set_ulp(plain.tx, "tls"), 0);
	EXPECT_EQ(mode_of(plain.tx), -1);
	EXPECT_EQ(attach(plain.tx, NTCOPY_SOCK_HINT), -EBUSY);
	close_pair(&plain);
	close_pair(&pair);
}

/* TLS may be loaded by this, and says who it is: which takes a while. */
TEST_F_TIMEOUT(module, stays_when_tls_comes, 300)
{
	int ret = try_tls();

	if (ret < 0)
		SKIP(return, "TLS: %s", strerror(-ret));
	expect_tls(_metadata, &tcp);
	expect_tls(_metadata, &tcp6);
	expect_tls(_metadata, &tcp);
}

/* One after the other there is nobody to pass it by. */
TEST_F(module, stays_when_two_keys_come_in_turn)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret = try_tls();

	if (ret < 0)
		SKIP(return, "TLS: %s", strerror(-ret));
	ASSERT_EQ(tcp.open(&tcp, &pair), 0);
	ASSERT_EQ(attach(pair.tx, NTCOPY_SOCK_OBEY), 0);
	ASSERT_EQ(set_ulp(pair.tx, "tls"), 0);
	ASSERT_EQ(set_key(pair.tx, TLS_TX), 0);
	ASSERT_EQ(mode_of(pair.tx), NTCOPY_SOCK_OBEY);
	ASSERT_EQ(set_key(pair.tx, TLS_RX), 0);
	ASSERT_EQ(mode_of(pair.tx), NTCOPY_SOCK_OBEY);
	ASSERT_EQ(info().attached, self->before.attached + 1);
	close_pair(&pair);
}

/* A socket of IPv6 that talks IPv4 may become one of IPv4. */
static void become_ipv4(struct __test_metadata *_metadata, int type)
{
	int pair[2];

	ASSERT_EQ(open_mapped(type, pair), 0);
	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_SENT(pair, 0, 60000);
	EXPECT_EQ(become(pair[0], AF_INET), 0);
	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_SENT(pair, 0, 60000);
	close(pair[0]);
	close(pair[1]);
}

TEST_F(module, stays_when_ipv6_becomes_ipv4)
{
	become_ipv4(_metadata, SOCK_STREAM);
	become_ipv4(_metadata, SOCK_DGRAM);
}

/* Another who has a TCP socket might be at TCP_ULP: it is let go, and looked after. */
TEST_F(module, lets_go_a_shared_one_that_becomes_ipv4)
{
	int pair[2], copy;

	ASSERT_EQ(open_mapped(SOCK_STREAM, pair), 0);
	copy = dup(pair[0]);
	EXPECT_EQ(become(pair[0], AF_INET), 0);
	EXPECT_EQ(mode_of(pair[0]), -1);
	EXPECT_EQ(info().attached, self->before.attached);
	EXPECT_EQ(info().lingering, self->before.lingering + 1);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
	EXPECT_SENT(pair, MSG_NTCOPY, 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_HINT), -EBUSY);
	close(copy);
	/* And may be attached again. */
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_HINT), 0);
	EXPECT_SENT(pair, 0, 60000);
	EXPECT_EQ(info().lingering, self->before.lingering + 1);
	EXPECT_EQ(refcnt(), self->refcnt + 2);
	close(pair[0]);
	close(pair[1]);
}

TEST_F(module, keeps_a_shared_one_of_udp_that_becomes_ipv4)
{
	int pair[2], copy;

	ASSERT_EQ(open_mapped(SOCK_DGRAM, pair), 0);
	copy = dup(pair[0]);
	EXPECT_EQ(become(pair[0], AF_INET), 0);
	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_SENT(pair, 0, 60000);
	close(copy);
	close(pair[0]);
	close(pair[1]);
}

static void *wait_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

/* One reference may stand for several requests: who came by io_uring is not alone. */
TEST_F(module, lets_go_one_that_becomes_ipv4_by_io_uring)
{
	int pair[2], family = AF_INET, ret;
	struct io_uring_sqe request = {
		.opcode = IORING_OP_URING_CMD,
		.cmd_op = URING_SETSOCKOPT,
		/* The level and the name, the length, and the value of the option */
		.addr = IPPROTO_IPV6 | (__u64)IPV6_ADDRFORM << 32,
		.splice_fd_in = sizeof(family),
		.addr3 = (unsigned long)&family,
	};
	pthread_t thread;

	/* The process shares its descriptors: every call has a reference of its own. */
	ASSERT_EQ(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
	ASSERT_EQ(open_mapped(SOCK_STREAM, pair), 0);
	request.fd = pair[0];
	ret = ring_submit(&request);
	if (!ret) {
		EXPECT_EQ(mode_of(pair[0]), -1);
		EXPECT_EQ(info().lingering, self->before.lingering + 1);
		EXPECT_SENT(pair, MSG_NTCOPY, 0);
	}
	close(pair[0]);
	close(pair[1]);
	ASSERT_EQ(pthread_cancel(thread), 0);
	ASSERT_EQ(pthread_join(thread, NULL), 0);
	if (ret < 0)
		SKIP(return, "setsockopt() by io_uring: %s", strerror(-ret));
}

/* In the same process, a call of one's own is known as such. */
TEST_F(module, stays_when_ipv6_becomes_ipv4_beside_other_threads)
{
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
	become_ipv4(_metadata, SOCK_STREAM);
	ASSERT_EQ(pthread_cancel(thread), 0);
	ASSERT_EQ(pthread_join(thread, NULL), 0);
}

int main(int argc, char **argv)
{
	return module_main(argc, argv);
}
