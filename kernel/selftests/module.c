// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/ntcopy: what it takes and refuses, and that an attached socket is the
 * same whoever has it.
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "module.h"

TEST_F(module, says_what_it_is)
{
	struct ntcopy_module_info info = {};

	EXPECT_EQ(ioctl(module_device(), NTCOPY_IOC_INFO, &info), 0);
	EXPECT_EQ(info.series, 2U);
	EXPECT_GT(info.version, 0U);
}

TEST_F(module, takes_every_mode_and_answers_with_it)
{
	int mode;

	EXPECT_EQ(mode_of(self->pair[0]), -1);
	for (mode = NTCOPY_SOCK_OBEY; mode >= NTCOPY_SOCK_NONE; mode--) {
		EXPECT_EQ(attach(self->pair[0], mode), 0);
		EXPECT_EQ(mode_of(self->pair[0]), mode);
		EXPECT_EQ(attach(self->pair[0], mode), 0);
		EXPECT_EQ(mode_of(self->pair[0]), mode);
		EXPECT_EQ(info().attached, self->before.attached + 1);
	}
	EXPECT_EQ(mode_of(self->pair[1]), -1);
}

TEST_F(module, refuses_what_is_no_argument)
{
	struct ntcopy_socket good = { .fd = self->pair[0], .mode = NTCOPY_SOCK_EVERY }, arg;
	int fd = module_device();

	arg = good;
	arg.mode = NTCOPY_SOCK_OBEY + 1;
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_ATTACH, &arg)), -EINVAL);
	arg.mode = -1;
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_ATTACH, &arg)), -EINVAL);
	arg = good;
	arg.flags = NTCOPY_SOCKET_ATTACHED;
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_ATTACH, &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_DETACH, &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_QUERY, &arg)), -EINVAL);
	arg = good;
	arg.reserved = 1;
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_ATTACH, &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_QUERY, &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_ATTACH, (void *)8)), -EFAULT);
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_DETACH, (void *)8)), -EFAULT);
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_QUERY, (void *)8)), -EFAULT);
	EXPECT_EQ(own_error(ioctl(fd, NTCOPY_IOC_INFO, (void *)8)), -EFAULT);
	EXPECT_EQ(mode_of(self->pair[0]), -1);
}

TEST_F(module, refuses_what_is_no_ioctl_of_its_own)
{
	struct ntcopy_socket arg = { .fd = self->pair[0] };
	int fd = module_device();

	EXPECT_EQ(own_error(ioctl(fd, _IOW('N', 0xc0, char[15]), &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, _IOW('N', 0xc0, char[17]), &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, _IOR('N', 0xc1, struct ntcopy_socket), &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, _IO('N', 0xc3), &arg)), -EINVAL);
	EXPECT_EQ(own_error(ioctl(fd, _IOW('N', 0xc4, struct ntcopy_socket), &arg)), -ENOTTY);
	EXPECT_EQ(own_error(ioctl(fd, _IOW('N', 0xbf, struct ntcopy_socket), &arg)), -ENOTTY);
	EXPECT_EQ(own_error(ioctl(fd, _IOW('M', 0xc0, struct ntcopy_socket), &arg)), -ENOTTY);
	EXPECT_EQ(own_error(ioctl(fd, 0, &arg)), -ENOTTY);
	EXPECT_EQ(mode_of(self->pair[0]), -1);
}

TEST_F(module, refuses_what_is_no_socket)
{
	static const unsigned long requests[] = {
		NTCOPY_IOC_ATTACH, NTCOPY_IOC_DETACH, NTCOPY_IOC_QUERY,
	};
	int file = open("/dev/null", O_RDWR), path = open("/dev/null", O_PATH);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(requests); i++) {
		EXPECT_EQ(call(requests[i], -1, 0), -EBADF);
		EXPECT_EQ(call(requests[i], 1000000, 0), -EBADF);
		EXPECT_EQ(call(requests[i], path, 0), -EBADF);
		EXPECT_EQ(call(requests[i], file, 0), -ENOTSOCK);
		EXPECT_EQ(call(requests[i], module_device(), 0), -ENOTSOCK);
	}
	close(file);
	close(path);
}

/* Who may open it is root, until the system says otherwise; how it was opened says nothing. */
TEST_F(module, asks_for_the_right_to_open_the_device_and_for_no_other)
{
	struct ntcopy_socket arg = { .fd = self->pair[0], .mode = NTCOPY_SOCK_EVERY };
	int fd = open(NTCOPY_MODULE_PATH, O_RDONLY);

	ASSERT_LE(0, fd);
	ASSERT_EQ(setgroups(0, NULL), 0);
	ASSERT_EQ(setresgid(65534, 65534, 65534), 0);
	ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
	EXPECT_EQ(own_error(open(NTCOPY_MODULE_PATH, O_RDONLY)), -EACCES);
	EXPECT_EQ(own_error(open(NTCOPY_MODULE_PATH, O_RDWR)), -EACCES);
	EXPECT_EQ(ioctl(fd, NTCOPY_IOC_ATTACH, &arg), 0);
	EXPECT_EQ(mode_of(self->pair[0]), NTCOPY_SOCK_EVERY);
	close(fd);
}

TEST_F_TIMEOUT(module, refuses_sockets_that_it_cannot_help, TIMEOUT_SECONDS)
{
	static const struct family * const families[] = {
		&unix_dgram, &unix_seqpacket, &tcp, &tcp6, &tls, &mptcp, &raw, &ping,
		&packet_dgram, &netlink, &udplite, &sctp_stream, &vsock_stream,
	};
	struct pair pair = { .tx = -1, .rx = -1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(families); i++) {
		if (families[i]->open(families[i], &pair) < 0) {
			close_pair(&pair);
			continue;
		}
		EXPECT_EQ(attach(pair.tx, 0), -EOPNOTSUPP) {
			TH_LOG("%s", families[i]->name);
		}
		EXPECT_EQ(detach(pair.tx), -EOPNOTSUPP);
		EXPECT_EQ(mode_of(pair.tx), -EOPNOTSUPP - 1000);
		close_pair(&pair);
	}
}

TEST_F(module, hints_what_is_attached_and_nothing_else)
{
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_SOCK_NONE), 0);
	EXPECT_SENT(self->pair, 0, 0);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_SOCK_FLAGGED), 0);
	EXPECT_SENT(self->pair, 0, 0);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 60000);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_SOCK_EVERY), 0);
	EXPECT_SENT(self->pair, 0, 60000);
}

TEST_F(module, lets_go_what_is_detached)
{
	EXPECT_EQ(detach(self->pair[0]), 0);
	EXPECT_EQ(info().lingering, self->before.lingering);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
	EXPECT_EQ(detach(self->pair[0]), 0);
	EXPECT_EQ(detach(self->pair[0]), 0);
	EXPECT_EQ(mode_of(self->pair[0]), -1);
	EXPECT_EQ(info().attached, self->before.attached);
	EXPECT_EQ(info().lingering, self->before.lingering + 1);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_SOCK_EVERY), 0);
	EXPECT_EQ(info().lingering, self->before.lingering);
	EXPECT_SENT(self->pair, 0, 60000);
}

/* One socket, whoever holds it. */
TEST_F(module, follows_the_socket_and_not_the_descriptor)
{
	int copy = dup(self->pair[0]), status;
	pid_t pid;

	EXPECT_EQ(attach(copy, NTCOPY_SOCK_EVERY), 0);
	EXPECT_EQ(mode_of(self->pair[0]), NTCOPY_SOCK_EVERY);
	close(copy);
	EXPECT_EQ(mode_of(self->pair[0]), NTCOPY_SOCK_EVERY);
	pid = fork();
	if (!pid)
		_exit(mode_of(self->pair[0]) != NTCOPY_SOCK_EVERY ||
		      attach(self->pair[0], NTCOPY_SOCK_OBEY) || unshare(CLONE_NEWNET) ||
		      sent(self->pair, 0) != 60000 || mode_of(self->pair[0]) != NTCOPY_SOCK_OBEY);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(mode_of(self->pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_EQ(info().attached, self->before.attached + 1);
}

/* Through an attached socket, and in flight when no process holds it. */
TEST_F(module, follows_a_socket_that_is_passed_on)
{
	int other[2], fd;

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_SOCK_EVERY), 0);
	EXPECT_EQ(attach(other[0], NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(pass_fd(self->pair[0], other[0]), 0);
	close(other[0]);
	fd = taken_fd(self->pair[1]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(mode_of(fd), NTCOPY_SOCK_OBEY);
	other[0] = fd;
	EXPECT_SENT(other, 0, 60000);
	EXPECT_EQ(pass_fd(self->pair[0], fd), 0);
	close(fd);
	close(other[1]);
	/* Closed with the message unread. */
}

/* A namespace ends while a socket of it goes on. */
TEST_F(module, outlives_its_namespace)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		struct pair pair = { .tx = -1, .rx = -1 };

		if (unshare(CLONE_NEWNET) || unix_stream.open(&unix_stream, &pair) ||
		    attach(pair.tx, NTCOPY_SOCK_OBEY) || pass_fd(self->pair[0], pair.tx) ||
		    pass_fd(self->pair[0], pair.rx))
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(status, 0);
	int pair[2] = { taken_fd(self->pair[1]), taken_fd(self->pair[1]) };

	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_EQ(sent(pair, 0), 60000);
	close(pair[0]);
	close(pair[1]);
}

int main(int argc, char **argv)
{
	return module_main(argc, argv);
}
