/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A backend for a proxy: answers every request with bytes from memory, hinted.
 *
 *	cc -I../uapi backend.c -o backend -pthread && ./backend /run/backend.sock 1048576
 */
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ntcopy.h"

enum { DATA = 256 << 20 };
static char *data;
static size_t length;

static int send_all(int fd, const char *from, size_t left, int flags)
{
	for (ssize_t sent; left > 0; from += sent, left -= (size_t)sent)
		if ((sent = send(fd, from, left, flags | MSG_NOSIGNAL)) < 0)
			return 0;
	return 1;
}

static void *serve(void *number)
{
	int fd = (int)(intptr_t)number, every = NTCOPY_SOCK_EVERY;
	char request[8192], head[80];
	size_t at = (size_t)fd * length % (DATA - length), got = 0;
	int size = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);

	/* The one line that hints. Without the patches or the module it changes nothing. */
	setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &every, sizeof(every));
	for (ssize_t more; (more = read(fd, request + got, sizeof(request) - 1 - got)) > 0;) {
		request[got += (size_t)more] = '\0';
		if (!strstr(request, "\r\n\r\n"))
			continue;
		if (!send_all(fd, head, (size_t)size, MSG_MORE) || !send_all(fd, data + at, length, 0))
			break;
		at = (at + length) % (DATA - length);
		got = 0;
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_t thread;

	length = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	data = malloc(DATA);
	if (!length || length >= DATA || !data || strlen(argv[1]) >= sizeof(to.sun_path))
		return fputs("usage: backend PATH BYTES\n", stderr), 2;
	memset(data, 7, DATA);
	strcpy(to.sun_path, argv[1]);
	unlink(argv[1]);
	if (bind(listener, (void *)&to, sizeof(to)) || listen(listener, 1024))
		return perror(argv[1]), 1;
	for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;)
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	return 1;
}
