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
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "module.h"

#define CYCLES		10000

#ifndef SOL_TLS
#define SOL_TLS		282
#endif

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
	for (i = 0; i < 100 && refcnt() != self->refcnt; i++)
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
TEST_F(module, wants_a_tcp_socket_that_nobody_else_uses)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), copy = dup(fd);

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
	EXPECT_EQ(own_error(setsockopt(pair.tx, IPPROTO_TCP, TCP_ULP, (void *)8, 3)), -EFAULT);
	EXPECT_EQ(own_error(setsockopt(pair.tx, SOL_TLS, TLS_TX, (void *)8, 40)), -ENOPROTOOPT);
	EXPECT_EQ(mode_of(pair.tx), NTCOPY_SOCK_HINT);
	EXPECT_SENT(fds, 0, 60000);
	close_pair(&pair);
}

TEST_F(module, survives_a_ulp_that_is_not_there)
{
	expect_no_ulp(_metadata, &tcp);
	expect_no_ulp(_metadata, &tcp6);
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

/* IPv6 sockets that are connected to an IPv4 address may become IPv4 ones. */
static void become_ipv4(struct __test_metadata *_metadata, int type)
{
	struct sockaddr_storage addr;
	struct sockaddr_in6 *in6 = (void *)&addr;
	socklen_t len = loopback(AF_INET, &addr);
	int server = socket(AF_INET, type, 0), family = AF_INET, pair[2];

	ASSERT_EQ(bind(server, (void *)&addr, len), 0);
	ASSERT_EQ(getsockname(server, (void *)&addr, &len), 0);
	if (type == SOCK_STREAM)
		ASSERT_EQ(listen(server, 1), 0);
	in_port_t port = ((struct sockaddr_in *)&addr)->sin_port;

	pair[0] = socket(AF_INET6, type, 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(own_error(setsockopt(pair[0], IPPROTO_IPV6, IPV6_ADDRFORM, &family,
				       sizeof(family))), -ENOTCONN);
	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	memset(&addr, 0, sizeof(addr));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6->sin6_addr);
	ASSERT_EQ(connect(pair[0], (void *)in6, sizeof(*in6)), 0);
	pair[1] = type == SOCK_STREAM ? accept(server, NULL, NULL) : server;
	EXPECT_SENT(pair, 0, 60000);
	EXPECT_EQ(own_error(setsockopt(pair[0], IPPROTO_IPV6, IPV6_ADDRFORM, &family,
				       sizeof(family))), 0);
	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_SENT(pair, 0, 60000);
	close(pair[0]);
	close(pair[1]);
	if (type == SOCK_STREAM)
		close(server);
}

TEST_F(module, stays_when_ipv6_becomes_ipv4)
{
	become_ipv4(_metadata, SOCK_STREAM);
	become_ipv4(_metadata, SOCK_DGRAM);
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
#define RACE_ROUNDS	3000

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
