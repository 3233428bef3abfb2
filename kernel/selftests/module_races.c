// SPDX-License-Identifier: GPL-2.0
/* Attached sockets, and threads that do everything to them at once. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "module.h"
#include "module_replace.h"

#define RACE_ROUNDS	3000
#define REPLACE_ROUNDS	200

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

static void become_one_of_ipv4(int fd)
{
	become_ipv4(fd);
}

static void attach_and_detach(int fd)
{
	attach(fd, NTCOPY_SOCK_EVERY);
	detach(fd);
	attach(fd, NTCOPY_SOCK_OBEY);
}

/* Attached or not, before it or after it: the fixture says what is left. */
TEST_F_TIMEOUT(module, survives_who_attaches_what_becomes_ipv4, TIMEOUT_SECONDS)
{
	static void (* const others[])(int) = { attach_and_detach, become_one_of_ipv4 };
	int i, mode, pair[2] = { -1, -1 };

	for (i = 0; i < REPLACE_ROUNDS; i++) {
		ASSERT_EQ(open_mapped(pair), 0);
		if (i % 2)
			ASSERT_EQ(attach(pair[0], NTCOPY_SOCK_OBEY), 0);
		at_once(_metadata, pair[0], become_one_of_ipv4, others[i / 2 % 2]);
		mode = mode_of(pair[0]);
		EXPECT_TRUE(mode == NTCOPY_SOCK_OBEY || mode == -1);
		EXPECT_EQ(sent(pair, 0), 60000);
		EXPECT_EQ(become_ipv4(pair[0]), -ENOPROTOOPT);
		close(pair[0]);
		close(pair[1]);
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
	int i;

	(void)arg;
	for (i = 0; i < RACE_ROUNDS; i++) {
		int *slot = &slots[i % SLOTS], fd, pair[2];

		close(__atomic_load_n(slot, __ATOMIC_RELAXED));
		if (i % 3 == 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
			close(pair[1]);
			fd = pair[0];
		} else if (i % 3 == 1 && !open_mapped(pair)) {
			close(pair[1]);
			fd = pair[0];
		} else {
			fd = socket(domains[i % 4], i % 5 ? SOCK_DGRAM : SOCK_STREAM, 0);
		}
		attach(fd, i % 3);
		become_ipv4(fd);
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
