/* SPDX-License-Identifier: GPL-2.0 */
/* What replaces the operations of a socket under the module's eyes. */
#ifndef NTCOPY_MODULE_REPLACE_H
#define NTCOPY_MODULE_REPLACE_H

#include <arpa/inet.h>
#include <netinet/in.h>

#include "module_calls.h"

static inline int become_ipv4(int fd)
{
	int family = AF_INET;

	return own_error(setsockopt(fd, IPPROTO_IPV6, IPV6_ADDRFORM, &family, sizeof(family)));
}

/* A UDP socket of IPv6, connected to an IPv4 address, and who has its data. */
static inline int open_mapped(int *pair)
{
	struct sockaddr_storage addr;
	struct sockaddr_in6 *in6 = (void *)&addr;
	socklen_t len = loopback(AF_INET, &addr);
	in_port_t port;

	pair[0] = socket(AF_INET6, SOCK_DGRAM, 0);
	pair[1] = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(pair[1], (void *)&addr, len) || getsockname(pair[1], (void *)&addr, &len))
		return -errno;
	port = ((struct sockaddr_in *)&addr)->sin_port;
	memset(&addr, 0, sizeof(addr));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6->sin6_addr);
	return own_error(connect(pair[0], (void *)in6, sizeof(*in6)));
}

#endif /* NTCOPY_MODULE_REPLACE_H */
