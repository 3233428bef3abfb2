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
	EXPECT_EQ(info.series, 3U);
	EXPECT_GT(info.version, 0U);
}

TEST_F(module, rounds_numbers_up_and_answers_with_what_it_took)
{
	static const int numbers[][2] = {
		{ NTCOPY_FLAGGED, NTCOPY_FLAGGED },
		{ NTCOPY_FLAGGED - 1, NTCOPY_FLAGGED },
		{ 1024 * MIB + 1, NTCOPY_FLAGGED },
		{ 1024 * MIB, 1024 * MIB },
		{ 512 * MIB + 1, 1024 * MIB },
		{ MIB, MIB },
		{ 300000, 512 * KIB },
		{ 256 * KIB + 1, 512 * KIB },
		{ 256 * KIB, 256 * KIB },
		{ 256 * KIB - 1, 256 * KIB },
		{ NTCOPY_MIN_BYTES, 256 * KIB },
		{ 0, 0 },
	};
	size_t i;

	EXPECT_EQ(number_of(self->pair[0]), -1);
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		EXPECT_EQ(attach(self->pair[0], numbers[i][0]), 0);
		EXPECT_EQ(number_of(self->pair[0]), numbers[i][1]);
		EXPECT_EQ(attach(self->pair[0], numbers[i][0]), 0);
		EXPECT_EQ(number_of(self->pair[0]), numbers[i][1]);
		EXPECT_EQ(info().attached, self->before.attached + 1);
	}
	EXPECT_EQ(number_of(self->pair[1]), -1);
}

TEST_F(module, refuses_numbers_below_a_page)
{
	static const int numbers[] = { 1, 2, 3, NTCOPY_MIN_BYTES - 1, -1, -NTCOPY_FLAGGED - 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		EXPECT_EQ(attach(self->pair[0], numbers[i]), -EINVAL);
		EXPECT_EQ(call(NTCOPY_IOC_DETACH, self->pair[0], numbers[i]), -EINVAL);
	}
	EXPECT_EQ(call(NTCOPY_IOC_DETACH, self->pair[0], NTCOPY_MIN_BYTES), -EINVAL);
	EXPECT_EQ(number_of(self->pair[0]), -1);
}

TEST_F(module, refuses_what_is_no_argument)
{
	struct ntcopy_socket good = { .fd = self->pair[0], .min_bytes = NTCOPY_FLAGGED }, arg;
	int fd = module_device();

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
	EXPECT_EQ(number_of(self->pair[0]), -1);
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
	EXPECT_EQ(number_of(self->pair[0]), -1);
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
	struct ntcopy_socket arg = { .fd = self->pair[0], .min_bytes = NTCOPY_FLAGGED };
	int fd = open(NTCOPY_MODULE_PATH, O_RDONLY);

	ASSERT_LE(0, fd);
	ASSERT_EQ(setgroups(0, NULL), 0);
	ASSERT_EQ(setresgid(65534, 65534, 65534), 0);
	ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
	EXPECT_EQ(own_error(open(NTCOPY_MODULE_PATH, O_RDONLY)), -EACCES);
	EXPECT_EQ(own_error(open(NTCOPY_MODULE_PATH, O_RDWR)), -EACCES);
	EXPECT_EQ(ioctl(fd, NTCOPY_IOC_ATTACH, &arg), 0);
	EXPECT_EQ(number_of(self->pair[0]), NTCOPY_FLAGGED);
	close(fd);
}

TEST_F_TIMEOUT(module, refuses_sockets_that_it_cannot_help, TIMEOUT_SECONDS)
{
	static const struct family * const families[] = {
		&unix_dgram, &unix_seqpacket, &udp, &udp6, &udp_gso, &tcp, &tcp6, &tls, &mptcp,
		&raw, &ping, &packet_dgram, &netlink, &udplite, &sctp_stream, &vsock_stream,
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
		EXPECT_EQ(number_of(pair.tx), -EOPNOTSUPP - 1000);
		close_pair(&pair);
	}
}

TEST_F(module, hints_what_is_attached_and_nothing_else)
{
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
	EXPECT_EQ(attach(self->pair[0], 0), 0);
	EXPECT_SENT(self->pair, 0, 0);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_FLAGGED), 0);
	EXPECT_SENT(self->pair, 0, 0);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 60000);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_MODULE_MIN_BYTES), 0);
	EXPECT_SENT(self->pair, 0, 60000);
}

/* How many bytes of a send of so many are hinted; it does not block. */
static long hinted_of(const int *pair, long bytes, int flags)
{
	static unsigned char data[MIB], got[MIB];
	struct counts before = read_counts(), counts;
	long ret = send(pair[0], data, bytes, flags | MSG_DONTWAIT);

	if (ret != bytes || recv(pair[1], got, bytes, MSG_WAITALL) != bytes)
		return -1;
	counts = counts_since(&before);
	return counts.bytes == bytes && counts.bypassed == counts.hinted ? counts.hinted : -2;
}

/* The floor that the module has by itself, of which the rest of the suite knows nothing. */
static void set_own_floor(struct __test_metadata *_metadata, const int *pair)
{
	ASSERT_EQ(write_file(FLOOR_PATH, "262144"), 0);
	ASSERT_EQ(set_buffers(pair[0]), 0);
}

TEST_F(module, hints_no_smaller_send_than_its_floor_whatever_its_flag)
{
	long floor = NTCOPY_MODULE_MIN_BYTES;

	set_own_floor(_metadata, self->pair);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_FLAGGED), 0);
	EXPECT_EQ(hinted_of(self->pair, floor - 1, MSG_NTCOPY), 0);
	EXPECT_EQ(hinted_of(self->pair, floor, MSG_NTCOPY), floor);
	EXPECT_EQ(hinted_of(self->pair, MIB, 0), 0);
	EXPECT_EQ(attach(self->pair[0], floor), 0);
	EXPECT_EQ(hinted_of(self->pair, floor - 1, 0), 0);
	EXPECT_EQ(hinted_of(self->pair, floor - 1, MSG_NTCOPY), 0);
	EXPECT_EQ(hinted_of(self->pair, floor, 0), floor);
	EXPECT_EQ(attach(self->pair[0], 2 * floor), 0);
	EXPECT_EQ(hinted_of(self->pair, 2 * floor - 1, 0), 0);
	EXPECT_EQ(hinted_of(self->pair, floor, MSG_NTCOPY), floor);
	EXPECT_EQ(hinted_of(self->pair, 2 * floor, 0), 2 * floor);
}

/* A send that continues a hinted one is as any other of its length. */
TEST_F(module, remembers_no_rest)
{
	static unsigned char data[MIB];
	struct counts before, counts;
	int size = 100000;
	long ret;

	set_own_floor(_metadata, self->pair);
	ASSERT_EQ(setsockopt(self->pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_MODULE_MIN_BYTES), 0);
	before = read_counts();
	ret = send(self->pair[0], data, MIB, MSG_DONTWAIT);
	ASSERT_LT(0, ret);
	ASSERT_LT(ret, (long)MIB);
	counts = counts_since(&before);
	EXPECT_EQ(counts.hinted, ret);
	ASSERT_EQ(recv(self->pair[1], data, ret, MSG_WAITALL), ret);
	EXPECT_EQ(hinted_of(self->pair, 50000, 0), 0);
}

TEST_F(module, sends_all_plain_at_once_when_it_is_disabled)
{
	struct counts before = read_counts(), counts;

	EXPECT_EQ(attach(self->pair[0], NTCOPY_MODULE_MIN_BYTES), 0);
	ASSERT_EQ(write_file(DISABLE_PATH, "1"), 0);
	EXPECT_EQ(sent(self->pair, MSG_NTCOPY), 60000);
	EXPECT_EQ(write_file(DISABLE_PATH, "0"), 0);
	counts = counts_since(&before);
	EXPECT_EQ(counts.bytes, 0);
	EXPECT_EQ(set_mode("0"), 0);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
	EXPECT_EQ(set_mode("1"), 0);
	EXPECT_SENT(self->pair, 0, 60000);
}

TEST_F(module, lets_go_what_is_detached)
{
	EXPECT_EQ(detach(self->pair[0]), 0);
	EXPECT_EQ(info().lingering, self->before.lingering);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_MODULE_MIN_BYTES), 0);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
	EXPECT_EQ(detach(self->pair[0]), 0);
	EXPECT_EQ(detach(self->pair[0]), 0);
	EXPECT_EQ(number_of(self->pair[0]), -1);
	EXPECT_EQ(info().attached, self->before.attached);
	EXPECT_EQ(info().lingering, self->before.lingering + 1);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_MODULE_MIN_BYTES), 0);
	EXPECT_EQ(info().lingering, self->before.lingering);
	EXPECT_SENT(self->pair, 0, 60000);
}

/* One socket, whoever holds it. */
TEST_F(module, follows_the_socket_and_not_the_descriptor)
{
	int copy = dup(self->pair[0]), status;
	pid_t pid;

	EXPECT_EQ(attach(copy, NTCOPY_FLAGGED), 0);
	EXPECT_EQ(number_of(self->pair[0]), NTCOPY_FLAGGED);
	close(copy);
	EXPECT_EQ(number_of(self->pair[0]), NTCOPY_FLAGGED);
	pid = fork();
	if (!pid)
		_exit(number_of(self->pair[0]) != NTCOPY_FLAGGED ||
		      attach(self->pair[0], MIB) || unshare(CLONE_NEWNET) ||
		      sent(self->pair, 0) != 60000 || number_of(self->pair[0]) != (int)MIB);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(number_of(self->pair[0]), (int)MIB);
	EXPECT_EQ(info().attached, self->before.attached + 1);
}

/* Through an attached socket, and in flight when no process holds it. */
TEST_F(module, follows_a_socket_that_is_passed_on)
{
	int other[2], fd;

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	EXPECT_EQ(attach(self->pair[0], NTCOPY_FLAGGED), 0);
	EXPECT_EQ(attach(other[0], NTCOPY_MODULE_MIN_BYTES), 0);
	EXPECT_EQ(pass_fd(self->pair[0], other[0]), 0);
	close(other[0]);
	fd = taken_fd(self->pair[1]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(number_of(fd), NTCOPY_MODULE_MIN_BYTES);
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
		    attach(pair.tx, NTCOPY_MODULE_MIN_BYTES) || pass_fd(self->pair[0], pair.tx) ||
		    pass_fd(self->pair[0], pair.rx))
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(status, 0);
	int pair[2] = { taken_fd(self->pair[1]), taken_fd(self->pair[1]) };

	EXPECT_EQ(number_of(pair[0]), NTCOPY_MODULE_MIN_BYTES);
	EXPECT_EQ(sent(pair, 0), 60000);
	close(pair[0]);
	close(pair[1]);
}

int main(int argc, char **argv)
{
	return module_main(argc, argv);
}
