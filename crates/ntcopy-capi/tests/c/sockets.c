/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sends with a hint answer as sends without one, negative errno apart. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ntcopy.h>

#include "check.h"

static char bytes[8 << 20], got[1 << 10];

static void errors(int support, int is_checked)
{
	struct msghdr empty;
	int pair[2], file, setting = 77;

	memset(&empty, 0, sizeof(empty));
	file = open("/dev/null", O_RDONLY);
	CHECK(file >= 0);
	CHECK_IS(ntcopy_socket_enable(file, NTCOPY_FLAGGED), -ENOTSOCK);
	CHECK_IS(ntcopy_socket_enable(-1, NTCOPY_FLAGGED), -EBADF);
	CHECK_IS(ntcopy_socket_enable(-2, NTCOPY_FLAGGED), -EBADF);
	CHECK_IS(ntcopy_socket_enable(1 << 20, NTCOPY_FLAGGED), -EBADF);
	CHECK_IS(ntcopy_socket_disable(file), -ENOTSOCK);
	CHECK_IS(ntcopy_socket_disable(-1), -EBADF);
	CHECK_IS(ntcopy_socket_mode(file, &setting), -ENOTSOCK);
	CHECK_IS(ntcopy_socket_mode(-1, &setting), -EBADF);
	CHECK_IS(setting, 77);
	CHECK_IS(ntcopy_send(file, bytes, 1, 0, NTCOPY_NONTEMPORAL, NTCOPY_SUPPORT_KERNEL),
		 -ENOTSOCK);
	CHECK_IS(ntcopy_send(-1, bytes, 1, 0, NTCOPY_NONTEMPORAL, support), -EBADF);
	CHECK_IS(ntcopy_sendmsg(-1, &empty, 0, NTCOPY_NONTEMPORAL, support), -EBADF);
	close(file);

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK_IS(ntcopy_socket_mode(pair[0], &setting),
		 support == NTCOPY_SUPPORT_KERNEL ? support : NTCOPY_SUPPORT_NONE);
	CHECK_IS(setting, 0);
	CHECK_IS(ntcopy_socket_enable(pair[0], -1), -EINVAL);
	CHECK_IS(ntcopy_socket_enable(pair[0], NTCOPY_MIN_BYTES - 1), -EINVAL);
	CHECK_IS(ntcopy_send(pair[0], bytes, 1, 0, NTCOPY_NONTEMPORAL, -EINVAL), -EINVAL);
	CHECK_IS(ntcopy_send(pair[0], bytes, 1, 0, NTCOPY_AUTO, 3), -EINVAL);
	CHECK_IS(ntcopy_send(pair[0], bytes, 1, 0, 1U << 5, support), -EINVAL);
	CHECK_IS(ntcopy_socket_enable(pair[0], (256 << 10)), support);
	CHECK_IS(ntcopy_socket_mode(pair[0], &setting), support);
	CHECK_IS(setting, support == NTCOPY_SUPPORT_NONE ? 0 : (256 << 10));
	CHECK_IS(ntcopy_socket_disable(pair[0]), support);
	CHECK_IS(ntcopy_socket_mode(pair[0], NULL),
		 support == NTCOPY_SUPPORT_KERNEL ? support : NTCOPY_SUPPORT_NONE);
	CHECK_IS(ntcopy_socket_enable(pair[0], NTCOPY_FLAGGED), support);
	if (!is_checked) {
		CHECK_IS(ntcopy_send(pair[0], NULL, 1, 0, NTCOPY_NONTEMPORAL, support), -EFAULT);
		CHECK_IS(ntcopy_sendmsg(pair[0], NULL, 0, NTCOPY_NONTEMPORAL, support), -EFAULT);
	}
	close(pair[1]);
	CHECK_IS(ntcopy_send(pair[0], bytes, 1, MSG_NOSIGNAL, NTCOPY_NONTEMPORAL, support),
		 -EPIPE);
	close(pair[0]);
}

/* A message in two pieces with a descriptor on it. */
static void with_control(unsigned int hints, int support)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec pieces[2] = { { (char *)"two ", 4 }, { (char *)"pieces", 6 } };
	struct msghdr msg;
	struct cmsghdr *header;
	int pair[2], fd;

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK(ntcopy_socket_enable(pair[0], NTCOPY_MIN_BYTES) >= NTCOPY_SUPPORT_NONE);
	memset(&msg, 0, sizeof(msg));
	memset(&control, 0, sizeof(control));
	msg.msg_iov = pieces;
	msg.msg_iovlen = 2;
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	header = CMSG_FIRSTHDR(&msg);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &pair[0], sizeof(int));
	CHECK_IS(ntcopy_sendmsg(pair[0], &msg, MSG_NOSIGNAL, hints, support), 10);

	pieces[0].iov_base = got;
	pieces[0].iov_len = sizeof(got);
	msg.msg_iovlen = 1;
	CHECK_IS(recvmsg(pair[1], &msg, 0), 10);
	CHECK(memcmp(got, "two pieces", 10) == 0);
	header = CMSG_FIRSTHDR(&msg);
	CHECK(header && header->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(header), sizeof(int));
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

int main(int argc, char **argv)
{
	static const unsigned int hints[] = { NTCOPY_AUTO, NTCOPY_TEMPORAL, NTCOPY_NONTEMPORAL };
	int support = ntcopy_socket_probe();
	ssize_t taken[3];
	size_t at;

	CHECK(support >= NTCOPY_SUPPORT_NONE && support <= NTCOPY_SUPPORT_MODULE);
	(void)argv;
	errors(support, argc > 1);
	for (at = 0; at < 3; at++) {
		int pair[2];

		with_control(hints[at], support);
		/* A stock kernel ignores the flag on these sockets. */
		with_control(hints[at], NTCOPY_SUPPORT_KERNEL);
		CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		CHECK_IS(ntcopy_socket_enable(pair[0], NTCOPY_FLAGGED), support);
		CHECK_IS(ntcopy_send(pair[0], "abc", 3, 0, hints[at], support), 3);
		CHECK_IS(read(pair[1], got, sizeof(got)), 3);
		CHECK(memcmp(got, "abc", 3) == 0);
		/* The same number of bytes goes in with every hint, and then nothing. */
		taken[at] = ntcopy_send(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT, hints[at],
					support);
		CHECK(taken[at] > 0 && (size_t)taken[at] < sizeof(bytes));
		CHECK_IS(taken[at], taken[0]);
		CHECK_IS(ntcopy_send(pair[0], bytes, 1 << 20, MSG_DONTWAIT, hints[at], support),
			 -EAGAIN);
		close(pair[0]);
		close(pair[1]);
	}
	return 0;
}
