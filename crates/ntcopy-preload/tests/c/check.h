/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CHECK_H
#define CHECK_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ntcopy/uapi.h>

#define LARGE 65536
#define SMALL 100

/* From how many bytes on the library has sends hinted where nothing is said. */
#define OF_STREAMS 262144
#define OF_DATAGRAMS 4096

#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			fprintf(stderr, "%s:%d: not so: %s (errno %d)\n",	\
				__FILE__, __LINE__, #condition, errno);	\
			exit(1);					\
		}							\
	} while (0)

/* The option of a socket, past the library; -1 where this kernel has none. */
static inline int option_of(int fd)
{
	int value = 77;
	socklen_t size = sizeof(value);

	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_NTCOPY, &value, &size))
		return -1;
	CHECK(size == sizeof(value));
	return value;
}

static char bytes[LARGE];

/* A pair of connected sockets: [0] is sent into, [1] reads. */
static inline void pair_of(int family, int type, int pair[2])
{
	struct sockaddr_storage there;
	socklen_t size = sizeof(there);
	int room = 1 << 20;
	int listener;

	if (family == AF_UNIX) {
		CHECK(!socketpair(AF_UNIX, type, 0, pair));
	} else {
		struct sockaddr_in here = { .sin_family = AF_INET };

		CHECK(family == AF_INET);
		here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		listener = socket(AF_INET, type, 0);
		CHECK(listener >= 0);
		CHECK(!bind(listener, (void *)&here, sizeof(here)));
		CHECK(type == SOCK_DGRAM || !listen(listener, 1));
		CHECK(!getsockname(listener, (void *)&there, &size));
		pair[0] = socket(AF_INET, type, 0);
		CHECK(!connect(pair[0], (void *)&there, size));
		pair[1] = listener;
		if (type != SOCK_DGRAM) {
			pair[1] = accept(listener, NULL, NULL);
			CHECK(pair[1] >= 0);
			close(listener);
		}
	}
	CHECK(!setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
	CHECK(!setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)));
}

/* Takes this number of bytes out, and holds them against what was sent. */
static inline void drain(int fd, size_t size)
{
	static char got[4 * LARGE];
	size_t done = 0;

	while (done < size) {
		ssize_t more = read(fd, got + done, sizeof(got) - done);

		CHECK(more > 0);
		done += (size_t)more;
	}
	CHECK(done == size);
	for (size_t at = 0; at < size; at++)
		CHECK(got[at] == bytes[at % LARGE]);
}

static inline void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

__attribute__((constructor)) static void fill_bytes(void)
{
	for (size_t at = 0; at < LARGE; at++)
		bytes[at] = (char)(at * 7 + at / 251);
}

#endif
