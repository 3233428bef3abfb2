/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Every call on every kind of socket: what comes out of the library, and that
 * the bytes arrive. Run under it and the spy.
 */
#include "check.h"

extern ssize_t __write(int fd, const void *bytes, size_t size);
extern ssize_t __send(int fd, const void *bytes, size_t size, int flags);

static struct iovec slices[2] = {
	{ .iov_base = bytes, .iov_len = LARGE / 2 },
	{ .iov_base = bytes + LARGE / 2, .iov_len = LARGE / 2 },
};

/* What is large, on a socket that is hinted; flags that a write adds. */
static void hinted(int fd, int peer, size_t size, int of_write)
{
	/* One large piece is enough, wherever it is. */
	struct iovec two[2] = {
		{ .iov_base = bytes, .iov_len = SMALL },
		{ .iov_base = bytes + SMALL, .iov_len = size - SMALL },
	};
	struct msghdr message = { .msg_iov = two, .msg_iovlen = 2 };
	struct mmsghdr messages[2] = { { .msg_hdr = message }, { .msg_hdr = message } };
	ssize_t whole = (ssize_t)size;

	CHECK(write(fd, bytes, size) == whole);
	SEEN("send", MSG_NTCOPY | of_write);
	drain(peer, size);
	CHECK(__write(fd, bytes, size) == whole);
	SEEN("send", MSG_NTCOPY | of_write);
	drain(peer, size);
	CHECK(writev(fd, two, 2) == whole);
	SEEN("sendmsg", MSG_NTCOPY | of_write);
	drain(peer, size);
	CHECK(send(fd, bytes, size, MSG_NOSIGNAL) == whole);
	SEEN("send", MSG_NTCOPY | MSG_NOSIGNAL);
	drain(peer, size);
	CHECK(__send(fd, bytes, size, 0) == whole);
	SEEN("send", MSG_NTCOPY);
	drain(peer, size);
	CHECK(sendto(fd, bytes, size, MSG_DONTWAIT, NULL, 0) == whole);
	SEEN("sendto", MSG_NTCOPY | MSG_DONTWAIT);
	drain(peer, size);
	CHECK(sendmsg(fd, &message, 0) == whole);
	SEEN("sendmsg", MSG_NTCOPY);
	drain(peer, size);
	CHECK(sendmmsg(fd, messages, 1, 0) == 1 && messages[0].msg_len == size);
	SEEN("sendmmsg", MSG_NTCOPY);
	drain(peer, size);
	/* Twice the same flag is once. */
	CHECK(send(fd, bytes, size, MSG_NTCOPY) == whole);
	SEEN("send", MSG_NTCOPY);
	drain(peer, size);
}

/* Pieces that are all small are no large send, however many they are. */
static void gathered(int fd, int peer, int of_large)
{
	enum { COUNT = 2, PIECE = 2700, SUM = COUNT * PIECE };
	struct iovec large = { .iov_base = bytes + SUM, .iov_len = LARGE - SUM };
	struct iovec pieces[COUNT];
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = COUNT };
	struct mmsghdr messages[2] = {
		{ .msg_hdr = message },
		{ .msg_hdr = { .msg_iov = &large, .msg_iovlen = 1 } },
	};

	for (int at = 0; at < COUNT; at++)
		pieces[at] = (struct iovec){ .iov_base = bytes + at * PIECE, .iov_len = PIECE };
	CHECK(writev(fd, pieces, COUNT) == SUM);
	SEEN("writev", -1);
	drain(peer, SUM);
	CHECK(sendmsg(fd, &message, 0) == SUM);
	SEEN("sendmsg", 0);
	drain(peer, SUM);
	CHECK(sendmmsg(fd, messages, 1, 0) == 1);
	SEEN("sendmmsg", 0);
	drain(peer, SUM);
	/* One message with a large piece is enough among several. */
	CHECK(sendmmsg(fd, messages, 2, 0) == 2);
	SEEN("sendmmsg", of_large);
	drain(peer, LARGE);
}

/* What stays as it is. */
static void left_alone(int fd, int peer, size_t size)
{
	struct iovec one = { .iov_base = bytes, .iov_len = size };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };
	struct mmsghdr messages = { .msg_hdr = message };
	ssize_t whole = (ssize_t)size;

	CHECK(write(fd, bytes, size) == whole);
	SEEN("write", -1);
	drain(peer, size);
	CHECK(writev(fd, &one, 1) == whole);
	SEEN("writev", -1);
	drain(peer, size);
	CHECK(send(fd, bytes, size, MSG_NOSIGNAL) == whole);
	SEEN("send", MSG_NOSIGNAL);
	drain(peer, size);
	CHECK(sendto(fd, bytes, size, 0, NULL, 0) == whole);
	SEEN("sendto", 0);
	drain(peer, size);
	CHECK(sendmsg(fd, &message, 0) == whole);
	SEEN("sendmsg", 0);
	drain(peer, size);
	CHECK(sendmmsg(fd, &messages, 1, 0) == 1);
	SEEN("sendmmsg", 0);
	drain(peer, size);
}

static void files_and_pipes(void)
{
	char name[] = "/tmp/ntcopy-preload-XXXXXX";
	int ends[2];
	int file = mkstemp(name);

	CHECK(file >= 0 && !unlink(name));
	CHECK(write(file, bytes, LARGE) == LARGE);
	SEEN("write", -1);
	CHECK(writev(file, slices, 2) == LARGE);
	SEEN("writev", -1);
	CHECK(lseek(file, 0, SEEK_SET) == 0);
	drain(file, 2 * LARGE);
	CHECK(send(file, bytes, LARGE, 0) == -1 && errno == ENOTSOCK);
	SEEN("send", 0);
	close(file);

	CHECK(!pipe(ends));
	CHECK(write(ends[1], bytes, LARGE) == LARGE);
	SEEN("write", -1);
	drain(ends[0], LARGE);
	close(ends[0]);
	close(ends[1]);
}

int main(int count, char **arguments)
{
	const char *families = count > 1 ? arguments[1] : "unix,tcp";
	static const struct {
		int family, type, of_write;
		size_t size;
		const char *name;
	} kinds[] = {
		{ AF_UNIX, SOCK_STREAM, 0, LARGE, "unix" },
		{ AF_UNIX, SOCK_DGRAM, 0, 60000, "unix" },
		{ AF_UNIX, SOCK_SEQPACKET, MSG_EOR, 60000, "unix" },
		{ AF_INET, SOCK_STREAM, 0, LARGE, "tcp" },
		{ AF_INET, SOCK_DGRAM, 0, 60000, "udp" },
	};
	int pair[2];

	for (size_t at = 0; at < sizeof(kinds) / sizeof(kinds[0]); at++) {
		pair_of(kinds[at].family, kinds[at].type, pair);
		left_alone(pair[0], pair[1], SMALL);
		if (strstr(families, kinds[at].name)) {
			hinted(pair[0], pair[1], kinds[at].size, kinds[at].of_write);
			gathered(pair[0], pair[1], MSG_NTCOPY);
		} else {
			left_alone(pair[0], pair[1], kinds[at].size);
			gathered(pair[0], pair[1], 0);
		}
		left_alone(pair[0], pair[1], SMALL);
		close_pair(pair);
	}
	files_and_pipes();
	return 0;
}
