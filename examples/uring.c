/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends with the hint through io_uring, and prints what the kernel counted: the
 * flag goes into the send's flags, the socket opts in as ever. On a kernel
 * without MSG_NTCOPY the same sends are plain.
 *
 *	cc -I../uapi uring.c -luring -o uring && ./uring
 *
 * Exit code 3: this system does not allow io_uring.
 */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "counters.h"
#include <ntcopy/uapi.h>

enum { PIECE = 64 << 10, PIECES = 256 };

static void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(1);
}

/* Has the ring send, waits for it, and gives how many bytes were sent. */
static size_t send_hinted(struct io_uring *ring, int fd, const char *bytes, size_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int result;

	io_uring_prep_send(sqe, fd, bytes, len, MSG_NTCOPY);
	result = io_uring_submit(ring);
	if (result < 0)
		die("io_uring_submit", -result);
	result = io_uring_wait_cqe(ring, &cqe);
	if (result < 0)
		die("io_uring_wait_cqe", -result);
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	if (result < 0)
		die("send", -result);
	return (size_t)result;
}

int main(void)
{
	static char source[PIECE], read_back[PIECE];
	int pair[2], sends = NTCOPY_FLAGGED, error;
	struct counters before, after;
	struct io_uring ring;
	size_t total = 0;

	error = -io_uring_queue_init(8, &ring, 0);
	if (error == ENOSYS || error == EPERM) {
		fprintf(stderr, "io_uring is not available here: %s\n", strerror(error));
		return 3;
	}
	if (error != 0)
		die("io_uring_queue_init", error);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		die("socketpair", errno);
	if (setsockopt(pair[0], SOL_SOCKET, SO_NTCOPY, &sends, sizeof(sends)) == 0)
		puts("the kernel takes the hint");
	else if (errno == ENOPROTOOPT)
		puts("this kernel has no SO_NTCOPY: plain sends");
	else
		die("SO_NTCOPY", errno);

	before = read_counters();
	for (int piece = 0; piece < PIECES; piece++) {
		memset(source, piece, sizeof(source));
		for (size_t done = 0; done < PIECE;) {
			size_t sent = send_hinted(&ring, pair[0], source + done, PIECE - done);

			if (recv(pair[1], read_back, sent, MSG_WAITALL) != (ssize_t)sent)
				die("recv", errno);
			if (memcmp(read_back, source + done, sent) != 0) {
				fputs("a byte is wrong\n", stderr);
				return 4;
			}
			done += sent;
			total += sent;
		}
	}
	after = read_counters();

	printf("sent %zu bytes\n", total);
	print_added(&before, &after);
	io_uring_queue_exit(&ring);
	return 0;
}
