/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Preloaded after libntcopy-preload.so, it sees the calls that come out of it,
 * and keeps the last one that sent, for the program to look at.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The last call that sent: its name, and its flags; -1 where it has none. */
const char *spy_call = "";
int spy_flags = -1;

#define SEEN(name, flags, result, ...)					\
	static __typeof__(&name) next;					\
	if (!next)							\
		next = (__typeof__(next))dlsym(RTLD_NEXT, #name);	\
	spy_call = #name;						\
	spy_flags = flags;						\
	return next(__VA_ARGS__)

ssize_t write(int fd, const void *bytes, size_t size)
{
	SEEN(write, -1, ssize_t, fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *vector, int count)
{
	SEEN(writev, -1, ssize_t, fd, vector, count);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	SEEN(send, flags, ssize_t, fd, bytes, size, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t size, int flags,
	       const struct sockaddr *to, socklen_t to_size)
{
	SEEN(sendto, flags, ssize_t, fd, bytes, size, flags, to, to_size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	SEEN(sendmsg, flags, ssize_t, fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	SEEN(sendmmsg, flags, int, fd, messages, count, flags);
}
