/* SPDX-License-Identifier: GPL-2.0 */
/* The ioctls of /dev/ntcopy, and descriptors that are passed on. */
#ifndef NTCOPY_MODULE_CALLS_H
#define NTCOPY_MODULE_CALLS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "scene.h"

#define MODULE_SYSFS	"/sys/module/ntcopy/"
#define REFCNT_PATH	MODULE_SYSFS "refcnt"
/* The size of the smallest send that is hinted. */
#define FLOOR_PATH	MODULE_SYSFS "parameters/min_bytes"
#define DISABLE_PATH	MODULE_SYSFS "parameters/disable"

int module_device(void);	/* hint.c */

static inline int call(unsigned long request, int fd, int number)
{
	struct ntcopy_socket arg = { .fd = fd, .min_bytes = number };

	return own_error(ioctl(module_device(), request, &arg));
}

static inline int attach(int fd, int number)
{
	return call(NTCOPY_IOC_ATTACH, fd, number);
}

static inline int detach(int fd)
{
	return call(NTCOPY_IOC_DETACH, fd, 0);
}

/* The number; -1 if it is not attached; -2 if the answer makes no sense. */
static inline int number_of(int fd)
{
	struct ntcopy_socket arg = { .fd = fd, .min_bytes = 77 };

	if (ioctl(module_device(), NTCOPY_IOC_QUERY, &arg) < 0)
		return -errno - 1000;
	if (arg.fd != fd || arg.reserved || arg.flags & ~NTCOPY_SOCKET_ATTACHED)
		return -2;
	return arg.flags ? arg.min_bytes : arg.min_bytes ? -2 : -1;
}

/* One of three that tell which sends are hinted: none, those with the flag, all. */
static inline int some_number(unsigned int any)
{
	static const int numbers[] = { 0, NTCOPY_FLAGGED, NTCOPY_MODULE_MIN_BYTES };

	return numbers[any % ARRAY_SIZE(numbers)];
}

static inline struct ntcopy_module_info info(void)
{
	struct ntcopy_module_info info = { .series = 99 };

	ioctl(module_device(), NTCOPY_IOC_INFO, &info);
	return info;
}

static inline long refcnt(void)
{
	char text[32];

	return read_file(REFCNT_PATH, text, sizeof(text)) < 0 ? -1 : atol(text);
}

#define PASSED_WITH	"x"

/* Each descriptor rides with a byte. */
static inline int pass_fd(int through, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { .iov_base = PASSED_WITH, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(through, &msg, MSG_NTCOPY) == 1 ? 0 : -errno;
}

/* Return: the descriptor, or -1 if none is there. */
static inline int taken_fd(int through)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(through, &msg, MSG_DONTWAIT) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

#endif /* NTCOPY_MODULE_CALLS_H */
