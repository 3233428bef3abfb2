/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A message whose header is read by the receiver and whose body is only passed
 * on: the hint is for the body. The socket opts in once, before the first of them.
 *
 *	cc send.c $(pkg-config --cflags --libs ntcopy) -o send
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ntcopy.h>

static char body[32 << 10];

static int send_all(int fd, const char *bytes, size_t len, unsigned int hints, int support)
{
	while (len > 0) {
		ssize_t sent = ntcopy_send(fd, bytes, len, MSG_NOSIGNAL, hints, support);

		if (sent < 0)
			return (int)sent;
		bytes += sent;
		len -= (size_t)sent;
	}
	return 0;
}

int main(void)
{
	static const char header[] = "32768 bytes follow\n";
	int pair[2], support, error;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
		perror("send");
		return 1;
	}
	support = ntcopy_socket_enable(pair[0], NTCOPY_FLAGGED);
	error = support < 0 ? support : 0;
	if (error == 0)
		error = send_all(pair[0], header, sizeof(header) - 1, NTCOPY_TEMPORAL, support);
	if (error == 0)
		error = send_all(pair[0], body, sizeof(body), NTCOPY_DST_NONTEMPORAL, support);
	if (error != 0) {
		fprintf(stderr, "send: %s\n", strerror(-error));
		return 1;
	}
	puts(support == NTCOPY_SUPPORT_NONE ? "this kernel does not take the hint: a plain send"
					    : "the kernel was given the hint");
	close(pair[0]);
	close(pair[1]);
	return 0;
}
