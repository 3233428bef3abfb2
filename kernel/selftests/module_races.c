// SPDX-License-Identifier: GPL-2.0
/* Attached sockets, and threads that do everything to them at once. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "module.h"

#define RACE_ROUNDS	3000

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
			attach(fd, some_number(i));
		attach(listener, some_number(i));
		number_of(fd);
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
		} else {
			fd = socket(domains[i % 4], i % 5 ? SOCK_DGRAM : SOCK_STREAM, 0);
		}
		attach(fd, some_number(i));
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
