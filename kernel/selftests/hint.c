// SPDX-License-Identifier: GPL-2.0
/*
 * How sockets are hinted: by SO_NTCOPY, or through the module ntcopy.ko on a
 * kernel that does not know it.  A kernel tree has hint_in_tree.c in its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "module_calls.h"
#include "scene.h"

static bool kernel_has_option(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), value, ret;
	socklen_t len = sizeof(value);

	ret = getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &len);
	close(fd);
	return !ret;
}

/* The module's device, or -1 where the kernel needs none, or has none. */
int module_device(void)
{
	static int fd = -2;

	if (fd == -2) {
		fd = kernel_has_option() ? -1 : open(NTCOPY_MODULE_PATH, O_RDWR | O_CLOEXEC);
		/* Scenes send what is smaller than it would hint by itself. */
		if (fd >= 0)
			write_file(FLOOR_PATH, "1");
	}
	return fd;
}

bool via_module(void)
{
	return module_device() >= 0;
}

bool kernel_has_ntcopy(void)
{
	return via_module() || kernel_has_option();
}

bool opt_in = true;

/* A socket that was made.  What the module cannot help, it refuses. */
void made_socket(int fd)
{
	if (opt_in)
		set_hint(fd, NTCOPY_FLAGGED);
}

/* SO_NTCOPY, or what the module has for it.  Return: 0, or -1 and an errno. */
int set_hint(int fd, int value)
{
	struct ntcopy_socket arg = { .fd = fd, .min_bytes = value };

	if (via_module())
		return ioctl(module_device(), NTCOPY_IOC_ATTACH, &arg);
	return setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, sizeof(value));
}

/* Return: the value, or an error with its sign. */
int get_hint(int fd)
{
	struct ntcopy_socket arg = { .fd = fd };
	socklen_t len = sizeof(int);
	int value, ret;

	if (via_module()) {
		ret = own_error(ioctl(module_device(), NTCOPY_IOC_QUERY, &arg));
		return ret < 0 ? ret : arg.min_bytes;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &len) < 0)
		return -errno;
	return len == sizeof(int) ? value : -EMSGSIZE;
}

/* What the module counted, a line each. */
struct counts module_counts(void)
{
	struct counts counts = { 0 };
	char text[256];

	read_file(NTCOPY_MODULE_STAT_PATH, text, sizeof(text));
	if (sscanf(text, NTCOPY_STAT_BYTES " %lld\n" NTCOPY_STAT_HINTED " %lld\n"
		   NTCOPY_STAT_BYPASSED " %lld\n", &counts.bytes, &counts.hinted,
		   &counts.bypassed) != 3) {
		printf("Bail out! %s: %s\n", NTCOPY_MODULE_STAT_PATH, text);
		exit(1);
	}
	return counts;
}

/* Whether sends of such sockets can be hinted: with the module not all can. */
bool can_be_hinted(const struct family *family)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	bool can;

	if (!via_module())
		return true;
	can = family->open(family, &pair) < 0 || get_hint(pair.tx) != -EOPNOTSUPP;
	close_pair(&pair);
	return can;
}
