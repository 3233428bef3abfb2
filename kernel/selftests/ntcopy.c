// SPDX-License-Identifier: GPL-2.0
/*
 * What MSG_NTCOPY and SO_NTCOPY promise, tried from user space: with and
 * without the hint the same bytes, the same counts, the same errors; and every
 * byte that a hinted send accepted counted once, under the right name.
 *
 * Prints TAP.  Ends with 0 if all went well, 1 if not, and 4 (skip) on a
 * kernel without the flag, or an architecture without such copies.  Wants to be root in a network namespace that it
 * may change: it makes one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ntcopy.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define __printf(a, b)	__attribute__((format(printf, a, b)))
#define MODE_PATH	"/proc/sys/net/core/ntcopy"
#define MIN_PATH	"/proc/sys/net/core/ntcopy_min_bytes"
#define BIG		1048576

/* What goes wrong once in a loop goes wrong often: the first few tell. */
#define COMPLAINTS_SHOWN 4

static int test_number, failures, complaints;
static bool test_failed;

/* Notes a failed expectation of the running test. */
static void __printf(1, 2) complain(const char *format, ...)
{
	va_list args;

	test_failed = true;
	if (complaints++ >= COMPLAINTS_SHOWN)
		return;
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

#define expect(what, ...)						\
	do {								\
		if (!(what)) {						\
			if (complaints < COMPLAINTS_SHOWN)		\
				printf("# line %d: %s\n", __LINE__, #what); \
			complain(__VA_ARGS__);				\
		}							\
	} while (0)

/* For what is no part of the test, but has to work. */
static long must(long ret, const char *what)
{
	if (ret < 0) {
		printf("Bail out! %s: %s\n", what, strerror(errno));
		exit(1);
	}
	return ret;
}

#define MUST(call) must(call, #call)

/* The settings and the counters. */

static int write_file(const char *path, const char *text)
{
	int fd = MUST(open(path, O_WRONLY));
	ssize_t n = write(fd, text, strlen(text));
	int err = errno;

	close(fd);
	return n < 0 ? -err : 0;
}

static void read_file(const char *path, char *text, size_t size)
{
	int fd = MUST(open(path, O_RDONLY));
	ssize_t n = MUST(read(fd, text, size - 1));

	text[n] = 0;
	close(fd);
}

static void set_mode(const char *mode)
{
	MUST(write_file(MODE_PATH, mode));
}

static const char * const fates[] = {
	NTCOPY_STAT_NONTEMPORAL, NTCOPY_STAT_FITS_CACHE, NTCOPY_STAT_TOO_SMALL,
	NTCOPY_STAT_CHECKSUMMED, NTCOPY_STAT_SOFTWARE_TLS,
	NTCOPY_STAT_NOT_SUPPORTED,
};

struct counts {
	long long bytes[ARRAY_SIZE(fates)];
};

static struct counts read_counts(void)
{
	struct counts counts;
	char text[1024], name[64], *line = text;
	size_t i;
	int used;

	read_file(NTCOPY_STAT_PATH, text, sizeof(text));
	for (i = 0; i < ARRAY_SIZE(fates); i++) {
		if (sscanf(line, "%63s %lld\n%n", name, &counts.bytes[i], &used) != 2 ||
		    strcmp(name, fates[i])) {
			printf("Bail out! %s: line %zu is not '%s'\n",
			       NTCOPY_STAT_PATH, i + 1, fates[i]);
			exit(1);
		}
		line += used;
	}
	return counts;
}

/*
 * Since before, so many bytes were counted under fate (NULL: none), and so many
 * under nontemporal_bytes beside it.
 */
static void expect_split(const struct counts *before, const char *fate,
			 long long bytes, long long nontemporal)
{
	struct counts now = read_counts();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fates); i++) {
		long long want = fate && !strcmp(fate, fates[i]) ? bytes : 0;
		long long got = now.bytes[i] - before->bytes[i];

		if (nontemporal && !strcmp(fates[i], NTCOPY_STAT_NONTEMPORAL))
			want = nontemporal;
		expect(got == want, "%s: %lld, not %lld", fates[i], got, want);
	}
}

static void expect_counted(const struct counts *before, const char *fate,
			   long long bytes)
{
	expect_split(before, fate, bytes, 0);
}

/* Connected pairs of every family. */

struct family {
	const char *name;
	int domain, type;
	size_t max;	/* bytes that one send may have, 0: any number */
};

static const struct family families[] = {
	{ "unix stream",	AF_UNIX,  SOCK_STREAM,	  0 },
	{ "unix dgram",		AF_UNIX,  SOCK_DGRAM,	  120000 },
	{ "unix seqpacket",	AF_UNIX,  SOCK_SEQPACKET, 120000 },
	{ "tcp",		AF_INET,  SOCK_STREAM,	  0 },
	{ "tcp6",		AF_INET6, SOCK_STREAM,	  0 },
	{ "udp",		AF_INET,  SOCK_DGRAM,	  65507 },
	{ "udp6",		AF_INET6, SOCK_DGRAM,	  65487 },
};

static socklen_t loopback(int domain, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (void *)addr;
	struct sockaddr_in *in = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = domain;
	if (domain == AF_INET6) {
		in6->sin6_addr = in6addr_loopback;
		return sizeof(*in6);
	}
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*in);
}

static void inet_pair(const struct family *family, int pair[2])
{
	struct sockaddr_storage addr;
	socklen_t len = loopback(family->domain, &addr);
	int server = MUST(socket(family->domain, family->type, 0));

	MUST(bind(server, (void *)&addr, len));
	MUST(getsockname(server, (void *)&addr, &len));
	pair[0] = MUST(socket(family->domain, family->type, 0));
	if (family->type == SOCK_DGRAM) {
		MUST(connect(pair[0], (void *)&addr, len));
		pair[1] = server;
		return;
	}
	MUST(listen(server, 1));
	MUST(connect(pair[0], (void *)&addr, len));
	pair[1] = MUST(accept(server, NULL, NULL));
	close(server);
}

static void connected(const struct family *family, int pair[2])
{
	int size = 8 * BIG;

	if (family->domain == AF_UNIX)
		MUST(socketpair(AF_UNIX, family->type, 0, pair));
	else
		inet_pair(family, pair);
	MUST(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)));
	MUST(setsockopt(pair[1], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)));
}

static void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

/* Data that tells where it belongs. */
static void fill(unsigned char *buffer, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buffer[i] = (i * 2654435761u + seed) >> 11;
}

/* Reads len bytes, or what there is until the sender is done. */
static size_t read_all(int fd, unsigned char *buffer, size_t len, bool dgram)
{
	size_t done = 0;

	while (done < len) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&poll_fd, 1, 2000) <= 0)
			break;
		n = recv(fd, buffer + done, len - done, 0);
		if (n <= 0)
			break;
		done += n;
		if (dgram)
			break;
	}
	return done;
}

/* One send in a child of its own, so that it may block; returns its result. */
struct sent {
	long ret;
	int err;
};

static struct sent send_from_child(int fd, const void *buffer, size_t len,
				   int flags, int reader, unsigned char *got,
				   size_t *got_len, bool dgram)
{
	struct sent *sent = mmap(NULL, sizeof(*sent), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sent result;
	pid_t pid;

	fflush(stdout);
	pid = MUST(fork());
	if (!pid) {
		close(reader);
		sent->ret = send(fd, buffer, len, flags | MSG_NOSIGNAL);
		sent->err = sent->ret < 0 ? errno : 0;
		shutdown(fd, SHUT_WR);
		_exit(0);
	}
	*got_len = read_all(reader, got, len, dgram);
	MUST(waitpid(pid, NULL, 0));
	result = *sent;
	munmap(sent, sizeof(*sent));
	return result;
}

/* The tests. */

static void test_option_takes_its_values_and_no_others(void)
{
	static const int bad[] = { -1, 3, 1 << 30 };
	int fd = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	int value, ret;
	size_t i;
	socklen_t len = sizeof(value);

	MUST(getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &len));
	expect(value == NTCOPY_SOCK_NONE && len == sizeof(value), "is %d at first", value);
	for (i = NTCOPY_SOCK_NONE; i <= NTCOPY_SOCK_OBEY; i++) {
		int want = i;

		MUST(setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &want, sizeof(want)));
		MUST(getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &len));
		expect(value == want, "%d, not %d", value, want);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ret = setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &bad[i], sizeof(int));
		expect(ret < 0 && errno == EINVAL, "%d is taken", bad[i]);
	}
	ret = setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, 1);
	expect(ret < 0 && errno == EINVAL, "one byte is taken");
	MUST(getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &len));
	expect(value == NTCOPY_SOCK_OBEY, "a refused value changed it to %d", value);
	close(fd);
}

static void test_option_is_inherited_by_accepted_sockets(void)
{
	static const int domains[] = { AF_UNIX, AF_INET, AF_INET6 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		struct sockaddr_storage addr;
		socklen_t len = sizeof(sa_family_t), size = sizeof(int);
		int server = MUST(socket(domains[i], SOCK_STREAM, 0));
		int client = MUST(socket(domains[i], SOCK_STREAM, 0));
		int value = NTCOPY_SOCK_HINT, accepted;

		if (domains[i] == AF_UNIX)
			addr.ss_family = AF_UNIX;	/* autobind */
		else
			len = loopback(domains[i], &addr);
		MUST(bind(server, (void *)&addr, len));
		len = sizeof(addr);
		MUST(getsockname(server, (void *)&addr, &len));
		MUST(setsockopt(server, SOL_SOCKET, SO_NTCOPY, &value, sizeof(value)));
		MUST(listen(server, 1));
		MUST(connect(client, (void *)&addr, len));
		accepted = MUST(accept(server, NULL, NULL));
		MUST(getsockopt(accepted, SOL_SOCKET, SO_NTCOPY, &value, &size));
		expect(value == NTCOPY_SOCK_HINT, "domain %d: %d", domains[i], value);
		MUST(getsockopt(client, SOL_SOCKET, SO_NTCOPY, &value, &size));
		expect(value == NTCOPY_SOCK_NONE, "domain %d: client has %d", domains[i], value);
		close(accepted);
		close(client);
		close(server);
	}
}

static void test_sysctl_takes_its_values_and_no_others(void)
{
	static const char * const good[] = { "0", "2", "3" };
	static const char * const bad[] = { "1", "4", "-1", "x" };
	char text[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		expect(!write_file(MODE_PATH, good[i]), "%s is refused", good[i]);
		read_file(MODE_PATH, text, sizeof(text));
		expect(text[0] == good[i][0], "%s, not %s", text, good[i]);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		expect(write_file(MODE_PATH, bad[i]) == -EINVAL, "%s is taken", bad[i]);
		read_file(MODE_PATH, text, sizeof(text));
		expect(text[0] == '3', "a refused value changed it to %s", text);
	}
	set_mode("2");
}

static void test_namespaces_do_not_share_settings_or_counters(void)
{
	static unsigned char buffer[BIG];
	struct counts before;
	char text[32];
	int status, pair[2];

	connected(&families[0], pair);
	MUST(send(pair[0], buffer, BIG, MSG_NTCOPY));
	close_pair(pair);
	before = read_counts();
	fflush(stdout);
	if (!MUST(fork())) {
		struct counts fresh, zero = { { 0 } };

		MUST(unshare(CLONE_NEWNET));
		fresh = read_counts();
		expect(!memcmp(&fresh, &zero, sizeof(zero)), "counters are not 0 at first");
		read_file(MODE_PATH, text, sizeof(text));
		expect(text[0] == '2', "starts with %s", text);
		set_mode("0");
		connected(&families[0], pair);
		set_mode("3");
		MUST(send(pair[0], buffer, BIG, 0));
		expect_counted(&zero, NTCOPY_STAT_NONTEMPORAL, BIG);
		fflush(stdout);
		_exit(test_failed);
	}
	MUST(wait(&status));
	expect(!status, "the other namespace complained");
	expect_counted(&before, NULL, 0);
	read_file(MODE_PATH, text, sizeof(text));
	expect(text[0] == '2', "the other namespace changed it to %s", text);
}

/* Sends len bytes on a new unix stream, and tells how they were counted. */
static void count_one(int option, int flags, size_t len, const char *fate)
{
	static unsigned char buffer[BIG];
	struct counts before;
	int pair[2];

	connected(&families[0], pair);
	MUST(setsockopt(pair[0], SOL_SOCKET, SO_NTCOPY, &option, sizeof(option)));
	before = read_counts();
	expect(send(pair[0], buffer, len, flags) == (ssize_t)len, "%s", strerror(errno));
	expect_counted(&before, fate, len);
	close_pair(pair);
}

static void test_every_byte_is_counted_once_under_its_fate(void)
{
	count_one(NTCOPY_SOCK_NONE, 0, BIG, NULL);
	count_one(NTCOPY_SOCK_NONE, MSG_NTCOPY, BIG, NTCOPY_STAT_NONTEMPORAL);
	count_one(NTCOPY_SOCK_HINT, 0, BIG, NTCOPY_STAT_NONTEMPORAL);
	count_one(NTCOPY_SOCK_OBEY, 0, 123457, NTCOPY_STAT_NONTEMPORAL);
	count_one(NTCOPY_SOCK_NONE, MSG_NTCOPY, 4096, NTCOPY_STAT_NONTEMPORAL);
	count_one(NTCOPY_SOCK_NONE, MSG_NTCOPY, 4095, NTCOPY_STAT_TOO_SMALL);
	count_one(NTCOPY_SOCK_OBEY, 0, 1, NTCOPY_STAT_TOO_SMALL);
	set_mode("0");
	count_one(NTCOPY_SOCK_OBEY, MSG_NTCOPY, BIG, NULL);
	set_mode("3");
	count_one(NTCOPY_SOCK_NONE, 0, BIG, NTCOPY_STAT_NONTEMPORAL);
	set_mode("2");
	MUST(write_file(MIN_PATH, "100000"));
	count_one(NTCOPY_SOCK_NONE, MSG_NTCOPY, 99999, NTCOPY_STAT_TOO_SMALL);
	count_one(NTCOPY_SOCK_NONE, MSG_NTCOPY, 100000, NTCOPY_STAT_NONTEMPORAL);
	MUST(write_file(MIN_PATH, "4096"));
}

static void compare_one(const struct family *family, unsigned char *data,
			size_t offset, size_t len, int flags)
{
	static unsigned char got[3 * BIG];
	struct counts before = read_counts();
	struct sent sent;
	size_t got_len;
	int pair[2];

	connected(family, pair);
	sent = send_from_child(pair[0], data + offset, len, flags, pair[1], got,
			       &got_len, family->type != SOCK_STREAM);
	expect(sent.ret == (long)len && got_len == len,
	       "%s, %zu bytes at %zu: sent %ld (%s), got %zu",
	       family->name, len, offset, sent.ret, strerror(sent.err), got_len);
	expect(!memcmp(got, data + offset, got_len), "%s, %zu bytes at %zu, flags %x: wrong bytes",
	       family->name, len, offset, flags);
	expect_counted(&before, flags ? NTCOPY_STAT_NONTEMPORAL : NULL, len);
	close_pair(pair);
}

static void test_bytes_are_the_same_in_every_family(void)
{
	static const size_t lengths[] = {
		1, 2, 3, 4, 5, 7, 8, 9, 15, 63, 64, 65, 127, 300, 4095, 4096, 4097,
		16383, 32768, 32769, 65487, 120000, 300001, 2 * BIG + 13,
	};
	static unsigned char data[3 * BIG];
	size_t f, l, offset;

	MUST(write_file(MIN_PATH, "0"));
	for (f = 0; f < ARRAY_SIZE(families); f++)
		for (l = 0; l < ARRAY_SIZE(lengths); l++) {
			if (families[f].max && lengths[l] > families[f].max)
				continue;
			offset = (l * 13 + f) % 64;
			fill(data, sizeof(data), l * 31 + f);
			compare_one(&families[f], data, offset, lengths[l], 0);
			compare_one(&families[f], data, offset, lengths[l], MSG_NTCOPY);
		}
	MUST(write_file(MIN_PATH, "4096"));
}

static void test_every_alignment_and_short_length_arrives_whole(void)
{
	static unsigned char data[1024], got[1024];
	size_t offset, len;
	int pair[2];

	MUST(write_file(MIN_PATH, "0"));
	fill(data, sizeof(data), 5);
	connected(&families[1], pair);
	for (offset = 0; offset < 64; offset++)
		for (len = 1; len < 300; len += 1 + offset % 3) {
			memset(got, 0xee, len + 1);
			MUST(send(pair[0], data + offset, len, MSG_NTCOPY));
			expect(recv(pair[1], got, sizeof(got), 0) == (ssize_t)len &&
			       !memcmp(got, data + offset, len) && got[len] == 0xee,
			       "%zu bytes at %zu", len, offset);
		}
	close_pair(pair);
	MUST(write_file(MIN_PATH, "4096"));
}

static void test_many_segments_some_empty(void)
{
	static unsigned char data[BIG], got[BIG];
	struct iovec iov[1024];
	struct msghdr msg = { .msg_iov = iov };
	size_t i, used = 0, got_len = 0;
	int pair[2];

	fill(data, sizeof(data), 9);
	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = data + used;
		iov[i].iov_len = i % 7 ? (i * 37) % 900 : 0;
		used += iov[i].iov_len;
	}
	for (i = 1; i <= ARRAY_SIZE(iov); i *= 4) {
		struct counts before = read_counts();
		size_t want = 0, k;

		for (k = 0; k < i; k++)
			want += iov[k].iov_len;
		connected(&families[0], pair);
		msg.msg_iovlen = i;
		expect(sendmsg(pair[0], &msg, MSG_NTCOPY) == (ssize_t)want, "%zu segments", i);
		if (want) {
			got_len = read_all(pair[1], got, want, false);
			expect(got_len == want && !memcmp(got, data, want), "%zu segments", i);
		}
		expect_counted(&before, want < 4096 ? NTCOPY_STAT_TOO_SMALL :
			       NTCOPY_STAT_NONTEMPORAL, want);
		close_pair(pair);
	}
}

/* Sends up to a hole in the buffer; what arrived before it must be right. */
static struct sent send_into_hole(const struct family *family, unsigned char *data,
				  size_t len, size_t hole, int flags, size_t *got_len)
{
	static unsigned char got[BIG];
	struct sent sent;
	int pair[2];

	connected(family, pair);
	sent = send_from_child(pair[0], data, len, flags, pair[1], got, got_len, false);
	expect(*got_len <= hole && !memcmp(got, data, *got_len),
	       "%s: wrong bytes before the fault", family->name);
	close_pair(pair);
	return sent;
}

/* The hole is page bad of the buffer, the send starts at offset. */
static void compare_faults(const struct family *family, size_t bad, size_t offset)
{
	const size_t page = sysconf(_SC_PAGESIZE), pages = 64;
	size_t got[2], len = pages * page - offset, hole = bad * page - offset;
	struct sent plain, hinted;
	unsigned char *data = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	fill(data, pages * page, bad);
	MUST(munmap(data + bad * page, page));
	plain = send_into_hole(family, data + offset, len, hole, 0, &got[0]);
	hinted = send_into_hole(family, data + offset, len, hole, MSG_NTCOPY, &got[1]);
	expect(plain.ret == hinted.ret && plain.err == hinted.err && got[0] == got[1],
	       "%s, page %zu, offset %zu: %ld/%d and %zu, hinted %ld/%d and %zu",
	       family->name, bad, offset, plain.ret, plain.err, got[0],
	       hinted.ret, hinted.err, got[1]);
	munmap(data, pages * page);
}

static void test_faults_end_at_the_same_byte(void)
{
	static const size_t bad_pages[] = { 1, 9, 31, 63 };
	size_t f, b, offset;

	for (f = 0; f < ARRAY_SIZE(families); f++) {
		if (families[f].type != SOCK_STREAM)
			continue;
		for (b = 0; b < ARRAY_SIZE(bad_pages); b++)
			for (offset = 0; offset < 24; offset += 5)
				compare_faults(&families[f], bad_pages[b], offset);
	}
}

static void test_datagrams_that_fault_say_so(void)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	unsigned char *data = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct counts before = read_counts();
	int pair[2];
	size_t f;

	MUST(munmap(data + page, page));
	for (f = 0; f < ARRAY_SIZE(families); f++) {
		if (families[f].type == SOCK_STREAM)
			continue;
		connected(&families[f], pair);
		expect(send(pair[0], data, 2 * page, MSG_NTCOPY) < 0 && errno == EFAULT,
		       "%s: %s", families[f].name, strerror(errno));
		close_pair(pair);
	}
	expect_counted(&before, NULL, 0);
	munmap(data, 2 * page);
}

static void test_a_full_socket_takes_as_much_with_the_hint_as_without(void)
{
	static unsigned char data[3 * BIG];
	long sent[2];
	int pair[2], k, size = 100000;

	for (k = 0; k < 2; k++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		MUST(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
		sent[k] = send(pair[0], data, sizeof(data), MSG_DONTWAIT | (k ? MSG_NTCOPY : 0));
		expect(send(pair[0], data, BIG, MSG_DONTWAIT | (k ? MSG_NTCOPY : 0)) < 0 &&
		       errno == EAGAIN, "%s", strerror(errno));
		close_pair(pair);
	}
	expect(sent[0] == sent[1] && sent[0] > 0, "%ld, hinted %ld", sent[0], sent[1]);
}

static void test_a_kernel_buffer_is_copied_and_counted_too(void)
{
	static unsigned char data[8192], got[8192];
	int option = NTCOPY_SOCK_HINT, pair[2], ends[2];
	struct counts before;

	/* A datagram socket has no use for the pipe's pages, and copies them. */
	fill(data, sizeof(data), 77);
	connected(&families[1], pair);
	MUST(setsockopt(pair[0], SOL_SOCKET, SO_NTCOPY, &option, sizeof(option)));
	MUST(pipe(ends));
	MUST(write(ends[1], data, sizeof(data)));
	before = read_counts();
	expect(splice(ends[0], NULL, pair[0], NULL, sizeof(data), 0) == sizeof(data),
	       "%s", strerror(errno));
	expect(recv(pair[1], got, sizeof(got), 0) == sizeof(got) &&
	       !memcmp(got, data, sizeof(data)), "wrong bytes");
	expect_counted(&before, NTCOPY_STAT_NONTEMPORAL, sizeof(data));
	close_pair(ends);
	close_pair(pair);
}

static void test_what_is_checksummed_while_copied_is_counted_so(void)
{
	static unsigned char packet[8192];
	struct icmphdr *icmp = (void *)packet;
	struct sockaddr_storage addr;
	struct counts before;
	int fd;

	MUST(write_file("/proc/sys/net/ipv4/ping_group_range", "0 0"));
	fd = MUST(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	MUST(connect(fd, (void *)&addr, loopback(AF_INET, &addr)));
	icmp->type = ICMP_ECHO;
	before = read_counts();
	expect(send(fd, packet, sizeof(packet), MSG_NTCOPY) == sizeof(packet), "%s",
	       strerror(errno));
	/* The header is taken on its own, to be looked at. */
	expect_split(&before, NTCOPY_STAT_CHECKSUMMED, sizeof(packet) - sizeof(*icmp),
		     sizeof(*icmp));
	close(fd);
}

static void test_software_tls_declines_the_hint(void)
{
	struct tls12_crypto_info_aes_gcm_128 crypto = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};
	static unsigned char data[100000], got[100000];
	struct counts before;
	int pair[2];

	connected(&families[3], pair);
	if (setsockopt(pair[0], IPPROTO_TCP, TCP_ULP, "tls", 4) < 0) {
		printf("# no kernel TLS here (%s): not tried\n", strerror(errno));
		close_pair(pair);
		return;
	}
	MUST(setsockopt(pair[1], IPPROTO_TCP, TCP_ULP, "tls", 4));
	if (setsockopt(pair[0], SOL_TLS, TLS_TX, &crypto, sizeof(crypto)) < 0) {
		printf("# no AES-GCM in this kernel (%s): not tried\n", strerror(errno));
		close_pair(pair);
		return;
	}
	MUST(setsockopt(pair[1], SOL_TLS, TLS_RX, &crypto, sizeof(crypto)));
	fill(data, sizeof(data), 3);
	before = read_counts();
	expect(send(pair[0], data, sizeof(data), MSG_NTCOPY) == sizeof(data), "%s",
	       strerror(errno));
	expect(read_all(pair[1], got, sizeof(got), false) == sizeof(got) &&
	       !memcmp(got, data, sizeof(data)), "wrong bytes");
	expect_counted(&before, NTCOPY_STAT_SOFTWARE_TLS, sizeof(data));
	close_pair(pair);
}

static void test_zero_copy_is_counted_as_not_copied(void)
{
	static unsigned char got[65536];
	int option = NTCOPY_SOCK_HINT, pair[2], ends[2];
	unsigned char *data = mmap(NULL, sizeof(got), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(got) };
	struct counts before;

	fill(data, sizeof(got), 8);
	connected(&families[0], pair);
	MUST(setsockopt(pair[0], SOL_SOCKET, SO_NTCOPY, &option, sizeof(option)));
	MUST(pipe(ends));
	MUST(vmsplice(ends[1], &iov, 1, 0));
	before = read_counts();
	expect(splice(ends[0], NULL, pair[0], NULL, sizeof(got), 0) == sizeof(got), "%s",
	       strerror(errno));
	expect(read_all(pair[1], got, sizeof(got), false) == sizeof(got) &&
	       !memcmp(got, data, sizeof(got)), "wrong bytes");
	expect_counted(&before, NTCOPY_STAT_NOT_SUPPORTED, sizeof(got));
	close_pair(ends);
	close_pair(pair);
	munmap(data, sizeof(got));
}

static void run(const char *name, void (*test)(void))
{
	test_failed = false;
	complaints = 0;
	test();
	if (complaints > COMPLAINTS_SHOWN)
		printf("# and %d more\n", complaints - COMPLAINTS_SHOWN);
	printf("%sok %d %s\n", test_failed ? "not " : "", ++test_number, name);
	failures += test_failed;
}

#define RUN(test) run(#test, test)

static void own_namespace(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	MUST(unshare(CLONE_NEWNET));
	fd = MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(ioctl(fd, SIOCSIFFLAGS, &request));
	close(fd);
}

/*
 * Whether hints can be honoured at all, as the kernel counts it.  On x86-64
 * they can: there, a kernel that counts nothing fails, and doesn't skip.
 */
static bool copies_nontemporally(void)
{
#ifdef __x86_64__
	return true;
#else
	static unsigned char buffer[BIG];
	struct counts before = read_counts(), now;
	int pair[2];

	connected(&families[0], pair);
	MUST(send(pair[0], buffer, BIG, MSG_NTCOPY));
	close_pair(pair);
	now = read_counts();
	return now.bytes[0] > before.bytes[0];
#endif
}

int main(void)
{
	int fd = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), value;
	socklen_t len = sizeof(value);

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	if (getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &len) < 0 && errno == ENOPROTOOPT) {
		printf("1..0 # SKIP this kernel has no MSG_NTCOPY\n");
		return 4;
	}
	close(fd);
	own_namespace();
	if (!copies_nontemporally()) {
		printf("1..0 # SKIP no non-temporal copy on this architecture\n");
		return 4;
	}
	RUN(test_option_takes_its_values_and_no_others);
	RUN(test_option_is_inherited_by_accepted_sockets);
	RUN(test_sysctl_takes_its_values_and_no_others);
	RUN(test_namespaces_do_not_share_settings_or_counters);
	RUN(test_every_byte_is_counted_once_under_its_fate);
	RUN(test_bytes_are_the_same_in_every_family);
	RUN(test_every_alignment_and_short_length_arrives_whole);
	RUN(test_many_segments_some_empty);
	RUN(test_faults_end_at_the_same_byte);
	RUN(test_datagrams_that_fault_say_so);
	RUN(test_a_full_socket_takes_as_much_with_the_hint_as_without);
	RUN(test_a_kernel_buffer_is_copied_and_counted_too);
	RUN(test_zero_copy_is_counted_as_not_copied);
	RUN(test_what_is_checksummed_while_copied_is_counted_so);
	RUN(test_software_tls_declines_the_hint);
	printf("1..%d\n", test_number);
	return failures ? 1 : 0;
}
