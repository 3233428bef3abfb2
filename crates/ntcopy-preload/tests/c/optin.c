/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * How sockets opt in, and what the program finds of it: run under fake.c, which
 * answers for the kernel, the library and the spy.
 */
#include "check.h"
#include "fake.h"

/* Past the library, as the kernel has it. */
static int kernel_says(int fd, int option)
{
	int value = 77;
	socklen_t size = sizeof(value);

	CHECK(!syscall(SYS_getsockopt, fd, SOL_SOCKET, option, &value, &size));
	CHECK(size == sizeof(value));
	return value;
}

/* What getsockopt() answers the program. */
static int told(int fd)
{
	int value = 77;
	socklen_t size = sizeof(value);

	errno = 55;
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &size));
	CHECK(size == sizeof(value) && errno == 55);
	return value;
}

static int set(int fd, int value)
{
	return setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, sizeof(value));
}

static void wrote(int fd, int peer, size_t size, const char *call, int flags)
{
	CHECK(write(fd, bytes, size) == (ssize_t)size);
	SEEN(call, flags);
	drain(peer, size);
}

static void plain(int fd, int peer)
{
	wrote(fd, peer, LARGE, "write", -1);
}

static void flagged(int fd, int peer)
{
	wrote(fd, peer, LARGE, "send", MSG_NTCOPY);
}

/* A socket opts in once, at its first large send. */
static void once(int mode, void (*wrote_large)(int fd, int peer))
{
	unsigned char some[4] = { 9, 9, 9, 9 };
	socklen_t size = 2;
	int pair[2], again, before, status;
	pid_t child;

	pair_of(AF_UNIX, SOCK_STREAM, pair);
	before = kernel_says(pair[0], FAKE_SETS);
	wrote(pair[0], pair[1], SMALL, "write", -1);
	CHECK(kernel_says(pair[0], SO_NTCOPY) == NTCOPY_SOCK_NONE);
	/* Often enough for the library to ask again. */
	for (int at = 0; at < 300; at++)
		wrote_large(pair[0], pair[1]);
	CHECK(kernel_says(pair[0], SO_NTCOPY) == mode);
	CHECK(kernel_says(pair[1], SO_NTCOPY) == NTCOPY_SOCK_NONE);
	CHECK(told(pair[0]) == NTCOPY_SOCK_NONE);
	CHECK(!getsockopt(pair[0], SOL_SOCKET, SO_NTCOPY, some, &size));
	CHECK(size == 2 && !some[0] && !some[1] && some[2] == 9);
	/* By another number, and in another process. */
	again = dup(pair[0]);
	wrote_large(again, pair[1]);
	CHECK(told(again) == NTCOPY_SOCK_NONE);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(told(pair[0]) == NTCOPY_SOCK_NONE);
		wrote_large(pair[0], pair[1]);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(kernel_says(pair[0], FAKE_SETS) == before + 1);
	close(again);
	close_pair(pair);
}

/* What the program sets stays, before and after the library has opted it in. */
static void programs_own(int mode, void (*wrote_large)(int fd, int peer))
{
	for (int value = NTCOPY_SOCK_NONE; value <= NTCOPY_SOCK_OBEY; value++) {
		for (int is_late = 0; is_late < 2; is_late++) {
			int pair[2], sets;

			pair_of(AF_UNIX, SOCK_STREAM, pair);
			if (is_late) {
				wrote_large(pair[0], pair[1]);
				CHECK(kernel_says(pair[0], SO_NTCOPY) == mode);
				/* One that is refused changes nothing. */
				CHECK(set(pair[0], 9) == -1 && errno == EINVAL);
				CHECK(told(pair[0]) == NTCOPY_SOCK_NONE);
				wrote_large(pair[0], pair[1]);
			}
			CHECK(!set(pair[0], value));
			sets = kernel_says(pair[0], FAKE_SETS);
			CHECK(told(pair[0]) == value);
			for (int at = 0; at < 300; at++)
				plain(pair[0], pair[1]);
			CHECK(send(pair[0], bytes, LARGE, MSG_NTCOPY) == LARGE);
			SEEN("send", MSG_NTCOPY);
			drain(pair[1], LARGE);
			CHECK(told(pair[0]) == value);
			CHECK(kernel_says(pair[0], SO_NTCOPY) == value);
			CHECK(kernel_says(pair[0], FAKE_SETS) == sets);
			close_pair(pair);
		}
	}
}

/* A setting that the library did not see being made: of a listener, of another process. */
static void found(void)
{
	for (int value = NTCOPY_SOCK_FLAGGED; value <= NTCOPY_SOCK_OBEY; value++) {
		int pair[2];

		pair_of(AF_UNIX, SOCK_STREAM, pair);
		CHECK(!syscall(SYS_setsockopt, pair[0], SOL_SOCKET, SO_NTCOPY, &value,
			       sizeof(value)));
		if (value == NTCOPY_SOCK_FLAGGED)
			flagged(pair[0], pair[1]);
		else
			plain(pair[0], pair[1]);
		CHECK(told(pair[0]) == value);
		CHECK(kernel_says(pair[0], SO_NTCOPY) == value);
		close_pair(pair);
	}
}

/* Other options, and other numbers, are answered as ever. */
static void others(void)
{
	int value = 0, room = 50000, pair[2];
	socklen_t size = sizeof(value);

	pair_of(AF_UNIX, SOCK_STREAM, pair);
	CHECK(!setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)));
	CHECK(!getsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &value, &size) && value == 2 * room);
	CHECK(getsockopt(-1, SOL_SOCKET, SO_NTCOPY, &value, &size) == -1 && errno == EBADF);
	CHECK(set(-1, NTCOPY_SOCK_EVERY) == -1 && errno == EBADF);
	close_pair(pair);
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";

	others();
	if (!strcmp(what, "adaptive")) {
		once(NTCOPY_SOCK_FLAGGED, flagged);
		programs_own(NTCOPY_SOCK_FLAGGED, flagged);
		found();
	} else if (!strcmp(what, "nt")) {
		once(NTCOPY_SOCK_OBEY, plain);
		programs_own(NTCOPY_SOCK_OBEY, plain);
		found();
	} else if (!strcmp(what, "picky")) {
		int pair[2];

		pair_of(AF_UNIX, SOCK_STREAM, pair);
		errno = 55;
		for (int at = 0; at < 3; at++) {
			plain(pair[0], pair[1]);
			CHECK(errno == 55);
		}
		CHECK(kernel_says(pair[0], SO_NTCOPY) == NTCOPY_SOCK_FLAGGED);
		CHECK(send(pair[0], bytes, LARGE, MSG_NTCOPY) == -1 && errno == EOPNOTSUPP);
		close_pair(pair);
	} else if (!strcmp(what, "refused")) {
		int pair[2];

		pair_of(AF_UNIX, SOCK_STREAM, pair);
		for (int at = 0; at < 300; at++)
			plain(pair[0], pair[1]);
		CHECK(kernel_says(pair[0], SO_NTCOPY) == NTCOPY_SOCK_NONE);
		CHECK(told(pair[0]) == NTCOPY_SOCK_NONE);
		CHECK(set(pair[0], NTCOPY_SOCK_EVERY) == -1 && errno == EINVAL);
		close_pair(pair);
	} else {
		fprintf(stderr, "optin: what is '%s'?\n", what);
		return 2;
	}
	return 0;
}
