// SPDX-License-Identifier: GPL-2.0
/* How sockets are hinted: by SO_NTCOPY. */
#include <errno.h>
#include <unistd.h>

#include "scene.h"

bool opt_in = true;

void made_socket(int fd)
{
	if (opt_in)
		set_hint(fd, NTCOPY_FLAGGED);
}

bool kernel_has_ntcopy(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), ret = get_hint(fd);

	close(fd);
	return ret >= 0;
}

/* Return: 0, or -1 and an errno. */
int set_hint(int fd, int value)
{
	return setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, sizeof(value));
}

/* Return: the value, or an error with its sign. */
int get_hint(int fd)
{
	socklen_t len = sizeof(int);
	int value;

	if (getsockopt(fd, SOL_SOCKET, SO_NTCOPY, &value, &len) < 0)
		return -errno;
	return len == sizeof(int) ? value : -EMSGSIZE;
}
