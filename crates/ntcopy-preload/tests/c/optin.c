/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What opts in, and what the program finds of it: run under fake.c, which answers
 * for the kernel, and the library.
 *
 *   optin UNIX RECORDS TCP UDP   the option of each kind of socket
 */
#include <linux/netlink.h>

#include "check.h"
#include "fake.h"

static int sets(int fd)
{
	int value = 77;
	socklen_t size = sizeof(value);

	CHECK(!syscall(SYS_getsockopt, fd, SOL_SOCKET, FAKE_SETS, &value, &size));
	return value;
}

/* What getsockopt() answers the program. */
static int told(int fd)
{
	int value = 77;
	socklen_t size = sizeof(value);

	CHECK(!getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &size));
	CHECK(size == sizeof(value));
	return value;
}

static int set(int fd, int value)
{
	return setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, sizeof(value));
}

/* A new socket has its number at once, set once, and sends leave it as it is. */
static void has(int domain, int type, int protocol, int number)
{
	int fd, before, any = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(any >= 0);
	before = sets(any);
	errno = 55;
	fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	CHECK(fd >= 0 && errno == 55);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(option_of(fd) == number && told(fd) == number);
	CHECK(sets(any) == before + (number != 0));
	CHECK(write(fd, bytes, LARGE) != LARGE || domain == AF_NETLINK);
	CHECK(option_of(fd) == number);
	close(any);
	close(fd);
}

static void pair_has(int type, int number)
{
	int pair[2], before, any = socket(AF_UNIX, SOCK_STREAM, 0);

	before = sets(any);
	errno = 55;
	CHECK(!socketpair(AF_UNIX, type, 0, pair) && errno == 55);
	CHECK(option_of(pair[0]) == number && option_of(pair[1]) == number);
	CHECK(sets(any) == before + (number ? 2 : 0));
	close(any);
	close_pair(pair);
}

/* What the program sets stays, and it reads what there is. */
static void programs_own(void)
{
	static const int values[] = { 0, 8192, 0x7fffffff };

	for (int at = 0; at < 3; at++) {
		int pair[2];

		pair_of(AF_UNIX, SOCK_STREAM, pair);
		CHECK(!set(pair[0], values[at]));
		CHECK(write(pair[0], bytes, LARGE) == LARGE);
		drain(pair[1], LARGE);
		CHECK(told(pair[0]) == values[at]);
		/* One that is refused changes nothing. */
		CHECK(set(pair[0], 9) == -1 && errno == EINVAL);
		CHECK(told(pair[0]) == values[at]);
		close_pair(pair);
	}
}

/* What fails, fails as ever. */
static void failures(void)
{
	int pair[2];
	/* An address that the compiler would warn of, if it saw it. */
	int *volatile nowhere = (int *)8;

	CHECK(socket(AF_UNIX, 99, 0) == -1 && errno == EINVAL);
	CHECK(socket(-1, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
	CHECK(socketpair(AF_INET, SOCK_STREAM, 0, pair) == -1 && errno == EOPNOTSUPP);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, nowhere) == -1 && errno == EFAULT);
}

int main(int count, char **arguments)
{
	int numbers[4];

	CHECK(count == 5);
	for (int at = 0; at < 4; at++)
		numbers[at] = atoi(arguments[at + 1]);
	signal(SIGPIPE, SIG_IGN);
	has(AF_UNIX, SOCK_STREAM, 0, numbers[0]);
	has(AF_UNIX, SOCK_DGRAM, 0, numbers[1]);
	has(AF_UNIX, SOCK_SEQPACKET, 0, numbers[1]);
	has(AF_INET, SOCK_STREAM, 0, numbers[2]);
	has(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP, numbers[2]);
	has(AF_INET, SOCK_DGRAM, 0, numbers[3]);
	has(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0);
	pair_has(SOCK_STREAM, numbers[0]);
	pair_has(SOCK_DGRAM, numbers[1]);
	pair_has(SOCK_SEQPACKET, numbers[1]);
	programs_own();
	failures();
	return 0;
}
