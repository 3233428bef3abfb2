/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Prints what every call says to what is wrong, and what it takes where there
 * is not enough room: the same with and without the library.
 */
#include "check.h"

/* Addresses and numbers that the compiler would warn of, if it saw them. */
static void *at(uintptr_t address)
{
	void *volatile hidden = (void *)address;

	return hidden;
}

static size_t number(size_t value)
{
	volatile size_t hidden = value;

	return hidden;
}

static void said(const char *what, long result)
{
	printf("%s: %ld %d\n", what, result, result < 0 ? errno : 0);
	errno = 0;
}

#define SAY(call) said(#call, (long)(call))

static volatile sig_atomic_t pipes_broken;

static void on_broken_pipe(int signal)
{
	(void)signal;
	pipes_broken++;
}

static void on(const char *name, int fd)
{
	struct iovec one = { .iov_base = bytes, .iov_len = LARGE };
	struct iovec negative[2] = { one, { .iov_base = bytes, .iov_len = (size_t)-1 } };
	struct iovec lost = { .iov_base = (void *)8, .iov_len = LARGE };
	static struct iovec many[1025];
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };
	struct msghdr too_many = { .msg_iov = many, .msg_iovlen = 1025 };
	struct msghdr lost_message = { .msg_iov = (void *)8, .msg_iovlen = 2 };
	struct mmsghdr messages = { .msg_hdr = message };
	void *shut = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec *torn = (void *)(edge + 4096 - sizeof(one));

	CHECK(shut != MAP_FAILED && edge != MAP_FAILED);
	CHECK(!munmap(edge + 4096, 4096));
	*torn = (struct iovec){ .iov_base = bytes, .iov_len = SMALL };
	for (int at = 0; at < 1025; at++)
		many[at] = (struct iovec){ .iov_base = bytes, .iov_len = 64 };

	printf("on %s\n", name);
	SAY(write(fd, at(0), 0));
	SAY(write(fd, at(8), LARGE));
	SAY(write(fd, shut, 4096));
	SAY(write(fd, bytes, number(-1UL)));
	SAY(write(fd, bytes, number(1UL << 63)));
	SAY(write(fd, at(-4096UL), LARGE));
	SAY(writev(fd, &one, 0));
	SAY(writev(fd, &one, (int)number(-1UL)));
	SAY(writev(fd, at(0), 1));
	SAY(writev(fd, at(8), 2));
	SAY(writev(fd, shut, 1));
	SAY(writev(fd, at(-16UL), 2));
	SAY(writev(fd, torn, 2));
	SAY(writev(fd, negative, 2));
	SAY(writev(fd, &lost, 1));
	SAY(writev(fd, many, 1025));
	SAY(send(fd, at(8), LARGE, MSG_NOSIGNAL));
	SAY(send(fd, bytes, LARGE, MSG_OOB | MSG_NOSIGNAL) < 0);
	SAY(sendto(fd, at(8), LARGE, MSG_NOSIGNAL, at(0), 0));
	SAY(sendto(fd, bytes, LARGE, MSG_NOSIGNAL, at(8), 16));
	SAY(sendmsg(fd, at(0), MSG_NOSIGNAL));
	SAY(sendmsg(fd, shut, MSG_NOSIGNAL));
	SAY(sendmsg(fd, &too_many, MSG_NOSIGNAL));
	SAY(sendmsg(fd, &lost_message, MSG_NOSIGNAL));
	SAY(sendmmsg(fd, at(0), 1, MSG_NOSIGNAL));
	SAY(sendmmsg(fd, shut, 2, MSG_NOSIGNAL));
	SAY(sendmmsg(fd, &messages, 0, MSG_NOSIGNAL));
}

/* Structures on a page that was there a moment ago. */
static void on_a_page_that_goes(const char *name, int fd)
{
	struct iovec one = { .iov_base = bytes, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mmsghdr *messages = (void *)(page + 1024);
	struct msghdr *header = (void *)(page + 512);
	struct iovec *vector = (void *)page;
	struct msghdr half = { .msg_iov = (void *)(page + 4096 - sizeof(one)), .msg_iovlen = 2 };

	CHECK(page != MAP_FAILED);
	printf("a page that goes, on %s\n", name);
	for (int there = 2; there >= 0; there--) {
		if (there == 2) {
			*vector = one;
			*header = message;
			messages->msg_hdr = message;
			half.msg_iov[0] = half.msg_iov[1] = one;
		}
		SAY(writev(fd, vector, 1));
		SAY(sendmsg(fd, header, MSG_NOSIGNAL));
		SAY(sendmmsg(fd, messages, 1, MSG_NOSIGNAL));
		SAY(sendmsg(fd, &half, MSG_NOSIGNAL));
		message.msg_iov = vector;
		SAY(sendmsg(fd, &message, MSG_NOSIGNAL));
		if (there == 2)
			CHECK(!munmap(page + 4096, 4096));
		else if (there == 1)
			CHECK(!munmap(page, 4096));
	}
}

/* Another thread takes the page away, and puts it back, all the time. */
static struct {
	char *page;
	volatile int is_over;
} coming;

static void *comes_and_goes(void *unused)
{
	(void)unused;
	while (!coming.is_over) {
		CHECK(!mprotect(coming.page, 4096, PROT_NONE));
		CHECK(!mprotect(coming.page, 4096, PROT_READ | PROT_WRITE));
	}
	return NULL;
}

static void on_a_page_that_comes_and_goes(void)
{
	struct iovec one = { .iov_base = bytes, .iov_len = 1 };
	pthread_t thread;
	int pair[2], *there;
	char got[16];

	coming.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(coming.page != MAP_FAILED);
	*(struct iovec *)coming.page = one;
	*(struct msghdr *)(coming.page + 512) =
		(struct msghdr){ .msg_iov = (void *)coming.page, .msg_iovlen = 1 };
	there = (int *)(coming.page + 1024);
	pair_of(AF_UNIX, SOCK_DGRAM, pair);
	CHECK(!pthread_create(&thread, NULL, comes_and_goes, NULL));
	for (int time = 0; time < 20000; time++) {
		if (sendmsg(pair[0], (void *)(coming.page + 512), 0) < 0)
			CHECK(errno == EFAULT);
		else
			CHECK(read(pair[1], got, sizeof(got)) == 1);
		if (writev(pair[0], (void *)coming.page, 1) < 0)
			CHECK(errno == EFAULT);
		else
			CHECK(read(pair[1], got, sizeof(got)) == 1);
		/* The numbers may be out of reach just then. */
		if (time % 8 == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, there) == 0)
			syscall(SYS_close_range, pair[1] + 1, ~0U, 0);
	}
	coming.is_over = 1;
	CHECK(!pthread_join(thread, NULL));
	close_pair(pair);
}

/* A peer that reads nothing: how much is taken until it would block. */
static void without_room(const char *name, int family)
{
	struct iovec one = { .iov_base = bytes, .iov_len = LARGE };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };
	int pair[2];
	long taken = 0;
	ssize_t more;

	pair_of(family, SOCK_STREAM, pair);
	CHECK(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
	while ((more = write(pair[0], bytes, LARGE)) > 0)
		taken += more;
	/* What TCP takes depends on who was faster. */
	printf("%s without room: %d %ld\n", name, errno, family == AF_UNIX ? taken : 0);
	SAY(writev(pair[0], &one, 1));
	SAY(send(pair[0], bytes, LARGE, 0));
	SAY(sendmsg(pair[0], &message, 0));
	close_pair(pair);
}

/* A peer that has gone. */
static void without_peer(const char *name, int family)
{
	struct iovec one = { .iov_base = bytes, .iov_len = LARGE };
	int pair[2];

	pair_of(family, SOCK_STREAM, pair);
	CHECK(!shutdown(pair[0], SHUT_WR));
	pipes_broken = 0;
	printf("%s without peer\n", name);
	SAY(write(pair[0], bytes, LARGE));
	SAY(writev(pair[0], &one, 1));
	SAY(send(pair[0], bytes, LARGE, 0));
	SAY(send(pair[0], bytes, LARGE, MSG_NOSIGNAL));
	printf("SIGPIPE: %d\n", (int)pipes_broken);
	close_pair(pair);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_broken_pipe };
	int pair[2], lonely;

	sigaction(SIGPIPE, &action, NULL);
	on("nothing", -1);
	on("a closed descriptor", 987);
	on("a number that no table holds", 1 << 20);
	on("/dev/null", open("/dev/null", O_WRONLY));
	on("/dev/null, read only", open("/dev/null", O_RDONLY));
	on("O_PATH", open("/dev/null", O_PATH));
	pair_of(AF_UNIX, SOCK_STREAM, pair);
	CHECK(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
	on("a unix socket", pair[0]);
	pair_of(AF_UNIX, SOCK_SEQPACKET, pair);
	CHECK(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
	on("a unix socket of records", pair[0]);
	lonely = socket(AF_UNIX, SOCK_STREAM, 0);
	on("a unix socket alone", lonely);
	lonely = socket(AF_UNIX, SOCK_DGRAM, 0);
	on("a unix datagram socket alone", lonely);
	lonely = socket(AF_INET, SOCK_STREAM, 0);
	on("a TCP socket alone", lonely);
	lonely = socket(AF_INET, SOCK_DGRAM, 0);
	on("a UDP socket alone", lonely);
	pair_of(AF_UNIX, SOCK_DGRAM, pair);
	on_a_page_that_goes("a unix datagram socket", pair[0]);
	pair_of(AF_INET, SOCK_STREAM, pair);
	on_a_page_that_goes("a TCP socket", pair[0]);
	on_a_page_that_goes("/dev/null", open("/dev/null", O_WRONLY));
	on_a_page_that_comes_and_goes();
	without_room("unix", AF_UNIX);
	without_room("tcp", AF_INET);
	without_peer("unix", AF_UNIX);
	without_peer("tcp", AF_INET);
	return 0;
}
