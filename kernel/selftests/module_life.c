// SPDX-License-Identifier: GPL-2.0
/*
 * The life of an attached socket: accepted, taken over by TLS, turned into one
 * of IPv4, closed; and threads that do all this at once.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "module.h"
#include "ring.h"

#define CYCLES		10000
#define RACE_ROUNDS	3000
#define REPLACE_ROUNDS	200

#ifndef SOL_TLS
#define SOL_TLS		282
#endif

/* Since 6.7; the headers may be older. */
#define URING_SETSOCKOPT	3

FIXTURE(accepted)
{
	struct ntcopy_module_info before;
	long refcnt;
	int server, pair[2];
	struct sockaddr_storage addr;
	socklen_t len;
};

FIXTURE_VARIANT(accepted)
{
	const struct family *family;
};

FIXTURE_VARIANT_ADD(accepted, unix_stream) { .family = &unix_stream };
FIXTURE_VARIANT_ADD(accepted, tcp) { .family = &tcp };
FIXTURE_VARIANT_ADD(accepted, tcp6) { .family = &tcp6 };

FIXTURE_SETUP(accepted)
{
	ASSERT_EQ(set_mode("2"), 0);
	ASSERT_EQ(set_min_bytes("0"), 0);
	attach_sockets = false;
	self->before = info();
	self->refcnt = refcnt();
	self->pair[0] = -1;
	self->pair[1] = -1;
	self->server = socket(variant->family->domain, SOCK_STREAM, 0);
	self->len = listening_address(variant->family, &self->addr);
	ASSERT_EQ(bind(self->server, (void *)&self->addr, self->len), 0);
	ASSERT_EQ(listen(self->server, 8), 0);
	self->len = sizeof(self->addr);
	ASSERT_EQ(getsockname(self->server, (void *)&self->addr, &self->len), 0);
}

FIXTURE_TEARDOWN(accepted)
{
	int i;

	close(self->pair[0]);
	close(self->pair[1]);
	close(self->server);
	for (i = 0; i < 500 && refcnt() != self->refcnt; i++)
		usleep(20000);
	EXPECT_EQ(info().attached, self->before.attached);
	EXPECT_EQ(info().lingering, self->before.lingering);
	EXPECT_EQ(refcnt(), self->refcnt);
}

TEST_F(accepted, have_what_the_listener_has)
{
	int mode;

	for (mode = NTCOPY_SOCK_NONE; mode <= NTCOPY_SOCK_OBEY; mode++) {
		EXPECT_EQ(attach(self->server, mode), 0);
		self->pair[1] = connect_one(&self->addr, self->len);
		self->pair[0] = accept(self->server, NULL, NULL);
		EXPECT_EQ(mode_of(self->pair[0]), mode);
		EXPECT_EQ(mode_of(self->pair[1]), -1);
		EXPECT_EQ(info().attached, self->before.attached + 2);
		EXPECT_SENT(self->pair, MSG_NTCOPY, 60000);
		close(self->pair[0]);
		close(self->pair[1]);
	}
}

TEST_F(accepted, have_nothing_of_a_detached_listener)
{
	EXPECT_EQ(attach(self->server, NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(detach(self->server), 0);
	self->pair[1] = connect_one(&self->addr, self->len);
	self->pair[0] = accept(self->server, NULL, NULL);
	EXPECT_EQ(mode_of(self->pair[0]), -1);
	EXPECT_EQ(info().lingering, self->before.lingering + 1);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
}

TEST_F(accepted, are_not_there_if_nobody_connects)
{
	int i;

	EXPECT_EQ(attach(self->server, NTCOPY_SOCK_OBEY), 0);
	ASSERT_EQ(fcntl(self->server, F_SETFL, O_NONBLOCK), 0);
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(accept(self->server, NULL, NULL), -1);
		ASSERT_EQ(errno, EAGAIN);
	}
	EXPECT_EQ(info().attached, self->before.attached + 1);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
}

/* A socket in the backlog, and one that is accepted and closed at once. */
TEST_F(accepted, may_be_closed_before_they_are_accepted)
{
	int i;

	EXPECT_EQ(attach(self->server, NTCOPY_SOCK_OBEY), 0);
	for (i = 0; i < 100; i++) {
		self->pair[1] = connect_one(&self->addr, self->len);
		close(self->pair[1]);
		close(accept(self->server, NULL, NULL));
	}
	self->pair[1] = connect_one(&self->addr, self->len);
}

/* Others may replace the operations of a TCP socket: see kernel/module/replace.c. */
static void expect_alone(struct __test_metadata *_metadata, int domain, int type)
{
	int fd = socket(domain, type, 0), copy = dup(fd);

	EXPECT_EQ(attach(fd, NTCOPY_SOCK_HINT), -EBUSY);
	EXPECT_EQ(mode_of(fd), -1);
	close(copy);
	EXPECT_EQ(attach(fd, NTCOPY_SOCK_HINT), 0);
	copy = dup(fd);
	EXPECT_EQ(attach(copy, NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(mode_of(fd), NTCOPY_SOCK_OBEY);
	close(copy);
	close(fd);
}

TEST_F(module, wants_sockets_that_nobody_else_uses)
{
	expect_alone(_metadata, AF_INET, SOCK_STREAM);
	expect_alone(_metadata, AF_INET6, SOCK_STREAM);
	expect_alone(_metadata, AF_INET6, SOCK_DGRAM);
}

/* Nobody copies or replaces the operations of these. */
TEST_F(module, wants_others_whoever_uses_them)
{
	int udp = socket(AF_INET, SOCK_DGRAM, 0), copies[] = { dup(udp), dup(self->pair[0]) };

	EXPECT_EQ(attach(udp, NTCOPY_SOCK_HINT), 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_SOCK_HINT), 0);
	close(copies[0]);
	close(copies[1]);
	close(udp);
}

static int set_ulp(int fd, const char *name)
{
	return own_error(setsockopt(fd, IPPROTO_TCP, TCP_ULP, name, strlen(name)));
}

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
	struct tls12_crypto_info_aes_gcm_128 crypto = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};
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
	EXPECT_EQ(setsockopt(pair.tx, SOL_TLS, TLS_TX, &crypto, sizeof(crypto)), 0);
	EXPECT_EQ(setsockopt(pair.rx, SOL_TLS, TLS_RX, &crypto, sizeof(crypto)), 0);
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
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret = tls.open(&tls, &pair);

	close_pair(&pair);
	if (ret < 0)
		SKIP(return, "TLS: %s", strerror(-ret));
	expect_tls(_metadata, &tcp);
	expect_tls(_metadata, &tcp6);
	expect_tls(_metadata, &tcp);
}

static int become(int fd, int family)
{
	return own_error(setsockopt(fd, IPPROTO_IPV6, IPV6_ADDRFORM, &family, sizeof(family)));
}

/* An attached socket of IPv6, connected to an IPv4 address, and who has its data. */
static int open_mapped(int type, int *pair)
{
	struct sockaddr_storage addr;
	struct sockaddr_in6 *in6 = (void *)&addr;
	socklen_t len = loopback(AF_INET, &addr);
	int server = socket(AF_INET, type, 0), ret = 0;
	in_port_t port;

	if (bind(server, (void *)&addr, len) || getsockname(server, (void *)&addr, &len) ||
	    (type == SOCK_STREAM && listen(server, 1)))
		return -errno;
	port = ((struct sockaddr_in *)&addr)->sin_port;
	pair[0] = socket(AF_INET6, type, 0);
	ret = attach(pair[0], NTCOPY_SOCK_OBEY);
	if (!ret && become(pair[0], AF_INET) != -ENOTCONN)
		ret = -EPROTO;
	memset(&addr, 0, sizeof(addr));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6->sin6_addr);
	if (connect(pair[0], (void *)in6, sizeof(*in6)))
		return -errno;
	pair[1] = server;
	if (type == SOCK_STREAM) {
		pair[1] = accept(server, NULL, NULL);
		close(server);
	}
	return ret;
}

/* Such a socket may become one of IPv4. */
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

/* Two who begin at once, each with what it does to a socket. */
struct doing {
	pthread_barrier_t *together;
	int fd;
	void (*act)(int fd);
};

static void *begin_together(void *arg)
{
	struct doing *doing = arg;

	pthread_barrier_wait(doing->together);
	doing->act(doing->fd);
	return NULL;
}

static void at_once(struct __test_metadata *_metadata, int fd, void (*first)(int),
		    void (*second)(int))
{
	pthread_barrier_t together;
	struct doing doings[] = { { &together, fd, first }, { &together, fd, second } };
	pthread_t threads[2];
	int i;

	ASSERT_EQ(pthread_barrier_init(&together, NULL, 2), 0);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, begin_together, &doings[i]), 0);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&together);
}

static void set_key(int fd, int optname)
{
	struct tls12_crypto_info_aes_gcm_128 crypto = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};

	setsockopt(fd, SOL_TLS, optname, &crypto, sizeof(crypto));
}

static void set_tx_key(int fd)
{
	set_key(fd, TLS_TX);
}

static void set_rx_key(int fd)
{
	set_key(fd, TLS_RX);
}

static void set_tls(int fd)
{
	set_ulp(fd, "tls");
}

static void become_one_of_ipv4(int fd)
{
	become(fd, AF_INET);
}

/*
 * Each key replaces the operations: whoever ends last follows both, unless the
 * other one may have passed the module by. Then the socket is let go.
 */
TEST_F_TIMEOUT(module, survives_two_keys_that_come_at_once, TIMEOUT_SECONDS)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int i, stays, ret = tls.open(&tls, &pair);

	close_pair(&pair);
	if (ret < 0)
		SKIP(return, "TLS: %s", strerror(-ret));
	for (i = 0; i < REPLACE_ROUNDS; i++) {
		ASSERT_EQ(tcp.open(&tcp, &pair), 0);
		ASSERT_EQ(attach(pair.tx, NTCOPY_SOCK_OBEY), 0);
		ASSERT_EQ(set_ulp(pair.tx, "tls"), 0);
		at_once(_metadata, pair.tx, set_tx_key, set_rx_key);
		stays = mode_of(pair.tx) == NTCOPY_SOCK_OBEY;
		ASSERT_EQ(mode_of(pair.tx), stays ? NTCOPY_SOCK_OBEY : -1);
		ASSERT_EQ(info().attached, self->before.attached + stays);
		close_pair(&pair);
	}
}

/* One after the other there is nobody to pass it by. */
TEST_F(module, stays_when_two_keys_come_in_turn)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret = tls.open(&tls, &pair);

	close_pair(&pair);
	if (ret < 0)
		SKIP(return, "TLS: %s", strerror(-ret));
	ASSERT_EQ(tcp.open(&tcp, &pair), 0);
	ASSERT_EQ(attach(pair.tx, NTCOPY_SOCK_OBEY), 0);
	ASSERT_EQ(set_ulp(pair.tx, "tls"), 0);
	set_tx_key(pair.tx);
	ASSERT_EQ(mode_of(pair.tx), NTCOPY_SOCK_OBEY);
	set_rx_key(pair.tx);
	ASSERT_EQ(mode_of(pair.tx), NTCOPY_SOCK_OBEY);
	ASSERT_EQ(info().attached, self->before.attached + 1);
	close_pair(&pair);
}

/* Whatever comes of it, TLS has not copied anything of ours. */
TEST_F_TIMEOUT(module, survives_tls_while_ipv6_becomes_ipv4, TIMEOUT_SECONDS)
{
	struct pair plain = { .tx = -1, .rx = -1 };
	int i, mode, pair[2];

	for (i = 0; i < REPLACE_ROUNDS; i++) {
		ASSERT_EQ(open_mapped(SOCK_STREAM, pair), 0);
		at_once(_metadata, pair[0], become_one_of_ipv4, set_tls);
		mode = mode_of(pair[0]);
		EXPECT_TRUE(mode == NTCOPY_SOCK_OBEY || mode == -1);
		EXPECT_EQ(sent(pair, 0), 60000);
		close(pair[0]);
		close(pair[1]);
	}
	ASSERT_EQ(tcp.open(&tcp, &plain), 0);
	set_tls(plain.tx);
	EXPECT_EQ(mode_of(plain.tx), -1);
	close_pair(&plain);
}

static bool enough;

static void *look_on(void *arg)
{
	int epoll = *(int *)arg;
	struct epoll_event event;

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		epoll_wait(epoll, &event, 1, 0);
	return NULL;
}

/* Who waits for a socket's events has a reference to it, for moments. */
TEST_F_TIMEOUT(module, survives_others_who_look_on, TIMEOUT_SECONDS)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	int i, fd, ret, epoll = epoll_create1(0);
	pthread_t thread;

	enough = false;
	ASSERT_EQ(pthread_create(&thread, NULL, look_on, &epoll), 0);
	for (i = 0; i < RACE_ROUNDS; i++) {
		fd = socket(i % 2 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
		ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
		ret = attach(fd, NTCOPY_SOCK_HINT);
		EXPECT_TRUE(ret == 0 || ret == -EBUSY);
		EXPECT_EQ(mode_of(fd), ret ? -1 : NTCOPY_SOCK_HINT);
		/* Looked for on disk: it takes a while. */
		if (i % 1000 == 0)
			EXPECT_EQ(set_ulp(fd, "nosuchulp"), -ENOENT);
		close(fd);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	ASSERT_EQ(pthread_join(thread, NULL), 0);
	close(epoll);
}

static long available_kib(const char *name)
{
	char text[4096], *at;

	if (read_file("/proc/meminfo", text, sizeof(text)) < 0)
		return -1;
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) : -1;
}

static void cycle(struct __test_metadata *_metadata, int i)
{
	static unsigned char data[40000];
	int pair[2];

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ASSERT_EQ(attach(pair[0], i % 3), 0);
	ASSERT_EQ(send(pair[0], data, sizeof(data), MSG_NTCOPY), (long)sizeof(data));
	if (i % 5 == 0)
		ASSERT_EQ(detach(pair[0]), 0);
	if (i % 2)
		ASSERT_EQ(recv(pair[1], data, sizeof(data), MSG_WAITALL), (long)sizeof(data));
	close(pair[i % 2]);
	close(pair[!(i % 2)]);
}

/* Nothing is left of them, read or unread: 10,000 that leaked are 400 MB. */
TEST_F_TIMEOUT(module, leaves_nothing_behind, TIMEOUT_SECONDS)
{
	long before, after;
	int i;

	for (i = 0; i < 100; i++)
		cycle(_metadata, i);
	before = available_kib("MemAvailable:");
	for (i = 0; i < CYCLES; i++)
		cycle(_metadata, i);
	after = available_kib("MemAvailable:");
	ASSERT_LT(0, before);
	EXPECT_LT(before - after, 40000) {
		TH_LOG("%ld KiB are gone", before - after);
	}
}

/* Threads that attach, send, accept and close whatever they find there. */
#define SLOTS		4

static int slots[SLOTS];
static int listener;
static struct sockaddr_storage listener_addr;
static socklen_t listener_len;

static void *race_attach(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < RACE_ROUNDS; i++) {
		int fd = __atomic_load_n(&slots[i % SLOTS], __ATOMIC_RELAXED);

		if (i % 7 == 0)
			detach(fd);
		else
			attach(fd, i % 3);
		attach(listener, i % 3);
		mode_of(fd);
	}
	return NULL;
}

static void *race_send(void *arg)
{
	static unsigned char data[50000];
	int i;

	(void)arg;
	for (i = 0; i < RACE_ROUNDS; i++)
		send(__atomic_load_n(&slots[i % SLOTS], __ATOMIC_RELAXED), data, sizeof(data),
		     MSG_NTCOPY | MSG_DONTWAIT | MSG_NOSIGNAL);
	return NULL;
}

/* Descriptors are used again at once: the others meet sockets of all kinds. */
static void *race_close(void *arg)
{
	static const int domains[] = { AF_UNIX, AF_INET, AF_INET6, AF_UNIX };
	int i, family = AF_INET;

	(void)arg;
	for (i = 0; i < RACE_ROUNDS; i++) {
		int *slot = &slots[i % SLOTS], fd, pair[2];

		close(__atomic_load_n(slot, __ATOMIC_RELAXED));
		if (i % 3 == 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
			close(pair[1]);
			fd = pair[0];
		} else {
			fd = socket(domains[i % 4], i % 5 ? SOCK_STREAM : SOCK_DGRAM, 0);
		}
		attach(fd, i % 3);
		setsockopt(fd, IPPROTO_IPV6, IPV6_ADDRFORM, &family, sizeof(family));
		set_ulp(fd, "tls");
		__atomic_store_n(slot, fd, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *race_accept(void *arg)
{
	int i, fd;

	(void)arg;
	for (i = 0; i < RACE_ROUNDS / 4; i++) {
		fd = connect_one(&listener_addr, listener_len);
		close(accept(listener, NULL, NULL));
		close(fd);
	}
	return NULL;
}

static void open_listener(struct __test_metadata *_metadata)
{
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	listener_len = listening_address(&unix_stream, &listener_addr);
	ASSERT_EQ(bind(listener, (void *)&listener_addr, listener_len), 0);
	ASSERT_EQ(listen(listener, 64), 0);
	listener_len = sizeof(listener_addr);
	ASSERT_EQ(getsockname(listener, (void *)&listener_addr, &listener_len), 0);
	fcntl(listener, F_SETFL, O_NONBLOCK);
}

TEST_F_TIMEOUT(module, survives_threads_that_race, TIMEOUT_SECONDS)
{
	static void *(* const races[])(void *) = {
		race_attach, race_send, race_close, race_accept, race_attach, race_send,
	};
	pthread_t threads[ARRAY_SIZE(races)];
	size_t i;

	open_listener(_metadata);
	for (i = 0; i < SLOTS; i++)
		slots[i] = socket(AF_UNIX, SOCK_STREAM, 0);
	for (i = 0; i < ARRAY_SIZE(races); i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, races[i], NULL), 0);
	for (i = 0; i < ARRAY_SIZE(races); i++)
		ASSERT_EQ(pthread_join(threads[i], NULL), 0);
	for (i = 0; i < SLOTS; i++)
		close(slots[i]);
	close(listener);
}

int main(int argc, char **argv)
{
	return module_main(argc, argv);
}
