/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Numbers of descriptors that get another meaning, by every way in which they
 * can, and between any two kinds: the library is never wrong about one where it
 * could see it, and never wrong in its bytes where it could not.
 */
#include <sys/resource.h>

#include "check.h"

/* How often the library believes what it found. */
#define BELIEVED 128

enum kind { UNIX_STREAM, UNIX_RECORDS, UDP, A_PIPE, A_FILE, KINDS };

/* Opens one, at a number of its own; its peer, to be read from. */
static int open_kind(enum kind kind, int *peer)
{
	int ends[2];
	char name[] = "/tmp/ntcopy-preload-XXXXXX";

	switch (kind) {
	case UNIX_STREAM:
		pair_of(AF_UNIX, SOCK_STREAM, ends);
		break;
	case UNIX_RECORDS:
		pair_of(AF_UNIX, SOCK_SEQPACKET, ends);
		break;
	case UDP:
		pair_of(AF_INET, SOCK_DGRAM, ends);
		break;
	case A_PIPE:
		CHECK(!pipe(ends));
		*peer = ends[0];
		return ends[1];
	default:
		ends[0] = mkstemp(name);
		CHECK(ends[0] >= 0);
		ends[1] = open(name, O_RDONLY);
		CHECK(!unlink(name));
		break;
	}
	*peer = ends[1];
	return ends[0];
}

#define SIZE 60000

static void expect(enum kind kind)
{
	switch (kind) {
	case UNIX_STREAM:
		SEEN("send", MSG_NTCOPY);
		break;
	case UNIX_RECORDS:
		SEEN("send", MSG_NTCOPY | MSG_EOR);
		break;
	default:
		SEEN("write", -1);
	}
}

/* Sends through a number, and sees that it was taken for what it is. */
static void use(int fd, int peer, enum kind kind)
{
	CHECK(write(fd, bytes, SIZE) == SIZE);
	drain(peer, SIZE);
	expect(kind);
}

enum way { CLOSE, DUP2, DUP3, CLOSE_RANGE, CLOSEFROM, WAYS };

/* Frees a number, and opens another kind at it. */
static void swap(int fd, enum way way, enum kind kind, int *peer)
{
	int other;

	if (way == CLOSE || way == CLOSE_RANGE || way == CLOSEFROM) {
		if (way == CLOSE)
			CHECK(!close(fd));
		else if (way == CLOSE_RANGE)
			CHECK(!close_range((unsigned int)fd, (unsigned int)fd, 0));
		else
			closefrom(fd);
		other = open_kind(kind, peer);
		if (other != fd) {
			/* By a call that the library does not see. */
			CHECK(fcntl(other, F_DUPFD, fd) == fd);
			close(other);
		}
		return;
	}
	other = open_kind(kind, peer);
	CHECK((way == DUP2 ? dup2(other, fd) : dup3(other, fd, O_CLOEXEC)) == fd);
	close(other);
}

static void seen_ways(void)
{
	/* Above all others, for closefrom. */
	const int fd = 200;

	for (enum way way = 0; way < WAYS; way++) {
		for (enum kind from = 0; from < KINDS; from++) {
			for (enum kind to = 0; to < KINDS; to++) {
				int first_peer, peer, first = open_kind(from, &first_peer);

				CHECK(dup2(first, fd) == fd);
				use(fd, first_peer, from);
				swap(fd, way, to, &peer);
				use(fd, peer, to);
				close(fd);
				close(first);
				close(first_peer);
				close(peer);
			}
		}
	}
}

/* Closed behind the library's back, and born where it can see it. */
static void seen_births(void)
{
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), ends[2], fd, peer;
	struct sockaddr_un here = { .sun_family = AF_UNIX, .sun_path = "\0ntcopy-reuse" };
	socklen_t size = sizeof(here.sun_family) + 20;

	snprintf(here.sun_path + 1, 18, "ntcopy-%d", (int)getpid());
	CHECK(!bind(listener, (void *)&here, size) && !listen(listener, 4));
	for (int way = 0; way < 3; way++) {
		fd = open_kind(A_PIPE, &peer);
		use(fd, peer, A_PIPE);
		CHECK(!fclose(fdopen(fd, "w")));
		if (way == 0) {
			CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
			CHECK(ends[0] == fd);
		} else {
			/* Not at the number that is free. */
			CHECK(fcntl(listener, F_DUPFD, 100) == 100);
			ends[1] = syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
			CHECK(ends[1] == fd);
			CHECK(fcntl(ends[1], F_DUPFD, 150) == 150);
			syscall(SYS_close, fd);
			ends[1] = 150;
			CHECK(!connect(ends[1], (void *)&here, size));
			ends[0] = way == 1 ? accept(listener, NULL, NULL)
					   : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			CHECK(ends[0] == fd);
			close(100);
		}
		use(ends[0], ends[1], UNIX_STREAM);
		close_pair(ends);
		close(peer);
	}
	/* And by socket(): one that was refused before it was connected. */
	fd = open_kind(A_PIPE, &peer);
	use(fd, peer, A_PIPE);
	syscall(SYS_close, fd);
	ends[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(ends[0] == fd && !connect(fd, (void *)&here, size));
	ends[1] = accept(listener, NULL, NULL);
	use(ends[0], ends[1], UNIX_STREAM);
	close_pair(ends);
	close(peer);
	close(listener);
}

/* Replaced behind its back: right in its bytes at once, and in its hints after a while. */
static void unseen(void)
{
	int fd, peer, other, ends[2];

	fd = open_kind(UNIX_STREAM, &peer);
	use(fd, peer, UNIX_STREAM);
	other = open_kind(A_PIPE, &peer);
	CHECK(syscall(SYS_dup2, other, fd) == fd);
	errno = 77;
	CHECK(write(fd, bytes, SIZE) == SIZE && errno == 77);
	SEEN("write", -1);
	drain(peer, SIZE);
	close(other);
	close(fd);
	close(peer);

	fd = open_kind(A_FILE, &peer);
	use(fd, peer, A_FILE);
	CHECK(!syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, ends));
	CHECK(syscall(SYS_dup2, ends[0], fd) == fd);
	for (int at = 0; at < BELIEVED; at++) {
		CHECK(write(fd, bytes, SIZE) == SIZE);
		drain(ends[1], SIZE);
	}
	use(fd, ends[1], UNIX_STREAM);
	close(fd);
	close_pair(ends);
	close(peer);
}

/* Numbers that the library keeps no note of. */
static void high_numbers(void)
{
	struct rlimit limit = { .rlim_cur = 80000, .rlim_max = 80000 };
	int peer, fd = open_kind(UNIX_STREAM, &peer), high;

	/* Only root may raise it; without, there may be as many anyway. */
	setrlimit(RLIMIT_NOFILE, &limit);
	high = fcntl(fd, F_DUPFD, 70000);
	if (high < 0) {
		CHECK(errno == EINVAL || errno == EMFILE);
		printf("no descriptors above 70000 here\n");
	} else {
		use(high, peer, UNIX_STREAM);
		CHECK(dup2(open_kind(A_PIPE, &peer), high) == high);
		use(high, peer, A_PIPE);
	}
}

int main(void)
{
	seen_ways();
	seen_births();
	unseen();
	high_numbers();
	return 0;
}
