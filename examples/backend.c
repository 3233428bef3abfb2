/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A backend for a proxy: answers GET /N with piece N of a file, which it has in memory, hinted.
 *
 *	cc -I../uapi backend.c -o backend -pthread && ./backend /run/backend.sock FILE 1048576
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <ntcopy/uapi.h>

static const char *data;
static size_t pieces, length;
static int file, sends = 256 << 10, buffer;
static bool by_reference;

static bool send_all(int fd, const char *from, size_t left, int flags)
{
	for (ssize_t sent; left > 0; from += sent, left -= (size_t)sent)
		if ((sent = send(fd, from, left, flags)) < 0)
			return false;
	return true;
}

/* Copies nothing: faster than any copy, where the bytes are a file's and stay as they are. */
static bool send_pages(int fd, off_t from)
{
	for (off_t end = from + (off_t)length; from < end;)
		if (sendfile(fd, file, &from, (size_t)(end - from)) <= 0)
			return false;
	return true;
}

/* The kernel cuts what is asked for to net.core.wmem_max, without a word. It shows it doubled. */
static bool set_buffer(int fd)
{
	socklen_t size = sizeof(int);
	int got = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, size))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, size);
	return !getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &got, &size) && got / 2 >= buffer;
}

static void *serve(void *number)
{
	int fd = (int)(intptr_t)number;
	char request[8192], head[80];
	size_t from, got = 0;
	int size = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);

	/* The one line that hints. Without the patches it changes nothing. */
	setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &sends, sizeof(sends));
	if (buffer)
		set_buffer(fd);
	for (ssize_t more; (more = read(fd, request + got, sizeof(request) - 1 - got)) > 0;) {
		request[got += (size_t)more] = '\0';
		if (!strstr(request, "\r\n\r\n"))
			continue;
		from = strtoul(request + strcspn(request, "0123456789"), NULL, 10) % pieces * length;
		if (!send_all(fd, head, (size_t)size, MSG_MORE) ||
		    !(by_reference ? send_pages(fd, (off_t)from) : send_all(fd, data + from, length, 0)))
			break;
		got = 0;
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct stat all;
	pthread_t thread;

	length = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	if (!length || strlen(argv[1]) >= sizeof(to.sun_path))
		return fputs("usage: backend PATH FILE BYTES [0|FROM_BYTES|sendfile [SO_SNDBUF]]\n", stderr), 2;
	by_reference = argc > 4 && !strcmp(argv[4], "sendfile");
	sends = argc > 4 ? atoi(argv[4]) : sends;
	buffer = argc > 5 ? atoi(argv[5]) : 0;
	if (buffer && !set_buffer(listener))
		return fputs("backend: net.core.wmem_max allows no such SO_SNDBUF\n", stderr), 1;
	file = open(argv[2], O_RDONLY);
	pieces = fstat(file, &all) ? 0 : (size_t)all.st_size / length;
	data = mmap(NULL, pieces * length, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
	if (data == MAP_FAILED)
		return perror(argv[2]), 1;
	signal(SIGPIPE, SIG_IGN);
	strcpy(to.sun_path, argv[1]);
	unlink(argv[1]);
	if (bind(listener, (void *)&to, sizeof(to)) || listen(listener, 1024))
		return perror(argv[1]), 1;
	for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;)
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	return 1;
}
