/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends with the hint from C, and prints what the kernel counted. On a kernel
 * without MSG_NTCOPY the same sends are plain.
 *
 *	cc -I../uapi send.c -o send && ./send
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "counters.h"
#include <ntcopy/uapi.h>

enum { PIECE = 64 << 10, PIECES = 256 };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(void)
{
	static char source[PIECE], read_back[PIECE];
	struct counters before, after;
	int pair[2], sends = NTCOPY_FLAGGED;
	size_t total = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		die("socketpair");
	/* The socket opts in once; this is the probe as well. */
	if (setsockopt(pair[0], SOL_SOCKET, SO_NTCOPY, &sends, sizeof(sends)) == 0)
		puts("the kernel takes the hint");
	else if (errno == ENOPROTOOPT)
		puts("this kernel has no SO_NTCOPY: plain sends");
	else
		die("SO_NTCOPY");

	before = read_counters();
	for (int piece = 0; piece < PIECES; piece++) {
		memset(source, piece, sizeof(source));
		for (size_t done = 0; done < PIECE;) {
			ssize_t sent = send(pair[0], source + done, PIECE - done, MSG_NTCOPY);

			if (sent < 0)
				die("send");
			if (recv(pair[1], read_back, (size_t)sent, MSG_WAITALL) != sent)
				die("recv");
			if (memcmp(read_back, source + done, (size_t)sent) != 0) {
				fputs("a byte is wrong\n", stderr);
				return 4;
			}
			done += (size_t)sent;
			total += (size_t)sent;
		}
	}
	after = read_counters();

	printf("sent %zu bytes\n", total);
	print_added(&before, &after);
	return 0;
}
