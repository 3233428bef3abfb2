/* SPDX-License-Identifier: GPL-2.0 */
/* What replaces the operations of a TCP socket under the module's eyes. */
#ifndef NTCOPY_MODULE_REPLACE_H
#define NTCOPY_MODULE_REPLACE_H

#include <arpa/inet.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "module.h"

#ifndef SOL_TLS
#define SOL_TLS		282
#endif

static inline int set_ulp(int fd, const char *name)
{
	return own_error(setsockopt(fd, IPPROTO_TCP, TCP_ULP, name, strlen(name)));
}

/* A key for TLS: TLS_TX or TLS_RX. */
static inline int set_key(int fd, int optname)
{
	struct tls12_crypto_info_aes_gcm_128 crypto = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};

	return own_error(setsockopt(fd, SOL_TLS, optname, &crypto, sizeof(crypto)));
}

/* Return: 0, or why there is no TLS here. */
static inline int try_tls(void)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int ret = tls.open(&tls, &pair);

	close_pair(&pair);
	return ret < 0 ? ret : 0;
}

static inline int become(int fd, int family)
{
	return own_error(setsockopt(fd, IPPROTO_IPV6, IPV6_ADDRFORM, &family, sizeof(family)));
}

/* An attached socket of IPv6, connected to an IPv4 address, and who has its data. */
static inline int open_mapped(int type, int *pair)
{
	struct sockaddr_storage addr;
	struct sockaddr_in6 *in6 = (void *)&addr;
	socklen_t len = loopback(AF_INET, &addr);
	int server = socket(AF_INET, type, 0), ret = 0;
	in_port_t port;

	if (bind(server, (void *)&addr, len) || getsockname(server, (void *)&addr, &len) ||
	    (type == SOCK_STREAM && listen(server, 1)))
		return -errno;
	port = ((struct sockaddr_in *)&addr)->sin_port;
	pair[0] = socket(AF_INET6, type, 0);
	ret = attach(pair[0], NTCOPY_SOCK_OBEY);
	if (!ret && become(pair[0], AF_INET) != -ENOTCONN)
		ret = -EPROTO;
	memset(&addr, 0, sizeof(addr));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6->sin6_addr);
	if (connect(pair[0], (void *)in6, sizeof(*in6)))
		return -errno;
	pair[1] = server;
	if (type == SOCK_STREAM) {
		pair[1] = accept(server, NULL, NULL);
		close(server);
	}
	return ret;
}

#endif /* NTCOPY_MODULE_REPLACE_H */
